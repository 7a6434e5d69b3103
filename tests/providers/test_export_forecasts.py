"""Forecasts in the providers' formats: every byte range, step, unit and axis, and daily values as in the archive."""

import json
import shutil
from datetime import timedelta

import netCDF4
import numpy as np
import pytest
import xarray as xr
from ahead_days import LATER, LEADS, START, days_of, put_forecasts
from command import run_cli

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Domain, Grid
from cranpm.providers.export_cams_europe import cams_europe_grid, spread
from cranpm.providers.export_forecasts import PARAMS, with_margin
from cranpm.providers.forecast_run import ForecastRun
from cranpm.providers.grib_layout import FieldKey, GribEncoder
from cranpm.providers.gridded import Gridded, variables
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.readers import grib
from cranpm.providers.readers.files import Piece
from cranpm.providers.readers.grib import MADE_UP_STATUS
from cranpm.providers.regrid import average, onto
from cranpm.providers.scan import files_in

import eccodes  # isort: skip  after PROJ's other users

GRAVITY = 9.80665
SERVER = "{day:%Y%m%d}/00z/ifs/0p25/oper/{day:%Y%m%d}000000-{step}h-oper-fc"


def inner(ahead_world, values):
    """Without the margin of four cells."""
    rows, cols = ahead_world.domain.coarse.shape
    return values.reshape(*values.shape[:-2], rows + 8, cols + 8)[..., 4:-4, 4:-4]


# IFS open data


def messages(exported, day, step):
    """Lines of an index, each with the message in its range of bytes."""
    path = exported / "ifs" / SERVER.format(day=day, step=step)
    data = path.with_name(path.name + ".grib2").read_bytes()
    lines = [json.loads(line) for line in path.with_name(path.name + ".index").read_text().splitlines()]
    end = 0
    for line in lines:
        assert line["_offset"] == end  # nothing between messages
        end += line["_length"]
        yield line, data[line["_offset"] : end]
    assert end == len(data)


@pytest.fixture(scope="module")
def steps_of_run(ahead_world, exported):
    """Values and packing errors by (param, level), in the order of steps, decoded through the indices."""
    found = {}
    for step in range(0, 24 * 6 + 1, 3):
        for line, data in messages(exported, START, step):
            handle = eccodes.codes_new_from_message(data)
            values = eccodes.codes_get_values(handle).reshape(ahead_world.domain.coarse.rows + 8, -1)
            error = eccodes.codes_get(handle, "packingError")
            found.setdefault((line["param"], line.get("levelist")), []).append((inner(ahead_world, values), error))
            eccodes.codes_release(handle)
    return found


def test_the_folders_are_those_of_the_server(exported):
    found = {str(path.relative_to(exported / "ifs")) for path in (exported / "ifs").rglob("*-fc.*")}
    wanted = {
        SERVER.format(day=day, step=step) + ending
        for day, leads in LEADS.items()
        for step in range(0, 24 * (len(leads) + 1) + 1, 3)
        for ending in (".grib2", ".index")
    }
    assert found == wanted


def test_every_line_of_an_index_is_one_whole_message(exported):
    """And says of it what the message says of itself."""
    names = ("date", "time", "expver", "class", "type", "stream", "step", "levtype", "param")
    for step in (0, 3, 24, 144):
        seen = []
        for line, data in messages(exported, START, step):
            assert next(iter(line)) == "domain"
            assert data[:4] == b"GRIB"
            assert data[-4:] == b"7777"
            assert int.from_bytes(data[8:16], "big") == len(data)  # one message and no more
            handle = eccodes.codes_new_from_message(data)
            told = {name: line[name] for name in names}
            keys = ("dataDate", "dataTime", "expver", "class", "type", "stream", "endStep", "levtype", "shortName")
            assert list(told.values()) == [
                f"{eccodes.codes_get(handle, key):04d}" if key == "dataTime" else str(eccodes.codes_get(handle, key))
                for key in keys
            ]
            if line["levtype"] == "pl":
                assert eccodes.codes_get(handle, "level") == int(line["levelist"])
                assert eccodes.codes_get(handle, "typeOfLevel") == "isobaricInhPa"
            seen.append((line["param"], line.get("levelist")))
            eccodes.codes_release(handle)
        levels = ("1000", "925", "850", "700", "500")
        aloft = {(name, level) for name in ("u", "v", "t", "q", "gh") for level in levels}
        assert set(seen) == {(name, None) for name in ("10u", "10v", "2t", "sp", "tp")} | aloft
        assert len(seen) == 30


