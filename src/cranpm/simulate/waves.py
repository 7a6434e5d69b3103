"""Random fields that are pure functions of seed, time and place: sums of travelling plane waves.

Each wave has a wavelength, a drift and a complex amplitude that wanders: independent draws at knots in time,
joined by a spline. Knots far apart make a field that its past predicts well; knots close together make one that
it does not. This is the only source of chance in the simulated weather, and its memory sets how predictable it is.
"""

import math
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numba
import numpy as np

from cranpm.core.grid import EARTH_RADIUS_KM, Array, Grid

EPOCH = date(2000, 1, 1)
WANDER = math.acos(0.9)
"""Radians by which the errors of a forecast turn per day of lead: those of consecutive leads correlate by 0.9."""
M_PER_DEGREE = math.radians(1) * EARTH_RADIUS_KM * 1000


def hours_since_epoch(day: date, hour: float = 0.0) -> float:
    """Time as the weather counts it."""
    return (day - EPOCH).days * 24 + hour


def day_of_year(hours: float) -> float:
    """Fractional day of the year, 0 on 1 January, as a smooth annual phase (period 365.25 days)."""
    return (hours / 24) % 365.25


@dataclass(frozen=True)
class WaveSettings:
    """One family of waves."""

    count: int
    """How many plane waves."""
    shortest_km: float
    longest_km: float
    memory_h: float
    """Hours between independent amplitudes."""
    drift_ms: float
    """Eastward speed of short waves; long ones are held back by the Rossby dispersion."""
    rms: float
    """Root mean square of the field, or of its gradient where `by_gradient` (a wind, m/s, for a streamfunction)."""
    by_gradient: bool = False
    run_error: float = 0.0
    run_growth: float = 0.4
    """How forecasts lose these waves: see `kept`."""

    def kept(self, lead: int) -> float:
        """Correlation of a forecast's amplitudes with the true ones, by lead in days: 1 at lead 0.

        1 / (1 + error (e^(growth lead) - 1)): a small error grows exponentially and levels off (Lorenz 1982).
        """
        return 1 / (1 + self.run_error * (math.exp(self.run_growth * lead) - 1))


class Waves:
    """A random field made of one family of waves, evaluated on grids by `WaveGrid`."""

    def __init__(self, settings: WaveSettings, seed: int, tag: str, reference_latitude: float):
        self.settings, self.seed, self.tag = settings, seed, tag
        self.zonal_m_per_degree = M_PER_DEGREE * math.cos(math.radians(reference_latitude))
        rng = self._rng(-1)
        length = np.exp(rng.uniform(np.log(settings.shortest_km), np.log(settings.longest_km), settings.count)) * 1e3
        angle = rng.uniform(-np.pi / 2, np.pi / 2, settings.count)
        number = 2 * np.pi / length
        self.k, self.l = number * np.cos(angle), number * np.sin(angle)
        slope = number**-1.5
        self.weight = slope / np.sqrt(np.sum(slope**2 * (number**2 if settings.by_gradient else 1)))
        self.weight *= settings.rms
        beta = 2 * 7.292e-5 * math.cos(math.radians(reference_latitude)) / (EARTH_RADIUS_KM * 1e3)
        self.frequency = self.k * np.maximum(settings.drift_ms - beta / number**2, -5.0)

    def _rng(self, knot: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *self.tag.encode(), knot + 2**20])

    @lru_cache(maxsize=256)  # noqa: B019  (a few kilobytes a draw, shared by all worlds of the process)
    def _draw(self, knot: int) -> Array:
        pair = self._rng(knot).standard_normal((2, self.settings.count))
        return pair[0] + 1j * pair[1]

    @lru_cache(maxsize=256)  # noqa: B019  (a few kilobytes a run)
    def _draw_run(self, start_h: float) -> tuple[Array, Array]:
        """Two draws, of the size of the true ones, that belong to the forecast run of one start day."""
        rng = np.random.default_rng([self.seed, *f"{self.tag}-run".encode(), round(start_h / 24)])
        parts = rng.standard_normal((2, 2, self.settings.count))
        return parts[0, 0] + 1j * parts[0, 1], parts[1, 0] + 1j * parts[1, 1]

    @lru_cache(maxsize=64)  # noqa: B019  (a few kilobytes; one hour's are used many times in a row)
    def amplitude(self, hours: float, start_h: float | None = None) -> Array:
        """Complex amplitude of every wave at one time; with `start_h`, as forecast for a start day that began then.

        The forecast keeps a share of the truth and fills up with chance that drifts like the truth and turns slowly
        with lead. Its lead is counted in whole days; on the start day itself it is the truth.
        """
        true, lead = self._true_amplitude(hours), 0 if start_h is None else math.floor((hours - start_h) / 24)
        if start_h is not None and lead > 0:
            one, two = self._draw_run(start_h)
            chance = math.cos(WANDER * lead) * one + math.sin(WANDER * lead) * two
            drifted = self.weight * chance * np.exp(-1j * self.frequency * hours * 3600)
            kept = self.settings.kept(lead)
            true = kept * true + math.sqrt(1 - kept**2) * drifted
        true.flags.writeable = False
        return true

    def _true_amplitude(self, hours: float) -> Array:
        position = hours / self.settings.memory_h
        knot = math.floor(position)
        t = position - knot
        spline = np.array([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3])
        spline /= np.linalg.norm(spline)
        drawn = sum(share * self._draw(knot + offset - 1) for offset, share in enumerate(spline))
        return self.weight * drawn * np.exp(-1j * self.frequency * hours * 3600)

    def mean_amplitude(self, hours: list[float], start_h: float | None = None) -> Array:
        """Amplitude averaged over several times."""
        return np.mean([self.amplitude(hour, start_h) for hour in hours], axis=0)


class WaveGrid:
    """The waves' sines and cosines on one grid, so that a field is one weighted sum of them."""

    def __init__(self, waves: Waves, grid: Grid):
        self.waves = waves
        # Waves are straight on a plane with the metres of one latitude; slopes are per true metre.
        self.narrowing = (waves.zonal_m_per_degree / M_PER_DEGREE / np.cos(np.radians(grid.lat)))[:, None]
        east = np.exp(1j * np.outer(waves.k, grid.lon * waves.zonal_m_per_degree))
        self.east = np.concatenate([east.real, east.imag]).astype(np.float32)
        self.north = np.exp(1j * np.outer(grid.lat * M_PER_DEGREE, waves.l)).astype(np.complex64)

    def field(self, amplitude: Array, *, dx: int = 0, dy: int = 0) -> Array:
        """The field, or its derivatives per true metre eastward (dx) and northward (dy)."""
        factor = amplitude * (1j * self.waves.k) ** dx * (1j * self.waves.l) ** dy
        rows = (self.north * self.narrowing**dx * factor).astype(np.complex64)
        return _sum_waves(np.concatenate([rows.real, -rows.imag], axis=1), self.east)


@numba.njit(parallel=True, cache=True)
def _sum_waves(rows: Array, east: Array) -> Array:  # pragma: no cover
    """rows @ east, always added up in the same order: a library's product depends on its number of threads."""
    out = np.zeros((rows.shape[0], east.shape[1]), np.float32)
    for r in numba.prange(rows.shape[0]):
        for wave in range(east.shape[0]):
            for c in range(east.shape[1]):
                out[r, c] += rows[r, wave] * east[wave, c]
    return out
