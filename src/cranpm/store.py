"""The archive of days: one versioned repository that training and forecasting read from.

Layout (zarr 3 in icechunk; the day axis counts days since 2000-01-01 and is sparse, so a gap costs nothing):

    fine/      pm25 (day, lat, lon) uint16 in 0.1 ug m-3, elevation, elevation_spread, land
    coarse/    fields (day, channel, lat, lon) float32, elevation, elevation_spread, land_fraction
    stations/  pm25 (day, station), id, lat, lon, altitude, country, kind, area
    carry/     what the provider needs to go on from `day`
    quality (day), provenance (day)

A day is one commit: readers see all of it or nothing. Every chunk carries a checksum.
"""

import json
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cached_property
from typing import Any

import icechunk
import numpy as np
from zarr.codecs import ZstdCodec

from cranpm import repository
from cranpm.channels import COARSE_NAMES
from cranpm.days import gaps
from cranpm.errors import CranpmError
from cranpm.fields import DayFields, Quality, Statics, Stations
from cranpm.grid import Array, Domain, Grid, coarsen
from cranpm.repository import Group

SCHEMA = 1
EPOCH = date(2000, 1, 1)
AXIS = (date(2050, 1, 1) - EPOCH).days
FILL = 65535
PM25_STEP = 0.1
Window = tuple[slice, slice]
EVERYWHERE: Window = (slice(None), slice(None))
_STATION_FIELDS = {
    "ids": "id",
    "lat": "lat",
    "lon": "lon",
    "altitude_m": "altitude",
    "country": "country",
    "kind": "kind",
    "area": "area",
}


def axis_index(day: date) -> int:
    """Position of a day on the archive's axis."""
    index = (day - EPOCH).days
    if not 0 <= index < AXIS:
        last = EPOCH + timedelta(days=AXIS - 1)
        raise CranpmError(expected=f"a day in {EPOCH}..{last}", found=str(day), remedy="Archives hold no other days.")
    return index


class Archive:
    """One version of an archive, for reading. Cheap to pickle: workers reopen the same version."""

    def __init__(self, location: str, snapshot: str | None = None):
        self.location = str(location)
        self._root, self.snapshot = repository.read(self.location, snapshot)
        self.attributes: Mapping[str, Any] = dict(self._root.attrs)
        found = self.attributes.get("schema")
        if found != SCHEMA:
            raise CranpmError(
                expected=f"an archive of schema {SCHEMA} at {self.location}",
                found=f"schema {found}" if found else "a repository that is no archive",
                remedy="Rebuild it with this version of cranpm, or read it with the version that wrote it.",
            )
        self.domain = Domain(**self.attributes["domain"])

    def __reduce__(self) -> tuple[type["Archive"], tuple[str, str]]:
        return Archive, (self.location, self.snapshot)

    @cached_property
    def _quality(self) -> Array:
        return self._read("quality")

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
        return dict(json.loads(str(self._read("provenance", self._present(day)))))

    def coarse(self, day: date) -> Array:
        """(35, rows, cols) float32 in the order and units of `channels.COARSE`."""
        return self._read("coarse/fields", self._present(day))

    def pm25(self, day: date, window: Window = EVERYWHERE) -> Array:
        """(rows, cols) float32 PM2.5 in ug m-3 on the fine grid or a window of it; NaN is missing."""
        return unpack_pm25(self.packed_pm25(day, window))

    def packed_pm25(self, day: date, window: Window = EVERYWHERE) -> Array:
        """The same as stored: uint16 in steps of 0.1 ug m-3, 65535 missing."""
        return self._read("fine/pm25", (self._present(day), *window))

    def stations_pm25(self, day: date) -> Array:
        """One value a station, ug m-3, NaN where it did not report."""
        return self._read("stations/pm25", self._present(day))

    def statics(self, window: Window = EVERYWHERE) -> Statics:
        """Elevation, spread and land on the fine grid or a window of it."""
        return Statics(self.elevation(window), self._read("fine/elevation_spread", window), self.land(window))

    def elevation(self, window: Window = EVERYWHERE) -> Array:
        """Elevation on the fine grid, m."""
        return self._read("fine/elevation", window)

    def land(self, window: Window = EVERYWHERE) -> Array:
        """Whether each fine pixel is land."""
        return self._read("fine/land", window).astype(bool)

    def coarse_statics(self) -> dict[str, Array]:
        """elevation (m), elevation_spread (m) and land_fraction on the coarse grid."""
        return {name: self._read(f"coarse/{name}") for name in ("elevation", "elevation_spread", "land_fraction")}

    @cached_property
    def stations(self) -> Stations:
        columns = {field: self._read(f"stations/{name}") for field, name in _STATION_FIELDS.items()}
        return Stations(**{name: np.asarray(column.tolist()) for name, column in columns.items()})

    def carry(self) -> tuple[date, dict[str, Array]] | None:
        """The day and state from which the provider can go on, if it left one."""
        if "carry" not in self._root:
            return None
        group = self._root["carry"]
        day = EPOCH + timedelta(days=int(group.attrs["day"]))
        return day, {name: self._read(f"carry/{name}") for name in group.attrs["names"]}

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

    def _read(self, path: str, selection: Any = slice(None)) -> Array:
        repository.refuse_forks()
        try:
            return np.asarray(self._root[path][selection])
        except (icechunk.IcechunkError, RuntimeError, ValueError, OSError) as error:
            raise CranpmError(
                expected=f"{path} intact in {self.location}",
                found=f"a chunk that fails its checksum or cannot be read ({str(error).strip().splitlines()[0]})",
                remedy="Restore the folder from a copy, or delete the archive and build it again.",
            ) from error


