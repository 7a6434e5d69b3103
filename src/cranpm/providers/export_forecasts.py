"""Forecasts of the days ahead in a simulated archive, written as the providers send them.

IFS open data (GRIB 2 with indices, in the folders of ECMWF's server), WeatherBench 2's copy of HRES (Zarr) and the CAMS
European ensemble (NetCDF). Hours are made up around the daily values; cells of weather are those of our grid, with a
margin around the domain, where the providers' nodes lie half a cell beside them and cover the globe.
"""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cranpm.archive.store import Archive
from cranpm.core.channels import Channel
from cranpm.core.grid import Array, Grid
from cranpm.providers.era5 import ALOFT, ALOFT_NAMES, EXTRA_NAMES, LEVELS, SURFACE_NAMES
from cranpm.providers.export_cams_europe import CAMS_HOURS, cams_europe_grid, write_cams_europe
from cranpm.providers.forecast_run import ForecastRun
from cranpm.providers.grib_layout import FieldKey, GribEncoder, write_with_index
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.quantities import BY_ALIAS, GRAVITY
from cranpm.providers.readers.files import SERVER_COPY

if TYPE_CHECKING:
    import zarr

IFS_LEADS, HRES_LEADS = 5, 9
"""Days ahead that the runs have: IFS every 3 hours to 144 h, WeatherBench 2 every 6 hours to 240 h."""
IFS_STEP, HRES_STEP = 3, 6
MARGIN_DEGREES = 1.0
IFS_PATH = "{day:%Y%m%d}/00z/ifs/0p25/oper/{day:%Y%m%d}000000-{step}h-oper-fc.grib2"
PARAMS = {"u10": "10u", "v10": "10v", "t2m": "2t", "sp": "sp", "tp": "tp", "blh": "blh"}
"""ECMWF's short names at the surface; aloft they are ours, but for heights instead of geopotential."""
HRES_NAMES = {BY_ALIAS[name].name: name for name in (*SURFACE_NAMES[:-1], *ALOFT_NAMES, *EXTRA_NAMES.values())}
RAIN = "total_precipitation_6hr"
UNITS = {"precipitation": "m", "geopotential": "m**2 s**-2", "humidity": "kg kg**-1"} | dict.fromkeys(
    ("wind_u", "wind_v"), "m s**-1"
)