def test_messages_are_packed_and_placed_as_ecmwfs(ahead_world, exported):
    _, data = next(messages(exported, START, 27))
    handle = eccodes.codes_new_from_message(data)
    wanted = {
        "packingType": "grid_ccsds",
        "bitsPerValue": 16,
        "edition": 2,
        "centre": "ecmf",
        "gridType": "regular_ll",
        "shapeOfTheEarth": 6,
        "jScansPositively": 0,
        "iDirectionIncrementInDegrees": 0.25,
        "productionStatusOfProcessedData": MADE_UP_STATUS,
        "validityDate": 20240301,
        "validityTime": 300,
    }
    assert {key: type(value)(eccodes.codes_get(handle, key)) for key, value in wanted.items()} == wanted
    wide, _, _ = with_margin(ahead_world.domain.coarse)
    assert np.allclose(eccodes.codes_get_array(handle, "distinctLatitudes"), wide.lat)
    assert np.allclose(eccodes.codes_get_array(handle, "distinctLongitudes"), wide.lon)
    assert (wide.north, wide.west) == (ahead_world.domain.north + 1, ahead_world.domain.west - 1)


def test_means_of_three_hourly_steps_are_the_archives(ahead_world, steps_of_run):
    """Over 0, 3, ... 21 UTC; including the next midnight, or leaving one out, would not give the day."""
    for channel in ahead_world.ahead.channels("weather"):
        if channel.quantity == "precipitation":
            continue
        key, factor = (PARAMS.get(channel.name), None), 1.0
        if channel.level_hpa:
            letter = "gh" if channel.quantity == "geopotential" else channel.name[0]
            key, factor = (letter, str(channel.level_hpa)), GRAVITY if letter == "gh" else 1.0
        values = factor * np.stack([value for value, _ in steps_of_run[key]])
        packing = factor * max(error for _, error in steps_of_run[key])
        wanted = days_of(ahead_world, START, channel)
        daily = values[:-1].reshape(6, 8, *wanted.shape[1:]).mean(axis=1)
        assert np.abs(daily - wanted).max() <= packing + 1e-7 * np.abs(wanted).max(), channel.name
        assert packing < 2e-4 * channel.spread + 1e-6 * abs(channel.mean), channel.name
        if channel.name == "t2m":
            assert np.abs(values[1:].reshape(6, 8, *wanted.shape[1:]).mean(axis=1) - wanted)[:-1].max() > 100 * packing
            assert np.ptp(values[:8, 0, 0]) > 7  # there is a cycle


def test_rain_accumulates_from_the_start(ahead_world, steps_of_run):
    (channel,) = (one for one in ahead_world.ahead.channels("weather") if one.name == "tp")
    wanted = days_of(ahead_world, START, channel)
    total, errors = (np.stack(part) for part in zip(*steps_of_run["tp", None], strict=True))
    assert not total[0].any()
    assert (np.diff(total, axis=0) >= -2 * errors.max()).all()
    assert np.abs(np.diff(total[::8], axis=0) - wanted).max() <= 2 * errors.max()
    assert errors.max() < 2e-6
    thirds = np.diff(total[:9], axis=0)[:, wanted[0] > 1e-3]
    assert thirds.size == 0 or (thirds[-1] > 2 * thirds[0]).all()  # not even over the day


def test_longitudes_may_start_at_180(tmp_path):
    """As ECMWF's globe does: rows of a coarse globe are found where they belong."""
    lat, lon = 90 - 30.0 * np.arange(7), (180 + 30.0 * np.arange(12)) % 360
    values = 200 + lat[:, None] / 10 + lon / 100
    data = GribEncoder(lat, lon).encode(FieldKey("2t", None, START, 3), values)
    handle = eccodes.codes_new_from_message(data)
    assert eccodes.codes_get(handle, "longitudeOfFirstGridPointInDegrees") == 180
    assert eccodes.codes_get(handle, "longitudeOfLastGridPointInDegrees") == 150
    here = [eccodes.codes_grib_find_nearest(handle, 60.0, place)[0].value for place in (180.0, 330.0, 0.0, 150.0)]
    assert np.allclose(here, [200 + 6 + place / 100 for place in (180, 330, 0, 150)], atol=1e-3)
    eccodes.codes_release(handle)
    (tmp_path / "globe.grib2").write_bytes(data)
    (read,) = grib.variables(tmp_path / "globe.grib2", "globe")
    east = np.where(read.file_grid.lon < 0, read.file_grid.lon + 360, read.file_grid.lon)
    assert read.file_grid.lon[0] == -180
    assert np.allclose(read.read(np.array([0]))[0], 200 + read.file_grid.lat[:, None] / 10 + east / 100, atol=1e-3)


