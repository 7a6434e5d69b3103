"""Forecasts of the days ahead from files: the right run, the right hours, every channel, and nothing in silence."""

import json
from datetime import date, datetime, timedelta

import numpy as np
import pytest
import zarr
from command import run_cli
from forecast_files import COMPOSITION, WEATHER, day_of_run, rain, value, write_europe, write_global, write_run
from sample_days import SMALL, STATIONS

from cranpm.archive import repository
from cranpm.archive.day_data import Statics
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive
from cranpm.core.channels import GROUPS, PAPER_CHANNELS
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS, sandbox
from cranpm.providers.ahead import AheadOptions
from cranpm.providers.ingest import AS_FILES, ingest
from cranpm.providers.provider import FetchQuery, FileSummary, ReadQuery, forecasters
from cranpm.providers.readers.files import Piece

import eccodes  # isort: skip  after PROJ's other users

DAY = date(2020, 2, 27)
START = datetime(2020, 2, 27)
THREE_DAYS = range(0, 73, 3)


@pytest.fixture
def place(tmp_path):
    """An archive without days."""
    fine = SMALL.fine.shape
    location = str(tmp_path / "archive")
    statics = Statics(np.full(fine, 100.0), np.full(fine, 5.0), np.ones(fine, bool))
    create_archive(location, SMALL, statics, STATIONS, {"source": AS_FILES})
    return location


@pytest.fixture
def files(tmp_path):
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@pytest.fixture
def here(monkeypatch):
    """Files are opened in this process: quicker, where what is tested is not the process."""

    def ask(job):
        answer, arrays = sandbox._work(json.loads(json.dumps(job)))
        return json.loads(json.dumps(answer)), arrays

    monkeypatch.setattr(sandbox, "_ask", ask)


def check(place, day, lead, group, names, wanted, tolerance=2e-4):
    """Every channel of a stored forecast, by what it should be: `wanted(name)`."""
    fields = Archive(place).ahead.fields(day, lead, group)
    spreads = {channel.name: channel.spread for channel in PAPER_CHANNELS}
    assert len(fields) == len(names)
    for name, found in zip(names, fields, strict=True):
        assert np.allclose(found, wanted(name), atol=tolerance * spreads[name], rtol=1e-6), (name, lead)


def weather_of(begin, every=3, offset=0.0):
    return lambda name: day_of_run(name, begin, every, SMALL, offset)


# Which hours


def test_every_channel_of_every_lead_is_stored_once_with_its_run(place, files):
    """Two days ahead of the start day, in real sandboxes; the archive need not have the day itself."""
    write_run(files / "a.grib2", START, THREE_DAYS, SMALL)
    report = ingest([files], place)
    assert report.refused_files == report.refused_days == report.ahead.refused == {}
    assert report.ahead.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1, 2"}
    made = Archive(place)
    assert made.days == []
    assert made.ahead.leads(DAY, "weather") == (1, 2)
    for lead in (1, 2):
        check(place, DAY, lead, "weather", WEATHER, weather_of(24 * lead))
    run = made.ahead.run(DAY, "weather")
    assert (run.model, run.reference, run.replaces) == ("ifs", START, None)
    assert run.provenance["provider"] == "ifs"
    ((name, checksum),) = run.provenance["files"]
    assert (name, len(checksum)) == ("a.grib2", 64)
    again = ingest([files], place)
    assert (again.ahead.stored, again.ahead.unchanged) == ({}, {(DAY, "weather"): "ifs of 2020-02-27 00 UTC"})
    assert Archive(place).snapshot == made.snapshot


def test_a_run_in_a_file_for_each_step(here, place, files):
    """As a user may download it, with indices beside: rain is taken apart across files."""
    for step in range(0, 49, 3):
        write_run(files / f"20200227000000-{step}h-oper-fc.grib2", START, [step], SMALL)
        (files / f"20200227000000-{step}h-oper-fc.index").write_text("{}\n")
    report = ingest([files], place)
    assert report.refused_files == {}
    check(place, DAY, 1, "weather", WEATHER, weather_of(24))
    assert Archive(place).ahead.leads(DAY, "weather") == (1,)


