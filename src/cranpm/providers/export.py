"""Days of a simulated archive written as the providers would send them: to try all steps from files to a forecast.

ERA5 in the Climate Data Store's new layout (a ZIP of instantaneous and accumulated fields, and pressure levels), CAMS
as EAC4, GHAP's daily files, EEA's Parquet and metadata, elevation as GeoTIFF; and forecasts of the days ahead where the
archive holds some. Hours are made up around the day's mean; the cells are those of our grid, where the providers' own
lie half a cell beside them.
"""

import csv
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import netCDF4
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rasterio
from rasterio.transform import from_origin

from cranpm.archive.store import SIMULATION, Archive
from cranpm.core.channels import LEVELS_HPA, PAPER_CHANNELS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.core.packing import ARCHIVED, STEP_UGM3
from cranpm.providers.cams import GAS_CONSTANT, VAPOUR
from cranpm.providers.eea import CLOCK_HOURS
from cranpm.providers.eea_stations import PM25_CODE
from cranpm.providers.export_forecasts import write_forecasts
from cranpm.providers.made_up_hours import RAIN_SHARE, SWING, around
from cranpm.providers.netcdf_layout import MADE_UP, SPACE, new_layout, put

UNITS = {"u": "m s**-1", "v": "m s**-1", "t": "K", "z": "m**2 s**-2", "q": "kg kg**-1"}
FURTHER = {"blh": "m"}
"""Channels beside the paper's that are written where the archive has them."""
SURFACE = {"u10": "m s**-1", "v10": "m s**-1", "t2m": "K", "sp": "Pa"}
PARTICLES, GASES = ("pm25", "pm10"), ("no2", "o3", "co")
NAMES = {"pm25": "pm2p5", "pm10": "pm10", "no2": "no2", "o3": "go3", "co": "co"}


def write_provider_files(
    archive: Archive, days: Sequence[date], folder: Path, forecasts: bool = True
) -> dict[str, int]:
    """Write files of all providers for some days of a simulated archive, which must follow each other.

    Returns the number of start days in each subfolder for forecasts; `forecasts` are left out where not wanted.
    """
    if not archive.source.startswith(SIMULATION):
        raise CranpmError(
            expected="a simulated archive: the files state that they are made up",
            found=f"one of {archive.source}",
            remedy="Name an archive that `cranpm simulate` filled.",
        )
    if any(later - earlier != timedelta(days=1) for earlier, later in pairwise(days)):
        raise CranpmError(expected="days without a gap", found=f"{len(days)} with one", remedy="Write each part alone.")
    _check_channels(archive.channel_names)
    folder.mkdir(parents=True, exist_ok=True)
    _write_era5(archive, days, folder)
    _write_cams(archive, days, folder)
    for day in days:
        _write_ghap(archive, day, folder)
    _write_eea(archive, days, folder)
    _write_elevation(archive, folder)
    return write_forecasts(archive, days, folder) if forecasts else {}


def _check_channels(names: Sequence[str]) -> None:
    """Refuse an archive whose channels are not those that the files hold."""
    paper = [channel.name for channel in PAPER_CHANNELS]
    if lacking := [name for name in paper if name not in names]:
        raise CranpmError(
            expected="an archive with the 35 channels of the paper",
            found=f"one without {', '.join(lacking)}",
            remedy="Name an archive that was made with them.",
        )
    if others := [name for name in names if name not in (*paper, *FURTHER)]:
        raise CranpmError(
            expected=f"channels of the paper, and {', '.join(FURTHER)}",
            found=f"{', '.join(others)}, which no provider's file is written for",
            remedy="Name an archive without them.",
        )


def _by_name(archive: Archive, day: date) -> dict[str, Array]:
    """The coarse fields of a day, float64, by the name of their channel."""
    return dict(zip(archive.channel_names, archive.coarse(day).astype(np.float64), strict=True))