def write_forecasts(archive: Archive, days: Sequence[date], folder: Path) -> dict[str, int]:
    """Write the runs of those days that have one; start days per subfolder: `ifs`, `hres.zarr`, `cams-europe`.

    CAMS has no European forecast for domains that reach beyond Europe: none is written for them.
    """
    weather = [day for day in days if archive.ahead.leads(day, "weather")]
    composition = [day for day in days if archive.ahead.leads(day, "composition")]
    for day in weather:
        write_ifs(archive, day, folder / "ifs")
    if weather:
        write_hres(archive, weather, folder / "hres.zarr")
    if composition and (grid := cams_europe_grid(archive.domain)):
        for day in composition:
            run = ForecastRun.of(archive, day, "composition", CAMS_HOURS // 24)
            write_cams_europe(run, archive.domain.coarse, grid, folder / "cams-europe")
    else:
        composition = []
    written = {"ifs": len(weather), "hres.zarr": len(weather), "cams-europe": len(composition)}
    return {name: count for name, count in written.items() if count}


def with_margin(grid: Grid) -> tuple[Grid, Array, Array]:
    """A grid with a margin that stays on the globe, and for each of its rows and columns the nearest of `grid`."""
    wide = grid.widen(MARGIN_DEGREES)
    inside = np.flatnonzero(np.abs(wide.lat) <= 90)
    wide = wide.window(slice(int(inside[0]), int(inside[-1]) + 1), slice(None))
    rows, cols = grid.row_col(wide.lat, wide.lon)
    return wide, _nearest(rows, grid.rows), _nearest(cols, grid.cols)


def _nearest(place: Array, count: int) -> Array:
    return np.clip(np.round(place), 0, count - 1).astype(int)


def write_ifs(archive: Archive, day: date, folder: Path) -> None:
    """The 00 UTC run of a day: one file every three hours, and its index, named as on ECMWF's server."""
    run = ForecastRun.of(archive, day, "weather", IFS_LEADS)
    wide, rows, cols = with_margin(archive.domain.coarse)
    encoder = GribEncoder(wide.lat, wide.lon % 360)
    for step in range(0, 24 * run.days + 1, IFS_STEP):
        path = folder / IFS_PATH.format(day=day, step=step)
        path.parent.mkdir(parents=True, exist_ok=True)
        messages = []
        for index, channel in enumerate(run.channels):
            param, factor = _param(channel)
            key = FieldKey(param, channel.level_hpa, day, step)
            values = factor * run.at(index, step)[np.ix_(rows, cols)]
            messages.append((key, encoder.encode(key, values)))
        write_with_index(path, messages)


def _param(channel: Channel) -> tuple[str, float]:
    """ECMWF's short name of a channel, and the factor from our unit."""
    if channel.level_hpa is None:
        return PARAMS[channel.name], 1.0
    return ("gh", 1 / GRAVITY) if channel.quantity == "geopotential" else (ALOFT[channel.quantity], 1.0)


def write_hres(archive: Archive, days: Sequence[date], place: Path) -> None:
    """All runs in one Zarr as WeatherBench 2 has HRES; what was there is replaced. Leads that a run lacks are NaN."""
    import zarr

    wide, rows, cols = with_margin(archive.domain.coarse)
    east = wide.lon % 360
    order = np.argsort(east)  # a domain on both sides of Greenwich becomes two parts, as in a cut of the globe
    leads = max(lead for day in days for lead in archive.ahead.leads(day, "weather") if lead <= HRES_LEADS)
    steps = np.arange(0, 24 * (leads + 1) + 1, HRES_STEP)
    group = zarr.create_group(place, overwrite=True, zarr_format=2, attributes={"institution": MADE_UP})
    axes = {"latitude": wide.lat[::-1], "longitude": east[order], "level": np.array(LEVELS)}
    _lay_out(group, days, steps, axes, archive.ahead.channels("weather"))
    for number, day in enumerate(days):
        run = ForecastRun.of(archive, day, "weather", HRES_LEADS)
        for place_of_step, step in enumerate(steps[steps <= 24 * run.days]):
            for name, values in _hres_fields(run, int(step)).items():
                cut = values[..., rows[::-1, None], cols[order]]
                group[name][number, place_of_step] = cut.astype(np.float32)  # type: ignore[index]
    zarr.consolidate_metadata(group.store, zarr_format=2)
    (place / SERVER_COPY).write_text("To copy runs from: cranpm ingest leaves this folder alone.\n")


def _hres_fields(run: ForecastRun, step: int) -> dict[str, Array]:
    """(row, column) of each variable at the surface, (level, row, column) of those aloft, at a step."""
    fields: dict[str, Array] = {}
    for index, channel in enumerate(run.channels):
        values = run.at(index, step)
        if channel.quantity == "precipitation":  # of the last six hours; 0 at the start
            values = values - run.at(index, max(step - HRES_STEP, 0))
        if channel.level_hpa is None:
            fields[_hres_name(channel)] = values
        else:
            empty = np.full((len(LEVELS), *values.shape), np.nan)
            fields.setdefault(_hres_name(channel), empty)[LEVELS.index(channel.level_hpa)] = values
    return fields


def _hres_name(channel: Channel) -> str:
    if channel.quantity == "precipitation":
        return RAIN
    return HRES_NAMES[channel.name if channel.level_hpa is None else ALOFT[channel.quantity]]


def _lay_out(
    group: "zarr.Group", days: Sequence[date], steps: Array, axes: dict[str, Array], channels: Sequence[Channel]
) -> None:
    """Empty arrays of a Zarr and their axes, by start and lead."""
    starts = np.array([(day - date(1900, 1, 1)).days * 24 for day in days])
    axes = {"time": starts, "prediction_timedelta": steps, **axes}
    for name, values in axes.items():
        group.create_array(name, data=values, attributes={"_ARRAY_DIMENSIONS": [name]})
    group["time"].attrs.update({"units": "hours since 1900-01-01", "calendar": "proleptic_gregorian"})
    group["prediction_timedelta"].attrs.update({"units": "hours"})
    for channel in channels:
        dimensions = [name for name in axes if name != "level" or channel.level_hpa is not None]
        dimensions.sort(key=("time", "prediction_timedelta", "level", "latitude", "longitude").index)
        shape = tuple(len(axes[name]) for name in dimensions)
        if (name := _hres_name(channel)) not in group:
            group.create_array(
                name,
                shape=shape,
                chunks=(1, 1, *shape[2:]),
                dtype="float32",
                fill_value=np.nan,
                attributes={"_ARRAY_DIMENSIONS": dimensions, "units": UNITS.get(channel.quantity, channel.unit)},
            )
