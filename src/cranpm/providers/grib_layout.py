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
from cranpm.core.files import whole_file
from cranpm.core.grid import Array

BITS = 16
"""A value is off by half of (greatest - least) / 2**15 of its field at most: the step is a power of two."""
MADE_UP_STATUS = 192
"""Of the data's production, in GRIB's range for local use: these fields are simulated. ECMWF's own have 0."""
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


def encode(key: FieldKey, values: Array, lat: Array, lon: Array) -> bytes:
    """One message; rain counts from the start of the forecast.

    Latitudes fall; longitudes are in 0..360 and run eastward from anywhere: over Greenwich, or from 180 as ECMWF's.
    """
    if not np.isfinite(values).all():
        raise CranpmError(
            expected=f"{key.param} everywhere, {key.step} hours after {key.start}",
            found=f"{np.mean(~np.isfinite(values)):.2%} of it missing",
            remedy="Leave out days that lack channels.",
        )
    sample = "regular_ll_sfc_grib2" if key.level_hpa is None else "regular_ll_pl_grib2"
    message = eccodes.codes_grib_new_from_samples(sample)
    try:
        for name, setting in (IDENTITY | _geometry(lat, lon) | _product(key)).items():
            eccodes.codes_set(message, name, setting)
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


def _product(key: FieldKey) -> dict[str, Any]:
    """The order matters: a short name chooses the template that steps are set in."""
    level = {} if key.level_hpa is None else {"level": key.level_hpa}
    return {
        "dataDate": int(f"{key.start:%Y%m%d}"),
        "dataTime": 0,
        "shortName": key.param,
        **level,
        "stepRange": f"0-{key.step}" if key.param == "tp" else str(key.step),
        "packingType": "grid_ccsds",
        "bitsPerValue": BITS,
    }


def write_with_index(path: Path, messages: Iterable[tuple[FieldKey, bytes]]) -> None:
    """Write messages to `path`, and to an index beside it a line of JSON for each: what it is, and its bytes."""
    lines, offset = [], 0
    with whole_file(path) as beside, beside.open("wb") as file:
        for key, message in messages:
            file.write(message)
            lines.append(json.dumps(key.to_index() | {"_offset": offset, "_length": len(message)}))
            offset += len(message)
    with whole_file(path.with_suffix(".index")) as beside:
        beside.write_text("\n".join(lines) + "\n")
