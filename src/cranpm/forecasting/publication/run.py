"""One published forecast: one version of one start day, a folder that never changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from rasterio.errors import RasterioIOError

from cranpm.core.errors import CranpmError
from cranpm.core.grid import EVERYWHERE, Array, Grid, Window
from cranpm.core.packing import PUBLISHED
from cranpm.forecasting.publication import names, rasters, stacks


class AbsentError(CranpmError):
    """What was requested is not there, or no longer there."""


class DamagedError(CranpmError):
    """A product that is not what was published, or that nobody should read."""


@dataclass(frozen=True)
class Run:
    """A published forecast that was checked when it was opened, and what its files say of it."""

    day: date
    version: str
    folder: Path
    leads: tuple[int, ...]
    grid: Grid
    made: datetime
    method: str
    simulated: bool
    degraded: tuple[str, ...]
    formats: frozenset[str]
    """Those it can be read from: tif, nc, zarr."""
    checked: bool
    """Whether the checksums of all files were compared; products of old versions have none."""
    provenance: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)

    def valid(self, lead: int) -> date:
        """The day that a lead is for."""
        return self.day + timedelta(days=lead)

    def raster(self, lead: int) -> Path:
        """The GeoTIFF of a lead."""
        self.check_lead(lead)
        if "tif" not in self.formats:
            raise AbsentError(
                expected=f"GeoTIFFs in {self.day}", found="none", remedy="Make it with `cranpm forecast --format tif`."
            )
        return self.folder / names.of_lead(self.day, lead, "tif")

    def picture(self, lead: int) -> Path | None:
        """The map of a lead, where one was drawn."""
        path = self.folder / names.of_lead(self.day, lead, "png")
        return path if path.is_file() else None

    def steps(self, lead: int, window: Window = EVERYWHERE) -> Array:
        """(row, column) int16 steps of 0.1 ug m-3 in a window of the grid; `PUBLISHED.missing` where there is none."""
        self.check_lead(lead)
        rows, cols = (slice(*part.indices(size)[:2]) for part, size in zip(window, self.grid.shape, strict=True))
        try:
            if "tif" in self.formats:
                return rasters.window(self.raster(lead), rows, cols)
            name = names.netcdf(self.day) if "nc" in self.formats else names.zarr(self.day)
            return stacks.window(self.folder / name, self.leads.index(lead), rows, cols)
        except (RasterioIOError, FileNotFoundError):
            raise AbsentError(
                expected=f"the files of {self.day} in {self.folder}",
                found="them gone or unreadable: published again while it was read",
                remedy="Give the command again.",
            ) from None

    def pm25(self, lead: int, window: Window = EVERYWHERE) -> Array:
        """(row, column) float32 PM2.5 of a lead, ug m-3; NaN where there is none."""
        return PUBLISHED.unpack(self.steps(lead, window))

    def check_lead(self, lead: int) -> None:
        """Refuse a lead that the run does not have."""
        if lead not in self.leads:
            raise AbsentError(
                expected=f"a lead among {', '.join(map(str, self.leads))}",
                found=str(lead)[:20],
                remedy="Choose one of these.",
            )

    @property
    def age_hours(self) -> float:
        """Hours since it was made."""
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
