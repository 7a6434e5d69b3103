"""The archive of days: one versioned repository that training and forecasting read from.

A day is one commit: readers see all of it or nothing. Every chunk carries a checksum. `layout` says what lies where.
"""

import json
import os
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import icechunk
import numpy as np

from cranpm.archive import repository
from cranpm.archive.day_data import Quality, Statics, Stations
from cranpm.archive.days_ahead import AheadReader
from cranpm.archive.layout import EPOCH, READABLE, STATION_FIELDS, axis_index
from cranpm.core.channels import Channel, parse_channels
from cranpm.core.days import gaps
from cranpm.core.errors import CranpmError
from cranpm.core.grid import EVERYWHERE, Array, Domain, Window
from cranpm.core.packing import ARCHIVED

if TYPE_CHECKING:
    import xarray

SIMULATION = "simulation"
"""The source of archives that no provider filled."""


class Archive:
    """One version of an archive, for reading. Cheap to pickle: workers reopen the same version."""

    def __init__(self, location: str, snapshot: str | None = None):
        self.location = str(location)
        self._root, self.snapshot = repository.read(self.location, snapshot)
        self.attributes: Mapping[str, Any] = dict(self._root.attrs)
        found = self.attributes.get("schema")
        if found not in READABLE:
            raise CranpmError(
                expected=f"an archive of schema {' or '.join(map(str, READABLE))} at {self.location}",
                found=f"schema {found}" if found else "a repository that is no archive",
                remedy="Rebuild it with this version of cranpm, or read it with the version that wrote it.",
            )
        self.domain = Domain(**self.attributes["domain"])

    def __reduce__(self) -> tuple[type["Archive"], tuple[str, str]]:
        """Workers may run in another folder."""
        local = "://" not in self.location
        return Archive, (os.path.abspath(self.location) if local else self.location, self.snapshot)

    @cached_property
    def ahead(self) -> AheadReader:
        """Forecasts of the days ahead, by their start day."""
        return AheadReader(self)

    @property
    def source(self) -> str:
        """What filled the archive: `simulation`, or the name of a provider."""
        return str(self.attributes["producer"].get("source", "unknown"))

    @cached_property
    def channel_names(self) -> tuple[str, ...]:
        """Names of the coarse channels that the archive was made with, in their order."""
        return tuple(self._root["coarse/fields"].attrs["channels"])

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """The coarse channels that the archive was made with, in the order of `coarse`."""
        table = self._root["coarse/fields"].attrs.get("channel_table")
        return tuple(Channel(**row) for row in table) if table else parse_channels(self.channel_names)

    @cached_property
    def _quality(self) -> Array:
        return self.read("quality")

    @property
    def days(self) -> list[date]:
        """The days present, in order."""
        return [EPOCH + timedelta(days=int(index)) for index in np.flatnonzero(self._quality)]

    @property
    def missing(self) -> list[str]:
        """The gaps between the first and the last day, as ranges."""
        return [str(gap) for gap in gaps(self.days)]

    def quality(self, day: date) -> Quality:
        return Quality(int(self._quality[axis_index(day)]))

    def provenance(self, day: date) -> dict[str, Any]:
        """Where a day came from."""
        return dict(json.loads(str(self.read("provenance", self._present(day)))))

    def coarse(self, day: date) -> Array:
        """(channels, rows, cols) float32 on the coarse grid, in the order and units of `channels`."""
        return self.read("coarse/fields", self._present(day))

    def _inside(self, window: Window) -> Window:
        """The window, refused where it reaches beyond the fine grid: a tile must never come out smaller."""
        for part, size in zip(window, self.domain.fine.shape, strict=True):
            start, stop = part.start or 0, size if part.stop is None else part.stop
            if not 0 <= start < stop <= size or part.step not in (None, 1):
                raise CranpmError(
                    expected=f"a window inside {self.domain.fine.rows} rows and {self.domain.fine.cols} columns",
                    found=f"{window[0].start}:{window[0].stop}, {window[1].start}:{window[1].stop}",
                    remedy="Move the window inside the grid.",
                )
        return window

    def pm25(self, day: date, window: Window = EVERYWHERE) -> Array:
        """(rows, cols) float32 PM2.5 in ug m-3 on the fine grid or a window of it; NaN is missing."""
        return ARCHIVED.unpack(self.packed_pm25(day, window))

    def packed_pm25(self, day: date, window: Window = EVERYWHERE) -> Array:
        """The same as stored: uint16 in steps of 0.1 ug m-3, 65535 missing."""
        return self.read("fine/pm25", (self._present(day), *self._inside(window)))

    def stations_pm25(self, day: date) -> Array:
        """One value per station, ug m-3, NaN where it did not report."""
        return self.read("stations/pm25", self._present(day))

    def statics(self, window: Window = EVERYWHERE) -> Statics:
        """Elevation, spread and land on the fine grid or a window of it."""
        return Statics(
            self.elevation(window), self.read("fine/elevation_spread", self._inside(window)), self.land(window)
        )

    def elevation(self, window: Window = EVERYWHERE) -> Array:
        """Elevation on the fine grid, m."""
        return self.read("fine/elevation", self._inside(window))

    def land(self, window: Window = EVERYWHERE) -> Array:
        """Whether each fine pixel is land."""
        return self.read("fine/land", self._inside(window)).astype(bool)

    def coarse_statics(self) -> dict[str, Array]:
        """elevation (m), elevation_spread (m) and land_fraction on the coarse grid."""
        return {name: self.read(f"coarse/{name}") for name in ("elevation", "elevation_spread", "land_fraction")}

    @cached_property
    def stations(self) -> Stations:
        columns = {field: self.read(f"stations/{name}") for field, name in STATION_FIELDS.items()}
        return Stations(**{name: np.asarray(column.tolist()) for name, column in columns.items()})

    def restart(self) -> tuple[date, dict[str, Array]] | None:
        """The day and the state after it from which the provider can continue, if it left one."""
        if "carry" not in self._root:
            return None
        group = self._root["carry"]
        day = EPOCH + timedelta(days=int(group.attrs["day"]))
        return day, {name: self.read(f"carry/{name}") for name in group.attrs["names"]}

    def _present(self, day: date) -> int:
        if self.quality(day) is Quality.ABSENT:
            days = self.days
            held = f"{len(days)} days in {days[0]}..{days[-1]}" if days else "no day at all"
            raise CranpmError(
                expected=f"{day} in {self.location}",
                found=held,
                remedy="Choose a day that `cranpm info` lists, or ingest it.",
            )
        return axis_index(day)

    def to_xarray(self) -> "xarray.DataTree":
        """The archive's days as xarray sees them, read only where they are computed (dask, one chunk per day).

        Groups: `fine` (pm2p5 in ug m-3 and elevation in m at 0.01 degrees), `coarse` (one variable per channel, in its
        unit, at 0.25 degrees), `stations` (pm2p5 by station, with place and altitude) and, where there are forecasts,
        `ahead/weather` and `ahead/composition` (one variable per channel, by start day and lead). `time` has the days
        that are present and no others, at noon UTC with bounds; names, units and attributes follow the CF conventions.
        """
        from cranpm.archive.datasets import to_tree

        return to_tree(self)

    def has(self, path: str) -> bool:
        """Whether there is an array or a group of this name."""
        return path in self._root

    def attributes_of(self, path: str) -> dict[str, Any]:
        """The attributes of an array or a group."""
        return dict(self._root[path].attrs)

    def read(self, path: str, selection: Any = slice(None)) -> Array:
        """An array of the archive, or a part of it, as stored; `layout` says what lies at which path."""
        repository.refuse_forks()
        try:
            return np.asarray(self._root[path][selection])
        except (icechunk.IcechunkError, RuntimeError, ValueError, OSError) as error:
            raise CranpmError(
                expected=f"{path} intact in {self.location}",
                found=f"a chunk that fails its checksum or cannot be read ({str(error).strip().splitlines()[0]})",
                remedy="Restore the folder from a copy, or delete the archive and build it again.",
            ) from error


