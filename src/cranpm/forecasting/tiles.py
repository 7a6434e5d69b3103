"""Where tiles lie on a grid, and how their forecasts become one field without seams.

A plan is a list of equally large tiles in strips of rows, or of columns. Where tiles overlap, each counts by weights
that rise from its border as a squared sine, divided by their sum, first along a strip and then from strip to strip.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Window

OVERLAP = 64
STRIP_STEP = 16
"""Pixels, at most, between the places that the adaptive plan tries for a strip."""


@dataclass(frozen=True)
class Plan:
    """North-west corners of square tiles on a grid, north to south and west to east."""

    shape: tuple[int, int]
    size: int
    corners: tuple[tuple[int, int], ...]
    across: Literal[0, 1] = 0
    """Axis that the strips divide: 0, strips of rows; 1, strips of columns."""

    def __len__(self) -> int:
        return len(self.corners)

    def windows(self) -> list[Window]:
        return [(slice(row, row + self.size), slice(col, col + self.size)) for row, col in self.corners]

    def covered(self) -> Array:
        """Which pixels lie in a tile."""
        found = np.zeros(self.shape, dtype=bool)
        for window in self.windows():
            found[window] = True
        return found


@dataclass(frozen=True)
class PlanFacts:
    """What a plan costs and reaches."""

    tiles: int
    land_covered: float
    """Share of land pixels inside a tile."""
    pixels_a_land_pixel: float
    """Pixels computed for each land pixel."""


def facts(plan: Plan, land: Array) -> PlanFacts:
    pixels = int(land.sum())
    return PlanFacts(len(plan), float(plan.covered()[land].mean()), len(plan) * plan.size**2 / max(pixels, 1))


def even_plan(shape: tuple[int, int], size: int, overlap: int = OVERLAP) -> Plan:
    """As few tiles as cover the grid with at least this overlap; the outermost lie at the edges."""
    _check(shape, size, overlap)
    rows, cols = (_starts(length, size, overlap) for length in shape)
    return Plan(shape, size, tuple((row, col) for row in rows for col in cols))


def land_plan(land: Array, size: int, overlap: int = OVERLAP) -> Plan:
    """The even plan without its tiles at sea."""
    whole = even_plan((land.shape[0], land.shape[1]), size, overlap)
    kept = [corner for corner, window in zip(whole.corners, whole.windows(), strict=True) if land[window].any()]
    return _sorted(whole.shape, size, kept)


def adaptive_plan(land: Array, size: int, overlap: int = OVERLAP) -> Plan:
    """Tiles that begin where land begins: in a strip of rows or columns, each tile lies as far on as its land allows.

    Where land goes on across a border the next tile overlaps; across water it begins at the next coast. Strips lie so
    that fewest tiles are needed; the plan is never larger than `land_plan`.
    """
    shape = (land.shape[0], land.shape[1])
    _check(shape, size, overlap)
    by_rows = _strips(land, size, overlap)
    by_cols = [(row, col) for col, row in _strips(land.T, size, overlap)]
    plans = [land_plan(land, size, overlap), _sorted(shape, size, by_rows), _sorted(shape, size, by_cols, across=1)]
    return min(plans, key=len)


def _strips(land: Array, size: int, overlap: int) -> list[tuple[int, int]]:
    """Corners of tiles in strips of rows; of all places for the strips, those with fewest tiles.

    From the last strip up: the tiles from a strip on are its own and those of the best strip that may follow it. A
    strip without land has no tiles: the strips before and after it may overlap by any amount, since they do so at sea.
    """
    rows, last = np.flatnonzero(land.any(axis=1)), land.shape[0] - size
    along: dict[int, list[int]] = {}
    follower: dict[int, int | None] = {}
    tiles: dict[int, int] = {}
    for start in sorted({*range(0, last + 1, min(STRIP_STEP, size - overlap)), last}, reverse=True):
        along[start] = _sweep(np.any(land[start : start + size], axis=0), size, overlap)
        end = start + size
        beyond = rows[rows >= end]
        follower[start] = None
        if beyond.size:
            latest = _next(int(beyond[0]), start, size, overlap, last)
            allowed = [other for other in tiles if other <= latest and not end - overlap < other < end]
            follower[start] = min(allowed, key=lambda other: tiles[other])
        rest = follower[start]
        tiles[start] = len(along[start]) + (0 if rest is None else tiles[rest])
    strip = min((start for start in tiles if not rows.size or start <= rows[0]), key=lambda start: tiles[start])
    corners = []
    at: int | None = strip
    while at is not None:
        corners += [(at, col) for col in along[at]]
        at = follower[at]
    return corners


def _sweep(land: Array, size: int, overlap: int) -> list[int]:
    """Starts of intervals of `size` that hold all of `land`, with an overlap wherever land crosses a border."""
    places = np.flatnonzero(land)
    starts: list[int] = []
    last = len(land) - size
    while places.size:
        first = int(places[0])
        starts.append(_next(first, starts[-1], size, overlap, last) if starts else min(first, last))
        places = places[places >= starts[-1] + size]
    return starts


def _next(land: int, before: int, size: int, overlap: int, last: int) -> int:
    """The latest start of an interval for the first `land` beyond the one that starts at `before`."""
    start = min(before + size - overlap if land <= before + size else land, last)
    return min(start, before + size - overlap) if start < before + size else start  # no shallow overlaps


def _starts(length: int, size: int, overlap: int) -> list[int]:
    count = 1 if length == size else -(-(length - overlap) // (size - overlap))
    return np.linspace(0, length - size, count).round().astype(int).tolist()


def _sorted(shape: tuple[int, int], size: int, corners: list[tuple[int, int]], across: Literal[0, 1] = 0) -> Plan:
    return Plan(shape, size, tuple(sorted(set(corners))), across)


def _check(shape: tuple[int, int], size: int, overlap: int) -> None:
    if size > min(shape) or not 0 <= overlap < size:
        raise CranpmError(
            expected=f"tiles of at most {min(shape)} pixels with an overlap below their size",
            found=f"{size} pixels, overlap {overlap}",
            remedy="Choose smaller tiles or a larger domain.",
        )


@cache
def ramp(size: int, overlap: int) -> Array:
    """Weight along one side of a tile before it is shared: 1 inside, falling to the border as a squared sine."""
    edge = np.minimum(np.arange(size) + 0.5, size - 0.5 - np.arange(size))
    return np.sin(0.5 * np.pi * np.minimum(edge / max(overlap, 1), 1)) ** 2


class Mosaic:
    """Adds up tiles by their shares: of a strip among the strips, and of a tile among the tiles of its strip.

    Every strip covers all land of its rows (or columns), so on land the shares add up to 1. NaN where no tile lies.
    """

    def __init__(self, plan: Plan, fields: int = 1, overlap: int = OVERLAP):
        self._plan, self._ramp = plan, ramp(plan.size, min(overlap, plan.size // 2))
        across, along = plan.across, 1 - plan.across
        self._across = np.zeros(plan.shape[across])
        self._along = {corner[across]: np.zeros(plan.shape[along]) for corner in plan.corners}
        for strip in self._along:
            self._across[strip : strip + plan.size] += self._ramp
        for corner in plan.corners:
            self._along[corner[across]][corner[along] : corner[along] + plan.size] += self._ramp
        self._sum = np.zeros((fields, *plan.shape), dtype=np.float32)

    def share(self, window: Window) -> Array:
        """How much a tile of the plan counts at each of its pixels."""
        strip, tile = window[self._plan.across], window[1 - self._plan.across]
        share = np.outer(self._ramp / self._across[strip], self._ramp / self._along[strip.start][tile])
        return (share.T if self._plan.across else share).astype(np.float32)

    def add(self, window: Window, values: Array, field: int = 0) -> None:
        self._sum[(field, *window)] += self.share(window) * values

    def field(self, number: int = 0) -> Array:
        values = self._sum[number]
        values[~self._plan.covered()] = np.nan
        return values


def seam_excess(field: Array, plan: Plan) -> float:
    """Mean step between neighbours across tile borders over the mean step elsewhere: 1 where no seam shows."""
    crossing, other = [0.0, 0], [0.0, 0]
    for axis in (0, 1):
        steps = np.abs(np.diff(field, axis=axis))
        border = np.zeros(steps.shape, dtype=bool)
        for row, col in plan.corners:
            across = (row, col)[axis]
            along = slice((row, col)[1 - axis], (row, col)[1 - axis] + plan.size)
            for line in (across - 1, across + plan.size - 1):
                if 0 <= line < steps.shape[axis]:
                    border[(line, along) if axis == 0 else (along, line)] = True
        valid = np.isfinite(steps)
        for into, chosen in ((crossing, border & valid), (other, ~border & valid)):
            into[0] += float(steps[chosen].sum(dtype=np.float64))
            into[1] += int(chosen.sum())
    if not crossing[1] or not other[0]:
        return 1.0
    return (crossing[0] / crossing[1]) / (other[0] / other[1])