def _write_era5(archive: Archive, days: Sequence[date], folder: Path) -> None:
    """A ZIP of two files, as mixed step types come, and the pressure levels. Rain ends one hour after the last day."""
    grid, label = archive.domain.coarse, f"{days[0]}_{days[-1]}"
    fields = {day: _by_name(archive, day) for day in days}
    start = datetime.combine(days[0], datetime.min.time())
    hours = [start + timedelta(hours=hour) for hour in range(24 * len(days))]
    instant, accum = folder / "data_stream-oper_stepType-instant.nc", folder / "data_stream-oper_stepType-accum.nc"
    with new_layout(instant, grid.lat, grid.lon, hours) as file:
        further = {name: unit for name, unit in FURTHER.items() if name in archive.channel_names}
        for name, unit in (SURFACE | further).items():
            values = np.concatenate([around(fields[day][name], 24, SWING.get(name, 0.0)) for day in days])
            put(file, name, unit, values, ("valid_time", *SPACE))
    with new_layout(accum, grid.lat, grid.lon, [hour + timedelta(hours=1) for hour in hours]) as file:
        rain = np.concatenate([RAIN_SHARE[:, None, None] * fields[day]["tp"] for day in days])
        put(file, "tp", "m", rain, ("valid_time", *SPACE))
    with zipfile.ZipFile(folder / f"era5-single_{label}.nc", "w") as packed:  # named as the store names it
        for path in (instant, accum):
            packed.write(path, path.name)
            path.unlink()
    levels = ("pressure_level", sorted(LEVELS_HPA, reverse=True), "hPa")
    with new_layout(folder / f"era5-pressure_{label}.nc", grid.lat, grid.lon, hours, levels) as file:
        for name, unit in UNITS.items():
            values = np.stack(
                [
                    np.concatenate([around(fields[day][f"{name}{level}"], 24, SWING.get(name, 0.0)) for day in days])
                    for level in levels[1]
                ],
                axis=1,
            )
            put(file, name, unit, values, ("valid_time", "pressure_level", *SPACE))


def _write_cams(archive: Archive, days: Sequence[date], folder: Path) -> None:
    """EAC4, every three hours: particles in kg m-3, gases as mixing ratios on the lowest model level."""
    grid, label = archive.domain.coarse, f"{days[0]}_{days[-1]}"
    start = datetime.combine(days[0], datetime.min.time())
    times = [start + timedelta(hours=3 * number) for number in range(8 * len(days))]
    fields = {day: _by_name(archive, day) for day in days}

    def each(day: date, name: str) -> Array:
        return np.repeat(fields[day][name][None], 8, axis=0)

    pressure = np.concatenate([around(fields[day]["sp"], 8, 300.0) for day in days])
    warmth = np.concatenate([around(fields[day]["t2m"], 8, 3.0) for day in days])
    moisture = np.concatenate([each(day, "q1000") for day in days])
    density = pressure.astype(np.float32) / (
        GAS_CONSTANT * warmth.astype(np.float32) * (1 + VAPOUR * moisture.astype(np.float32))
    )
    surface, model = folder / "data_sfc.nc", folder / "data_mlev.nc"
    with new_layout(surface, grid.lat, grid.lon, times) as file:
        put(file, "sp", "Pa", pressure, ("valid_time", *SPACE))
        for species in PARTICLES:
            values = np.concatenate([each(day, f"cams_{species}") for day in days])
            put(file, NAMES[species], "kg m**-3", values * 1e-9, ("valid_time", *SPACE))
    with new_layout(model, grid.lat, grid.lon, times, ("model_level", [60.0], "1")) as file:
        dimensions = ("valid_time", "model_level", *SPACE)
        put(file, "t", "K", warmth[:, None], dimensions)
        put(file, "q", "kg kg**-1", moisture[:, None], dimensions)
        for species in GASES:
            values = np.concatenate([each(day, f"cams_{species}") for day in days]) * 1e-9 / density
            put(file, NAMES[species], "kg kg**-1", values[:, None], dimensions)
    with zipfile.ZipFile(folder / f"cams-eac4_{label}.zip", "w") as packed:
        for path in (surface, model):
            packed.write(path, path.name)
            path.unlink()