def test_a_region_on_both_sides_of_greenwich(tmp_path):
    lat, lon = 50 - 0.25 * np.arange(6), (-1 + 0.25 * np.arange(10)) % 360
    values = lat[:, None] + np.arange(10)
    (tmp_path / "a.grib2").write_bytes(GribEncoder(lat, lon).encode(FieldKey("10u", None, START, 0), values))
    (read,) = grib.variables(tmp_path / "a.grib2", "a")
    assert np.allclose(read.file_grid.lon, -1 + 0.25 * np.arange(10))
    assert np.allclose(read.read(np.array([0]))[0], values, atol=1e-3)


def test_gaps_are_not_packed():
    values = np.full((3, 4), 280.0)
    values[0, 0] = np.nan
    with pytest.raises(CranpmError, match="2t everywhere, 6 hours after 2024-02-29"):
        GribEncoder(np.array([1.0, 0.75, 0.5]), np.arange(4) / 4).encode(FieldKey("2t", None, START, 6), values)


# WeatherBench 2's HRES


def test_hres_as_xarray_reads_it(ahead_world, exported):
    read = xr.open_zarr(exported / "hres.zarr", consolidated=True, decode_timedelta=True)
    assert dict(read.sizes)["prediction_timedelta"] == 4 * 6 + 1
    assert list(read.time.values.astype("datetime64[D]").astype(object)) == [START, LATER]
    assert read.prediction_timedelta.values[1] == np.timedelta64(6, "h")
    assert read.geopotential.dims == ("time", "prediction_timedelta", "level", "latitude", "longitude")
    assert read["2m_temperature"].dims == ("time", "prediction_timedelta", "latitude", "longitude")
    assert list(read.level.values) == [500, 700, 850, 925, 1000]
    assert (np.diff(read.latitude.values) > 0).all()
    assert (np.diff(read.longitude.values) > 0).all()
    assert read.attrs["institution"] == MADE_UP
    units = {
        "2m_temperature": "K",
        "surface_pressure": "Pa",
        "total_precipitation_6hr": "m",
        "geopotential": "m**2 s**-2",
    }
    assert {name: read[name].units for name in units} == units


def test_hres_gives_the_archives_days(ahead_world, exported):
    """Means of four steps, and sums of what fell in the six hours before each."""
    read = xr.open_zarr(exported / "hres.zarr", decode_timedelta=True)
    box = read.sel(latitude=ahead_world.domain.coarse.lat, longitude=ahead_world.domain.coarse.lon)
    aloft = {"u": "u_component_of_wind", "v": "v_component_of_wind", "t": "temperature", "z": "geopotential"}
    surface = {
        "u10": "10m_u_component_of_wind",
        "v10": "10m_v_component_of_wind",
        "t2m": "2m_temperature",
        "sp": "surface_pressure",
    }
    for channel in ahead_world.ahead.channels("weather"):
        for number, start in enumerate(LEADS):
            wanted = days_of(ahead_world, start, channel)
            if channel.quantity == "precipitation":
                values = box["total_precipitation_6hr"][number].values
                assert not values[0].any()
                daily = values[1 : 4 * len(wanted) + 1].reshape(-1, 4, *wanted.shape[1:]).sum(axis=1)
            else:
                name = surface.get(channel.name) or (aloft | {"q": "specific_humidity"})[channel.name[0]]
                values = box[name][number] if not channel.level_hpa else box[name][number].sel(level=channel.level_hpa)
                daily = values.values[: 4 * len(wanted)].reshape(-1, 4, *wanted.shape[1:]).mean(axis=1)
            assert np.allclose(daily, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max()), channel.name
    short = box["2m_temperature"][1].values
    assert np.isfinite(short[:13]).all()
    assert np.isnan(short[13:]).all()  # its run has two leads only


# CAMS European ensemble


def test_cams_europe_as_the_store_sends_it(ahead_world, exported):
    with netCDF4.Dataset(exported / "cams-europe" / f"cams-europe-forecast_{START}.nc") as file:
        assert file.data_model == "NETCDF3_CLASSIC"
        assert file.institution == MADE_UP
        assert (file["time"].units, file["time"].long_name) == ("hours", "FORECAST time from 20240229")
        assert np.array_equal(file["time"][:], np.arange(97))
        assert file["pm2p5_conc"].dimensions == ("time", "level", "latitude", "longitude")
        assert file["pm2p5_conc"].getncattr("_FillValue") == -999
        assert {file[name].units for name in ("pm2p5_conc", "pm10_conc", "no2_conc", "o3_conc", "co_conc")} == {"µg/m3"}
        lat, lon = file["latitude"][:], file["longitude"][:]
        assert np.allclose((10 * lat) % 1, 0.5, atol=1e-3)
        assert lat[0] > lat[-1]
        assert lat.max() > ahead_world.domain.north
        assert lon.min() < ahead_world.domain.west
    with netCDF4.Dataset(exported / "cams-europe" / f"cams-europe-forecast_{LATER}.nc") as file:
        assert len(file["time"]) == 73  # two leads