class ArchiveInMemory(Archive):
    """An archive whose days stay in memory once they are read: for many runs over the same days in one process.

    What it returns is shared and cannot be written to.
    """

    def __init__(self, location: str, snapshot: str | None = None):
        super().__init__(location, snapshot)
        self._kept: dict[tuple[str, date], Array] = {}

    def _keep(self, what: str, day: date, read: Callable[[date], Array]) -> Array:
        if (what, day) not in self._kept:
            field = read(day)
            field.flags.writeable = False
            self._kept[what, day] = field
        return self._kept[what, day]

    def coarse(self, day: date) -> Array:
        return self._keep("coarse", day, super().coarse)

    def packed_pm25(self, day: date, window: Window = EVERYWHERE) -> Array:
        return self._keep("pm25", day, super().packed_pm25)[self._inside(window)]

    def stations_pm25(self, day: date) -> Array:
        return self._keep("stations", day, super().stations_pm25)

    @cached_property
    def ahead(self) -> AheadReader:
        return AheadReader(self, keep=True)


def describe(archive: Archive) -> dict[str, Any]:
    """What `cranpm info` shows, ready for JSON."""
    days, domain = archive.days, archive.domain
    kinds = {kind: sum(archive.quality(day) is kind for day in days) for kind in (Quality.GOOD, Quality.DEGRADED)}
    return {
        "domain": domain.to_json(),
        "fine_grid": f"{domain.fine.rows} x {domain.fine.cols} at {domain.fine.step} degrees",
        "coarse_grid": f"{domain.coarse.rows} x {domain.coarse.cols} at {domain.coarse.step} degrees",
        "channels": list(archive.channel_names),
        "days": len(days),
        "first_day": str(days[0]) if days else None,
        "last_day": str(days[-1]) if days else None,
        "missing": archive.missing,
        "quality": {kind.name.lower(): count for kind, count in kinds.items()},
        "stations": len(archive.stations),
        "producer": dict(archive.attributes["producer"]),
        "snapshot": archive.snapshot,
        "checksums": repository.has_checksums(archive.location, archive.snapshot),
        "versions": repository.versions(archive.location),
        "days_ahead": archive.ahead.summary() or "none",
        "schema": archive.attributes["schema"],
        "written_by": f"cranpm {archive.attributes['cranpm_version']}",
        "size_mb": repository.size_mb(archive.location),
    }
