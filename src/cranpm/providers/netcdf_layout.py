"""NetCDF in the layout of the data stores of today."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import netCDF4
import numpy as np

from cranpm.core.grid import Array

SPACE = ("latitude", "longitude")
RUN = ("forecast_period", "forecast_reference_time")
MADE_UP = "made by cranpm from simulated days, not by a provider"
"""What files say of themselves that no provider sent; an archive that is made of them says so too."""
EPOCH = datetime(1970, 1, 1)


def new_layout(
    path: Path,
    lat: Array,
    lon: Array,
    times: Sequence[datetime],
    levels: tuple[str, Sequence[float], str] | None = None,
    made_by: str = MADE_UP,
) -> netCDF4.Dataset:
    """A file with its axes; `levels` are a name, values and a unit."""
    file = netCDF4.Dataset(path, "w", format="NETCDF4")
    file.setncatts({"Conventions": "CF-1.7", "institution": made_by})
    file.createVariable("number", "i8", ()).assignValue(0)
    seconds = np.array([(time - EPOCH).total_seconds() for time in times])
    axes: list[tuple[str, str, Array, str]] = [
        ("valid_time", "i8", seconds, "seconds since 1970-01-01"),
        ("latitude", "f8", lat, "degrees_north"),
        ("longitude", "f8", lon, "degrees_east"),
    ]
    if levels:
        axes.insert(1, (levels[0], "f8", np.array(levels[1], float), levels[2]))
    for name, kind, values, unit in axes:
        file.createDimension(name, len(values))
        variable = file.createVariable(name, kind, (name,))
        variable.units = unit
        variable[:] = values
    file["valid_time"].calendar = "proleptic_gregorian"
    expver = file.createVariable("expver", str, ("valid_time",))
    expver[:] = np.array(["0001"] * len(times), object)
    return file


def new_run_layout(
    path: Path,
    space: tuple[Array, Array],
    start: datetime,
    hours: Sequence[int],
    levels: tuple[str, Sequence[float], str],
    facts: Mapping[str, str],
) -> netCDF4.Dataset:
    """A file of one run with its axes; fields are by period, start, (level,) latitude and longitude."""
    file = netCDF4.Dataset(path, "w", format="NETCDF4")
    file.setncatts({"Conventions": "CF-1.7", **facts})
    begun = (start - EPOCH).total_seconds()
    for name, kind, values, unit in (
        ("forecast_period", "f8", np.array(hours, float), "hours"),
        ("forecast_reference_time", "i8", np.array([begun]), "seconds since 1970-01-01"),
        (levels[0], "f8", np.array(levels[1], float), levels[2]),
        ("latitude", "f8", space[0], "degrees_north"),
        ("longitude", "f8", space[1], "degrees_east"),
    ):
        file.createDimension(name, len(values))
        variable = file.createVariable(name, kind, (name,))
        variable.units = unit
        variable[:] = values
    valid = file.createVariable("valid_time", "i8", RUN)
    valid.units = "seconds since 1970-01-01"
    valid[:] = begun + 3600 * np.array(hours)[:, None]
    return file


def put(
    file: netCDF4.Dataset, name: str, unit: str, values: Array, dimensions: tuple[str, ...], **attributes: float
) -> None:
    """A compressed variable."""
    variable = file.createVariable(name, "f4", dimensions, zlib=True, complevel=1, shuffle=True, fill_value=np.nan)
    variable.setncatts({"units": unit, **attributes})
    variable[:] = values