def test_the_newest_run_of_the_start_day_serves(here, place, files):
    """Of 00 and 12 UTC the later; its day ahead begins 12 hours after its start. An older run never comes back."""
    write_run(files / "night.grib2", START, range(0, 49, 3), SMALL)
    write_run(files / "noon.grib2", START + timedelta(hours=12), range(0, 37, 3), SMALL, offset=0.5)
    ingest([files], place)
    check(place, DAY, 1, "weather", WEATHER, weather_of(12, offset=0.5))
    assert Archive(place).ahead.run(DAY, "weather").reference == datetime(2020, 2, 27, 12)
    (files / "noon.grib2").unlink()
    report = ingest([files], place)
    assert report.ahead.kept == {
        (DAY, "weather"): "ifs of 2020-02-27 12 UTC stays: ifs of 2020-02-27 00 UTC is no better"
    }


def test_the_run_of_the_next_morning_serves_if_asked(here, place, files):
    """Lead 1 is its first day. Without the option it serves its own day only."""
    morning = START + timedelta(days=1)
    write_run(files / "evening.grib2", START, range(0, 49, 3), SMALL)
    write_run(files / "morning.grib2", morning, range(0, 49, 3), SMALL, offset=0.5)
    ingest([files], place)
    made = Archive(place)
    assert made.ahead.run(DAY, "weather").reference == START
    assert made.ahead.run(morning.date(), "weather").reference == morning
    report = ingest([files], place, ahead=AheadOptions(next_morning=True))
    assert report.ahead.stored == {
        (DAY - timedelta(days=1), "weather"): "ifs of 2020-02-27 00 UTC, leads 1, 2",
        (DAY, "weather"): "ifs of 2020-02-28 00 UTC, leads 1, 2",
    }
    check(place, DAY, 1, "weather", WEATHER, weather_of(0, offset=0.5))
    check(place, DAY, 2, "weather", WEATHER, weather_of(24, offset=0.5))
    run = Archive(place).ahead.run(DAY, "weather")
    old = Archive(place, run.replaces)
    assert old.ahead.run(DAY, "weather").reference == START
    assert Archive(place).ahead.run(morning.date(), "weather").reference == morning


def test_forecasts_of_chosen_start_days_and_leads(here, place, files):
    for number in range(2):
        write_run(files / f"{number}.grib2", START + timedelta(days=number), THREE_DAYS, SMALL)
    report = ingest([files], place, days=DayRange(DAY, DAY), ahead=AheadOptions(leads=1))
    assert report.refused_days == {}
    assert report.ahead.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1"}


def test_a_run_that_ends_with_its_start_day_is_told(here, place, files):
    """As files for today alone, in the place of ERA5."""
    write_run(files / "a.grib2", START, range(0, 25, 3), SMALL)
    report = ingest([files], place)
    assert report.ahead.stored == report.ahead.refused == {}
    assert report.ahead.notes == ["weather by ifs of 2020-02-27 00 UTC reaches 24 hours: no day ahead"]


# What a forecast is not


def test_later_days_of_a_run_are_never_taken_for_analyses(here, files):
    """The run of a day stands in for that day; the next day is refused, whatever the run says of it."""
    path = write_run(files / "a.grib2", START, THREE_DAYS, SMALL)
    (seen,) = sandbox.look([path])
    assert (seen.provider, seen.first, seen.last) == ("ifs", DAY, DAY)
    read = PROVIDERS["era5"].open([Piece(path)], ReadQuery([DAY], SMALL, WEATHER))
    own = read(DAY)
    assert own.notes == ("weather: ECMWF's forecast instead of ERA5",)
    for name in WEATHER:
        assert np.allclose(own.fields[name], day_of_run(name, 0, 3, SMALL), rtol=1e-4), name
    with pytest.raises(CranpmError, match="u10 for 2020-02-28 in the files of era5; found none"):
        read(DAY + timedelta(days=1))


def test_rain_of_a_day_is_its_own_runs_also_beside_the_next_run(here, files):
    """Midnight is step 24 of one run and step 0 of the next: sums of two runs are never subtracted."""
    given = [
        Piece(write_run(files / f"{n}.grib2", START + timedelta(days=n), range(0, 25, 3), SMALL)) for n in range(2)
    ]
    reading = PROVIDERS["era5"].open(given, ReadQuery([DAY], SMALL, ["tp"]))(DAY)
    assert np.allclose(reading.fields["tp"], 1e-6 * 24**2, rtol=1e-4)


