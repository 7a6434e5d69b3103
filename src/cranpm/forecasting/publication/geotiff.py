"""PM2.5 as Cloud-Optimised GeoTIFF: int16 in steps of 0.1 ug m-3, with overviews."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import rasterio
from rasterio.shutil import copy as copy_raster

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid

STEP_UGM3 = 0.1
MISSING = -32768
BLOCK = 512


def packed(field_ugm3: Array) -> Array:
    """int16 steps of 0.1 ug m-3; NaN becomes -32768."""
    present = np.isfinite(field_ugm3)
    steps = np.floor(np.where(present, field_ugm3, 0) * np.float32(1 / STEP_UGM3) + np.float32(0.5))
    if steps.size and max(steps.max(), -steps.min()) > -MISSING - 1:
        raise CranpmError(
            expected=f"values within {(-MISSING - 1) * STEP_UGM3:g} ug m-3 of 0",
            found=f"{steps.min() * STEP_UGM3:g} to {steps.max() * STEP_UGM3:g}",
            remedy="Check the field: files cannot hold these.",
        )
    return np.where(present, steps.astype(np.int16), np.int16(MISSING))


def unpacked(steps: Array) -> Array:
    """ug m-3 float32; -32768 becomes NaN."""
    return np.where(steps == MISSING, np.float32(np.nan), steps * np.float32(STEP_UGM3))


def write_cog(field_ugm3: Array, grid: Grid, path: Path, what: str, tags: Mapping[str, object]) -> None:
    """A field with overviews; a value is its number x 0.1 ug m-3. `what` describes it, `tags` say where it is from."""
    profile = {
        **{"driver": "GTiff", "height": grid.rows, "width": grid.cols, "count": 1, "dtype": "int16"},
        **{"crs": "EPSG:4326", "transform": rasterio.Affine(grid.step, 0, grid.west, 0, -grid.step, grid.north)},
        **{"nodata": MISSING, "tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK},
    }
    with rasterio.MemoryFile() as memory:
        with memory.open(**profile) as raster:
            raster.write(packed(field_ugm3), 1)
            raster.scales, raster.offsets, raster.units = (STEP_UGM3,), (0.0,), ("ug m-3",)
            raster.set_band_description(1, what)
            raster.update_tags(**{name: str(value) for name, value in tags.items()})
        options = {"compress": "DEFLATE", "predictor": "2", "blocksize": BLOCK, "overview_resampling": "average"}
        with rasterio.MemoryFile(ext=".tif") as optimised:
            copy_raster(memory.name, optimised.name, driver="COG", num_threads="ALL_CPUS", **options)
            path.write_bytes(optimised.read())  # Python says when the disk is full; the driver does not always
