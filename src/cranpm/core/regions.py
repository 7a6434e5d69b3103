"""Parts of a domain by name or box."""

import tomllib
from functools import cache
from importlib.resources import files

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Grid, Window, check_point, parse_box

Box = tuple[float, float, float, float]


@cache
def regions() -> dict[str, Box]:
    """Boxes N, W, S, E by name."""
    boxes = tomllib.loads(files("cranpm.core").joinpath("regions.toml").read_text())
    return {name: tuple(box) for name, box in boxes.items()}


def inside(box: Box, grid: Grid) -> bool:
    """Whether a box lies wholly on a grid."""
    north, west, south, east = box
    return north <= grid.north and west >= grid.west and south >= grid.south and east <= grid.east


def part_of(part: Grid, whole: Grid) -> Window | None:
    """Where a grid lies on another one; None where it is not cut out of it."""
    rows, cols = whole.slices(part.north, part.west, part.south, part.east)
    if rows.stop == rows.start or cols.stop == cols.start:
        return None
    found = whole.window(rows, cols)
    same = found.shape == part.shape and max(abs(found.north - part.north), abs(found.west - part.west)) < 1e-6
    return (rows, cols) if same else None


def parse_region(text: str, grid: Grid) -> Window:
    """The window of a grid that a region's name, or a box written as N,W,S,E, covers."""
    box = regions().get(text) or parse_box(text, f"a region ({', '.join(regions())})", '--region "Po Valley"')
    for lat, lon in (box[:2], box[2:]):
        check_point(lat, lon)
    rows, cols = grid.slices(*box)
    if not inside(box, grid) or rows.stop == rows.start or cols.stop == cols.start:
        raise CranpmError(
            expected=f"a region inside N {grid.north:g}, W {grid.west:g}, S {grid.south:g}, E {grid.east:g}",
            found=text,
            remedy="Choose a region of the archive's domain.",
        )
    return rows, cols
