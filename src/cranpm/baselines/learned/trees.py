"""Decision trees as plain arrays: copied out of scikit-learn's, checked, and read for many rows at once.

A node sends a row to its left child where its feature is at most the threshold, to its right child where it is more,
and to one of the two where it is missing. A leaf is its own child, so that every row takes the same number of steps
and none can leave its tree.
"""

from dataclasses import dataclass
from typing import Any, no_type_check

import numba
import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array

LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True)
class Trees:
    """Trees of one sum; arrays (trees, nodes), padded with nodes that nothing leads to."""

    feature: Array
    """Which feature a node compares, int32."""
    threshold: Array
    """float32."""
    left: Array
    right: Array
    missing: Array
    """The node that follows where the feature is missing; int32, as left and right."""
    value: Array
    """What a leaf adds, float32."""

    def check(self, features: int) -> None:
        """Refuse trees that lead out of their arrays, or ask for a feature that there is not."""
        nodes = self.feature.shape[1]
        limits = {"feature": features, "left": nodes, "right": nodes, "missing": nodes}
        for name, limit in limits.items():
            part = getattr(self, name)
            if part.size and not 0 <= part.min() <= part.max() < limit:
                raise CranpmError(
                    expected=f"trees whose {name} is in 0..{limit - 1}",
                    found=f"{part.min()}..{part.max()}",
                    remedy="These weights are damaged: fit again, or fetch them again.",
                )

    def sums(self, rows: Array, depth: int) -> Array:
        """Sum over the trees for each row (rows, features) float32, after `depth` steps in each; float64."""
        self.check(rows.shape[1])
        children = np.stack([self.left, self.right, self.missing], axis=2).reshape(len(self.left), -1)
        known = np.ascontiguousarray(rows, np.float32)
        return _all_rows(known, self.feature, self.threshold, children, self.value, depth)


@no_type_check  # also keeps the tests' checks of shapes out of what numba compiles
def _all_rows(rows, feature, threshold, children, value, depth):  # pragma: no cover
    """Four rows at a time: while one waits for memory, the others go on."""
    count = rows.shape[0]
    out = np.zeros(count)
    for block in numba.prange((count + 3) // 4):
        # the last block may read its last row more than once
        i, j = 4 * block, min(4 * block + 1, count - 1)
        k, m = min(4 * block + 2, count - 1), min(4 * block + 3, count - 1)
        a, b, c, d = rows[i], rows[j], rows[k], rows[m]
        sum_a, sum_b, sum_c, sum_d = 0.0, 0.0, 0.0, 0.0
        for tree in range(feature.shape[0]):
            asked, limit, to = feature[tree], threshold[tree], children[tree]
            at_a, at_b, at_c, at_d = 0, 0, 0, 0
            for _ in range(depth):
                x = a[asked[at_a]]
                at_a = to[3 * at_a + ((x > limit[at_a]) if x == x else 2)]
                x = b[asked[at_b]]
                at_b = to[3 * at_b + ((x > limit[at_b]) if x == x else 2)]
                x = c[asked[at_c]]
                at_c = to[3 * at_c + ((x > limit[at_c]) if x == x else 2)]
                x = d[asked[at_d]]
                at_d = to[3 * at_d + ((x > limit[at_d]) if x == x else 2)]
            sum_a += value[tree, at_a]
            sum_b += value[tree, at_b]
            sum_c += value[tree, at_c]
            sum_d += value[tree, at_d]
        out[m], out[k], out[j], out[i] = sum_d, sum_c, sum_b, sum_a
    return out


_all_rows = numba.njit(parallel=True, cache=True)(_all_rows)


def copy_trees(fitted: Any, trees: int, nodes: int) -> Trees:
    """The trees of a fitted HistGradientBoostingRegressor; what it adds before the first tree is not among them."""
    shape = (trees, nodes)
    whole = {name: np.zeros(shape, np.int32) for name in ("feature", "left", "right", "missing")}
    real = {name: np.zeros(shape, np.float32) for name in ("threshold", "value")}
    for number, (predictor,) in enumerate(fitted._predictors):  # there is no public way; a test compares the results
        found = predictor.nodes
        own, used = np.arange(len(found)), slice(0, len(found))
        leaf = found["is_leaf"].astype(bool)
        left, right = (np.where(leaf, own, found[side]) for side in ("left", "right"))
        whole["feature"][number, used] = np.where(leaf, 0, found["feature_idx"])
        whole["left"][number, used], whole["right"][number, used] = left, right
        whole["missing"][number, used] = np.where(found["missing_go_to_left"].astype(bool), left, right)
        real["threshold"][number, used] = rounded_down(np.where(leaf, 0.0, found["num_threshold"]))
        real["value"][number, used] = np.where(leaf, found["value"], 0.0)
    return Trees(**whole, **real)


def rounded_down(threshold: Array) -> Array:
    """float32 that any float32 number exceeds if, and only if, it exceeds the float64 threshold; always finite."""
    bounded = np.clip(threshold, -LARGEST, LARGEST)
    near = bounded.astype(np.float32)
    return np.where(near > bounded, np.nextafter(near, -LARGEST), near)