def test_means_of_cams_europe_are_the_archives(ahead_world, exported):
    """Of 24 hours, and over the area of our cells; read by netCDF4, and in the same way by our own reader."""
    path = exported / "cams-europe" / f"cams-europe-forecast_{START}.nc"
    grid = cams_europe_grid(ahead_world.domain)
    ours = Gridded(variables(Piece(path)))
    for channel in ahead_world.ahead.channels("composition"):
        wanted = days_of(ahead_world, START, channel)[:4]
        name = {"pm25": "pm2p5"}.get(channel.quantity, channel.quantity)
        with netCDF4.Dataset(path) as file:
            hours = file[f"{name}_conc"][:, 0].filled(np.nan).astype(float)
        assert hours.min() >= 0
        for lead in range(4):
            mean = hours[24 * lead : 24 * lead + 24].mean(axis=0)
            assert np.allclose(average(mean, grid, ahead_world.domain.coarse), wanted[lead], rtol=2e-6, atol=1e-6)
        line = ours.timeline(channel.quantity)
        times = line.within(START + timedelta(days=2))
        assert len(times) == 24
        field = onto(line.fields(times).mean(axis=0, dtype=float), line.grid(), ahead_world.domain.coarse, "cams")
        assert np.allclose(field, wanted[2], rtol=2e-6, atol=1e-6)


def test_spread_keeps_means_and_signs():
    """Cells of 0.1 degrees may lie in two of 0.25: whatever the neighbours, means are exact, nothing is negative."""
    coarse, fine = Grid(45.25, -1.25, 0.25, 11, 13), Grid(45.7, -1.8, 0.1, 37, 44)
    values = np.random.default_rng(1).pareto(0.7, coarse.shape)
    made = spread(values, coarse, fine)
    assert made.min() >= 0
    assert np.allclose(average(made, fine, coarse), values, rtol=1e-12)
    assert np.allclose(spread(np.full(coarse.shape, 7.0), coarse, fine), 7)


def test_cams_europe_covers_europe_only():
    whole = cams_europe_grid(DOMAINS["europe"])
    assert (whole.north, whole.west, whole.south, whole.east) == (72, -25, 30, 45)
    assert whole.shape == (420, 700)  # as the real files
    assert cams_europe_grid(DOMAINS["india"]) is None
    box = cams_europe_grid(Domain("box", 48.25, -2.75, 42, 4))
    assert (box.north, box.west, box.south, box.east) == (48.8, -3.3, 41.5, 4.5)


# Whole exports


def test_a_run_needs_all_its_days(ahead_world, tmp_path):
    place = shutil.copytree(ahead_world.location, tmp_path / "archive")
    put_forecasts(str(place), {START: (1, 3)})
    with pytest.raises(CranpmError, match=r"weather of every day up to the last.*leads 1, 3"):
        ForecastRun.of(Archive(str(place)), START, "weather", 5)


def test_export_writes_forecasts_beside_the_days(ahead_world, tmp_path, monkeypatch, capsys):
    line = ["export", ahead_world.location, "--to", str(tmp_path / "files"), "--days", f"{START}..{LATER}"]
    assert run_cli(monkeypatch, *line) == 0
    printed = capsys.readouterr().out
    assert "files of 2 days" in printed
    assert f"forecasts from 2 start days in {tmp_path / 'files' / 'ifs'}" in printed
    assert {path.name for path in (tmp_path / "files" / "ifs").iterdir()} == {"20240229", "20240301"}
    seen = files_in([tmp_path / "files"])
    assert not [path for path in seen if "hres.zarr" in path.parts or path.suffix == ".index"]
    assert len([path for path in seen if path.suffix == ".grib2"]) == 49 + 25
    assert files_in([tmp_path / "files" / "hres.zarr"])  # if it is named, its files are looked at


def test_simulate_writes_native_files(tmp_path, monkeypatch, capsys):
    box = ["--domain", "48,7,42.75,12.25", "--days", "2020-02-27", "--set", "simulation.spin_up_days=1", "-q"]
    line = ["simulate", str(tmp_path / "world"), *box, "--ahead", "1", "--native", str(tmp_path / "files")]
    assert run_cli(monkeypatch, *line) == 0
    printed = capsys.readouterr().out
    assert "files of 1 days" in printed
    assert "forecasts from 1 start days" in printed
    assert (tmp_path / "files" / "GHAP_PM2.5_D1K_20200227_V1.nc").is_file()
    assert len(list((tmp_path / "files" / "ifs").rglob("*.grib2"))) == 17
    assert run_cli(monkeypatch, "simulate", *box, "--report", "--native", str(tmp_path / "files")) != 0
    assert "an ARCHIVE with --native" in capsys.readouterr().err
