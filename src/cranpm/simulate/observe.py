"""What instruments make of the simulated air: a CAMS-like analysis, a GHAP-like retrieval, and stations."""

import math
from dataclasses import dataclass
from datetime import date

import numba
import numpy as np
from scipy import ndimage

from cranpm.archive.day_data import Stations
from cranpm.core.geography import Region
from cranpm.core.grid import Array, Grid
from cranpm.simulate.air import AirDay
from cranpm.simulate.waves import WaveGrid, Waves, WaveSettings, hours_since_epoch
from cranpm.simulate.weather import Levels

CAMS_ERROR = WaveSettings(40, 500, 2500, memory_h=90, drift_ms=3, rms=0.34, run_error=0.03)
CAMS_BIAS = WaveSettings(30, 600, 3000, memory_h=1e9, drift_ms=0, rms=0.28)
CAMS_GROWTH = 0.02
"""Share by which the CAMS-like forecast's own error is larger, per day of lead."""
CAMS_LEVEL, CAMS_BLUR_CELLS = 1.05, 3.0
SATURATION_UGM3 = {"pm25": 1900.0, "pm10": 1950.0, "no2": 950.0, "co": 1.9e4}
"""Where instruments and the composition model stop."""
STATIONS_PER_REGION = 3000
KINDS, KIND_SHARES, KIND_LEVEL = (
    ("background", "traffic", "industrial"),
    (0.68, 0.23, 0.09),
    {"background": 1.0, "traffic": 1.2, "industrial": 1.1},
)
REPRESENTATIVENESS, DAILY_ERROR, OUTAGE = 0.14, 0.12, 0.07


class CamsLike:
    """A 25-km composition model that sees the weather but blurs the air and errs in its emissions."""

    def __init__(self, seed: int, grid: Grid, reference_latitude: float):
        self.error = WaveGrid(Waves(CAMS_ERROR, seed, "cams-error", reference_latitude), grid)
        bias = WaveGrid(Waves(CAMS_BIAS, seed, "cams-bias", reference_latitude), grid)
        self.bias = bias.field(bias.waves.amplitude(0.0))

    def composition(self, air: AirDay, day: date, start: date | None = None) -> Levels:
        """The five CAMS-like fields, ug m-3, from daily means on the coarse grid.

        With `start`, as forecast on that day: an error that is the run's own to a share that grows with lead.
        """
        start_h = None if start is None else hours_since_epoch(start)
        growth = 1.0 if start is None else 1 + CAMS_GROWTH * (day - start).days
        error = self.error.field(growth * self.error.waves.amplitude(hours_since_epoch(day, 12), start_h))
        wrong = self.bias + error
        pm25 = CAMS_LEVEL * ndimage.gaussian_filter(air.pm25_ugm3, CAMS_BLUR_CELLS, mode="nearest") * np.exp(wrong)
        fresh = ndimage.gaussian_filter(air.fresh_ugm3, 1.0, mode="nearest") * np.exp(0.5 * wrong)
        sun = np.clip((air.t2m - 263) / 35, 0, 1)
        no2 = 1.5 + 18 * fresh / (0.5 + sun)
        salt = 0.9 * np.clip(np.hypot(air.u10, air.v10) - 4, 0, None)
        return {
            ("pm25", None): np.minimum(pm25, SATURATION_UGM3["pm25"]),
            ("pm10", None): np.minimum(1.35 * pm25 + 3 + salt, SATURATION_UGM3["pm10"]),
            ("no2", None): np.minimum(no2, SATURATION_UGM3["no2"]),
            ("o3", None): np.clip(45 + 70 * sun - 0.7 * no2 + 6 * self.bias, 2, 480),
            ("co", None): np.minimum(120 + 5.5 * pm25 + 2 * no2, SATURATION_UGM3["co"]),
        }


