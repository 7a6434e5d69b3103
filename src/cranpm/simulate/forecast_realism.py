"""How good the synthetic world's forecasts are, by lead, with the ranges that this project wants.

Forecasts wait until the day that they are of arrives, so that years of a continent need no more memory than some days.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np

from cranpm.archive.store import Archive
from cranpm.core.channels import CHANNELS, Channel, channels_of, find_channel
from cranpm.core.days import LONGEST_LEAD
from cranpm.core.grid import Array

SCORED = ("u10", "v10", "t2m", "tp", "cams_pm25")
"""Channels whose forecasts are judged."""
WIND_CORRELATION = {1: (0.95, 0.99), 2: (0.92, 0.96), 3: (0.88, 0.92), 4: (0.82, 0.86), 5: (0.73, 0.79)}
TEMPERATURE_RMSE_K = {1: (0.75, 1.25), 2: (1.08, 1.58), 3: (1.4, 1.9), 4: (1.73, 2.23), 5: (2.05, 2.55)}
"""Wanted ranges by lead; further leads are shown without one."""

Forecasts = Mapping[int, Array]
"""By lead in days: the scored channels, (channel, row, col)."""


@dataclass(frozen=True)
class Check:
    """One figure of the report; `low` and `high` are the wanted range, None where there is none."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def holds(self) -> bool:
        return (self.low is None or self.value >= self.low) and (self.high is None or self.value <= self.high)


def scored(channels: Sequence[Channel]) -> list[int]:
    """Where the scored channels lie among some."""
    wanted = (CHANNELS[name] for name in SCORED)
    return [find_channel(channels, channel.quantity, channel.level_hpa) for channel in wanted]


def stored_forecasts(archive: Archive, day: date) -> dict[int, Array]:
    """The scored channels of what an archive holds for a start day."""
    groups = {group: archive.ahead.leads(day, group) for group in ("weather", "composition")}
    order = [channel for group in groups for channel in channels_of(archive.channels, group)]
    return {
        lead: np.concatenate([archive.ahead.fields(day, lead, group) for group in groups])[scored(order)]
        for lead in set.intersection(*map(set, groups.values()))
    }


@dataclass
class Sums:
    """Sums over days of one lead, per channel and cell."""

    days: int = 0
    total: dict[str, Array] = field(default_factory=dict)

    def add(self, **values: Array) -> None:
        self.days += 1
        for name, value in values.items():
            self.total[name] = self.total.get(name, 0) + value.astype(float)

    def mean(self, name: str) -> Array:
        return self.total[name] / self.days

    def covariance(self, one: str, other: str) -> Array:
        """Per channel and cell; needs the product's sum under both names."""
        return self.mean(one + other) - self.mean(one) * self.mean(other)


class ForecastScores:
    """Statistics of forecasts against the days as they came, gathered day by day in order."""

    def __init__(self) -> None:
        self._waiting: dict[date, dict[int, Array]] = {}
        self._errors: dict[date, Array] = {}
        self._sums: dict[int, Sums] = {}
        self._pairs = Sums()

    def add(self, day: date, pm25_ugm3: Array, coarse: Array, forecasts: Forecasts) -> None:
        """A day: PM2.5 at one pixel per cell, the scored channels as they came, and forecasts made on it."""
        for lead, forecast in sorted(self._waiting.pop(day, {}).items()):
            self._score(day - timedelta(days=lead), lead, forecast, coarse, pm25_ugm3)
        for lead, forecast in forecasts.items():
            rows, cols = pm25_ugm3.shape
            self._waiting.setdefault(day + timedelta(days=lead), {})[lead] = forecast[:, :rows, :cols]

    def _score(self, start: date, lead: int, forecast: Array, truth: Array, pm25_ugm3: Array) -> None:
        f, t = forecast.astype(float), truth.astype(float)
        error = f - t
        analysis, forecast_pm25 = ((x[-1] - pm25_ugm3) ** 2 for x in (t, f))
        sums = self._sums.setdefault(lead, Sums())
        sums.add(f=f, t=t, ff=f * f, tt=t * t, ft=f * t, ee=error**2, analysis=analysis, pm25=forecast_pm25)
        before = self._errors.pop(start, None)
        if before is not None:
            self._pairs.add(ab=before * error, aa=before**2, bb=error**2)
        self._errors[start] = error
        self._errors = {day: kept for day, kept in self._errors.items() if (start - day).days < LONGEST_LEAD}

    def checks(self) -> list[Check]:
        """All figures, by lead; none without forecasts."""
        leads = sorted(lead for lead, sums in self._sums.items() if sums.days > 1)
        if not leads:
            return []
        wind = {lead: self._correlation(lead, ("u10", "v10")) for lead in leads}
        rain = {lead: self._correlation(lead, ("tp",)) for lead in leads}
        warmth = {lead: self._rmse(lead, "t2m") for lead in leads}
        cams = {lead: self._cams(lead) for lead in leads}
        checks = [_at("wind at 10 m, correlation", lead, wind[lead], WIND_CORRELATION) for lead in leads]
        checks += [_at("temperature at 2 m, RMSE, K", lead, warmth[lead], TEMPERATURE_RMSE_K) for lead in leads]
        checks += [
            Check(_name("rain, correlation (below the wind's)", lead), rain[lead], 0, wind[lead]) for lead in leads
        ]
        if self._pairs.days:
            checks += [self._consecutive("wind", ("u10", "v10")), self._consecutive("temperature", ("t2m",))]
        # Growing from the first lead to the last; between them the chance of a few months is larger than the growth.
        least = dict.fromkeys(leads, 1.0) | {leads[-1]: max(1.0, cams[leads[0]])}
        return checks + [Check(_name(CAMS, lead), cams[lead], least[lead], 1.08) for lead in leads]

    def _correlation(self, lead: int, names: Sequence[str]) -> float:
        """Of the departures from every cell's own mean, all cells together."""
        sums, own = self._sums[lead], [SCORED.index(name) for name in names]
        both, one, other = (sums.covariance(*pair)[own].sum() for pair in (("f", "t"), ("f", "f"), ("t", "t")))
        return float(both / np.sqrt(one * other))

    def _rmse(self, lead: int, name: str) -> float:
        return float(np.sqrt(self._sums[lead].mean("ee")[SCORED.index(name)].mean()))

    def _cams(self, lead: int) -> float:
        """RMSE of the CAMS-like forecast's PM2.5 over that of the analysis of the same days, against land pixels."""
        forecast, analysis = (np.nanmean(self._sums[lead].mean(name)) for name in ("pm25", "analysis"))
        return float(np.sqrt(forecast / analysis))

    def _consecutive(self, what: str, names: Sequence[str]) -> Check:
        own = [SCORED.index(name) for name in names]
        both, one, other = (self._pairs.mean(name)[own].sum() for name in ("ab", "aa", "bb"))
        name = f"forecast of {what}: correlation of errors of consecutive leads"
        return Check(name, float(both / np.sqrt(one * other)), 0.5, 0.98)


CAMS = "CAMS-like PM2.5, RMSE relative to the analysis'"


def _name(what: str, lead: int) -> str:
    return f"forecast of {what} at T+{lead}"


def _at(what: str, lead: int, value: float, wanted: Mapping[int, tuple[float, float]]) -> Check:
    return Check(_name(what, lead), value, *wanted.get(lead, (None, None)))
