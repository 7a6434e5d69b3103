"""Where things are: regular latitude-longitude grids, the domains built from them, and moves between grids.

Rows run north to south, columns west to east. Latitude and longitude are in degrees, longitude in -180..180.
A grid is described by its north-west *edge*; pixel (0, 0) is centred half a step south and east of it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cranpm.core.errors import CranpmError

Array = np.ndarray[Any, np.dtype[Any]]
Window = tuple[slice, slice]
"""Rows and columns of a part of a grid."""
EVERYWHERE: Window = (slice(None), slice(None))

EARTH_RADIUS_KM = 6371.0
FINE_STEP = 0.01
COARSE_STEP = 0.25
FINE_PATCH = 16
"""Fine grids are trimmed to whole patches of the network's fine branch."""
TILE = 512
"""The smallest domain is one tile of the network."""


def check_point(lat: float, lon: float) -> tuple[float, float]:
    """The point in degrees, refused unless both are finite, latitude in -90..90 and longitude in -180..180."""
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):  # false for NaN
        raise CranpmError(
            expected="a finite latitude in -90..90 and a finite longitude in -180..180, in degrees",
            found=f"latitude {lat}, longitude {lon}",
            remedy="Give latitude first, boxes as N,W,S,E, and longitudes above 180 less 360.",
        )
    return lat, lon


@dataclass(frozen=True)
class Grid:
    """A regular grid: north-west edge, step (degrees) and shape.

    The edge may lie beyond the poles or the 180th meridian, as that of a grid with a margin does.
    """

    north: float
    west: float
    step: float
    rows: int
    cols: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.north) and math.isfinite(self.west) and 0 < self.step < math.inf):
            raise CranpmError(
                expected="a grid with a finite north-west edge and a step above 0 degrees",
                found=f"N {self.north}, W {self.west}, step {self.step}",
                remedy="Check the coordinates of the file or the box.",
            )

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.cols

    @property
    def south(self) -> float:
        return round(self.north - self.rows * self.step, 9)

    @property
    def east(self) -> float:
        return round(self.west + self.cols * self.step, 9)

    @property
    def lat(self) -> Array:
        """Latitude of the row centres, descending."""
        return np.round(self.north - (np.arange(self.rows) + 0.5) * self.step, 9)

    @property
    def lon(self) -> Array:
        """Longitude of the column centres, ascending."""
        return np.round(self.west + (np.arange(self.cols) + 0.5) * self.step, 9)

    @property
    def row_area_km2(self) -> Array:
        """Area of one cell of each row."""
        edges = np.radians(self.north - np.arange(self.rows + 1) * self.step)
        return EARTH_RADIUS_KM**2 * math.radians(self.step) * (np.sin(edges[:-1]) - np.sin(edges[1:]))

    def row_col(self, lat: Array | float, lon: Array | float) -> tuple[Array, Array]:
        """Fractional pixel coordinates of a point; whole numbers are pixel centres."""
        return (
            (self.north - np.asarray(lat)) / self.step - 0.5,
            (np.asarray(lon) - self.west) / self.step - 0.5,
        )

    def lat_lon(self, row: Array | float, col: Array | float) -> tuple[Array, Array]:
        """Position of fractional pixel coordinates: the inverse of `row_col`."""
        return self.north - (np.asarray(row) + 0.5) * self.step, self.west + (np.asarray(col) + 0.5) * self.step

    def contains(self, lat: Array | float, lon: Array | float) -> Array:
        """Whether points lie inside the grid's edges."""
        lat, lon = np.asarray(lat), np.asarray(lon)
        return (lat <= self.north) & (lat >= self.south) & (lon >= self.west) & (lon <= self.east)

    def holds_centres(self, other: "Grid") -> bool:
        """Whether all centres of another grid lie inside the edges, or on them."""
        reach = 1e-3 * self.step
        return bool(
            other.lat[0] <= self.north + reach
            and other.lat[-1] >= self.south - reach
            and other.lon[0] >= self.west - reach
            and other.lon[-1] <= self.east + reach
        )

    def trim(self, multiple: int) -> "Grid":
        """The largest grid with the same north-west edge whose sides are multiples of `multiple`."""
        return Grid(
            self.north, self.west, self.step, self.rows // multiple * multiple, self.cols // multiple * multiple
        )

    def window(self, rows: slice, cols: slice) -> "Grid":
        """The part of the grid inside two slices."""
        first_row, last_row, _ = rows.indices(self.rows)
        first_col, last_col, _ = cols.indices(self.cols)
        if last_row <= first_row or last_col <= first_col:
            raise CranpmError(
                expected=f"a window inside {self.rows} rows and {self.cols} columns",
                found=f"rows {rows.start}..{rows.stop}, columns {cols.start}..{cols.stop}",
                remedy="Choose a window that overlaps the grid.",
            )
        north, west = self.north - first_row * self.step, self.west + first_col * self.step
        return Grid(round(north, 9), round(west, 9), self.step, last_row - first_row, last_col - first_col)

    def slices(self, north: float, west: float, south: float, east: float) -> tuple[slice, slice]:
        """Row and column slices of the pixels whose centres lie in a box; empty where it misses the grid."""
        rows = np.flatnonzero((self.lat <= north) & (self.lat >= south))
        cols = np.flatnonzero((self.lon >= west) & (self.lon <= east))
        if not rows.size or not cols.size:
            return slice(0, 0), slice(0, 0)
        return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(cols[0]), int(cols[-1]) + 1)

    def widen(self, degrees: float) -> "Grid":
        """The same grid with a margin on every side."""
        extra = round(degrees / self.step)
        return Grid(
            round(self.north + extra * self.step, 9),
            round(self.west - extra * self.step, 9),
            self.step,
            self.rows + 2 * extra,
            self.cols + 2 * extra,
        )


