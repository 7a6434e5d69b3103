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

from cranpm.archive.store import SIMULATION
from cranpm.core.errors import CranpmError
from cranpm.core.grid import FINE_STEP, Grid

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

    def stale_reason(self, most_hours: float) -> str:
        """Why nobody should rely on it today; empty if nothing speaks against it. Simulated days have no today."""
        if self.age_hours < -1:
            return f"made in the future ({self.made:%Y-%m-%d %H:%M} UTC): check the clocks"
        if self.age_hours > most_hours:
            return f"made {self.age_hours:.0f} h ago"
        if not self.simulated and self.valid(max(self.leads)) < datetime.now(UTC).date():
            return f"its last day, {self.valid(max(self.leads))}, is past"
        return ""


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
    """The run of a day that is published now, also if it is published anew at this moment."""
    version = current_version(folder, day)
    try:
        run = _load(folder.resolve(), day, version)
    except AbsentError:
        if current_version(folder, day) == version:
            raise
        return current_run(folder, day)
    return run if current_version(folder, day) == version else current_run(folder, day)


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
        return _described(inside, day, version, tuple(leads))
    except (rasterio.errors.RasterioIOError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise AbsentError(
            expected=f"a GeoTIFF that cranpm wrote in {day}", found=str(error), remedy="Make the forecast again."
        ) from None


def _described(inside: Path, day: str, version: str, leads: tuple[int, ...]) -> Run:
    with rasterio.open(inside / f"pm25_{day}_T+{leads[0]}.tif") as raster:
        tags, corner, shape = raster.tags(), raster.transform, raster.shape
    provenance, made = json.loads(tags["provenance"]), datetime.fromisoformat(tags["date_created"])
    if made.tzinfo is None or abs(corner.a - FINE_STEP) > 1e-9:
        raise ValueError(f"made {made}, pixels of {corner.a} degrees")
    sources = f"{provenance.get('archive_source', '')} {provenance.get('weights_source', '')}"
    return Run(
        day=date.fromisoformat(day),
        version=version,
        folder=inside,
        leads=leads,
        grid=Grid(round(corner.f, 9), round(corner.c, 9), FINE_STEP, *shape),
        made=made,
        method=str(provenance["method"]),
        simulated=SIMULATION in sources,
        degraded=() if tags["degraded"] == "no" else tuple(tags["degraded"].split("; ")),
        provenance=provenance,
    )
