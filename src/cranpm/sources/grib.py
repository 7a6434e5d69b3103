"""GRIB 1 and 2, message by message."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyproj  # noqa: F401  before eccodes: the other order can crash PROJ

import eccodes  # isort: skip

from cranpm.errors import CranpmError
from cranpm.grid import Array
from cranpm.sources.names import BY_ALIAS, LevelKind
from cranpm.sources.place import Place
from cranpm.sources.variable import Variable

KINDS: dict[str, LevelKind] = {
    "surface": "surface",
    "heightAboveGround": "surface",
    "isobaricInhPa": "pressure",
    "hybrid": "model",
}
REANALYSIS = "ea"
"""ERA5's class; other fields are forecasts."""
ROUNDING_M = 1e-4
"""By which packed sums of rain may seem to fall from one hour to the next."""
OPERATIONAL = "ifs"
"""What we call the version of ECMWF's open data."""


class _Series:
    """Messages of one quantity on one kind of level and one grid."""

    def __init__(self, unit: str, place: Place, version: str):
        self.unit, self.place, self.version = unit, place, version
        self.offsets: dict[tuple[datetime, float], list[tuple[float, int]]] = {}
        self.accumulates = False
        """Whether fields count from the start of the forecast: each is then taken less the one before."""


def variables(path: Path, label: str) -> list[Variable]:
    """All quantities that we know in a file."""
    found: dict[tuple[str, LevelKind], _Series] = {}
    for offset, message in _messages(path, label):
        name, kind = _get(message, "shortName"), KINDS.get(_get(message, "typeOfLevel"))
        if name not in BY_ALIAS or kind is None:
            continue
        _check_alone(message, name, label)
        place = _place(message, label)
        key = (BY_ALIAS[name].name, kind)
        version = _get(message, "expver", "") if _get(message, "class", "") == REANALYSIS else OPERATIONAL
        series = found.setdefault(key, _Series(_get(message, "units"), place, str(version)))
        series.accumulates |= version == OPERATIONAL and name == "tp"
        if not (np.array_equal(series.place.lat, place.lat) and np.array_equal(series.place.lon, place.lon)):
            raise CranpmError(
                expected=f"one grid in {label}", found=f"two for {name}", remedy="Split the file by grid."
            )
        valid = datetime.strptime(f"{_get(message, 'validityDate')}{_get(message, 'validityTime'):04d}", "%Y%m%d%H%M")
        level = 0.0 if kind == "surface" else float(_get(message, "level"))
        lead = float(_get(message, "endStep", 0))
        series.offsets.setdefault((valid, level), []).append((lead, offset))
    return [_variable(path, label, *key, series) for key, series in found.items()]


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        yield file


def _messages(path: Path, label: str) -> Iterator[tuple[int, int]]:
    """Offset and handle of every message; a file that ends within one is refused."""
    size = path.stat().st_size
    end = 0
    with _open(path) as file:
        while True:
            offset = file.tell()
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
                    found=f"{error} at byte {offset} of {size}",
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


def _check_alone(message: int, name: str, label: str) -> None:
    """Members of an ensemble are not one field."""
    if int(_get(message, "number", 0)) > 0:
        raise CranpmError(
            expected=f"one {name} for each time in {label}",
            found="members of an ensemble",
            remedy="Fetch the reanalysis (product_type reanalysis), not its ensemble.",
        )


def _place(message: int, label: str) -> Place:
    kind = _get(message, "gridType")
    if kind != "regular_ll":
        raise CranpmError(
            expected=f"a regular latitude-longitude grid in {label}",
            found=str(kind),
            remedy="Ask the provider for such a grid, as 0.25/0.25.",
        )
    lat, lon = (eccodes.codes_get_array(message, key) for key in ("distinctLatitudes", "distinctLongitudes"))
    return Place.of(lat, lon, label)


def _variable(path: Path, label: str, name: str, kind: LevelKind, series: _Series) -> Variable:
    times = sorted({valid for valid, _ in series.offsets})
    levels = tuple(sorted({level for _, level in series.offsets}))
    leads = [min(min(found)[0] for (valid, _), found in series.offsets.items() if valid == time) for time in times]

    def read(indices: Array, level: int) -> Array:
        fields = []
        with _open(path) as file:
            for index in indices:
                found = series.offsets.get((times[int(index)], levels[level]))
                if found is None:
                    raise CranpmError(
                        expected=f"{name} at level {levels[level]:g} on {times[int(index)]} in {label}",
                        found="no such message",
                        remedy="Fetch all levels for all times.",
                    )
                fields.append(_values(file, min(found)[1], series.place, label))
                if series.accumulates and index > 0:
                    before = series.offsets[times[int(index) - 1], levels[level]]
                    fallen = fields[-1] - _values(file, min(before)[1], series.place, label)
                    fields[-1] = np.where(fallen > -ROUNDING_M, np.maximum(fallen, 0), fallen)
        return np.stack(fields)

    return Variable(
        file=label,
        quantity=next(quantity for quantity in BY_ALIAS.values() if quantity.name == name),
        unit=series.unit,
        times=np.array(times, "datetime64[s]"),
        kind=kind,
        levels=levels,
        place=series.place,
        reader=read,
        lead_hours=np.array(leads) if any(leads) else None,
        version=series.version,
    )


def _values(file: Any, offset: int, place: Place, label: str) -> Array:
    """One field, as stored: rows in the order of `distinctLatitudes`."""
    file.seek(offset)
    message = eccodes.codes_grib_new_from_file(file)
    try:
        eccodes.codes_set(message, "missingValue", 9.969e36)
        values = eccodes.codes_get_values(message)
    except eccodes.CodesInternalError as error:
        raise CranpmError(expected=f"values in {label}", found=str(error), remedy="Fetch it again.") from None
    finally:
        eccodes.codes_release(message)
    values[values == 9.969e36] = np.nan
    return values.reshape(len(place.rows), len(place.cols))
