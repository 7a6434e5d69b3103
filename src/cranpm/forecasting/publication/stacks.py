"""NetCDF and Zarr products, values as stored: all leads in one array."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray

from cranpm.core.grid import Array


def opened(path: Path) -> xarray.Dataset:
    """The dataset without any decoding; close it."""
    plain: dict[str, Any] = {"mask_and_scale": False, "decode_times": False, "decode_timedelta": False, "cache": False}
    if path.suffix == ".zarr":
        return xarray.open_dataset(path, engine="zarr", consolidated=False, **plain)
    return xarray.open_dataset(path, engine="netcdf4", **plain)


def window(path: Path, index: int, rows: slice, cols: slice) -> Array:
    """(row, column) int16 steps of 0.1 ug m-3 of the index-th lead."""
    with opened(path) as dataset:
        return np.asarray(dataset["pm2p5"][index, rows, cols].values)
