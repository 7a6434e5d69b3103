"""Damped persistence: tomorrow lies between today and what is usual. What any network learns first."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property

import numpy as np

from cranpm.archive.store import Archive
from cranpm.baselines.simple.simple_baseline import SimpleBaseline
from cranpm.core.days import LEADS
from cranpm.core.grid import EVERYWHERE, Array, Window
from cranpm.core.packing import ARCHIVED, STEP_UGM3

FIT_DAYS = 150
FIT_PIXELS = 300_000
"""On larger domains the damping is fitted on every n-th row and column; what is usual, on all pixels."""
YEAR_FOR_CYCLE = 300
"""Training days must span this long for a yearly cycle; with less, what is usual is the mean."""


@dataclass(frozen=True)
class DampedPersistence:
    """x(t+lead) = usual(t+lead) + rho_lead (x(t) - usual(t)).

    What is usual is the mean of the pixel times a yearly cycle of the domain.
    """

    mean_ugm3: Array
    cycle: tuple[float, float]
    """Cosine and sine of the day of the year, relative to the mean."""
    rho: Mapping[int, float]
    changes: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """By lead, how far the mean of the domain fell and rose at most: the later mean over the earlier."""

    @cached_property
    def fingerprint(self) -> str:
        """Of all its numbers."""
        numbers = repr((self.cycle, sorted(self.rho.items()))).encode()
        return hashlib.sha256(self.mean_ugm3.tobytes() + numbers).hexdigest()[:16]

    def usual(self, day: date, window: Window = EVERYWHERE) -> Array:
        """PM2.5 to expect on a day without looking at the day before."""
        return self.mean_ugm3[window] * _cycle(day, self.cycle)

    def forecast(self, today_ugm3: Array, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        """PM2.5 `lead` days after `day`, NaN where today's is."""
        anomaly = today_ugm3 - self.usual(day, window)
        return self.usual(day + timedelta(days=lead), window) + self.rho[lead] * anomaly


def fit_damped(archive: Archive, days: Sequence[date], leads: Sequence[int] = LEADS) -> DampedPersistence:
    """Fitted on training start days (at most 150, evenly spread) and their targets; each day is read once."""
    chosen = [days[index] for index in np.unique(np.linspace(0, len(days) - 1, FIT_DAYS).round().astype(int))]
    shape = archive.domain.fine.shape
    stride = math.ceil(math.sqrt(shape[0] * shape[1] / FIT_PIXELS))
    total, count = np.zeros(shape, np.int32), np.zeros(shape, np.int16)
    level, sample = {}, {}
    for day in sorted({*chosen, *(day + timedelta(days=lead) for day in chosen for lead in leads)}):
        packed = archive.packed_pm25(day)
        sample[day] = packed[::stride, ::stride].copy()
        valid = packed != ARCHIVED.missing
        level[day] = float(packed.mean(where=valid, dtype=np.float64))
        if day in chosen:
            np.add(total, packed, out=total, where=valid)
            count += valid
    mean = np.divide(total, count, out=np.full(shape, np.nan, np.float32), where=count > 0) * np.float32(STEP_UGM3)
    cycle = _fit_cycle(chosen, [level[day] for day in chosen])
    thinned = DampedPersistence(mean[::stride, ::stride], cycle, {})
    anomaly = {day: ARCHIVED.unpack(values) - thinned.usual(day) for day, values in sample.items()}
    ratios = {lead: [level[day + timedelta(days=lead)] / level[day] for day in chosen] for lead in leads}
    return DampedPersistence(
        mean,
        cycle,
        rho={lead: _fit_rho(anomaly, chosen, lead) for lead in leads},
        changes={lead: (min(ratio), max(ratio)) for lead, ratio in ratios.items()},
    )


def _fit_cycle(days: Sequence[date], level: Sequence[float]) -> tuple[float, float]:
    if (days[-1] - days[0]).days < YEAR_FOR_CYCLE:
        return 0.0, 0.0
    angles = np.array([_angle(day) for day in days])
    columns = np.stack([np.ones(len(days)), np.cos(angles), np.sin(angles)], axis=1)
    constant, cosine, sine = np.linalg.lstsq(columns, np.array(level), rcond=None)[0]
    return float(cosine / constant), float(sine / constant)


def _fit_rho(anomaly: Mapping[date, Array], days: Sequence[date], lead: int) -> float:
    """Least squares through the origin of later anomalies on today's."""
    product, square = 0.0, 0.0
    for day in days:
        today, later = anomaly[day], anomaly[day + timedelta(days=lead)]
        both = np.isfinite(today) & np.isfinite(later)
        product += float((today[both] * later[both]).sum(dtype=np.float64))
        square += float((today[both] ** 2).sum(dtype=np.float64))
    return product / square


def _angle(day: date) -> float:
    return 2 * math.pi * day.timetuple().tm_yday / 365.25


def _cycle(day: date, cycle: tuple[float, float]) -> float:
    return 1 + cycle[0] * math.cos(_angle(day)) + cycle[1] * math.sin(_angle(day))


class FittedBaseline(SimpleBaseline):
    """A baseline with numbers that were fitted on training days."""

    def __init__(self, archive: Archive, fitted: DampedPersistence):
        super().__init__(archive)
        self.fitted = fitted

    def identity(self, day: date) -> str:
        return f"{super().identity(day)} {self.fitted.fingerprint}"


class Damped(FittedBaseline):
    """The fitted method on the days of an archive; never below 0."""

    def forecast(self, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        return np.maximum(self.fitted.forecast(self.archive.pm25(day, window), day, lead, window), 0)