def test_rain_that_falls_back_is_refused(here, place, files):
    write_run(files / "a.grib2", START, range(0, 49, 3), SMALL, leave_out={("tp", 48)})
    less = write_run(files / "b.grib2", START, [48], SMALL, leave_out={(n, 48) for n in WEATHER if n != "tp"})
    with less.open("rb") as file:
        handle = eccodes.codes_grib_new_from_file(file)
    eccodes.codes_set_values(handle, np.zeros(eccodes.codes_get_size(handle, "values")))
    less.write_bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    report = ingest([files], place)
    assert "sums of tp that only grow on 2020-02-28" in report.ahead.refused[DAY, "weather"]
    assert "one that falls by 0.000576 m" in report.ahead.refused[DAY, "weather"]


# What is missing


def test_leads_are_stored_up_to_the_last_whole_one(here, place, files):
    write_run(files / "a.grib2", START, THREE_DAYS, SMALL, leave_out={("q850", 51)})
    report = ingest([files], place)
    assert report.ahead.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1"}
    assert "lead 2: expected q at level 850 on 2020-02-29 03:00:00" in report.ahead.partial[DAY, "weather"]


@pytest.mark.parametrize(
    ("gone", "reason"),
    [
        (
            {("sp", step) for step in range(0, 49, 3)},
            "lead 1: expected sp for 2020-02-28 in the run of 2020-02-27 00 UTC",
        ),
        ({("tp", 24)}, "expected tp at 00 UTC of 2020-02-28 and 00 UTC of 2020-02-29, summed since the run began"),
        ({("t2m", 30)}, "8 times of t2m for 2020-02-28; found 7"),
        ({("z500", 30)}, "lead 1: expected gh at level 500 on 2020-02-28 06:00:00"),
    ],
)
def test_a_group_is_stored_whole_or_not_at_all(here, place, files, gone, reason, monkeypatch, capsys):
    write_run(files / "a.grib2", START, range(0, 49, 3), SMALL, leave_out=gone)
    assert run_cli(monkeypatch, "ingest", str(files), "--archive", place, "--jobs", "1", "-q") == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "refused forecast: 2020-02-27 weather: ifs of 2020-02-27 00 UTC" in printed
    assert reason in printed
    assert "0 forecasts of days ahead stored, 0 unchanged, 1 refused" in printed
    assert Archive(place).ahead.run(DAY, "weather") is None


def test_an_incomplete_run_leaves_its_place_to_the_one_before(here, place, files):
    write_run(files / "night.grib2", START, range(0, 49, 3), SMALL)
    write_run(files / "noon.grib2", START + timedelta(hours=12), range(0, 34, 3), SMALL)
    report = ingest([files], place)
    assert report.ahead.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1"}
    assert report.ahead.partial[DAY, "weather"].startswith("ifs of 2020-02-27 12 UTC: lead 1: expected tp at")
    again = ingest([files], place)
    assert again.ahead.unchanged == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC"}
    assert "12 UTC: lead 1" in again.ahead.partial[DAY, "weather"]


# Which model


def test_the_preference_is_what_providers_declare():
    assert [provider.name for provider in forecasters("weather")] == ["hres", "ifs", "aifs", "cams-global"]
    assert [provider.name for provider in forecasters("composition")] == ["cams-europe", "cams-global"]
    assert {PROVIDERS[name].model for name in ("hres", "ifs")} == {"ifs"}
    assert PROVIDERS["aifs"].model == "aifs"


def test_the_preferred_model_replaces_the_other_and_is_not_replaced_by_it(here, place, files):
    """AIFS alone is stored under its own name, every six hours; then IFS; then AIFS of a later run stays outside."""
    write_run(files / "second.grib2", START, range(0, 49, 6), SMALL, kind="ai", offset=0.5)
    ingest([files], place)
    assert Archive(place).ahead.run(DAY, "weather").model == "aifs"
    check(place, DAY, 1, "weather", WEATHER, weather_of(24, 6, 0.5))
    write_run(files / "first.grib2", START, range(0, 49, 3), SMALL)
    report = ingest([files], place)
    assert report.ahead.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1"}
    (files / "first.grib2").unlink()
    write_run(files / "second.grib2", START + timedelta(hours=12), range(0, 37, 6), SMALL, kind="ai")
    assert "aifs of 2020-02-27 12 UTC is no better" in ingest([files], place).ahead.kept[DAY, "weather"]
    check(place, DAY, 1, "weather", WEATHER, weather_of(24))


