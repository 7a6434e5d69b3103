"""A statistic of your own: the share of the area in which the forecast is within a factor of two of the truth (FAC2).

Put this module into a package whose entry points name it in the group `cranpm.plugins`. `cranpm verify` then computes
it, keeps its sums by day, and prints it with 95 % intervals in tables.md, scores.json and the report.
"""

from typing import ClassVar

import numpy as np

from cranpm.verification import STATISTICS, Metric, Statistic, ratio


@STATISTICS.register("fac2")
class WithinFactorTwo(Statistic):
    """Sums over pixels or pairs: [weight, weight where truth / 2 <= forecast <= 2 truth]."""

    shape = (2,)
    metrics: ClassVar = {
        "fac2": Metric("share within a factor of two", lambda sums: ratio(sums[..., 1], sums[..., 0])),
    }

    def pixels(self, part):
        forecast, truth, weight = part.counted()
        near = (forecast >= truth / 2) & (forecast <= 2 * truth)
        return np.array([weight.sum(), weight[near].sum()])