def retrieve(truth_ugm3: Array, grid: Grid, noise: float, key: int, every: int = 1) -> Array:
    """The truth as a satellite product would show it: log-normal noise, smooth over 10 km plus a little per pixel.

    `grid` is the whole fine grid; with `every`, the truth is one pixel in every `every` x `every` of it.
    """
    if noise == 0:
        return truth_ugm3
    first_row, first_col = round((90 - grid.north) / grid.step), round((grid.west + 180) / grid.step)
    rows = first_row + np.arange(every // 2, grid.rows, every)
    cols = first_col + np.arange(every // 2, grid.cols, every)
    return _retrieve(truth_ugm3, rows, cols, noise, np.uint64(key))


NOISE_CELL = 10
"""Pixels between independent values of the smooth noise."""


@numba.njit(parallel=True, cache=True)
def _retrieve(truth: Array, rows: Array, cols: Array, noise: float, key: np.uint64) -> Array:  # pragma: no cover
    """Noise is a function of day and place on Earth alone, so that every domain sees the same."""
    out = np.empty_like(truth)
    first = cols[0] // NOISE_CELL
    cells = cols[-1] // NOISE_CELL - first + 2
    for r in numba.prange(rows.size):
        row = rows[r]
        down = _ease((row % NOISE_CELL) / NOISE_CELL)
        line = np.empty(cells)
        for k in range(cells):
            above = _normal(row // NOISE_CELL, first + k, key)
            line[k] = (1 - down) * above + down * _normal(row // NOISE_CELL + 1, first + k, key)
        for c in range(cols.size):
            value = truth[r, c]
            if value == value:
                k = cols[c] // NOISE_CELL - first
                right = _ease((cols[c] % NOISE_CELL) / NOISE_CELL)
                smooth = (1 - right) * line[k] + right * line[k + 1]
                value *= math.exp(noise * (1.2 * smooth + 0.35 * _normal(row, cols[c], key + np.uint64(1))))
            out[r, c] = value
    return out


@numba.njit(cache=True, inline="always")
def _ease(t: float) -> float:  # pragma: no cover
    return t * t * (3 - 2 * t)


@numba.njit(cache=True, inline="always")
def _normal(row: int, col: int, key: np.uint64) -> float:  # pragma: no cover
    """A nearly normal number from a hash of place and key (SplitMix64; the sum of four uniform 16-bit parts)."""
    x = np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(col) * np.uint64(0xC2B2AE3D27D4EB4F) ^ key
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    low = np.uint64(0xFFFF)
    total = (
        float(x & low)
        + float((x >> np.uint64(16)) & low)
        + float((x >> np.uint64(32)) & low)
        + float((x >> np.uint64(48)) & low)
    )
    return (total / 65535.0 - 2.0) * 1.7320508075688772


@dataclass(frozen=True)
class Network:
    """Stations of a domain, and how each of them errs."""

    stations: Stations
    serial: Array
    """Number of each station in its region: the key of its errors."""
    level: Array
    """What the station reads where the pixel has 1."""

    def report(self, truth_ugm3: Array, grid: Grid, seed: int, day: date) -> Array:
        """Readings of one day, NaN where a station was silent."""
        rows, cols = grid.row_col(self.stations.lat, self.stations.lon)
        nearest = [
            np.clip(np.round(x).astype(int), 0, size - 1) for x, size in zip((rows, cols), grid.shape, strict=True)
        ]
        day_number = day.toordinal()
        errors = np.random.default_rng([seed, 31, day_number]).standard_normal(STATIONS_PER_REGION)
        # Outages come in weeks, not in single days.
        silent = np.random.default_rng([seed, 37, day_number // 7]).uniform(size=STATIONS_PER_REGION) < OUTAGE
        reading = truth_ugm3[nearest[0], nearest[1]] * self.level * np.exp(DAILY_ERROR * errors[self.serial])
        reading = np.minimum(reading, SATURATION_UGM3["pm25"])
        return np.where(silent[self.serial], np.nan, reading).astype(np.float32)


def place_stations(region: Region, grid: Grid, land: Array, elevation_m: Array, seed: int) -> Network:
    """Stations at the region's towns, the larger the likelier; those on the domain's land."""
    rng = np.random.default_rng([seed, 41])
    towns = region.towns
    chance = towns.population**0.35
    count = min(STATIONS_PER_REGION, len(towns))
    chosen = np.sort(rng.choice(len(towns), count, replace=False, p=chance / chance.sum()))
    kind = rng.choice(KINDS, count, p=KIND_SHARES)
    population = towns.population[chosen]
    area = np.where(population > 60_000, "urban", np.where(population > 15_000, "suburban", "rural"))
    offset = np.where(area == "rural", 0.06, 0.015)
    lat = np.round(towns.lat[chosen] + rng.normal(0, 1, count) * offset, 5)
    lon = np.round(towns.lon[chosen] + rng.normal(0, 1, count) * offset / np.cos(np.radians(lat)), 5)
    level = np.exp(REPRESENTATIVENESS * rng.standard_normal(count)) * np.array([KIND_LEVEL[name] for name in kind])
    rows, cols = (np.round(x).astype(int) for x in grid.row_col(lat, lon))
    inside = (rows >= 0) & (rows < grid.rows) & (cols >= 0) & (cols < grid.cols)
    inside[inside] = land[rows[inside], cols[inside]]
    stations = Stations(
        ids=np.array([f"SIM{town:05d}" for town in chosen[inside]]),
        lat=lat[inside],
        lon=lon[inside],
        altitude_m=elevation_m[rows[inside], cols[inside]].astype(np.float32),
        country=towns.countries[chosen[inside]],
        kind=kind[inside],
        area=area[inside],
    )
    return Network(stations, np.flatnonzero(inside), level[inside])