def test_a_file_of_two_models_is_refused(here, files):
    one = write_run(files / "a.grib2", START, [0], SMALL)
    with one.open("ab") as file:
        file.write(write_run(files / "b.grib2", START, [0], SMALL, kind="ai").read_bytes())
    ((_, reason),) = sandbox.look([one])
    assert "runs of one model" in reason
    assert "found aifs and ifs" in reason


def test_the_european_ensemble_gives_three_days_and_its_analysis_the_day(here, place, files):
    """0 to 96 hours from 00 UTC: three whole days ahead. The analysis beside it is no forecast."""
    write_europe(files / "forecast.nc", DAY, range(97), SMALL)
    write_europe(files / "analysis.nc", DAY, range(24), SMALL, "ANALYSIS", offset=0.3)
    seen = {one.piece.name: one for one in sandbox.look(sorted(files.iterdir()))}
    assert {name: one.provider for name, one in seen.items()} == {"analysis.nc": "cams", "forecast.nc": "cams-europe"}
    report = ingest([files], place)
    assert report.ahead.stored == {(DAY, "composition"): "cams-europe of 2020-02-27 00 UTC, leads 1, 2, 3"}
    for lead in (1, 2, 3):
        check(place, DAY, lead, "composition", COMPOSITION, weather_of(24 * lead, 1), tolerance=2e-3)
    read = PROVIDERS["cams"].open([one.piece for one in seen.values()], ReadQuery([DAY], SMALL, COMPOSITION))
    assert read(DAY).notes == ()
    assert np.allclose(read(DAY).fields["cams_o3"], day_of_run("cams_o3", 0, 1, SMALL, 0.3), rtol=1e-3)
    alone = PROVIDERS["cams"].open([Piece(files / "forecast.nc")], ReadQuery([DAY], SMALL, COMPOSITION))
    assert alone(DAY).notes == ("composition: a forecast (cams-europe) instead of an analysis",)
    with pytest.raises(CranpmError, match="cams_pm25 for 2020-02-28 in the files of cams; found none"):
        alone(DAY + timedelta(days=1))


def test_the_global_forecast_gives_both_groups_where_others_are_absent(here, place, files):
    """Runs of two start days in one ZIP; gases by the density of dry air, 288.15 K and the pressure of the hour."""
    write_global(files / "global.zip", START, range(0, 73, 3), SMALL, runs=2)
    report = ingest([files], place)
    assert report.refused_files == report.ahead.refused == {}
    assert set(report.ahead.stored) == {
        (DAY + timedelta(days=n), g) for n in (0, 1) for g in ("weather", "composition")
    }
    check(place, DAY, 2, "weather", WEATHER, weather_of(48))
    pressure = day_of_run("sp", 48, 3, SMALL)

    def wanted(name):
        ratio = {"cams_no2": 1e-8, "cams_o3": 8e-8, "cams_co": 20e-8}.get(name)
        return day_of_run(name, 48, 3, SMALL) if ratio is None else 1e9 * ratio * pressure / (287.05 * 288.15)

    check(place, DAY, 2, "composition", COMPOSITION, wanted, tolerance=1e-3)
    write_europe(files / "europe.nc", DAY, range(97), SMALL)
    write_run(files / "ifs.grib2", START, range(0, 49, 3), SMALL)
    ingest([files], place)
    ahead = Archive(place).ahead
    models = {(day.day, group): ahead.run(day, group).model for day in ahead.days("weather") for group in GROUPS}
    assert models == {
        (27, "weather"): "ifs",
        (27, "composition"): "cams-europe",
        (28, "weather"): "cams-global",
        (28, "composition"): "cams-global",
    }


# HRES


