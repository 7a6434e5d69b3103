"""An archive as xarray sees it: dated, named, with units and CF attributes, and read only where it is computed."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array
import numpy as np
import xarray

from cranpm.core.channels import GROUPS, STANDARD_NAMES, Channel
from cranpm.core.grid import Array, Grid

if TYPE_CHECKING:
    from cranpm.archive.store import Archive

Blocks = Any
"""A dask array, or an empty one."""
map_blocks: Callable[..., Blocks] = dask.array.map_blocks  # dask does not say what it takes
DAY, NOON = np.timedelta64(1, "D"), np.timedelta64(12, "h")
SINCE = {"units": "hours since 1970-01-01 00:00:00", "calendar": "standard", "dtype": "int32"}
"""How times are written to a file."""
UGM3 = "ug m-3"
WGS84 = {
    "grid_mapping_name": "latitude_longitude",
    "long_name": "WGS 84",
    "semi_major_axis": 6378137.0,
    "inverse_flattening": 298.257223563,
    "longitude_of_prime_meridian": 0.0,
}
AXES = {
    "time": {"standard_name": "time", "long_name": "middle of the day", "axis": "T", "bounds": "time_bnds"},
    "lat": {"standard_name": "latitude", "long_name": "latitude", "units": "degrees_north", "axis": "Y"},
    "lon": {"standard_name": "longitude", "long_name": "longitude", "units": "degrees_east", "axis": "X"},
}


def to_tree(archive: "Archive") -> xarray.DataTree:
    """The groups `fine`, `coarse`, `stations` and `ahead` of an archive; see `Archive.to_xarray`."""
    common = {
        "Conventions": "CF-1.11",
        "title": f"cranpm archive of {archive.domain}",
        "source": archive.source,
        "history": f"version {archive.snapshot}, written by cranpm {archive.attributes['cranpm_version']}",
    }
    groups = {"fine": _fine(archive), "coarse": _coarse(archive), "stations": _stations(archive)}
    groups |= {f"ahead/{name}": _ahead(archive, name) for name in GROUPS if archive.ahead.days(name)}
    tree = {name: group.assign_attrs(common) for name, group in groups.items()}
    return xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=common), **tree})


def _fine(archive: "Archive") -> xarray.Dataset:
    grid = archive.domain.fine
    about = _pm25_attributes("daily mean PM2.5 at the surface")
    pm25 = (("time", "lat", "lon"), _by_day(archive, "pm25", grid.shape), about)
    return _on_grid(archive.days, grid).assign(pm2p5=pm25, **_constants(archive, "fine", "land", grid))


def _coarse(archive: "Archive") -> xarray.Dataset:
    grid = archive.domain.coarse
    stacked = _by_day(archive, "coarse", (len(archive.channels), *grid.shape))
    variables = {
        channel.name: (("time", "lat", "lon"), stacked[:, index], _channel_attributes(channel))
        for index, channel in enumerate(archive.channels)
    }
    return _on_grid(archive.days, grid).assign({**variables, **_constants(archive, "coarse", "land_fraction", grid)})


def _ahead(archive: "Archive", group: str) -> xarray.Dataset:
    """Forecasts by start day (`time`) and lead; NaN where a start day has none for a lead."""
    days, grid, channels = archive.ahead.days(group), archive.domain.coarse, archive.ahead.channels(group)
    leads = sorted({lead for day in days for lead in archive.ahead.leads(day, group)})

    shape = (len(leads), len(channels), *grid.shape)
    stacked = _blocks(partial(_read_ahead, archive, group, leads, shape), days, shape)
    variables = {
        channel.name: (("time", "lead", "lat", "lon"), stacked[:, :, index], _channel_attributes(channel))
        for index, channel in enumerate(channels)
    }
    about = {"standard_name": "forecast_period", "long_name": "days from the start day", "units": "days"}
    dataset = _on_grid(days, grid).assign_coords(lead=("lead", np.array(leads, np.int32), about))
    dataset["time"].attrs["long_name"] = "middle of the start day"
    return dataset.assign(variables)


def _read_ahead(archive: "Archive", group: str, leads: list[int], shape: tuple[int, ...], day: date) -> Array:
    """(lead, channel, rows, cols) of one start day, NaN where it has no forecast."""
    fields = np.full(shape, np.nan, np.float32)
    for lead in archive.ahead.leads(day, group):
        fields[leads.index(lead)] = archive.ahead.fields(day, lead, group)
    return fields


def _stations(archive: "Archive") -> xarray.Dataset:
    table, axis = archive.stations, ("station",)
    about = {"units": "m", "standard_name": "surface_altitude", "long_name": "altitude of the station"}
    pm25 = _pm25_attributes("daily mean PM2.5 that the station reported") | {
        "coordinates": "station_id lat lon altitude"
    }
    pm25.pop("grid_mapping")
    place = {name: {key: value for key, value in AXES[name].items() if key != "axis"} for name in ("lat", "lon")}
    dataset = _dated(archive.days).assign_coords(
        station_id=(
            axis,
            table.ids.astype(str),
            {"cf_role": "timeseries_id", "long_name": "name of the station"},
        ),
        lat=(axis, table.lat, place["lat"]),
        lon=(axis, table.lon, place["lon"]),
        altitude=(axis, table.altitude_m, about),
    )
    words = {name: (axis, getattr(table, name).astype(str)) for name in ("country", "kind", "area")}
    values = _by_day(archive, "stations_pm25", (len(table),))
    dataset = dataset.assign({"pm2p5": (("time", "station"), values, pm25), **words})
    return dataset.assign_attrs(featureType="timeSeries")


def _dated(days: Sequence[date]) -> xarray.Dataset:
    starts = np.array([np.datetime64(day, "ns") for day in days], dtype="datetime64[ns]")
    bounds = np.stack([starts, starts + DAY], axis=1)
    time = xarray.Variable("time", starts + NOON, AXES["time"], SINCE)
    return xarray.Dataset({"time_bnds": xarray.Variable(("time", "bnds"), bounds, {}, SINCE)}, {"time": time})


def _on_grid(days: Sequence[date], grid: Grid) -> xarray.Dataset:
    places = (("lat", grid.lat), ("lon", grid.lon))
    axes = {name: xarray.Variable(name, values, AXES[name], {"_FillValue": None}) for name, values in places}
    return _dated(days).assign_coords(axes).assign(crs=((), np.int32(0), WGS84))


def _pm25_attributes(long_name: str) -> dict[str, str]:
    return {
        "standard_name": STANDARD_NAMES["pm25"],
        "long_name": long_name,
        "units": UGM3,
        "cell_methods": "time: mean",
        "grid_mapping": "crs",
    }


def _channel_attributes(channel: Channel) -> dict[str, Any]:
    named = {"standard_name": channel.standard_name} if channel.standard_name else {}
    level = {"pressure_hpa": channel.level_hpa} if channel.level_hpa else {}
    return {
        **named,
        **level,
        "long_name": channel.meaning,
        "units": channel.unit,
        "cell_methods": "time: sum" if channel.quantity == "precipitation" else "time: mean",
        "grid_mapping": "crs",
    }


def _constants(archive: "Archive", group: str, land: str, grid: Grid) -> dict[str, Any]:
    """Elevation, its spread and land on a grid, in one chunk each."""
    attributes = {
        "elevation": {"standard_name": "surface_altitude", "long_name": "mean elevation", "units": "m"},
        "elevation_spread": {"long_name": "standard deviation of the elevation inside a pixel", "units": "m"},
        land: {"standard_name": "land_area_fraction", "long_name": "share of land", "units": "1"},
    }
    return {
        name: (("lat", "lon"), _whole(archive, f"{group}/{name}", grid.shape), about | {"grid_mapping": "crs"})
        for name, about in attributes.items()
    }


def _by_day(archive: "Archive", reader: str, shape: tuple[int, ...]) -> Blocks:
    """(day, ...) float32 by a method of the archive that reads one day; one chunk per day."""
    return _blocks(getattr(archive, reader), archive.days, shape)


def _blocks(read: Callable[[date], Array], days: Sequence[date], shape: tuple[int, ...]) -> Blocks:
    """(day, ...) float32 by a function that reads one day; one chunk per day."""
    if not days:
        return np.empty((0, *shape), np.float32)
    chunks = ((1,) * len(days), *((size,) for size in shape))
    return map_blocks(partial(_read_day, read, days), chunks=chunks, meta=np.empty((0,) * len(chunks), np.float32))


def _read_day(read: Callable[[date], Array], days: Sequence[date], block_id: tuple[int, ...]) -> Array:
    return read(days[block_id[0]])[None]


def _whole(archive: "Archive", path: str, shape: tuple[int, int]) -> Blocks:
    """A field that never changes, float32 in one chunk."""
    chunks = tuple((size,) for size in shape)
    return map_blocks(partial(_read_whole, archive, path), chunks=chunks, meta=np.empty((0, 0), np.float32))


def _read_whole(archive: "Archive", path: str) -> Array:
    return archive.read(path).astype(np.float32, copy=False)
