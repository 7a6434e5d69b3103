"""GRIB 1 and 2, message by message."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyproj  # noqa: F401  before eccodes: the other order can crash PROJ

import eccodes  # isort: skip

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.quantities import BY_ALIAS, BY_NAME, LevelKind, factor
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.variable import AIFS, CAMS_GLOBAL, IFS, OPERATIONAL, Variable

KINDS: dict[str, LevelKind] = {
    "surface": "surface",
    "heightAboveGround": "surface",
    "isobaricInhPa": "pressure",
    "hybrid": "model",
}
CLASSES = {"ea": "", "od": IFS, "ai": AIFS, "mc": CAMS_GLOBAL}
"""Whose fields they are, by ECMWF's class: ERA5's, forecasts of its two models, CAMS's."""
NUMBERS = (
    "centre",
    "tablesVersion",
    "localTablesVersion",
    "discipline",
    "parameterCategory",
    "parameterNumber",
    "productDefinitionTemplateNumber",
    "typeOfFirstFixedSurface",
    "typeOfSecondFixedSurface",
    "scaleFactorOfFirstFixedSurface",
    "scaledValueOfFirstFixedSurface",
    "typeOfStatisticalProcessing",
    "lengthOfTimeRange",
)
"""By which edition 2 says what a field of the weather is."""
MADE_UP_STATUS = 192
"""Of the data's production, in GRIB's range for local use: simulated fields. ECMWF's own have 0."""
MISSING = 9.969e36


@dataclass(frozen=True)
class _Message:
    """Where a field is and what it says of itself."""

    offset: int
    lead: float
    version: str
    sum_hours: float


@dataclass(frozen=True)
class _Origin:
    """What the fields of a variable have in common beside their quantity: `start` is None for analyses."""

    model: str
    start: datetime | None
    made_up: bool


class _Series:
    """Messages of one quantity on one kind of level and one grid, of one run."""

    def __init__(self, unit: str, file_grid: FileGrid):
        self.unit, self.file_grid = unit, file_grid
        self.messages: dict[tuple[datetime, float], _Message] = {}


def variables(path: Path, label: str) -> list[Variable]:
    """All quantities that we know in a file, each run of a model apart."""
    found: dict[tuple[str, LevelKind, _Origin], _Series] = {}
    grids: dict[str, FileGrid] = {}
    names: dict[tuple[Any, ...], tuple[str, str]] = {}
    for offset, message in _messages(path, label):
        name, unit = _name_and_unit(message, names)
        kind = KINDS.get(_get(message, "typeOfLevel"))
        if name not in BY_ALIAS or kind is None:
            continue
        key = str(_get(message, "md5GridSection"))
        if key not in grids:  # its coordinates take longer than all else
            _check_layout(message, label)
            grids[key] = _file_grid(message, label)
        _check_member(message, name, label)
        file_grid = grids[key]
        series = found.setdefault((BY_ALIAS[name].name, kind, _origin(message, label)), _Series(unit, file_grid))
        if not series.file_grid.same(file_grid) or unit != series.unit:
            raise CranpmError(
                expected=f"{name} on one grid and in one unit in {label}", found="two", remedy="Split the file."
            )
        _add(series, offset, message, name, kind, label)
    return [_variable(path, label, *key, series) for key, series in found.items()]


def _add(series: _Series, offset: int, message: int, name: str, kind: LevelKind, label: str) -> None:
    """Put a message at its time and level; of two versions of ERA5 the final one stays."""
    key = (_time(message, "validity"), 0.0 if kind == "surface" else float(_get(message, "level")))
    lead = float(_get(message, "endStep", 0))
    here = _Message(offset, lead, _version(message), lead - float(_get(message, "startStep", lead)))
    old = series.messages.get(key)
    if old and old.lead == here.lead and old.version == here.version:
        raise CranpmError(
            expected=f"one {name} for each time and level in {label}",
            found=f"two on {key[0]}",
            remedy="Leave one of them out.",
        )
    if old is None or (here.version == "0005", here.lead) < (old.version == "0005", old.lead):
        series.messages[key] = here


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