class ArchiveWriter:
    """The one process that may add days; use it as a context manager."""

    def __init__(self, location: str):
        self.location = str(location)
        self._lock = repository.lock(self.location)
        try:
            self._known = Archive(self.location)
            self._stations = len(self._known.stations)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def put(self, fields: DayFields) -> str:
        """Store a day in one commit and return the snapshot; storing the same day again changes nothing."""
        fields.check(self._known.domain, self._stations)
        index = axis_index(fields.day)
        if self._same(fields):
            return self._known.snapshot
        with repository.commit(self.location, f"{fields.day}", dict(fields.provenance)) as root:
            root["fine/pm25"][index] = pack_pm25(fields.pm25_ugm3)
            root["coarse/fields"][index] = fields.coarse
            root["stations/pm25"][index] = fields.stations_ugm3
            root["provenance"][index] = json.dumps(dict(fields.provenance), sort_keys=True)
            root["quality"][index] = int(fields.quality)
            if fields.carry:
                _put_carry(root, index, fields.carry)
        self._known = Archive(self.location)
        return self._known.snapshot

    def _same(self, fields: DayFields) -> bool:
        """Whether exactly this day is stored already."""
        old, day = self._known, fields.day
        if old.quality(day) is not fields.quality or old.provenance(day) != dict(fields.provenance):
            return False
        pairs = (
            (old.coarse(day), fields.coarse),
            (old.stations_pm25(day), fields.stations_ugm3),
            (old.packed_pm25(day), pack_pm25(fields.pm25_ugm3)),
        )
        return all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def _put_carry(root: Group, index: int, carry: Mapping[str, Array]) -> None:
    group = root.require_group("carry")
    group.attrs.update({"day": index, "names": sorted(carry)})
    for name, values in carry.items():
        if name not in group:
            _array(group, name, values.shape, values.dtype, values.shape, ())
        group[name][...] = values


def pack_pm25(pm25_ugm3: Array) -> Array:
    """uint16 in steps of 0.1 ug m-3; NaN becomes 65535."""
    missing = np.isnan(pm25_ugm3)
    scaled = np.where(missing, 0, pm25_ugm3) * np.float32(1 / PM25_STEP)
    packed = (scaled + np.float32(0.5)).astype(np.uint16)
    packed[missing] = FILL
    return packed


def unpack_pm25(packed: Array) -> Array:
    """float32 ug m-3 from stored steps; 65535 becomes NaN."""
    values = packed * np.float32(PM25_STEP)
    values[packed == FILL] = np.nan
    return values


def create_archive(
    location: str, domain: Domain, statics: Statics, stations: Stations, producer: Mapping[str, Any]
) -> None:
    """Lay out an empty archive; `producer` says what fills it and is checked when it is extended."""
    from cranpm import __version__

    attributes = {
        "title": "cranpm archive of days",
        "schema": SCHEMA,
        "domain": domain.to_json(),
        "producer": dict(producer),
        "cranpm_version": __version__,
    }
    with repository.lock(location), repository.create(location, "layout") as root:
        _lay_out_fine(root.create_group("fine"), domain.fine, statics)
        _lay_out_coarse(root.create_group("coarse"), domain, statics)
        _lay_out_stations(root.create_group("stations"), stations)
        _array(root, "quality", (AXIS,), "uint8", (AXIS,), ("day",), fill=0, values=[int(q) for q in Quality])
        _array(root, "provenance", (AXIS,), str, (1,), ("day",), fill="")
        root.attrs.update(attributes)


