"""Forecasts of several models: which one serves, and how each of their files is read."""

import zipfile
from datetime import date, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from ahead_cases import check, weather_of
from forecast_files import COMPOSITION, WEATHER, day_of_run, rain, value, write_europe, write_global, write_run
from sample_days import SMALL

from cranpm.archive import repository
from cranpm.archive.store import Archive
from cranpm.core.channels import GROUPS
from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS, sandbox
from cranpm.providers.gridded import _whole_first
from cranpm.providers.ingest import ingest
from cranpm.providers.provider import FetchQuery, FileSummary, ReadQuery, forecasters
from cranpm.providers.readers.files import Piece

DAY = date(2020, 2, 27)
START = datetime(2020, 2, 27)
THREE_DAYS = range(0, 73, 3)


# Which model


def test_the_preference_is_what_providers_declare():
    assert [provider.name for provider in forecasters("weather")] == ["hres", "ifs", "aifs", "cams-global"]
    assert [provider.name for provider in forecasters("composition")] == ["cams-europe", "cams-global"]
    assert {PROVIDERS[name].model for name in ("hres", "ifs")} == {"ifs"}
    assert PROVIDERS["aifs"].model == "aifs"


def test_the_preferred_model_replaces_the_other_and_is_not_replaced_by_it(in_process, place, files):
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


def test_a_file_of_two_models_is_refused(in_process, files):
    one = write_run(files / "a.grib2", START, [0], SMALL)
    with one.open("ab") as file:
        file.write(write_run(files / "b.grib2", START, [0], SMALL, kind="ai").read_bytes())
    ((_, reason),) = sandbox.look([one])
    assert "runs of one model" in reason
    assert "found aifs and ifs" in reason


def test_the_european_ensemble_gives_three_days_and_its_analysis_the_day(in_process, place, files):
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


def test_two_analyses_of_a_day_are_not_mixed(in_process, files):
    """EAC4's grid comes first where it has the whole day; the facts say which it was."""
    write_europe(files / "europe.nc", DAY, range(24), SMALL, "ANALYSIS", offset=0.3)
    write_europe(files / "eac4.nc", DAY, range(0, 24, 3), SMALL, "ANALYSIS", step=0.75)
    for names, grid, every, offset in ((("europe", "eac4"), "0.75", 3, 0.0), (("europe",), "0.1", 1, 0.3)):
        given = [Piece(files / f"{name}.nc") for name in names]
        reading = PROVIDERS["cams"].open(given, ReadQuery([DAY], SMALL, COMPOSITION))(DAY)
        assert reading.facts["grids"] == [f"{grid} degrees"]
        wanted = day_of_run("cams_o3", 0, every, SMALL, offset)
        assert np.allclose(reading.fields["cams_o3"], wanted, rtol=5e-3)


def test_a_forecast_beside_an_analysis_in_a_zip_stays_a_forecast(in_process, files):
    write_europe(files / "f.nc", DAY, range(97), SMALL)
    write_europe(files / "a.nc", DAY, range(24), SMALL, "ANALYSIS")
    with zipfile.ZipFile(files / "both.zip", "w") as archive:
        for name in ("f.nc", "a.nc"):
            archive.write(files / name, name)
    seen = {one.piece.member: one.provider for one in sandbox.look([files / "both.zip"])}
    assert seen == {"f.nc": "cams-europe", "a.nc": "cams"}


def test_the_global_forecast_gives_both_groups_where_others_are_absent(in_process, place, files):
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


def test_a_run_that_is_whole_serves_before_one_that_lacks_an_hour():
    """So that no day has u of one model and v of another; analyses come first all the same."""
    parts = [SimpleNamespace(model=model) for model in ("", "ifs", "aifs")]

    def find(part, channel):
        return SimpleNamespace(is_whole=lambda _: (part.model, channel) not in {("ifs", "u10"), ("", "v10")})

    query = ReadQuery([DAY], SMALL, ["u10", "v10"])
    assert [part.model for part in _whole_first(parts, find, DAY, query)] == ["", "aifs", "ifs"]
    assert [part.model for part in _whole_first(parts, lambda *_: None, DAY, query)] == ["", "ifs", "aifs"]


def test_leads_that_a_preferred_model_lacks_are_told(in_process, place, files):
    write_run(files / "second.grib2", START, range(0, 73, 6), SMALL, kind="ai", offset=0.5)
    ingest([files], place)
    (files / "second.grib2").unlink()
    write_run(files / "first.grib2", START, range(0, 49, 3), SMALL)
    report = ingest([files], place).ahead
    assert report.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1"}
    assert report.partial == {(DAY, "weather"): "leads 2 of aifs of 2020-02-27 00 UTC are replaced by nothing"}


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
    group.create_array("total_precipitation_6hr", data=fell)  # without a unit, as in the store itself
    height = 500 + 100 * np.cos(at + off + place[0] + place[1])
    group.create_array("boundary_layer_height", data=height).attrs["units"] = "m"
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


def test_hres_is_copied_and_stored_as_the_model_that_it_is(in_process, place, files, tmp_path, monkeypatch):
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


def test_one_commit_holds_both_groups(in_process, place, files):
    write_run(files / "ifs.grib2", START, range(0, 49, 3), SMALL)
    write_europe(files / "europe.nc", DAY, range(49), SMALL)
    before = repository.versions(place)
    ingest([files], place)
    assert repository.versions(place) == before + 1
