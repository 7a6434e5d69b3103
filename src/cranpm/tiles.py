"""Where tiles lie on a grid, and how their forecasts become one field without seams.

A plan is a list of equally large tiles in strips of rows. Where tiles overlap, each counts by weights that rise from
its border as a squared sine, divided by their sum, first along a strip and then from strip to strip.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from cranpm.errors import CranpmError
from cranpm.grid import Array
from cranpm.store import Window

OVERLAP = 64
PHASES = 8
"""First rows that the adaptive plan tries, evenly spread over one tile."""


@dataclass(frozen=True)
class Plan:
    """North-west corners of square tiles on a grid, north to south and west to east."""

    shape: tuple[int, int]
    size: int
    corners: tuple[tuple[int, int], ...]

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
    """Tiles that begin where land begins: in strips of rows, each tile lies as far east as its land allows.

    Where land goes on across a border the next tile overlaps; across water it begins at the next coast. The strips
    that need fewest tiles are taken; the plan is never larger than `land_plan`.
    """
    shape = (land.shape[0], land.shape[1])
    _check(shape, size, overlap)
    plans = [land_plan(land, size, overlap)]
    for phase in range(PHASES):
        skipped = phase * size // PHASES
        rows = _sweep(np.any(land, axis=1), size, overlap, first=-skipped)
        corners = [(row, col) for row in rows for col in _sweep(np.any(land[row : row + size], axis=0), size, overlap)]
        plans.append(_sorted(shape, size, corners))
    return min(plans, key=len)


def _sweep(land: Array, size: int, overlap: int, first: int = 0) -> list[int]:
    """Starts of intervals of `size` that hold all of `land`, with an overlap wherever land crosses a border.

    With a negative `first` the first interval begins so much before its land, as far as there is room.
    """
    places = np.flatnonzero(land)
    starts: list[int] = []
    last = len(land) - size
    while places.size:
        start = int(places[0]) + (first if not starts else 0)
        if starts and places[0] <= starts[-1] + size:  # land goes on across the border
            start = starts[-1] + size - overlap
        starts.append(min(max(start, 0), last))
        end = starts[-1] + size
        places = places[places >= end]
    return starts


def _starts(length: int, size: int, overlap: int) -> list[int]:
    count = 1 if length == size else -(-(length - overlap) // (size - overlap))
    return np.linspace(0, length - size, count).round().astype(int).tolist()


def _sorted(shape: tuple[int, int], size: int, corners: list[tuple[int, int]]) -> Plan:
    return Plan(shape, size, tuple(sorted(set(corners))))


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
    """Adds up tiles by their shares: of a row among the strips, and of a column among the tiles of a strip.

    Every strip covers all land of its rows, so on land the shares add up to 1. NaN where no tile lies.
    """

    def __init__(self, plan: Plan, fields: int = 1, overlap: int = OVERLAP):
        self._plan, self._ramp = plan, ramp(plan.size, min(overlap, plan.size // 2))
        self._rows = np.zeros(plan.shape[0])
        self._cols = {row: np.zeros(plan.shape[1]) for row, _ in plan.corners}
        for row in self._cols:
            self._rows[row : row + plan.size] += self._ramp
        for row, col in plan.corners:
            self._cols[row][col : col + plan.size] += self._ramp
        self._sum = np.zeros((fields, *plan.shape), dtype=np.float32)

    def share(self, window: Window) -> Array:
        """How much a tile of the plan counts at each of its pixels."""
        rows, cols = window
        down = self._ramp / self._rows[rows]
        return np.outer(down, self._ramp / self._cols[rows.start][cols]).astype(np.float32)

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
