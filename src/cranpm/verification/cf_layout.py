"""Where daily PM2.5 lies in a CF NetCDF file: the variable, its unit, its grid, and every start day and lead."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.netcdf import opened_as_is as opened
from cranpm.verification.cf_times import (
    ADD_START,
    DAILY,
    Moments,
    Periods,
    combined,
    coordinate,
    daily,
    moments,
    numbers,
    periods,
    refuse,
    start_in_name,
)

STANDARD_NAMES = (
    "mass_concentration_of_pm2p5_ambient_aerosol_particles_in_air",
    "mass_concentration_of_pm2p5_ambient_aerosol_in_air",
    "mass_concentration_of_pm2p5_dry_aerosol_particles_in_air",
    "mass_concentration_of_pm2p5_dry_aerosol_in_air",
)
VARIABLES = ("pm2p5", "pm25", "pm2_5", "pm2p5_conc")
"""Names that are understood where no variable has a standard name."""
FACTORS = {"kg": 1e9, "g": 1e6, "mg": 1e3, "ug": 1.0}
"""To ug m-3."""
LATITUDE, LONGITUDE = ("latitude", "lat"), ("longitude", "lon")


@dataclass(frozen=True)
class Layout:
    """What a file holds, and where."""

    path: Path
    variable: str
    factor: float
    """From the file's unit to ug m-3."""
    place: FileGrid
    transposed: bool
    """Whether longitudes run before latitudes."""
    fields: dict[tuple[date, int], tuple[Any, ...]]
    """By start day and lead, the index of the field in the variable."""
    source: str


def read_layout(path: Path) -> Layout:
    """The layout of one file; refused where anything that is needed is missing or can be read in two ways."""
    with opened(path, str(path)) as file:
        file.set_auto_maskandscale(True)
        stored = _variable(file, path)
        lat, lon = _axis(file, stored, path, LATITUDE), _axis(file, stored, path, LONGITUDE)
        place = _place(file, path, lat, lon)
        try:
            fields = _fields(file, stored, path, (lat, lon))
        except (ValueError, TypeError, OverflowError) as error:
            refuse(path, "times of our calendar", str(error)[:100], "Correct the values and units of its times.")
        transposed = stored.dimensions.index(lat) > stored.dimensions.index(lon)
        source = str(getattr(file, "source", "") or getattr(file, "title", "") or "not stated")
        return Layout(path, stored.name, _factor(stored, path), place, transposed, fields, source[:60])


def _variable(file: netCDF4.Dataset, path: Path) -> Any:
    fields = [variable for variable in file.variables.values() if variable.ndim >= 2]
    by_standard = [v for v in fields if getattr(v, "standard_name", "") in STANDARD_NAMES]
    found = by_standard or [v for v in fields if v.name.lower() in VARIABLES]
    if len(found) != 1:
        refuse(
            path,
            f"one variable with the standard name {STANDARD_NAMES[0]}, or called {', '.join(VARIABLES)}",
            ", ".join(v.name for v in found) or f"none among {', '.join(file.variables) or 'no variables'}",
            f"Name it: ncatted -a standard_name,VARIABLE,o,c,{STANDARD_NAMES[0]} FILE.nc.",
        )
    return found[0]


def _factor(stored: Any, path: Path) -> float:
    """From the unit of the file, in any of the usual spellings, to ug m-3."""
    units = str(getattr(stored, "units", "none"))
    plain = units.strip().replace("µ", "u").replace("μ", "u").replace("**", "").replace("^", "")
    match = re.fullmatch(r"(kg|mg|ug|g|micrograms?|microg)\s*(?:/\s*m3|[ .]?m-3)", plain)
    if match is None:
        refuse(
            path,
            f"{stored.name} in kg m-3, g m-3, mg m-3 or ug m-3",
            units,
            f"Add the unit: ncatted -a units,{stored.name},o,c,'ug m-3' FILE.nc.",
        )
    return FACTORS.get(match[1], 1.0)