@dataclass(frozen=True)
class Domain:
    """A box of the Earth with its 1-km and 25-km grids.

    The fine grid is anchored north-west and trimmed to whole 16-pixel patches,
    so the last coarse row and column may be covered only in part.
    """

    name: str = field(compare=False)
    north: float
    west: float
    south: float
    east: float

    def __post_init__(self) -> None:
        box = (self.north, self.west, self.south, self.east)
        check_point(self.north, self.west)
        check_point(self.south, self.east)
        if self.north <= self.south or self.east <= self.west:
            self._refuse("north above south and east beyond west", "Give the box as N,W,S,E.")
        if any(abs(value / COARSE_STEP - round(value / COARSE_STEP)) > 1e-6 for value in box):
            self._refuse(f"edges on multiples of {COARSE_STEP} degrees", "Round the box outward.")
        if min(self.fine.shape) < TILE:
            self._refuse(f"at least one tile of {TILE} x {TILE} pixels (5.25 x 5.25 degrees)", "Choose a larger box.")

    def _refuse(self, expected: str, remedy: str) -> None:
        found = f"N {self.north}, W {self.west}, S {self.south}, E {self.east}"
        raise CranpmError(expected=expected, found=found, remedy=remedy)

    @property
    def fine(self) -> Grid:
        return self._grid(FINE_STEP).trim(FINE_PATCH)

    @property
    def coarse(self) -> Grid:
        return self._grid(COARSE_STEP)

    def _grid(self, step: float) -> Grid:
        rows, cols = round((self.north - self.south) / step), round((self.east - self.west) / step)
        return Grid(self.north, self.west, step, rows, cols)

    def __str__(self) -> str:
        return f"{self.name} {self.north:g},{self.west:g},{self.south:g},{self.east:g}"

    def to_json(self) -> dict[str, Any]:
        box = {"north": self.north, "west": self.west, "south": self.south, "east": self.east}
        return {"name": self.name, **box}


DOMAINS: Mapping[str, Domain] = {
    domain.name: domain
    for domain in (
        Domain("europe", 72, -25, 30, 45),
        Domain("alps", 50, 4, 42, 16),
        Domain("usa_canada", 60, -130, 24, -60),
        Domain("india", 38, 66, 6, 98),
    )
}


def parse_domain(text: str) -> Domain:
    """A domain from its name or from a box written as N,W,S,E."""
    if text in DOMAINS:
        return DOMAINS[text]
    return Domain("box", *parse_box(text, f"a domain name ({', '.join(DOMAINS)})", "--domain alps"))


def parse_box(text: str, otherwise: str, example: str) -> tuple[float, float, float, float]:
    """Degrees N, W, S, E from a text, each finite and on the globe; the message says what else it could have been."""
    try:
        north, west, south, east = (float(part) for part in text.split(","))
    except ValueError:
        raise CranpmError(
            expected=f"{otherwise} or a box N,W,S,E", found=repr(text), remedy=f"For example {example}, or 46,7,44,13."
        ) from None
    return *check_point(north, west), *check_point(south, east)


def coarsen(values: Array, fine: Grid, coarse: Grid) -> Array:
    """Area-weighted mean of the valid fine pixels in each coarse cell; NaN where a cell has none."""
    rows, cols = cells_of(fine, coarse)
    valid = np.isfinite(values)
    weight = np.broadcast_to(fine.row_area_km2[:, None], fine.shape) * valid
    total = block_sums(np.where(valid, values, 0) * weight, rows, cols, coarse.shape)
    weights = block_sums(weight, rows, cols, coarse.shape)
    return np.divide(total, weights, out=np.full(coarse.shape, np.nan), where=weights > 0)


def cells_of(fine: Grid, coarse: Grid) -> tuple[Array, Array]:
    """Coarse row of every fine row, and coarse column of every fine column."""
    ratio, row_offset, col_offset = _nesting(fine, coarse)
    return (np.arange(fine.rows) + row_offset) // ratio, (np.arange(fine.cols) + col_offset) // ratio


def _nesting(fine: Grid, coarse: Grid) -> tuple[int, int, int]:
    """Fine pixels per coarse cell side, and the fine grid's offset inside the coarse one in fine pixels."""
    ratio = coarse.step / fine.step
    row_offset, col_offset = (coarse.north - fine.north) / fine.step, (fine.west - coarse.west) / fine.step
    whole = all(abs(value - round(value)) < 1e-6 for value in (ratio, row_offset, col_offset))
    inside = row_offset > -0.5 and col_offset > -0.5 and fine.south > coarse.south - 1e-9
    if not (whole and inside and fine.east < coarse.east + 1e-9):
        raise CranpmError(
            expected="a fine grid that nests in the coarse grid",
            found=f"{fine} in {coarse}",
            remedy="Use the grids of one Domain.",
        )
    return round(ratio), round(row_offset), round(col_offset)


def block_sums(values: Array, rows: Array, cols: Array, shape: tuple[int, int]) -> Array:
    """Sums over blocks given by the (sorted) block index of every row and column."""
    row_starts, col_starts = np.unique(rows, return_index=True), np.unique(cols, return_index=True)
    sums = np.add.reduceat(np.add.reduceat(values, row_starts[1], axis=0), col_starts[1], axis=1)
    out = np.zeros(shape)
    out[np.ix_(row_starts[0], col_starts[0])] = sums
    return out
