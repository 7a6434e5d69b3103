"""Pixels out of GeoTIFFs, quickly: files stay open, and a tile comes from the overview that is fine enough for it."""

import math
import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
import rasterio
from rasterio.windows import Window

from cranpm.core.grid import Array
from cranpm.core.packing import PUBLISHED
from cranpm.forecasting.publication.geotiff import open_geotiff

TILE_PX = 256
KEPT_OPEN = 24
"""Files that each thread keeps open; a file may be read by one thread only."""


Identity = tuple[Path, int, int, int]
"""Path, inode, size and time of change: another file under the same path has another one."""


def identity(path: Path) -> Identity:
    """What tells a file from one that replaces it."""
    state = path.stat()
    return path, state.st_ino, state.st_size, state.st_mtime_ns


class _Open(threading.local):
    def __init__(self) -> None:
        self.files: OrderedDict[tuple[Identity, int | None], rasterio.DatasetReader] = OrderedDict()


_open = _Open()


def opened(path: Path, overview: int | None = None) -> rasterio.DatasetReader:
    """The file, or one of its overviews."""
    key = (identity(path), overview)
    if key not in _open.files:
        _open.files[key] = open_geotiff(path, overview)
    _open.files.move_to_end(key)
    while len(_open.files) > KEPT_OPEN:
        _open.files.popitem(last=False)[1].close()
    return _open.files[key]


def window(path: Path, rows: slice, cols: slice) -> Array:
    """(row, column) int16 steps of 0.1 ug m-3 in a window of the raster."""
    part = Window(cols.start, rows.start, cols.stop - cols.start, rows.stop - rows.start)
    return opened(path).read(1, window=part)


def tile(path: Path, z: int, x: int, y: int) -> Array:
    """int16 steps of a web-mercator tile: of each of its pixels, those of the raster's pixel that holds its centre."""
    raster = opened(path, _overview(opened(path), z))
    step_lon, step_lat = raster.transform.a, -raster.transform.e
    across = (np.arange(TILE_PX) + 0.5) / TILE_PX
    lon = (x + across) / 2**z * 360 - 180
    lat = np.degrees(np.arctan(np.sinh(math.pi * (1 - 2 * (y + across) / 2**z))))
    cols = np.floor((lon - raster.transform.c) / step_lon).astype(int)
    rows = np.floor((raster.transform.f - lat) / step_lat).astype(int)
    in_rows, in_cols = (rows >= 0) & (rows < raster.height), (cols >= 0) & (cols < raster.width)
    steps = np.full((TILE_PX, TILE_PX), PUBLISHED.missing, np.int16)
    if in_rows.any() and in_cols.any():
        rows, cols = rows[in_rows], cols[in_cols]
        part = Window(cols[0], rows[0], cols[-1] - cols[0] + 1, rows[-1] - rows[0] + 1)
        steps[np.ix_(in_rows, in_cols)] = raster.read(1, window=part)[np.ix_(rows - rows[0], cols - cols[0])]
    return steps


def _overview(raster: rasterio.DatasetReader, z: int) -> int | None:
    """The coarsest overview whose pixels are no wider than the tile's."""
    wanted = 360 / 2**z / TILE_PX / raster.transform.a
    fits = [level for level, factor in enumerate(raster.overviews(1)) if factor <= wanted * 1.001]
    return fits[-1] if fits else None