def _write_ghap(archive: Archive, day: date, folder: Path) -> None:
    grid = archive.domain.fine
    with netCDF4.Dataset(folder / f"GHAP_PM2.5_D1K_{day:%Y%m%d}_V1.nc", "w") as file:
        file.institution = MADE_UP
        for name, values in (("lat", grid.lat), ("lon", grid.lon)):
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", (name,))[:] = values
        variable = file.createVariable(
            "PM2.5", "u2", ("lat", "lon"), zlib=True, complevel=1, fill_value=ARCHIVED.missing
        )
        variable.set_auto_maskandscale(False)
        variable.setncatts({"scale_factor": STEP_UGM3, "add_offset": 0.0, "units": "µg/m3"})
        variable[:] = archive.packed_pm25(day)


def _write_eea(archive: Archive, days: Sequence[date], folder: Path) -> None:
    """A Parquet file a station, in UTC+1, with values that must not count; and the metadata."""
    stations, values = archive.stations, {day: archive.stations_pm25(day) for day in days}
    for number, name in enumerate(stations.ids):
        rows = [
            row for day in days for row in _station_day(f"{stations.country[number]}/{name}", day, values[day][number])
        ]
        columns = (
            {key: [row[key] for row in rows] for key in SCHEMA.names} if rows else {key: [] for key in SCHEMA.names}
        )
        pq.write_table(pa.table(columns, schema=SCHEMA), folder / f"{name}.parquet")
    with (folder / "DataExtract.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            (
                "Sampling Point Id",
                "Air Pollutant",
                "Air Quality Station EoI Code",
                "Longitude",
                "Latitude",
                "Altitude",
                "Air Quality Station Area",
                "Air Quality Station Type",
            )
        )
        for number, name in enumerate(stations.ids):
            code = f"{stations.country[number]}{number:04d}A"
            place = (repr(float(part[number])) for part in (stations.lon, stations.lat, stations.altitude_m))
            writer.writerow((name, "PM2.5", code, *place, stations.area[number], stations.kind[number]))


SCHEMA = pa.schema(
    [
        ("Samplingpoint", pa.string()),
        ("Pollutant", pa.int32()),
        ("Start", pa.timestamp("ns")),
        ("End", pa.timestamp("ns")),
        ("Value", pa.decimal128(38, 18)),
        ("Unit", pa.string()),
        ("AggType", pa.string()),
        ("Validity", pa.int32()),
        ("Verification", pa.int32()),
    ]
)


def _station_day(point: str, day: date, mean: float) -> list[Mapping[str, object]]:
    """24 hours around the mean, and one that is not valid; none where the day has no mean."""
    if not np.isfinite(mean):
        return []
    rows: list[Mapping[str, object]] = []
    wave = [0.2 * mean * (1 if hour % 2 else -1) for hour in range(24)]
    for hour, swing in enumerate([*wave, None]):
        start = datetime.combine(day, datetime.min.time()) + timedelta(hours=min(hour, 23) + CLOCK_HOURS)
        value = Decimal(-999) if swing is None else Decimal(repr(float(mean + swing))).quantize(Decimal("1e-18"))
        rows.append(
            {
                "Samplingpoint": point,
                "Pollutant": PM25_CODE,
                "Start": start,
                "End": start + timedelta(hours=1),
                "Value": value,
                "Unit": "ug.m-3",
                "AggType": "hour",
                "Validity": -99 if swing is None else 1,
                "Verification": 1,
            }
        )
    return rows


def _write_elevation(archive: Archive, folder: Path) -> None:
    grid = archive.domain.fine
    with rasterio.open(
        folder / "elevation.tif",
        "w",
        driver="GTiff",
        height=grid.rows,
        width=grid.cols,
        count=1,
        dtype="float32",
        crs="EPSG:4326",
        transform=from_origin(grid.west, grid.north, grid.step, grid.step),
        compress="deflate",
    ) as raster:
        raster.write(archive.elevation(), 1)
