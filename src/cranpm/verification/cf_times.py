"""Times in a CF NetCDF file: coordinates, moments, periods and whether values are those of days."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import netCDF4
import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array

HOURS = {"days": 24.0, "day": 24.0, "d": 24.0, "hours": 1.0, "hour": 1.0, "h": 1.0, "hr": 1.0}
LONGEST_HOURS = 24 * 3660
CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
DATE = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")
ADD_START = (
    "Add the start to the file, in xarray: ds = ds.assign_coords(forecast_reference_time=np.datetime64('2026-01-25')); "
    "ds.forecast_reference_time.attrs['standard_name'] = 'forecast_reference_time'. Or give every start day a file "
    "with that day in its name."
)
DAILY = "Average to days first: cdo daymean IN.nc OUT.nc, or ds.resample(time='1D').mean() in xarray."


Moments = tuple[tuple[str, ...], dict[tuple[int, ...], datetime]]
"""Dimensions, and the time at every index of them."""
Periods = tuple[tuple[str, ...], dict[tuple[int, ...], timedelta]]
Times = tuple[Moments, Moments, Periods | None]


def refuse(path: Path, expected: str, found: str, remedy: str) -> NoReturn:
    raise CranpmError(expected=f"{expected} in {path}", found=found, remedy=remedy)


def numbers(variable: Any) -> Array:
    return np.ma.filled(np.ma.asarray(variable[:]).astype(np.float64), np.nan)


def coordinate(file: netCDF4.Dataset, stored: Any, path: Path, name: str) -> Any | None:
    """A time coordinate of the variable by standard name, else by name; it may lie along its dimensions only."""
    along = [
        v for v in file.variables.values() if set(v.dimensions) <= set(stored.dimensions) and v.name != stored.name
    ]
    stated = [v for v in along if getattr(v, "standard_name", "") == name]
    found = stated or [v for v in along if v.name == name and not getattr(v, "standard_name", "")]
    if len(found) > 1:
        refuse(
            path,
            f"one coordinate with the standard name {name}",
            ", ".join(v.name for v in found),
            f"Remove the standard name of the others: ncatted -a standard_name,{found[-1].name},d,, FILE.nc.",
        )
    return found[0] if found else None


def moments(variable: Any, path: Path) -> Moments:
    calendar, units = getattr(variable, "calendar", "standard"), getattr(variable, "units", "")
    values = numbers(variable)
    if calendar not in CALENDARS or " since " not in units or not np.isfinite(values).all():
        found = f"units {units!r}, calendar {calendar}" if np.isfinite(values).all() else "times that are missing"
        refuse(
            path,
            f"{variable.name} as `days since DATE` or the like, of the standard calendar",
            found,
            f"For example ncatted -a units,{variable.name},o,c,'days since 2026-01-01' FILE.nc.",
        )
    try:
        dates = _dates(values, units, calendar)
    except (ValueError, OverflowError) as error:
        refuse(path, f"times in {variable.name}", str(error)[:100], "Correct its units.")
    return variable.dimensions, {index: dates[index] for index in np.ndindex(dates.shape)}


def _dates(values: Array, units: str, calendar: str) -> Any:
    """An array of datetimes."""
    how = {"only_use_cftime_datetimes": False, "only_use_python_datetimes": True}
    return np.asarray(netCDF4.num2date(values, units, calendar, **how), dtype=object)


def periods(variable: Any, path: Path) -> Periods:
    units = str(getattr(variable, "units", "none"))
    if units not in HOURS:
        refuse(
            path,
            f"{variable.name} in days or hours",
            units,
            f"Add the unit: ncatted -a units,{variable.name},o,c,days FILE.nc.",
        )
    values = numbers(variable) * HOURS[units]
    if not (np.abs(values) < LONGEST_HOURS).all():
        refuse(path, f"a number of {units} in {variable.name}", "missing or impossible ones", "Correct its values.")
    return variable.dimensions, {i: timedelta(hours=float(values[i])) for i in np.ndindex(values.shape)}


def combined(moments: Moments, lengths: Periods, sign: int) -> Moments:
    """Moments plus (or minus) periods, by the dimensions of both."""
    (first, times), (second, steps) = moments, lengths
    dimensions = tuple(dict.fromkeys((*first, *second)))
    found = {}
    for one, time in times.items():
        for two, step in steps.items():
            at = dict(zip(first, one, strict=True))
            other = dict(zip(second, two, strict=True))
            if all(at.get(name, place) == place for name, place in other.items()):
                index = tuple((at | other)[name] for name in dimensions)
                found[index] = time + sign * step
    return dimensions, found


def daily(file: netCDF4.Dataset, valid: Any, moments: Moments, path: Path) -> Moments:
    """Valid times; where bounds are given they must span a day, and the day is the one of their middle."""
    bounds = file.variables.get(getattr(valid, "bounds", ""))
    if bounds is None:
        return moments
    calendar, units = getattr(valid, "calendar", "standard"), getattr(bounds, "units", valid.units)
    values = numbers(bounds)
    if values.shape != (*valid.shape, 2) or not np.isfinite(values).all():
        found = "missing values" if values.shape == (*valid.shape, 2) else f"shape {values.shape}"
        refuse(path, f"two bounds of every {valid.name}", found, f"Correct {bounds.name}, or remove it.")
    edges = _dates(values, units, calendar)
    dimensions, times = moments
    for index in times:
        low, high = edges[index]
        if high - low != timedelta(days=1):
            refuse(path, f"daily means in the bounds of {valid.name}", f"spans of {high - low}", DAILY)
        times[index] = low + (high - low) / 2
    return dimensions, times


def start_in_name(path: Path) -> datetime:
    """The start day in a file's name, YYYY-MM-DD or YYYYMMDD: the file holds one forecast."""
    found = set()
    for parts in DATE.findall(path.stem):
        try:
            found.add(datetime.fromisoformat("-".join(parts)))
        except ValueError:
            continue
    if len(found) != 1:
        text = ", ".join(str(day.date()) for day in sorted(found)) or "no date"
        refuse(path, "a forecast_reference_time, or one start day in the file's name", f"{text} in the name", ADD_START)
    return found.pop()
