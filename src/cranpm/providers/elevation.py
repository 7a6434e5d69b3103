"""Relief from any raster: Copernicus GLO-90, GMTED2010, .hgt tiles, in any projection; means and spreads of pixels."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rasterio
from rasterio.enums import Resampling
from rasterio.transform import from_origin
from rasterio.vrt import WarpedVRT
from rasterio.warp import reproject, transform_bounds

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain, Grid
from cranpm.providers.own_products import refuse_own_product
from cranpm.providers.provider import ELEVATION, FetchQuery, FileSummary, Provider
from cranpm.providers.readers.files import Piece, sniff
from cranpm.providers.relief import check_statements, possible_heights
from cranpm.providers.request import Request

DRIVERS = {"tiff": "GTiff", "hgt": "SRTMHGT"}
"""A file is opened as what its bytes are: another driver could open further files or addresses."""
EARTH = "EPSG:4326"
GLO90 = "https://copernicus-dem-90m.s3.amazonaws.com/{name}/{name}.tif"


class Elevation(Provider):
    """Heights, once for an archive."""

    name, title, page = "elevation", "Copernicus DEM", "elevation.md"
    provides = (ELEVATION,)
    required = "no"
    hosts = {"Copernicus DEM": "https://copernicus-dem-90m.s3.amazonaws.com"}  # noqa: RUF012
    licence = "https://registry.opendata.aws/copernicus-dem/"

    def recognise(self, piece: Piece) -> FileSummary | None:
        with piece.local() as path:
            if sniff(path) not in DRIVERS:
                return None
            with open_raster(path, str(piece)) as raster:
                return FileSummary(piece, self.name, (f"{raster.height} x {raster.width} pixels, {raster.crs}"[:60],))

    def requests(self, query: FetchQuery) -> list[Request]:
        """Tiles of one degree; there are none over the open sea, and a tile that is not there is sea."""
        domain, found = query.domain, []
        for lat in range(int(np.floor(domain.south)), int(np.ceil(domain.north))):
            for lon in range(int(np.floor(domain.west)), int(np.ceil(domain.east))):
                name = f"Copernicus_DSM_COG_30_{_side(lat, 'NS')}_00_{_side(lon, 'EW', 3)}_00_DEM"
                ask = {"url": GLO90.format(name=name), "missing": "sea"}
                found.append(Request(self.name, f"{name}.tif", ask, gigabytes=0.004))
        return found

    def read_elevation(self, pieces: Sequence[Piece], domain: Domain, land: Array | None) -> tuple[Array, Array]:
        """Heights of the rasters; ingest compares them with the packaged relief."""
        return read_elevation(pieces, domain.fine, land)


def _side(degrees: int, letters: str, digits: int = 2) -> str:
    return f"{letters[degrees < 0]}{abs(degrees):0{digits}d}"


def open_raster(path: Path, label: str) -> rasterio.DatasetReader:
    """A raster of heights; what states that it is something else is refused."""
    try:
        raster = rasterio.open(path, driver=DRIVERS[sniff(path)])
    except rasterio.errors.RasterioError as error:
        raise CranpmError(expected=f"a raster {label}", found=str(error), remedy="Fetch it again.") from None
    if raster.crs is None:
        raise CranpmError(
            expected=f"a projection in {label}", found="none", remedy="Use a GeoTIFF that states it, or an .hgt tile."
        )
    refuse_own_product(raster.tags(), label)
    check_statements(raster, label)
    return raster


def read_elevation(pieces: Sequence[Piece], grid: Grid, land: Array | None) -> tuple[Array, Array]:
    """Mean height and its spread (m) in every pixel of a grid; 0 at sea. Land without any height is refused.

    Without `land`, every pixel with a height counts.
    """
    total, squares, count = (np.zeros(grid.shape) for _ in range(3))
    for piece in pieces:
        with piece.local() as path, open_raster(path, str(piece)) as raster:
            rows, cols = grid.slices(*_reach(raster, grid.step))
            if rows.stop > rows.start and cols.stop > cols.start:
                part = grid.window(rows, cols)
                heights = _heights(raster, str(piece))
                known = np.isfinite(heights)
                heights = np.where(known, heights, 0)
                for field, sums in ((heights, total), (heights**2, squares), (known * 1.0, count)):
                    sums[rows, cols] += _weighted(field, raster, part)
    mean, square = (
        np.divide(part, count, out=np.full(grid.shape, np.nan), where=count > 1e-6) for part in (total, squares)
    )
    if land is None:
        land = np.isfinite(mean)
    _check(mean, land, pieces)
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return _on_land(mean, land), _on_land(spread, land)


def _on_land(values: Array, land: Array) -> Array:
    return np.where(land, np.nan_to_num(values), 0).astype(np.float32)


def _reach(raster: rasterio.DatasetReader, margin: float) -> tuple[float, float, float, float]:
    """N, W, S, E of a raster, and a little more."""
    west, south, east, north = transform_bounds(raster.crs, EARTH, *raster.bounds)
    return north + margin, west - margin, south - margin, east + margin


def _heights(raster: rasterio.DatasetReader, label: str) -> Array:
    """As float64, NaN where there is none."""
    values = raster.read(1).astype(np.float64)
    if raster.nodata is not None:
        values[values == raster.nodata] = np.nan
    return possible_heights(values, label)


def _weighted(field: Array, raster: rasterio.DatasetReader, grid: Grid) -> Array:
    """Sum over the raster's pixels in each pixel of the grid, by the share that lies there: sums of several rasters add
    up. Where the raster is coarser, the interpolated value."""
    out = np.zeros(grid.shape)
    with WarpedVRT(raster, crs=EARTH) as warped:
        finer = abs(warped.transform.a) < 0.9 * grid.step
    reproject(
        field,
        out,
        src_crs=raster.crs,
        src_transform=raster.transform,
        dst_crs=EARTH,
        dst_transform=from_origin(grid.west, grid.north, grid.step, grid.step),
        resampling=Resampling.sum if finer else Resampling.bilinear,
        init_dest_nodata=True,
        dst_nodata=0,
    )
    return out


def _check(mean: Array, land: Array, pieces: Sequence[Piece]) -> None:
    without = land & ~np.isfinite(mean)
    if without.any():
        rows, cols = np.nonzero(without)
        raise CranpmError(
            expected=f"a height for every pixel of land, from {len(pieces)} raster{'s' * (len(pieces) != 1)}",
            found=f"none for {without.sum() / land.sum():.1%} of it, first at row {rows[0]}, column {cols[0]}",
            remedy="Fetch the tiles of the whole domain: cranpm fetch elevation.",
        )
