"""How an archive is laid out in its repository, and how days and PM2.5 are written into it.

Zarr 3 in icechunk; the day axis counts days since 2000-01-01 and is sparse, so a gap costs nothing:

    fine/      pm25 (day, lat, lon) uint16 in 0.1 ug m-3, elevation, elevation_spread, land
    coarse/    fields (day, channel, lat, lon) float32, elevation, elevation_spread, land_fraction
    stations/  pm25 (day, station), id, lat, lon, altitude, country, kind, area
    carry/     the state from which the provider can continue after its attribute `day`
    quality (day), provenance (day)
    ahead/     forecasts of the days ahead, once there are any: see `days_ahead`
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

import numpy as np
from zarr.codecs import ZstdCodec

from cranpm import __version__
from cranpm.archive import repository
from cranpm.archive.day_data import Quality, Statics, Stations
from cranpm.archive.repository import Group
from cranpm.core.channels import PAPER_CHANNELS, Channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain, Grid, coarsen
from cranpm.core.packing import ARCHIVED, STEP_UGM3

SCHEMA = 2
READABLE = (1, 2)
"""Schemas that this version reads; 1 has no forecasts of the days ahead."""
EPOCH = date(2000, 1, 1)
AXIS = (date(2050, 1, 1) - EPOCH).days
STATION_FIELDS = {
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


def create_archive(
    location: str,
    domain: Domain,
    statics: Statics,
    stations: Stations,
    producer: Mapping[str, Any],
    channels: Sequence[Channel] = PAPER_CHANNELS,
) -> None:
    """Create an archive without days; `producer` says what fills it and is checked when it is extended.

    The coarse fields of its days are `channels`, in this order: the archive stores the list, and readers take it from
    there.
    """
    attributes = {
        "title": "cranpm archive of days",
        "schema": SCHEMA,
        "domain": domain.to_json(),
        "producer": dict(producer),
        "cranpm_version": __version__,
    }
    with repository.lock(location), repository.create(location, "layout") as root:
        _lay_out_fine(root.create_group("fine"), domain.fine, statics)
        _lay_out_coarse(root.create_group("coarse"), domain, statics, channels)
        _lay_out_stations(root.create_group("stations"), stations)
        add_array(root, "quality", (AXIS,), "uint8", (AXIS,), ("day",), fill=0, values=[int(q) for q in Quality])
        add_array(root, "provenance", (AXIS,), str, (1,), ("day",), fill="")
        root.attrs.update(attributes)


def _lay_out_fine(group: Group, grid: Grid, statics: Statics) -> None:
    pm25 = {"units": "ug m-3", "scale_factor": STEP_UGM3, "add_offset": 0.0, "_FillValue": ARCHIVED.missing}
    add_array(
        group,
        "pm25",
        (AXIS, *grid.shape),
        "uint16",
        (1, 512, 512),
        ("day", "lat", "lon"),
        fill=ARCHIVED.missing,
        **pm25,
    )
    for name, values in (
        ("elevation", statics.elevation_m.astype(np.float32)),
        ("elevation_spread", statics.spread_m.astype(np.float32)),
        ("land", statics.land.astype(np.uint8)),
    ):
        array = add_array(group, name, grid.shape, values.dtype, (512, 512), ("lat", "lon"))
        array[...] = values
    _put_axes(group, grid)


def _lay_out_coarse(group: Group, domain: Domain, statics: Statics, channels: Sequence[Channel]) -> None:
    grid, shape = domain.coarse, (len(channels), *domain.coarse.shape)
    add_array(group, "fields", (AXIS, *shape), "float32", (1, *shape), ("day", "channel", "lat", "lon"), fill=np.nan)
    group["fields"].attrs["channels"] = [channel.name for channel in channels]
    # What each is, so that a reader needs neither this version's registry nor the plugin that brought a channel.
    group["fields"].attrs["channel_table"] = [asdict(channel) for channel in channels]
    elevation = statics.elevation_m.astype(float)
    mean = coarsen(elevation, domain.fine, grid)
    square = coarsen(elevation**2, domain.fine, grid)
    for name, values in (
        ("elevation", mean),
        ("elevation_spread", np.sqrt(np.maximum(square - mean**2, 0))),
        ("land_fraction", coarsen(statics.land.astype(float), domain.fine, grid)),
    ):
        array = add_array(group, name, grid.shape, "float32", grid.shape, ("lat", "lon"))
        array[...] = values
    _put_axes(group, grid)


def _lay_out_stations(group: Group, stations: Stations) -> None:
    count = len(stations)
    add_array(group, "pm25", (AXIS, count), "float32", (1, count), ("day", "station"), fill=np.nan, units="ug m-3")
    for field, name in STATION_FIELDS.items():
        values = getattr(stations, field)
        kind = str if values.dtype.kind in "US" else values.dtype
        array = add_array(group, name, (count,), kind, (count,), ("station",))
        array[...] = values.astype(object) if kind is str else values


def _put_axes(group: Group, grid: Grid) -> None:
    for name, values in (("lat", grid.lat), ("lon", grid.lon)):
        array = add_array(group, name, values.shape, "float64", values.shape, (name,))
        array[...] = values


def add_array(
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
