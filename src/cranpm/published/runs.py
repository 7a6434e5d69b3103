"""Published forecasts as the server sees them: a day and a version, one folder that never changes."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import rasterio

from cranpm.errors import CranpmError
from cranpm.grid import FINE_STEP, Grid
from cranpm.store import SIMULATION

DAY, VERSION = r"^\d{4}-\d{2}-\d{2}$", r"^[0-9a-f]{8}$"
HIDDEN = re.compile(r"^\.(\d{4}-\d{2}-\d{2})\.([0-9a-f]{8})$")


class AbsentError(CranpmError):
    """What was asked for is not there, or not any more."""


@dataclass(frozen=True)
class Run:
    """One published forecast: its GeoTIFFs and what their tags say."""

    day: date
    version: str
    folder: Path
    leads: tuple[int, ...]
    grid: Grid
    made: datetime
    method: str
    simulated: bool
    degraded: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)

    def valid(self, lead: int) -> date:
        return self.day + timedelta(days=lead)

    def raster(self, lead: int) -> Path:
        if lead not in self.leads:
            raise AbsentError(
                expected=f"a lead among {', '.join(map(str, self.leads))}", found=str(lead), remedy="See /api/runs."
            )
        return self.folder / f"pm25_{self.day}_T+{lead}.tif"

    @property
    def age_hours(self) -> float:
        return (datetime.now(UTC) - self.made).total_seconds() / 3600


def list_runs(folder: Path) -> tuple[list[Run], dict[str, str]]:
    """The runs that can be shown, newest start day first; and those that cannot, with the reason."""
    runs, left_out = [], {}
    for link in sorted((p for p in folder.iterdir() if re.match(DAY, p.name)), reverse=True):
        try:
            runs.append(current_run(folder, link.name))
        except CranpmError as error:
            left_out[link.name] = str(error)
    return runs, left_out


def current_run(folder: Path, day: str) -> Run:
    """The run of a day that is published now."""
    return _load(folder.resolve(), day, current_version(folder, day))


def find_run(folder: Path, day: str, version: str) -> Run:
    """A run, if it is the one that is published now."""
    if current_version(folder, day) != version:
        raise AbsentError(
            expected=f"version {version} of {day}",
            found="another one: it was published anew",
            remedy="Load /api/runs again.",
        )
    return _load(folder.resolve(), day, version)


def current_version(folder: Path, day: str) -> str:
    try:
        target = HIDDEN.match(os.readlink(folder / day))
    except OSError:
        target = None
    if target is None or target[1] != day:
        raise AbsentError(expected=f"a forecast from {day}", found="none", remedy="See /api/runs.")
    return target[2]


@lru_cache(maxsize=4096)
def _load(folder: Path, day: str, version: str) -> Run:
    inside = folder / f".{day}.{version}"
    leads = sorted(int(path.stem.rpartition("+")[2]) for path in inside.glob(f"pm25_{day}_T+[0-9].tif"))
    if not leads:
        raise AbsentError(
            expected=f"GeoTIFFs in {day}", found="none", remedy="Make it with `cranpm forecast --format tif`."
        )
    try:
        with rasterio.open(inside / f"pm25_{day}_T+{leads[0]}.tif") as raster:
            tags, corner, shape = raster.tags(), raster.transform, raster.shape
        provenance = json.loads(tags["provenance"])
        made = datetime.fromisoformat(tags["date_created"])
    except (rasterio.errors.RasterioIOError, KeyError, ValueError) as error:
        raise AbsentError(
            expected=f"a GeoTIFF that cranpm wrote in {day}", found=str(error), remedy="Make the forecast again."
        ) from None
    sources = f"{provenance.get('archive_source', '')} {provenance.get('weights_source', '')}"
    return Run(
        day=date.fromisoformat(day),
        version=version,
        folder=inside,
        leads=tuple(leads),
        grid=Grid(round(corner.f, 9), round(corner.c, 9), FINE_STEP, *shape),
        made=made,
        method=str(provenance["method"]),
        simulated=SIMULATION in sources,
        degraded=() if tags["degraded"] == "no" else tuple(tags["degraded"].split("; ")),
        provenance=provenance,
    )
