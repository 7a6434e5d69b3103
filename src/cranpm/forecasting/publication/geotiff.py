"""PM2.5 as Cloud-Optimised GeoTIFF: int16 in steps of 0.1 ug m-3, with overviews."""

from collections.abc import Mapping
from pathlib import Path

import rasterio
from rasterio.shutil import copy as copy_raster

from cranpm.core.grid import Array, Grid
from cranpm.core.packing import PUBLISHED, STEP_UGM3

BLOCK = 512
ALONE = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_PAM_ENABLED": "NO"}
"""GDAL opens this one file, and none beside it."""


def write_cog(field_ugm3: Array, grid: Grid, path: Path, what: str, tags: Mapping[str, object]) -> None:
    """A field with overviews; a value is its number x 0.1 ug m-3. `what` describes it, `tags` say where it is from."""
    profile = {
        **{"driver": "GTiff", "height": grid.rows, "width": grid.cols, "count": 1, "dtype": "int16"},
        **{"crs": "EPSG:4326", "transform": rasterio.Affine(grid.step, 0, grid.west, 0, -grid.step, grid.north)},
        **{"nodata": PUBLISHED.missing, "tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK},
    }
    with rasterio.MemoryFile() as memory:
        with memory.open(**profile) as raster:
            raster.write(PUBLISHED.pack(field_ugm3), 1)
            raster.scales, raster.offsets, raster.units = (STEP_UGM3,), (0.0,), ("ug m-3",)
            raster.set_band_description(1, what)
            raster.update_tags(**{name: str(value) for name, value in tags.items()})
        options = {"compress": "DEFLATE", "predictor": "2", "blocksize": BLOCK, "overview_resampling": "average"}
        with rasterio.MemoryFile(ext=".tif") as optimised:
            copy_raster(memory.name, optimised.name, driver="COG", num_threads="ALL_CPUS", **options)
            path.write_bytes(optimised.read())  # Python says when the disk is full; the driver does not always


def open_geotiff(path: Path, overview: int | None = None) -> rasterio.DatasetReader:
    """A GeoTIFF, or one of its overviews. Nothing else is opened: a VRT could name any file or address."""
    level = {} if overview is None else {"OVERVIEW_LEVEL": overview}
    with rasterio.Env(**ALONE):
        return rasterio.open(path, driver="GTiff", **level)
