"""Forecasts of the days ahead from files: the right run, the right hours, every channel, and nothing in silence."""

from datetime import date, datetime, timedelta

import numpy as np
import pytest
from ahead_cases import check, weather_of
from command import run_cli
from forecast_files import WEATHER, day_of_run, nodes, write_run
from sample_days import SMALL

from cranpm.archive.store import Archive
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS, sandbox
from cranpm.providers.ahead import AheadOptions
from cranpm.providers.ingest import ingest
from cranpm.providers.netcdf_layout import new_layout, put
from cranpm.providers.provider import ReadQuery
from cranpm.providers.readers import grib
from cranpm.providers.readers.files import Piece
from cranpm.providers.scan import scan

import eccodes  # isort: skip  after PROJ's other users

DAY = date(2020, 2, 27)
START = datetime(2020, 2, 27)
THREE_DAYS = range(0, 73, 3)


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


def test_a_run_in_a_file_for_each_step(in_process, place, files):
    """As a user may download it, with indices beside: rain is taken apart across files."""
    for step in range(0, 49, 3):
        write_run(files / f"20200227000000-{step}h-oper-fc.grib2", START, [step], SMALL)
        (files / f"20200227000000-{step}h-oper-fc.index").write_text("{}\n")
    report = ingest([files], place)
    assert report.refused_files == {}
    check(place, DAY, 1, "weather", WEATHER, weather_of(24))
    assert Archive(place).ahead.leads(DAY, "weather") == (1,)


def test_the_newest_run_of_the_start_day_serves(in_process, place, files):
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


def test_the_run_of_the_next_morning_serves_if_asked(in_process, place, files):
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


def test_forecasts_of_chosen_start_days_and_leads(in_process, place, files):
    for number in range(2):
        write_run(files / f"{number}.grib2", START + timedelta(days=number), THREE_DAYS, SMALL)
    report = ingest([files], place, days=DayRange(DAY, DAY), ahead=AheadOptions(leads=1))
    assert report.refused_days == {}
    assert report.ahead.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1"}


def test_a_run_that_ends_with_its_start_day_is_told(in_process, place, files):
    """As files for today alone, in the place of ERA5."""
    write_run(files / "a.grib2", START, range(0, 25, 3), SMALL)
    report = ingest([files], place)
    assert report.ahead.stored == report.ahead.refused == {}
    assert report.ahead.notes == ["weather by ifs of 2020-02-27 00 UTC reaches 24 hours: no day ahead"]


def test_a_newer_run_that_is_cut_short_does_not_delete_leads(in_process, place, files):
    """Two days ahead of 00 UTC are stored; 12 UTC ends after one."""
    write_run(files / "night.grib2", START, THREE_DAYS, SMALL)
    ingest([files], place)
    write_run(files / "noon.grib2", START + timedelta(hours=12), range(0, 37, 3), SMALL, offset=0.5)
    report = ingest([files], place).ahead
    assert report.stored == {}
    assert "stays with leads 1, 2" in report.kept[DAY, "weather"]
    check(place, DAY, 2, "weather", WEATHER, weather_of(48))


def test_a_step_that_a_run_lacks_is_to_be_fetched(in_process, place, files):
    """No option takes less than whole days of forecasts."""
    write_run(files / "a.grib2", START, [step for step in range(0, 49, 3) if step != 30], SMALL)
    why = ingest([files], place).ahead.refused[DAY, "weather"]
    assert "Fetch all steps of the run." in why
    assert "--degrade" not in why


def test_fewer_leads_of_the_same_run_do_not_delete_more(in_process, place, files):
    write_run(files / "a.grib2", START, THREE_DAYS, SMALL)
    ingest([files], place)
    fewer = ingest([files], place, ahead=AheadOptions(leads=1)).ahead
    assert fewer.kept == {
        (DAY, "weather"): "ifs of 2020-02-27 00 UTC stays with leads 1, 2: these files and --leads give 1"
    }
    write_run(files / "a.grib2", START, THREE_DAYS, SMALL, leave_out={("q850", 51)})
    (files / ".a.grib2.source").write_text("damaged")
    damaged = ingest([files], place).ahead
    assert (damaged.stored, list(damaged.kept)) == ({}, [(DAY, "weather")])
    assert "lead 2: expected q at level 850" in damaged.partial[DAY, "weather"]
    assert Archive(place).ahead.leads(DAY, "weather") == (1, 2)


