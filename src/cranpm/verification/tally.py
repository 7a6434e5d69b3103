"""Sums from which every statistic of forecasts against truth follows. Sums of parts add up to those of the whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np

from cranpm.core.grid import Array
from cranpm.verification.statistics import STATISTICS, Metric, Pixels, Statistic, ratio

EDGES_UGM3 = (5.0, 10.0, 15.0, 20.0, 25.0, 50.0, 75.0)
"""Borders of the bins of concentration; a border belongs to the bin below it. Thresholds are among them."""
BINS = len(EDGES_UGM3) + 1
MOMENTS = 7
"""Weight, forecast, truth, forecast squared, truth squared, their product, absolute error."""


@dataclass(frozen=True)
class Tally:
    """Weighted sums over pixels or pairs, for any number of groups at once (the leading axes)."""

    moments: Array
    """(..., bin of the truth, moment)."""
    joint: Array
    """(..., bin of the forecast, bin of the truth): weight."""

    @classmethod
    def zero(cls, *groups: int) -> "Tally":
        return cls(np.zeros((*groups, BINS, MOMENTS)), np.zeros((*groups, BINS, BINS)))

    @classmethod
    def of(cls, forecast: Array, truth: Array, weight: Array | float = 1.0) -> "Tally":
        """Of two fields of the same shape; where one of them is missing, nothing counts."""
        fields = [np.atleast_2d(np.asarray(field)) for field in (forecast, truth)]
        if fields[0].shape != fields[1].shape:
            raise ValueError(f"a forecast of {fields[0].shape} pixels against a truth of {fields[1].shape}")
        spread = np.broadcast_to(np.asarray(weight, np.float64), fields[0].shape)
        tally = cls.zero()
        _count(fields[0], fields[1], spread, np.array(EDGES_UGM3), tally.moments, tally.joint)
        return tally

    @classmethod
    def unpacked(cls, sums: Array) -> "Tally":
        """From (..., bin, [moments, bins of the forecast])."""
        return cls(sums[..., :MOMENTS], np.swapaxes(sums[..., MOMENTS:], -1, -2))

    @property
    def packed(self) -> Array:
        """(..., bin of the truth, [moments, bins of the forecast])."""
        return np.concatenate([self.moments, np.swapaxes(self.joint, -1, -2)], axis=-1)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.moments + other.moments, self.joint + other.joint)

    def __getitem__(self, group: Any) -> "Tally":
        """Of some of the groups."""
        return Tally(self.moments[group], self.joint[group])

    def add(self, group: Any, other: "Tally") -> None:
        """Count another tally among one of the groups."""
        self.moments[group] += other.moments
        self.joint[group] += other.joint

    def sum(self, axis: int | tuple[int, ...] = 0) -> "Tally":
        """Of all groups along leading axes together."""
        return Tally(self.moments.sum(axis=axis), self.joint.sum(axis=axis))

    @property
    def totals(self) -> Array:
        """(..., moment) over all bins."""
        return self.moments.sum(axis=-2)

    @property
    def weight(self) -> Array:
        return self.totals[..., 0]

    @property
    def squared(self) -> Array:
        """(..., [weight, squared error])."""
        return np.stack([self.weight, _squares(self.totals)], axis=-1)

    @property
    def rmse(self) -> Array:
        return np.sqrt(mean_square(self.totals))

    @property
    def mae(self) -> Array:
        return ratio(self.totals[..., 6], self.weight)

    @property
    def bias(self) -> Array:
        """Mean of forecast - truth."""
        return ratio(self.totals[..., 1] - self.totals[..., 2], self.weight)

    @property
    def mean_truth(self) -> Array:
        return ratio(self.totals[..., 2], self.weight)

    @property
    def correlation(self) -> Array:
        forecast, truth, both = _covariances(self.totals)
        return ratio(both, np.sqrt(forecast * truth))

    @property
    def slope(self) -> Array:
        """Of the line through forecast over truth."""
        _, truth, both = _covariances(self.totals)
        return ratio(both, truth)

    @property
    def r2(self) -> Array:
        """Share of the truth's variance that is explained: 1 - mean squared error / variance; may be negative."""
        return 1 - ratio(mean_square(self.totals), _covariances(self.totals)[1])

    @property
    def bin_rmse(self) -> Array:
        """(..., bin of the truth)."""
        return np.sqrt(mean_square(self.moments))

    @property
    def bin_bias(self) -> Array:
        return ratio(self.moments[..., 1] - self.moments[..., 2], self.moments[..., 0])

    @property
    def bin_share(self) -> Array:
        """Share of the weight in each bin of the truth."""
        return ratio(self.moments[..., 0], self.weight[..., None])


def mean_square(totals: Array) -> Array:
    """Mean squared error from moments."""
    return np.maximum(ratio(_squares(totals), totals[..., 0]), 0)


def _squares(totals: Array) -> Array:
    return totals[..., 3] + totals[..., 4] - 2 * totals[..., 5]


def _covariances(totals: Array) -> tuple[Array, Array, Array]:
    """Variance of the forecast, of the truth, and what they have in common."""
    weight = totals[..., 0]
    mean = [ratio(totals[..., index], weight) for index in (1, 2)]
    pairs = ((3, 0, 0), (4, 1, 1), (5, 0, 1))
    forecast, truth, both = (ratio(totals[..., index], weight) - mean[a] * mean[b] for index, a, b in pairs)
    return np.maximum(forecast, 0), np.maximum(truth, 0), both


def _metric(name: str) -> Callable[[Array], Array]:
    return lambda sums: np.asarray(getattr(Tally.unpacked(sums), name))


@STATISTICS.register("errors")
class Errors(Statistic):
    """The tally, by bins of concentration: its two tables side by side."""

    shape = (BINS, MOMENTS + BINS)
    metrics: ClassVar[Mapping[str, Metric]] = {
        "rmse": Metric("RMSE, ug m-3", _metric("rmse")),
        "mae": Metric("MAE, ug m-3", _metric("mae")),
        "bias": Metric("bias, ug m-3", _metric("bias")),
        "correlation": Metric("correlation", _metric("correlation")),
    }

    def pixels(self, part: Pixels) -> Array:
        return Tally.of(part.forecast[part.rows], part.truth[part.rows], part.weight[part.rows]).packed


@numba.njit(cache=True, nogil=True)
def _count(
    forecast: Array, truth: Array, weight: Array, edges: Array, moments: Array, joint: Array
) -> None:  # pragma: no cover
    """Row by row, so that cutting a field between rows changes no more than the order in which rows are added."""
    rows, cols = truth.shape
    bins = len(edges) + 1
    for row in range(rows):
        here, pairs = np.zeros((bins, MOMENTS)), np.zeros((bins, bins))
        for col in range(cols):
            f, t, w = np.float64(forecast[row, col]), np.float64(truth[row, col]), weight[row, col]
            if not (np.isfinite(f) and np.isfinite(t)):
                continue
            low = high = 0
            for edge in edges:
                low += f > edge
                high += t > edge
            pairs[low, high] += w
            here[high, 0] += w
            here[high, 1] += w * f
            here[high, 2] += w * t
            here[high, 3] += w * f * f
            here[high, 4] += w * t * t
            here[high, 5] += w * f * t
            here[high, 6] += w * abs(f - t)
        moments += here
        joint += pairs
