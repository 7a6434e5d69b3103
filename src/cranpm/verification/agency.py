"""What agencies report: exceedances, categories of the air quality index, FAIRMODE's quality indicators."""

from dataclasses import dataclass

import numpy as np

from cranpm.core.air_quality import INDEX_EDGES_UGM3
from cranpm.core.grid import Array
from cranpm.verification.tally import EDGES_UGM3, Tally

URRV, REFERENCE_UGM3, ALPHA, BETA = 0.36, 25.0, 0.5, 2.0
"""FAIRMODE's relative uncertainty at the reference value, that value, the part that does not grow, and the leniency."""
NP, NNP = 20.0, 1.5
"""How much the two parts of the uncertainty shrink in a mean over a year."""
LEAST_SHARE = 0.75
"""Of the days, that a station must have reported."""


@dataclass(frozen=True)
class Exceedance:
    """How well exceedances of a threshold were forecast; shares of the weight."""

    threshold_ugm3: float
    hits: float
    false_alarms: float
    misses: float
    rejections: float

    @classmethod
    def of(cls, tally: Tally, threshold_ugm3: float) -> "Exceedance":
        above = EDGES_UGM3.index(threshold_ugm3) + 1
        joint = tally.joint / max(float(tally.joint.sum()), 1e-300)
        parts = (joint[above:, above:], joint[above:, :above], joint[:above, above:], joint[:above, :above])
        return cls(threshold_ugm3, *(float(part.sum()) for part in parts))

    @property
    def pod(self) -> float:
        """Probability of detection."""
        return _share(self.hits, self.hits + self.misses)

    @property
    def far(self) -> float:
        """Share of alarms that were false."""
        return _share(self.false_alarms, self.hits + self.false_alarms)

    @property
    def csi(self) -> float:
        """Critical success index."""
        return _share(self.hits, self.hits + self.misses + self.false_alarms)

    @property
    def ets(self) -> float:
        """Equitable threat score: CSI beyond what chance would hit."""
        chance = (self.hits + self.misses) * (self.hits + self.false_alarms)
        return _share(self.hits - chance, self.hits + self.misses + self.false_alarms - chance)


def index_agreement(tally: Tally) -> tuple[float, float]:
    """Share of daily means in the right category of the European Air Quality Index, and at most one beside it."""
    category = np.searchsorted([EDGES_UGM3.index(edge) for edge in INDEX_EDGES_UGM3], np.arange(len(tally.joint)))
    off = np.abs(category[:, None] - category[None])
    total = float(tally.joint.sum())
    return _share(float(tally.joint[off == 0].sum()), total), _share(float(tally.joint[off <= 1].sum()), total)


def uncertainty(observed: Array) -> Array:
    """U of a daily mean (ug m-3): URRV sqrt((1 - alpha^2) O^2 + alpha^2 RV^2)."""
    return URRV * np.sqrt((1 - ALPHA**2) * observed**2 + (ALPHA * REFERENCE_UGM3) ** 2)


@dataclass(frozen=True)
class Quality:
    """FAIRMODE's indicators, one value per station (NaN: too few days); a station fulfils the objective up to 1."""

    mqi: Array
    """Root mean squared error over twice that of the measurement."""
    mqi_year: Array
    """The same of the mean over the period."""
    mqi_forecast: Array
    """Error over that of persistence, to which the uncertainty of the measurement is added."""
    target_x: Array
    """Error without bias, normalised as MQI: negative where correlation, positive where variance is to blame."""
    target_y: Array
    """Bias, normalised as MQI."""

    @property
    def mqi_90(self) -> float:
        return ninetieth(self.mqi)

    @property
    def mqi_year_90(self) -> float:
        return ninetieth(self.mqi_year)

    @property
    def mqi_forecast_90(self) -> float:
        return ninetieth(self.mqi_forecast)


def fairmode(forecast: Array, observed: Array, at_start: Array) -> Quality:
    """Indicators from (day, station) arrays of PM2.5; `at_start` is what was observed on the start day."""
    both = np.isfinite(forecast) & np.isfinite(observed)
    f, o = np.where(both, forecast, np.nan).astype(np.float64), np.where(both, observed, np.nan).astype(np.float64)
    enough = both.sum(axis=0) >= LEAST_SHARE * len(both)

    def mean(values: Array) -> Array:
        """Over days, NaN for stations with too few."""
        count = np.isfinite(values).sum(axis=0)
        total = np.nansum(values, axis=0)
        return np.where(enough & (count > 0), total / np.maximum(count, 1), np.nan)

    norm = BETA * np.sqrt(mean(uncertainty(o) ** 2))
    bias = mean(f) - mean(o)
    spread_f, spread_o = (np.sqrt(np.maximum(mean(x**2) - mean(x) ** 2, 0)) for x in (f, o))
    scatter = np.sqrt(np.maximum(mean((f - o) ** 2) - bias**2, 0))
    both_vary = np.maximum(spread_f * spread_o, 1e-12)
    correlation = (mean(f * o) - mean(f) * mean(o)) / both_vary
    by_correlation = 2 * spread_f * spread_o * (1 - correlation)
    by_spread = (spread_f - spread_o) ** 2
    yearly = URRV * np.sqrt((1 - ALPHA**2) / NP * mean(o) ** 2 + (ALPHA * REFERENCE_UGM3) ** 2 / NNP)
    stale = np.abs(at_start - o) + uncertainty(at_start)
    known = np.isfinite(stale)
    errors, stales = (np.where(known, x**2, np.nan) for x in (f - o, stale))
    often = np.where(known.sum(axis=0) >= LEAST_SHARE * len(known), 1.0, np.nan)
    return Quality(
        mqi=np.sqrt(mean((f - o) ** 2)) / norm,
        mqi_year=np.abs(bias) / (BETA * yearly),
        mqi_forecast=often * np.sqrt(mean(errors) / mean(stales)),
        target_x=np.where(by_spread > by_correlation, 1, -1) * scatter / norm,
        target_y=bias / norm,
    )


def ninetieth(values: Array) -> float:
    """FAIRMODE's 90th percentile over stations, between the two stations next to it."""
    ordered = np.sort(values[np.isfinite(values)])
    if len(ordered) < 2:
        return float("nan")
    place = 0.9 * len(ordered)
    below = int(place)
    return float(ordered[below - 1] + (ordered[below] - ordered[below - 1]) * (place - below))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
