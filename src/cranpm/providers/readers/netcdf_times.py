"""Times of NetCDF files: of analyses, and of forecasts by the run that they are of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import netCDF4
import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.readers.variable import CAMS_EUROPE, CAMS_GLOBAL

TIMES = ("valid_time", "time", "forecast_period", "forecast_reference_time")
EPOCH_IN_NAME = re.compile(r"(?:ANALYSIS|FORECAST) time from (\d{4})(\d{2})(\d{2})")
HOURS = {"": 1.0, "hours": 1.0, "hour": 1.0, "h": 1.0, "days": 24.0, "minutes": 1 / 60, "seconds": 1 / 3600}
"""In a unit of a forecast period."""


@dataclass(frozen=True)
class Clock:
    """Valid times of the fields of a variable, all in one row."""

    times: Array
    """datetime64[s], UTC."""
    leads: Array
    """Hours since the start of the run; 0 for analyses."""
    dimensions: tuple[str, ...]
    """Which hold the times."""
    model: str = ""
    """Whose forecasts are laid out so; empty for analyses."""

    def runs(self) -> Iterator[tuple[np.datetime64 | None, Array]]:
        """Starts of runs (None for analyses) and the indices of their times, in order."""
        order = np.argsort(self.times, kind="stable")
        if not self.model:
            yield None, order  # a time that is said twice stays twice, and is compared where a day is made of it
            return
        starts = self.times - np.round(self.leads * 3600).astype("timedelta64[s]")
        for start in np.unique(starts):
            yield start, order[starts[order] == start]


def read_clock(file: netCDF4.Dataset, dimensions: list[str], label: str) -> Clock:
    """The times of a variable with these dimensions."""
    names = tuple(name for name in TIMES if name in dimensions)
    if names and set(names) <= {"forecast_period", "forecast_reference_time"}:
        return _of_runs(file, tuple(name for name in dimensions if name in names), label)
    if len(names) != 1:
        raise CranpmError(
            expected=f"one time axis in {label}",
            found=", ".join(names) or "none",
            remedy="Fetch it as the provider makes it.",
        )
    clock = file[names[0]]
    times = _decode(clock, label)
    if str(getattr(clock, "long_name", "")).startswith("FORECAST"):
        return Clock(times, np.asarray(clock[:], float), names, CAMS_EUROPE)
    return Clock(times, np.zeros(len(times)), names)


def _of_runs(file: netCDF4.Dataset, order: tuple[str, ...], label: str) -> Clock:
    """Runs by start and period, either of which may be a single number beside the dimensions."""
    for name in ("forecast_period", "forecast_reference_time"):
        if name not in file.variables:
            raise CranpmError(
                expected=f"{name} in {label}", found="none", remedy="Fetch the forecast as the provider makes it."
            )
    period = file["forecast_period"]
    unit = str(getattr(period, "units", ""))
    if unit not in HOURS:
        raise CranpmError(expected=f"forecast_period in hours in {label}", found=unit, remedy="State it in hours.")
    hours = np.asarray(period[:], float).ravel() * HOURS[unit]
    starts = _decode(file["forecast_reference_time"], label).ravel()
    first_is_period = order[0] == "forecast_period"
    leads = hours[:, None] if first_is_period else hours[None, :]
    begun = starts[None, :] if first_is_period else starts[:, None]
    valid = begun + np.round(leads * 3600).astype("timedelta64[s]")
    return Clock(valid.ravel(), np.broadcast_to(leads, valid.shape).ravel(), order, CAMS_GLOBAL)


def _decode(variable: "netCDF4.Variable[Any]", label: str) -> Array:
    """Times as datetime64[s]. The European analysis keeps its epoch in `long_name`."""
    unit, values = str(getattr(variable, "units", "")), np.asarray(variable[:], np.float64)
    found = EPOCH_IN_NAME.search(str(getattr(variable, "long_name", "")))
    if unit == "hours" and found:
        start = np.datetime64("-".join(found.groups()), "s")
        return start + np.round(values * 3600).astype("timedelta64[s]")
    calendar = str(getattr(variable, "calendar", "standard")).lower()
    if calendar not in ("standard", "gregorian", "proleptic_gregorian"):
        raise CranpmError(
            expected=f"days of our calendar in {label}", found=calendar, remedy="Fetch it as the provider makes it."
        )
    return decode_times(values, unit, label)


def decode_times(values: Array, unit: str, label: str) -> Array:
    """datetime64[s] from numbers and a unit as `hours since 1900-01-01`."""
    length, _, since = unit.partition(" since ")
    seconds = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}.get(length)
    if seconds is None or not since:
        raise CranpmError(
            expected=f"time as seconds, minutes, hours or days since a date in {label}",
            found=repr(unit),
            remedy="Fetch it as the provider makes it.",
        )
    values = np.asarray(values, np.float64)
    if not np.isfinite(values).all():
        raise CranpmError(expected=f"every time in {label}", found="some that are missing", remedy="Fetch it again.")
    start = np.datetime64(since.strip().removesuffix("Z").removesuffix(".0").replace(" ", "T"), "s")
    return start + np.round(values * seconds).astype("timedelta64[s]")


def versions_of(file: netCDF4.Dataset, times: Array) -> Array:
    """expver of each time; where it is a dimension, fields are merged and the time is called by both."""
    if "expver" not in file.variables:
        return np.full(len(times), "", object)
    found = [str(value).zfill(4) for value in np.ravel(file["expver"][:])]
    if file["expver"].dimensions != ("expver",) and len(found) == len(times):
        return np.array(found, object)
    return np.full(len(times), "+".join(sorted(set(found))), object)
