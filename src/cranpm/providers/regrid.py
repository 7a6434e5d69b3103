"""From a provider's grid onto ours: averages stay averages, point values are interpolated, coordinates decide."""

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid
from cranpm.core.interpolation import refine

SLACK = 1e-6
"""Degrees by which steps may differ and be the same."""
BESIDE = 0.01
"""Share of a pixel by which centres may miss each other and be the same."""


def onto(values: Array, source: Grid, target: Grid, what: str) -> Array:
    """The field on `target`: area means where the source is finer, bilinear where it is as coarse or coarser.

    A gap in the part of the source that is needed is refused: interpolation would close it unseen.
    """
    check_covers(source, target, what)
    _check_gaps(values, source, target, what)
    if source.step < target.step - SLACK:
        return average(values, source, target)
    found = same_points(source, target)
    return refine(values, source, target) if found is None else values[np.ix_(*found)]


def same_points(source: Grid, target: Grid) -> tuple[Array, Array] | None:
    """Rows and columns of the source whose centres are those of the target; None where they lie beside them."""
    rows, cols = source.row_col(target.lat, target.lon)
    off = max(np.abs(part - part.round()).max() for part in (rows, cols))
    if abs(source.step - target.step) > SLACK or off > BESIDE:
        return None
    return rows.round().astype(int), cols.round().astype(int)


def check_covers(source: Grid, target: Grid, what: str) -> None:
    """Every centre of the target lies on the source; half a cell beyond its outermost centres is still its own."""
    if not source.holds_centres(target):
        raise CranpmError(
            expected=f"{what} to cover N {target.north:g}, W {target.west:g}, S {target.south:g}, E {target.east:g}",
            found=f"N {source.north:g}, W {source.west:g}, S {source.south:g}, E {source.east:g}",
            remedy="Fetch it for the whole domain (cranpm fetch), or choose a smaller domain.",
        )


def _check_gaps(values: Array, source: Grid, target: Grid, what: str) -> None:
    margin = source.step
    rows, cols = source.slices(target.north + margin, target.west - margin, target.south - margin, target.east + margin)
    missing = np.isnan(values[rows, cols]).mean()
    if missing:
        raise CranpmError(
            expected=f"{what} everywhere",
            found=f"{missing:.2%} of it missing",
            remedy="Fetch it again, for the whole domain.",
        )


def average(values: Array, source: Grid, target: Grid) -> Array:
    """Area-weighted mean of the source cells under each target cell; what is missing elsewhere weighs nothing."""
    rows = _overlaps(np.sin(np.radians(_edges(source)[0])), np.sin(np.radians(_edges(target)[0])))
    cols = _overlaps(-_edges(source)[1], -_edges(target)[1])
    return (rows @ np.nan_to_num(values) @ cols.T) / (rows.sum(axis=1)[:, None] * cols.sum(axis=1))


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