def _axis(file: netCDF4.Dataset, stored: Any, path: Path, names: tuple[str, str]) -> str:
    """The dimension of the variable that is a latitude or a longitude, by standard name, unit or name."""
    unit = "degrees_north" if names is LATITUDE else "degrees_east"
    for name in stored.dimensions:
        axis = file.variables.get(name)
        if axis is None or axis.ndim != 1:
            continue
        says = (getattr(axis, "standard_name", "") == names[0], getattr(axis, "units", "") == unit, name in names)
        if any(says):
            return str(name)
    refuse(
        path,
        f"a one-dimensional {names[0]} among the dimensions of {stored.name}",
        ", ".join(stored.dimensions),
        "Bring it to a regular latitude-longitude grid first: cdo remapbil,GRID IN.nc OUT.nc.",
    )


def _place(file: netCDF4.Dataset, path: Path, lat: str, lon: str) -> FileGrid:
    try:
        place = FileGrid.of(numbers(file[lat]), numbers(file[lon]), str(path))
        place.grid(str(path))
        return place
    except CranpmError as error:
        raise CranpmError(
            expected=error.expected,
            found=error.found,
            remedy="Bring it to a regular latitude-longitude grid with square cells first: cdo remapbil,GRID.",
        ) from None


def _fields(
    file: netCDF4.Dataset, stored: Any, path: Path, grid: tuple[str, str]
) -> dict[tuple[date, int], tuple[Any, ...]]:
    """The index of every start day and lead; days up to the start day itself are no forecasts and are left out."""
    beyond = [name for name in stored.dimensions if name not in grid]
    starts, valids, periods = _times(file, stored, path, beyond)
    fields: dict[tuple[date, int], tuple[Any, ...]] = {}
    for place in np.ndindex(*(len(file.dimensions[name]) for name in beyond)):
        at = dict(zip(beyond, place, strict=True))
        begun, ended = (times[tuple(at[name] for name in names)] for names, times in (starts, valids))
        start, valid = begun.date(), ended.date()
        if periods is not None:
            period = periods[1][tuple(at[name] for name in periods[0])]
            if abs(ended - begun - period) >= timedelta(days=1):
                refuse(
                    path, f"a forecast_period of {ended - begun}, as its times say", str(period), "Correct one of them."
                )
        index = tuple(at.get(name, slice(None)) for name in stored.dimensions)
        key = (start, (valid - start).days)
        if key in fields:
            refuse(path, "one field per start day and valid day", f"two for {valid}, from {start}", DAILY)
        fields[key] = index
    ahead = {key: index for key, index in fields.items() if key[1] >= 1}
    if not ahead:
        refuse(path, "days after the start day", f"none in {len(fields)} fields", ADD_START)
    return ahead


def _times(
    file: netCDF4.Dataset, stored: Any, path: Path, beyond: list[str]
) -> tuple[Moments, Moments, Periods | None]:
    """Starts, valid times and stated periods; of reference time, valid time and period two give the third."""
    reference, valid, period = (
        coordinate(file, stored, path, name) for name in ("forecast_reference_time", "time", "forecast_period")
    )
    _check_means(stored, path, {"time", *(axis.name for axis in (valid, period) if axis is not None)})
    dated = {name for axis in (reference, valid, period) if axis is not None for name in axis.dimensions}
    for name in beyond:
        if name not in dated and len(file.dimensions[name]) > 1:
            refuse(
                path,
                f"{stored.name} by time, latitude and longitude alone",
                f"{len(file.dimensions[name])} steps of {name}",
                f"Take one of them: ncks -d {name},0 IN.nc OUT.nc; or give it standard_name time or forecast_period.",
            )
    lengths = None if period is None else periods(period, path)
    ahead = None if valid is None else moments(valid, path)
    if reference is not None:
        start = moments(reference, path)
    elif ahead is not None and lengths is not None:
        start = combined(ahead, lengths, -1)
    else:
        start = ((), {(): start_in_name(path)})
    if ahead is None:
        if lengths is None or reference is None:
            refuse(path, f"valid times of {stored.name}", ", ".join(beyond) or "no dimension", "Add a CF time axis.")
        ahead = combined(start, lengths, 1)
    elif valid is not None:
        ahead = daily(file, valid, ahead, path)
    return start, ahead, lengths


def _check_means(stored: Any, path: Path, times: set[str]) -> None:
    """Refuse what its cell_methods call other than means over time."""
    text = str(getattr(stored, "cell_methods", ""))
    for names, how in re.findall(r"((?:\w+:\s*)+)(\w+)", text):
        if times & set(re.findall(r"\w+", names)) and how.lower() != "mean":
            refuse(path, f"daily means (cell_methods time: mean) in {stored.name}", text, DAILY)
