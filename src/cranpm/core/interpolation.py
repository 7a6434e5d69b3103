"""Bilinear values of a field between the centres of its pixels.

Where some of the four neighbours are missing the others share their weight; where all are, the value is NaN. The
network has its own for tensors (`network.token_geometry`): core does without torch.
"""

from collections.abc import Callable

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid

LEAST_WEIGHT = 1e-6


def refine(values: Array, source: Grid, target: Grid) -> Array:
    """Values at the centres of `target`, float32. The half cell beyond the outermost centres is extrapolated."""
    if not source.holds_centres(target):
        raise CranpmError(
            expected=f"a target with its centres inside {source}",
            found=str(target),
            remedy="Refine to a grid that the source covers.",
        )
    rows, cols = source.row_col(target.lat, target.lon)
    values = np.asarray(values, dtype=np.float32)
    plain = _on_grid(values, rows, cols, clamp=False)
    missing = ~np.isfinite(plain)
    if not missing.any():
        return plain
    return np.where(missing, _shared(values, lambda field: _on_grid(field, rows, cols, clamp=True)), plain)


def at_points(values: Array, row: Array, col: Array) -> Array:
    """Values at fractional pixels (whole numbers are centres); NaN beyond the edges of the outermost pixels."""
    rows, cols = values.shape
    inside = (row >= -0.5) & (row <= rows - 0.5) & (col >= -0.5) & (col <= cols - 0.5)
    found = _shared(values, lambda field: _at_points(field, np.nan_to_num(row), np.nan_to_num(col)))
    return np.where(inside, found, np.nan)


def _shared(values: Array, interpolate: Callable[[Array], Array]) -> Array:
    """What is present, interpolated, over how much of the weight is present."""
    valid = np.isfinite(values)
    total = interpolate(np.where(valid, values, 0).astype(values.dtype))
    weight = interpolate(valid.astype(values.dtype))
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > LEAST_WEIGHT)


def _on_grid(values: Array, rows: Array, cols: Array, *, clamp: bool) -> Array:
    """At all crossings of fractional rows and columns, one axis after the other."""
    for axis, position in enumerate((rows, cols)):
        low, high, weight = _neighbours(position, values.shape[axis], clamp)
        weight = weight.astype(np.float32)
        weight = weight[:, None] if axis == 0 else weight[None, :]
        lower = np.take(values, low, axis=axis)
        values = lower + weight * (np.take(values, high, axis=axis) - lower)
    return values


def _at_points(values: Array, row: Array, col: Array) -> Array:
    """At single points, float64."""
    top, bottom, down = _neighbours(row, values.shape[0], clamp=True)
    left, right, along = _neighbours(col, values.shape[1], clamp=True)
    north = values[top, left] * (1 - along) + values[top, right] * along
    south = values[bottom, left] * (1 - along) + values[bottom, right] * along
    return north * (1 - down) + south * down


def _neighbours(position: Array, size: int, clamp: bool) -> tuple[Array, Array, Array]:
    """The pixel before, the pixel after, and the weight of the latter."""
    low = np.clip(np.floor(position).astype(int), 0, max(size - 2, 0))
    weight = position - low
    return low, np.minimum(low + 1, size - 1), np.clip(weight, 0, 1) if clamp else weight