def _lay_out_fine(group: Group, grid: Grid, statics: Statics) -> None:
    pm25 = {"units": "ug m-3", "scale_factor": PM25_STEP, "add_offset": 0.0, "_FillValue": FILL}
    _array(group, "pm25", (AXIS, *grid.shape), "uint16", (1, 512, 512), ("day", "lat", "lon"), fill=FILL, **pm25)
    for name, values in (
        ("elevation", statics.elevation_m.astype(np.float32)),
        ("elevation_spread", statics.spread_m.astype(np.float32)),
        ("land", statics.land.astype(np.uint8)),
    ):
        array = _array(group, name, grid.shape, values.dtype, (512, 512), ("lat", "lon"))
        array[...] = values
    _put_axes(group, grid)


def _lay_out_coarse(group: Group, domain: Domain, statics: Statics) -> None:
    grid, shape = domain.coarse, (len(COARSE_NAMES), *domain.coarse.shape)
    _array(group, "fields", (AXIS, *shape), "float32", (1, *shape), ("day", "channel", "lat", "lon"), fill=np.nan)
    group["fields"].attrs["channels"] = list(COARSE_NAMES)
    elevation = statics.elevation_m.astype(float)
    mean = coarsen(elevation, domain.fine, grid)
    square = coarsen(elevation**2, domain.fine, grid)
    for name, values in (
        ("elevation", mean),
        ("elevation_spread", np.sqrt(np.maximum(square - mean**2, 0))),
        ("land_fraction", coarsen(statics.land.astype(float), domain.fine, grid)),
    ):
        array = _array(group, name, grid.shape, "float32", grid.shape, ("lat", "lon"))
        array[...] = values
    _put_axes(group, grid)


def _lay_out_stations(group: Group, stations: Stations) -> None:
    count = len(stations)
    _array(group, "pm25", (AXIS, count), "float32", (1, count), ("day", "station"), fill=np.nan, units="ug m-3")
    for field, name in _STATION_FIELDS.items():
        values = getattr(stations, field)
        kind = str if values.dtype.kind in "US" else values.dtype
        array = _array(group, name, (count,), kind, (count,), ("station",))
        array[...] = values.astype(object) if kind is str else values


def _put_axes(group: Group, grid: Grid) -> None:
    for name, values in (("lat", grid.lat), ("lon", grid.lon)):
        array = _array(group, name, values.shape, "float64", values.shape, (name,))
        array[...] = values


def _array(
    group: Group,
    name: str,
    shape: tuple[int, ...],
    kind: Any,
    chunks: tuple[int, ...],
    dimensions: tuple[str, ...],
    fill: Any = None,
    **attributes: Any,
) -> Any:
    """A zarr array whose chunks carry a checksum."""
    return group.create_array(
        name,
        shape=shape,
        dtype=kind,
        chunks=tuple(max(1, min(chunk, size)) for chunk, size in zip(chunks, shape, strict=True)),
        compressors=[ZstdCodec(level=3, checksum=True)],
        fill_value=fill,
        dimension_names=dimensions or None,
        attributes=attributes,
    )


def describe(archive: Archive) -> dict[str, Any]:
    """What `cranpm info` shows, ready for JSON."""
    days, domain = archive.days, archive.domain
    kinds = {kind: sum(archive.quality(day) is kind for day in days) for kind in (Quality.GOOD, Quality.DEGRADED)}
    return {
        "domain": domain.to_json(),
        "fine_grid": f"{domain.fine.rows} x {domain.fine.cols} at {domain.fine.step} degrees",
        "coarse_grid": f"{domain.coarse.rows} x {domain.coarse.cols} at {domain.coarse.step} degrees",
        "channels": list(COARSE_NAMES),
        "days": len(days),
        "first_day": str(days[0]) if days else None,
        "last_day": str(days[-1]) if days else None,
        "missing": archive.missing,
        "quality": {kind.name.lower(): count for kind, count in kinds.items()},
        "stations": len(archive.stations),
        "producer": dict(archive.attributes["producer"]),
        "snapshot": archive.snapshot,
        "sealed": repository.is_sealed(archive.location, archive.snapshot),
        "versions": len(repository.history(archive.location)),
        "schema": SCHEMA,
        "written_by": f"cranpm {archive.attributes['cranpm_version']}",
        "size_mb": repository.size_mb(archive.location),
    }
