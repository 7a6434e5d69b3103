"""How certain a difference is: days are drawn again in blocks, because neighbouring days resemble each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

import numpy as np
from scipy.stats import norm as normal
from scipy.stats import t as student

from cranpm.core.grid import Array

BLOCK_DAYS = 7
LEAST_BLOCKS = 4
"""With fewer nothing is said about certainty."""
DRAWS = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A value and where it lies with 95 % confidence; NaN where too few days were drawn from."""

    value: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether 0 lies outside."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Resamples:
    """How often each day occurs in each resample, (resample, day), with blocks of a week and of half that length."""

    block: int
    counts: Array
    short_block: int
    short_counts: Array

    def totals(self, sums: Array) -> tuple[Array, Array, Array]:
        """Of sums (day, ...): the total over the days as they are, and (resample, ...) with long and short blocks."""
        flat = sums.reshape(len(sums), -1)
        drawn = ((counts @ flat).reshape(len(counts), *sums.shape[1:]) for counts in (self.counts, self.short_counts))
        return sums.sum(axis=0), *drawn

    def interval(self, value: Array, values: Array, short: Array) -> Interval:
        """From a number and what it is in each resample with long and with short blocks.

        Blocks cut the memory that crosses their borders, so their spread is too small by a part that grows as
        1 / length. Two lengths show how large it is, and the interval is widened by it; and for the number of blocks,
        as Student's is.
        """
        middle, days = float(value), self.counts.shape[1]
        if days < LEAST_BLOCKS * self.block or not np.isfinite(values).any():
            return Interval(middle, np.nan, np.nan)
        tail = 100 * (1 - LEVEL) / 2
        low, high = np.nanpercentile(values, [tail, 100 - tail])
        spreads = float(np.nanvar(values)), float(np.nanvar(short))
        wider = _widening(*spreads, self) * _few_blocks(days / self.block)
        return Interval(middle, middle + wider * (float(low) - middle), middle + wider * (float(high) - middle))


def resample_days(days: int, block: int = BLOCK_DAYS, draws: int = DRAWS, seed: int = 0) -> Resamples:
    """Moving blocks (Kuensch 1989), cut to the number of days."""
    block = min(block, days)
    short = max(1, block // 2)
    return Resamples(block, _draw(days, block, draws, seed), short, _draw(days, short, draws, seed + 1))


def _draw(days: int, block: int, draws: int, seed: int) -> Array:
    starts = np.random.default_rng(seed).integers(0, days - block + 1, (draws, -(-days // block)))
    drawn = (starts[:, :, None] + np.arange(block)).reshape(draws, -1)[:, :days]
    counts = np.zeros((draws, days), np.int32)
    np.add.at(counts, (np.arange(draws)[:, None], drawn), 1)
    return counts


def interval(sums: Array, statistic: Callable[[Array], Array], draws: Resamples) -> Interval:
    """Of a statistic of sums over days: `sums` is (day, ...), `statistic` maps (..., of sums) to numbers."""
    return draws.interval(*(statistic(totals) for totals in draws.totals(sums)))


def resamples_for(days: Sequence[date]) -> Resamples:
    """Resamples of start days; blocks span a week whatever the step between the days."""
    steps = [(after - before).days for before, after in pairwise(days)]
    return resample_days(len(days), max(1, round(BLOCK_DAYS / float(np.median(steps or [1])))))


def rmse_change(sums: Array, draws: Resamples) -> Interval:
    """RMSE of one method relative to another's in percent, from (day, [method, other], [weight, squared error])."""

    def change(totals: Array) -> Array:
        own, other = np.moveaxis(_root_mean(totals), -1, 0)
        return 100 * (np.divide(own, other, out=np.full(own.shape, np.nan), where=other > 0) - 1)

    if np.array_equal(sums[:, 0], sums[:, 1]):
        return Interval(0.0, 0.0, 0.0)  # the same forecast, whatever is drawn
    return interval(sums, change, draws)


def _root_mean(totals: Array) -> Array:
    """Square root of the mean from (..., [weight, sum of squares]); NaN where nothing was counted."""
    weight, squared = totals[..., 0], np.maximum(totals[..., 1], 0)
    return np.sqrt(np.divide(squared, weight, out=np.full(weight.shape, np.nan), where=weight > 0))


def _widening(variance: float, short_variance: float, draws: Resamples) -> float:
    """Spread with blocks of unlimited length over that with the given ones; never below 1."""
    if draws.block == draws.short_block or variance <= 0:
        return 1.0
    unlimited = (draws.block * variance - draws.short_block * short_variance) / (draws.block - draws.short_block)
    return float(np.sqrt(max(1.0, unlimited / variance)))


def _few_blocks(blocks: float) -> float:
    """How much wider an interval from so many blocks must be than one from very many."""
    tail, freedom = 0.5 + LEVEL / 2, max(blocks - 1, 1.0)
    return float(student.ppf(tail, freedom) / normal.ppf(tail) * np.sqrt((freedom + 1) / freedom))
