"""GRIB 1 and 2, message by message."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyproj  # noqa: F401  before eccodes: the other order can crash PROJ

import eccodes  # isort: skip

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.quantities import BY_ALIAS, BY_NAME, LevelKind, factor
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.variable import OPERATIONAL, Variable

KINDS: dict[str, LevelKind] = {
    "surface": "surface",
    "heightAboveGround": "surface",
    "isobaricInhPa": "pressure",
    "hybrid": "model",
}
CLASSES = {"ea": "", "od": OPERATIONAL, "mc": ""}
"""Whose fields they are: ERA5, ECMWF's forecasts, CAMS."""
ROUNDING_M = 1e-4
"""By which packed sums of rain may seem to fall from one hour to the next."""
MISSING = 9.969e36


@dataclass(frozen=True)
class _Message:
    """Where a field is and what it says of itself."""

    offset: int
    start: datetime
    lead: float
    version: str


class _Series:
    """Messages of one quantity on one kind of level and one grid."""

    def __init__(self, unit: str, file_grid: FileGrid):
        self.unit, self.file_grid = unit, file_grid
        self.messages: dict[tuple[datetime, float], _Message] = {}


def variables(path: Path, label: str) -> list[Variable]:
    """All quantities that we know in a file."""
    found: dict[tuple[str, LevelKind], _Series] = {}
    for offset, message in _messages(path, label):
        name, kind = _get(message, "shortName"), KINDS.get(_get(message, "typeOfLevel"))
        if name not in BY_ALIAS or kind is None:
            continue
        _check_layout(message, name, label)
        file_grid, unit = _file_grid(message, label), _get(message, "units")
        series = found.setdefault((BY_ALIAS[name].name, kind), _Series(unit, file_grid))
        if not series.file_grid.same(file_grid) or unit != series.unit:
            raise CranpmError(
                expected=f"{name} on one grid and in one unit in {label}", found="two", remedy="Split the file."
            )
        key = (_time(message, "validity"), 0.0 if kind == "surface" else float(_get(message, "level")))
        here = _Message(offset, _time(message, "data"), float(_get(message, "endStep", 0)), _version(message, label))
        old = series.messages.get(key)
        if old and old.lead == here.lead and old.version == here.version:
            raise CranpmError(
                expected=f"one {name} for each time and level in {label}",
                found=f"two on {key[0]}",
                remedy="Leave one of them out.",
            )
        if old is None or (here.version == "0005", here.lead) < (old.version == "0005", old.lead):
            series.messages[key] = here
    return [_variable(path, label, *key, series) for key, series in found.items()]


def _messages(path: Path, label: str) -> Iterator[tuple[int, int]]:
    """Offset and handle of every message; a file that ends within one is refused."""
    size, end = path.stat().st_size, 0
    with path.open("rb") as file:
        while True:
            try:
                message = eccodes.codes_grib_new_from_file(file)
                if message is None:
                    break
                start = int(_get(message, "offset"))
                end = start + int(_get(message, "totalLength"))
                yield start, message
            except eccodes.CodesInternalError as error:
                raise CranpmError(
                    expected=f"whole GRIB messages in {label}",
                    found=f"{error} after byte {end} of {size}",
                    remedy="Fetch it again.",
                ) from None
            eccodes.codes_release(message)
        file.seek(end)
        if file.read().strip(b"\0"):
            raise CranpmError(
                expected=f"GRIB to the end of {label}", found=f"{size - end} other bytes", remedy="Fetch it again."
            )


def _get(message: int, key: str, default: Any = None) -> Any:
    try:
        return eccodes.codes_get(message, key)
    except eccodes.KeyValueNotFoundError:
        if default is None:
            raise
        return default


def _time(message: int, which: str) -> datetime:
    return datetime.strptime(f"{_get(message, f'{which}Date')}{_get(message, f'{which}Time'):04d}", "%Y%m%d%H%M")


def _version(message: int, label: str) -> str:
    kind = str(_get(message, "class", "unknown"))
    if kind not in CLASSES:
        raise CranpmError(
            expected=f"fields of ERA5 (class ea), of ECMWF's forecast (od) or of CAMS (mc) in {label}",
            found=f"class {kind}",
            remedy="Fetch one of these.",
        )
    return CLASSES[kind] or str(_get(message, "expver", ""))