def globe(folder):
    """WeatherBench 2's HRES on a small globe: latitudes rise, starts at 00 and 12 UTC, steps of six hours."""
    lat, lon = np.arange(42.0, 49.1, 0.25), np.arange(5.0, 14.1, 0.25)
    levels = np.array([300, 500, 600, 700, 850, 925, 1000])
    group = zarr.create_group(folder)
    hours = np.arange(0, 79, 6)
    axes = {"latitude": lat, "longitude": lon, "level": levels, "time": np.array([0, 12, 24])}
    for name, values in {**axes, "prediction_timedelta": hours}.items():
        group.create_array(name, data=values)
    group["time"].attrs["units"] = f"hours since {DAY}"
    group["prediction_timedelta"].attrs["units"] = "hours"
    starts = np.array([0.0, 0.25, 0.5])[:, None]
    names = {
        "10m_u_component_of_wind": ("u10", "m s**-1"),
        "10m_v_component_of_wind": ("v10", "m s**-1"),
        "2m_temperature": ("t2m", "K"),
        "surface_pressure": ("sp", "Pa"),
    }
    place = (lat[:, None], lon[None, :])
    at, off = hours[None, :, None, None], starts[..., None, None]
    for name, (channel, unit) in names.items():
        group.create_array(name, data=value(channel, at, *place, off)).attrs["units"] = unit
    fell = np.diff(np.array([0, *map(rain, hours)]))[None, :, None, None] + np.zeros((3, 1, len(lat), len(lon)))
    group.create_array("total_precipitation_6hr", data=fell).attrs["units"] = "m"
    aloft = {
        "u_component_of_wind": ("u", "m s**-1"),
        "v_component_of_wind": ("v", "m s**-1"),
        "temperature": ("t", "K"),
        "geopotential": ("z", "m**2 s**-2"),
        "specific_humidity": ("q", "kg kg**-1"),
    }
    for name, (letter, unit) in aloft.items():
        known = {level: f"{letter}{level}" for level in (500, 700, 850, 925, 1000)}
        fields = [value(known.get(level, f"{letter}500"), at, *place, off) for level in levels]
        group.create_array(name, data=np.stack(fields, axis=2)).attrs["units"] = unit
    return group


def test_hres_is_copied_and_stored_as_the_model_that_it_is(here, place, files, tmp_path, monkeypatch):
    hres, group = PROVIDERS["hres"], globe(tmp_path / "globe.zarr")
    group.attrs["institution"] = "made by cranpm from simulated days, not by a provider"
    monkeypatch.setattr(type(hres), "group", lambda self: group)
    (request,) = hres.requests(FetchQuery([DAY], SMALL, leads=2))
    assert request.ask["zarr"] == "gs://weatherbench2/datasets/hres/2016-2022-0012-1440x721.zarr"
    (path,) = hres.fetch(request, files / request.name, 0)
    (seen,) = sandbox.look([path])
    assert isinstance(seen, FileSummary)
    assert (seen.provider, [span.hours for span in seen.runs]) == ("hres", [72])
    report = ingest([files], place)
    assert report.ahead.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1, 2"}
    for lead in (1, 2):
        check(place, DAY, lead, "weather", WEATHER, weather_of(24 * lead, 6))
    run = Archive(place).ahead.run(DAY, "weather")
    assert (run.model, run.provenance["provider"]) == ("ifs", "hres")
    assert "hres via weatherbench2, copied by cranpm" in run.provenance["notes"]


def test_what_hres_does_not_have_is_refused(tmp_path):
    hres, group = PROVIDERS["hres"], globe(tmp_path / "globe.zarr")
    with pytest.raises(CranpmError, match="the run of 2019-01-01 00 UTC in hres; found runs from 2020-02-27"):
        hres.copy(group, date(2019, 1, 1), [0], SMALL, tmp_path / "a.nc")
    with pytest.raises(CranpmError, match="84 hours after the start in hres; found periods up to 78 hours"):
        hres.copy(group, DAY, [0, 84], SMALL, tmp_path / "a.nc")
    del group["surface_pressure"]
    with pytest.raises(CranpmError, match="surface_pressure in hres; found no such array"):
        hres.copy(group, DAY, [0], SMALL, tmp_path / "a.nc")
    (request,) = hres.requests(FetchQuery([DAY], SMALL))
    assert request.ask["hours"] == list(range(0, 145, 6))


def test_one_commit_holds_both_groups(here, place, files):
    write_run(files / "ifs.grib2", START, range(0, 49, 3), SMALL)
    write_europe(files / "europe.nc", DAY, range(49), SMALL)
    before = repository.versions(place)
    ingest([files], place)
    assert repository.versions(place) == before + 1
