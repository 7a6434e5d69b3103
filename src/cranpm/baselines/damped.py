"""Damped persistence: tomorrow lies between today and what is usual. What any network learns first."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

import numpy as np

from cranpm.days import LEADS
from cranpm.grid import Array
from cranpm.store import EVERYWHERE, Archive, Window

FIT_DAYS = 150
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

    def usual(self, day: date, window: Window = EVERYWHERE) -> Array:
        """PM2.5 to expect on a day without looking at the day before."""
        return self.mean_ugm3[window] * _cycle(day, self.cycle)

    def forecast(self, today_ugm3: Array, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        """PM2.5 `lead` days after `day`, NaN where today's is."""
        anomaly = today_ugm3 - self.usual(day, window)
        return self.usual(day + timedelta(days=lead), window) + self.rho[lead] * anomaly


def fit_damped(archive: Archive, days: Sequence[date], leads: Sequence[int] = LEADS) -> DampedPersistence:
    """Fitted on training start days (at most 150, evenly spread) and their targets."""
    chosen = [days[index] for index in np.unique(np.linspace(0, len(days) - 1, FIT_DAYS).round().astype(int))]
    total, count = np.zeros(archive.domain.fine.shape), np.zeros(archive.domain.fine.shape)
    level = []
    for day in chosen:
        field = archive.pm25(day)
        valid = np.isfinite(field)
        total += np.where(valid, field, 0)
        count += valid
        level.append(float(np.nanmean(field)))
    mean = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0).astype(np.float32)
    unfinished = DampedPersistence(mean, _fit_cycle(chosen, level), {})
    return DampedPersistence(mean, unfinished.cycle, _fit_rho(archive, chosen, leads, unfinished))


def _fit_cycle(days: Sequence[date], level: Sequence[float]) -> tuple[float, float]:
    if (days[-1] - days[0]).days < YEAR_FOR_CYCLE:
        return 0.0, 0.0
    angles = np.array([_angle(day) for day in days])
    columns = np.stack([np.ones(len(days)), np.cos(angles), np.sin(angles)], axis=1)
    constant, cosine, sine = np.linalg.lstsq(columns, np.array(level), rcond=None)[0]
    return float(cosine / constant), float(sine / constant)


def _fit_rho(
    archive: Archive, days: Sequence[date], leads: Sequence[int], usual: DampedPersistence
) -> dict[int, float]:
    """Least squares through the origin of later anomalies on today's."""
    products, squares = dict.fromkeys(leads, 0.0), dict.fromkeys(leads, 0.0)
    anomaly = lru_cache(maxsize=len(leads) + 1)(lambda day: archive.pm25(day) - usual.usual(day))  # days come again
    for day in days:
        today = anomaly(day)
        for lead in leads:
            later = anomaly(day + timedelta(days=lead))
            both = np.isfinite(today) & np.isfinite(later)
            products[lead] += float((today[both] * later[both]).sum(dtype=np.float64))
            squares[lead] += float((today[both] ** 2).sum(dtype=np.float64))
    return {lead: products[lead] / squares[lead] for lead in leads}


def _angle(day: date) -> float:
    return 2 * math.pi * day.timetuple().tm_yday / 365.25


def _cycle(day: date, cycle: tuple[float, float]) -> float:
    return 1 + cycle[0] * math.cos(_angle(day)) + cycle[1] * math.sin(_angle(day))