def _check_layout(message: int, name: str, label: str) -> None:
    """Members of an ensemble are not one field, and rows must run as they usually do."""
    odd = [key for key in ("iScansNegatively", "jPointsAreConsecutive") if int(_get(message, key, 0))]
    if odd or _get(message, "gridType") != "regular_ll":
        raise CranpmError(
            expected=f"a regular latitude-longitude grid, rows from west to east, in {label}",
            found=", ".join(odd) or str(_get(message, "gridType")),
            remedy="Ask the provider for such a grid, as 0.25/0.25.",
        )
    if int(_get(message, "number", 0)) > 0:
        raise CranpmError(
            expected=f"one {name} for each time in {label}",
            found="members of an ensemble",
            remedy="Fetch the reanalysis (product_type reanalysis), not its ensemble.",
        )


def _file_grid(message: int, label: str) -> FileGrid:
    lat, lon = (eccodes.codes_get_array(message, key) for key in ("distinctLatitudes", "distinctLongitudes"))
    if int(_get(message, "jScansPositively", 0)) != int(lat[0] < lat[-1]):
        lat = lat[::-1]
    return FileGrid.of(lat, lon, label)


def _variable(path: Path, label: str, name: str, kind: LevelKind, series: _Series) -> Variable:
    times = sorted({valid for valid, _ in series.messages})
    levels = tuple(sorted({level for _, level in series.messages}))
    first = [next(m for (valid, _), m in series.messages.items() if valid == time) for time in times]
    if not BY_NAME[name].ratios:
        factor(BY_NAME[name], series.unit, label)
    summed = name == "tp" and first[0].version == OPERATIONAL
    steps = {(later - earlier).total_seconds() / 3600 for earlier, later in pairwise(times)}
    sum_hours = min(steps, default=first[0].lead or 1.0) if summed else 1.0

    def read(indices: Array, level: int) -> Array:
        with path.open("rb") as file:
            return np.stack([field(file, times[int(index)], levels[level]) for index in indices])

    def field(file: Any, time: datetime, level: float) -> Array:
        message = series.messages.get((time, level))
        if message is None:
            raise CranpmError(
                expected=f"{name} at level {level:g} on {time} in {label}",
                found="no such message",
                remedy="Fetch all levels for all times.",
            )
        values = _values(file, message.offset, series.file_grid, label)
        if not summed:
            return values
        before = [m for (t, lev), m in series.messages.items() if (lev, m.start) == (level, message.start) and t < time]
        known = max((m.lead for m in before), default=0.0)
        if message.lead - known > sum_hours:
            raise CranpmError(
                expected=f"{name} for every {sum_hours:g} hours in {label}",
                found=f"none between {known:g} and {message.lead:g} hours after the start of the forecast",
                remedy="Fetch all steps from the start of the forecast.",
            )
        if before:  # sums count from the start of the forecast
            values = values - _values(file, max(before, key=lambda m: m.lead).offset, series.file_grid, label)
        return np.where(values > -ROUNDING_M, np.maximum(values, 0), values)

    return Variable(
        file=label,
        quantity=BY_NAME[name],
        unit=series.unit,
        times=np.array(times, "datetime64[s]"),
        kind=kind,
        levels=levels,
        file_grid=series.file_grid,
        reader=read,
        leads=np.array([message.lead if message.version == OPERATIONAL else 0.0 for message in first]),
        versions=np.array([message.version for message in first], object),
        sum_hours=sum_hours,
    )


def _values(file: Any, offset: int, file_grid: FileGrid, label: str) -> Array:
    """One field as stored."""
    file.seek(offset)
    message = eccodes.codes_grib_new_from_file(file)
    try:
        eccodes.codes_set(message, "missingValue", MISSING)
        values = eccodes.codes_get_values(message)
    except eccodes.CodesInternalError as error:
        raise CranpmError(expected=f"values in {label}", found=str(error), remedy="Fetch it again.") from None
    finally:
        eccodes.codes_release(message)
    values[values == MISSING] = np.nan
    return np.asarray(values).reshape(len(file_grid.rows), len(file_grid.cols))
