"""GRIB 2 as ECMWF's open data have it: CCSDS packing, one field a message, and the index that says where each lies."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyproj  # noqa: F401  before eccodes: the other order can crash PROJ

import eccodes  # isort: skip

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.readers.grib import MADE_UP_STATUS

BITS = 16
"""A packed value is off by less than (greatest - least) / 65535 of its field: half a step, which is a power of two."""
IDENTITY: dict[str, Any] = {
    "centre": "ecmf",
    "tablesVersion": 33,
    "productionStatusOfProcessedData": MADE_UP_STATUS,
    "setLocalDefinition": 1,
    "class": "od",
    "type": "fc",
    "stream": "oper",
    "expver": "0001",
    "generatingProcessIdentifier": 161,
    "typeOfGeneratingProcess": 2,
    "shapeOfTheEarth": 6,
}
PACKING: dict[str, Any] = {"packingType": "grid_ccsds", "bitsPerValue": BITS}


@dataclass(frozen=True)
class FieldKey:
    """What a field is: ECMWF's short name, pressure level (None at the surface), start day and step."""

    param: str
    level_hpa: int | None
    start: date
    step: int
    """Hours since 00 UTC of the start day."""

    def to_index(self) -> dict[str, str]:
        """As a line of an index says it."""
        level = {} if self.level_hpa is None else {"levelist": str(self.level_hpa)}
        return {
            "domain": "g",
            "date": f"{self.start:%Y%m%d}",
            "time": "0000",
            "expver": "0001",
            "class": "od",
            "type": "fc",
            "stream": "oper",
            "step": str(self.step),
            "levtype": "sfc" if self.level_hpa is None else "pl",
            **level,
            "param": self.param,
        }


class GribEncoder:
    """Makes messages on one grid.

    Latitudes fall; longitudes are in 0..360 and run eastward from anywhere: over Greenwich, or from 180 as ECMWF's.
    """

    def __init__(self, lat: Array, lon: Array):
        self._geometry = _geometry(lat, lon)
        self._templates: dict[tuple[str, int | None], bytes] = {}

    def encode(self, key: FieldKey, values: Array) -> bytes:
        """One message; rain counts from the start of the forecast."""
        if not np.isfinite(values).all():
            raise CranpmError(
                expected=f"{key.param} everywhere, {key.step} hours after {key.start}",
                found=f"{np.mean(~np.isfinite(values)):.2%} of it missing",
                remedy="Leave out days that lack channels.",
            )
        kind = (key.param, key.level_hpa)
        if kind not in self._templates:
            self._templates[kind] = self._template(*kind)
        message = eccodes.codes_new_from_message(self._templates[kind])
        times = {
            "dataDate": int(f"{key.start:%Y%m%d}"),
            "stepRange": f"0-{key.step}" if key.param == "tp" else str(key.step),
        }
        return _finished(message, times | {"bitsPerValue": BITS}, values)

    def _template(self, param: str, level_hpa: int | None) -> bytes:
        """A message without times and values: most of the work, and the same for all steps."""
        sample = "regular_ll_sfc_grib2" if level_hpa is None else "regular_ll_pl_grib2"
        level = {} if level_hpa is None else {"level": level_hpa}
        keys = IDENTITY | self._geometry | {"dataTime": 0, "shortName": param} | level
        return _finished(eccodes.codes_grib_new_from_samples(sample), keys | PACKING)


def _finished(message: int, keys: dict[str, Any], values: Array | None = None) -> bytes:
    """The bytes of a message with some keys and values set, in this order; its handle is released."""
    try:
        for name, setting in keys.items():
            eccodes.codes_set(message, name, setting)
        if values is not None:
            eccodes.codes_set_values(message, np.ascontiguousarray(values, np.float64).ravel())
        return bytes(eccodes.codes_get_message(message))
    finally:
        eccodes.codes_release(message)


def _geometry(lat: Array, lon: Array) -> dict[str, Any]:
    step = float(lat[0] - lat[1])
    return {
        "Ni": len(lon),
        "Nj": len(lat),
        "latitudeOfFirstGridPointInDegrees": float(lat[0]),
        "latitudeOfLastGridPointInDegrees": float(lat[-1]),
        "longitudeOfFirstGridPointInDegrees": float(lon[0]),
        "longitudeOfLastGridPointInDegrees": float(lon[-1]),
        "iDirectionIncrementInDegrees": step,
        "jDirectionIncrementInDegrees": step,
    }


def write_with_index(path: Path, messages: Iterable[tuple[FieldKey, bytes]]) -> None:
    """Write messages to `path`, and to an index beside it a line of JSON for each: what it is, and its bytes."""
    lines, offset = [], 0
    with path.open("wb") as file:
        for key, message in messages:
            file.write(message)
            lines.append(json.dumps(key.to_index() | {"_offset": offset, "_length": len(message)}))
            offset += len(message)
    path.with_suffix(".index").write_text("\n".join(lines) + "\n")
