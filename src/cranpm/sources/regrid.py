"""From a provider's grid onto ours: averages stay averages, point values are interpolated, coordinates decide."""

import numpy as np

from cranpm.errors import CranpmError
from cranpm.grid import Array, Grid, refine

SLACK = 1e-6
"""Degrees by which borders may miss each other."""


def onto(values: Array, source: Grid, target: Grid, what: str) -> Array:
    """The field on `target`: area means where the source is finer, bilinear where it is as coarse or coarser."""
    check_covers(source, target, what)
    if source.step < target.step - SLACK:
        return average(values, source, target)
    same = abs(source.step - target.step) < SLACK
    rows, cols = source.row_col(target.lat, target.lon)
    if same and np.abs(rows - rows.round()).max() < 1e-3 and np.abs(cols - cols.round()).max() < 1e-3:
        return values[np.ix_(rows.round().astype(int), cols.round().astype(int))]  # the same points
    return refine(values, source, target)


def check_covers(source: Grid, target: Grid, what: str) -> None:
    """Every centre of the target lies on the source; half a cell beyond its outermost centres is still its own."""
    reach = SLACK + 0.001 * source.step
    inside = (
        target.lat[0] <= source.north + reach
        and target.lat[-1] >= source.south - reach
        and target.lon[0] >= source.west - reach
        and target.lon[-1] <= source.east + reach
    )
    if not inside:
        raise CranpmError(
            expected=f"{what} to cover N {target.north:g}, W {target.west:g}, S {target.south:g}, E {target.east:g}",
            found=f"N {source.north:g}, W {source.west:g}, S {source.south:g}, E {source.east:g}",
            remedy="Fetch it for the whole domain (cranpm fetch), or choose a smaller domain.",
        )


def average(values: Array, source: Grid, target: Grid) -> Array:
    """Area-weighted mean of the valid source cells under each target cell; NaN where there are none."""
    rows = _overlaps(np.sin(np.radians(_edges(source)[0])), np.sin(np.radians(_edges(target)[0])))
    cols = _overlaps(-_edges(source)[1], -_edges(target)[1])
    valid = np.isfinite(values)
    total = rows @ np.where(valid, values, 0) @ cols.T
    weight = rows @ valid.astype(np.float64) @ cols.T
    whole = rows.sum(axis=1)[:, None] * cols.sum(axis=1)
    return np.divide(total, weight, out=np.full(target.shape, np.nan), where=weight > 1e-9 * whole)


def _edges(grid: Grid) -> tuple[Array, Array]:
    """Borders of rows, north to south, and of columns, west to east."""
    return (
        grid.north - np.arange(grid.rows + 1) * grid.step,
        grid.west + np.arange(grid.cols + 1) * grid.step,
    )


def _overlaps(source: Array, target: Array) -> Array:
    """(target, source) length that cells between falling borders have in common."""
    high = np.minimum(target[:-1, None], source[None, :-1])
    low = np.maximum(target[1:, None], source[None, 1:])
    return np.maximum(high - low, 0)