def test_a_run_of_the_next_day_is_no_file_of_the_day(in_process, files):
    write_run(files / "a.grib2", START, [0, 3], SMALL)
    found = scan([files])
    assert found.touching(PROVIDERS["era5"], [DAY]) == found.files
    assert found.touching(PROVIDERS["era5"], [DAY - timedelta(days=1)]) == []


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"type": "cf", "stream": "enfo"}, r"type cf \(the control forecast of an ensemble\), stream enfo"),
        ({"type": "em", "stream": "enfo"}, r"type em \(the mean of an ensemble\)"),
        ({"type": "an"}, r"type an \(an analysis\), stream oper"),
        ({"stream": "wave"}, "type fc, stream wave"),
    ],
)
def test_only_the_single_forecast_is_read(files, keys, named):
    path = write_run(files / "a.grib2", START, [0], SMALL)
    with path.open("rb") as file:
        handle = eccodes.codes_grib_new_from_file(file)
    for key, setting in keys.items():
        eccodes.codes_set(handle, key, setting)
    path.write_bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    with pytest.raises(CranpmError, match=named):
        grib.variables(path, "a")


# What a forecast is not


def test_later_days_of_a_run_are_never_taken_for_analyses(in_process, files):
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


def test_rain_of_a_day_is_its_own_runs_also_beside_the_next_run(in_process, files):
    """Midnight is step 24 of one run and step 0 of the next: sums of two runs are never subtracted."""
    given = [
        Piece(write_run(files / f"{n}.grib2", START + timedelta(days=n), range(0, 25, 3), SMALL)) for n in range(2)
    ]
    reading = PROVIDERS["era5"].open(given, ReadQuery([DAY], SMALL, ["tp"]))(DAY)
    assert np.allclose(reading.fields["tp"], 1e-6 * 24**2, rtol=1e-4)


def test_a_midnight_of_era5_does_not_hide_the_run_of_the_day(in_process, files):
    """ERA5's last rain ends at the midnight that begins today: today itself is the forecast's."""
    lat, lon = nodes(SMALL)
    with new_layout(files / "midnight.nc", lat, lon, [START]) as file:
        put(file, "tp", "m", np.full((1, len(lat), len(lon)), 0.5), ("valid_time", "latitude", "longitude"))
    given = [Piece(files / "midnight.nc"), Piece(write_run(files / "a.grib2", START, range(0, 25, 3), SMALL))]
    reading = PROVIDERS["era5"].open(given, ReadQuery([DAY], SMALL, ["tp"]))(DAY)
    assert np.allclose(reading.fields["tp"], 1e-6 * 24**2, rtol=1e-4)
    assert reading.facts["models"] == ["ifs"]


def test_rain_that_falls_back_is_refused(in_process, place, files):
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


def test_leads_are_stored_up_to_the_last_whole_one(in_process, place, files):
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
def test_a_group_is_stored_whole_or_not_at_all(in_process, place, files, gone, reason, monkeypatch, capsys):
    write_run(files / "a.grib2", START, range(0, 49, 3), SMALL, leave_out=gone)
    assert run_cli(monkeypatch, "ingest", str(files), "--archive", place, "--jobs", "1", "-q") == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "refused forecast: 2020-02-27 weather: ifs of 2020-02-27 00 UTC" in printed
    assert reason in printed
    assert "0 forecasts of days ahead stored, 0 unchanged, 1 refused" in printed
    assert Archive(place).ahead.run(DAY, "weather") is None


def test_an_incomplete_run_leaves_its_place_to_the_one_before(in_process, place, files):
    write_run(files / "night.grib2", START, range(0, 49, 3), SMALL)
    write_run(files / "noon.grib2", START + timedelta(hours=12), range(0, 34, 3), SMALL)
    report = ingest([files], place)
    assert report.ahead.stored == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC, leads 1"}
    assert report.ahead.partial[DAY, "weather"].startswith("ifs of 2020-02-27 12 UTC: lead 1: expected tp at")
    again = ingest([files], place)
    assert again.ahead.unchanged == {(DAY, "weather"): "ifs of 2020-02-27 00 UTC"}
    assert "12 UTC: lead 1" in again.ahead.partial[DAY, "weather"]