def _name_and_unit(message: int, known: dict[tuple[Any, ...], tuple[str, str]]) -> tuple[str, str]:
    """Short name and unit, which take ecCodes longest: weather of edition 2 is named once for the same numbers."""
    if int(_get(message, "edition")) != 2 or _get(message, "class", "") not in ("od", "ai"):
        return str(_get(message, "shortName")), str(_get(message, "units"))
    key = tuple(_get(message, number, -1) for number in NUMBERS)
    if key not in known:
        known[key] = str(_get(message, "shortName")), str(_get(message, "units"))
    return known[key]


def _time(message: int, which: str) -> datetime:
    return datetime.strptime(f"{_get(message, f'{which}Date')}{_get(message, f'{which}Time'):04d}", "%Y%m%d%H%M")


def _origin(message: int, label: str) -> _Origin:
    """Which model and run a field is of; ERA5's rain comes from short forecasts and is an analysis to us."""
    kind = str(_get(message, "class", "unknown"))
    if kind not in CLASSES:
        raise CranpmError(
            expected=f"fields of ERA5 (class ea), of ECMWF's forecasts (od, ai) or of CAMS (mc) in {label}",
            found=f"class {kind}",
            remedy="Fetch one of these.",
        )
    made_up = int(_get(message, "productionStatusOfProcessedData", 0)) == MADE_UP_STATUS
    if kind == "ea" or (kind == "mc" and str(_get(message, "type", "an")) != "fc"):
        return _Origin("", None, made_up)
    return _Origin(CLASSES[kind], _time(message, "data"), made_up)


def _version(message: int) -> str:
    return OPERATIONAL if str(_get(message, "class", "")) == "od" else str(_get(message, "expver", ""))


def _check_layout(message: int, label: str) -> None:
    """Rows must run as they usually do."""
    odd = [key for key in ("iScansNegatively", "jPointsAreConsecutive") if int(_get(message, key, 0))]
    if odd or _get(message, "gridType") != "regular_ll":
        raise CranpmError(
            expected=f"a regular latitude-longitude grid, rows from west to east, in {label}",
            found=", ".join(odd) or str(_get(message, "gridType")),
            remedy="Ask the provider for such a grid, as 0.25/0.25.",
        )


def _check_member(message: int, name: str, label: str) -> None:
    """Members of an ensemble are not one field."""
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


def _variable(path: Path, label: str, name: str, kind: LevelKind, origin: _Origin, series: _Series) -> Variable:
    times = sorted({valid for valid, _ in series.messages})
    levels = tuple(sorted({level for _, level in series.messages}))
    first = [next(m for (valid, _), m in series.messages.items() if valid == time) for time in times]
    if not BY_NAME[name].ratios:
        factor(BY_NAME[name], series.unit, label)
    from_start = all(message.sum_hours == message.lead for message in first)

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
        return _values(file, message.offset, series.file_grid, label)

    return Variable(
        file=label,
        quantity=BY_NAME[name],
        unit=series.unit,
        times=np.array(times, "datetime64[s]"),
        kind=kind,
        levels=levels,
        file_grid=series.file_grid,
        reader=read,
        leads=np.array([message.lead if origin.start else 0.0 for message in first]),
        versions=np.array([message.version for message in first], object),
        sum_hours=(first[-1].sum_hours or 1.0) if origin.start else 1.0,
        accumulated=name == "tp" and origin.start is not None and from_start,
        field_by_field=True,
        institution=MADE_UP if origin.made_up else "",
        model=origin.model,
        start=np.datetime64(origin.start, "s") if origin.start else None,
    )


def _values(file: Any, offset: int, file_grid: FileGrid, label: str) -> Array:
    """One field as stored."""
    file.seek(offset)
    message = eccodes.codes_grib_new_from_file(file)
    try:
        eccodes.codes_set(message, "missingValue", MISSING)
        values = eccodes.codes_get_array(message, "values", ktype=np.float32)
    except eccodes.CodesInternalError as error:
        raise CranpmError(expected=f"values in {label}", found=str(error), remedy="Fetch it again.") from None
    finally:
        eccodes.codes_release(message)
    values[values == np.float32(MISSING)] = np.nan
    return np.asarray(values).reshape(len(file_grid.rows), len(file_grid.cols))
