"""Forecasts of the days ahead in the archive: stored by start day, replaced in one commit, never from the future."""

from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import pytest
from sample_days import FIRST, PRODUCER, SMALL, STATIONS, make_day

from cranpm.archive import repository
from cranpm.archive.day_data import Statics
from cranpm.archive.days_ahead import DaysAhead
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive, ArchiveInMemory, describe
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.channels import PAPER_CHANNELS, channels_of
from cranpm.core.errors import CranpmError

MIDNIGHT = datetime(2020, 2, 27)
WEATHER, COMPOSITION = (len(channels_of(PAPER_CHANNELS, group)) for group in ("weather", "composition"))


@pytest.fixture
def path(tmp_path):
    fields = np.ones(SMALL.fine.shape, np.float32)
    create_archive(str(tmp_path / "archive"), SMALL, Statics(fields, fields, fields > 0), STATIONS, PRODUCER)
    return str(tmp_path / "archive")


def run(group="weather", leads=(1, 2), seed=0, model="ifs", reference=MIDNIGHT, day=FIRST):
    fields = {lead: make_day(day + timedelta(days=lead), seed).coarse for lead in leads}
    part = slice(0, WEATHER) if group == "weather" else slice(WEATHER, None)
    return DaysAhead(group, model, reference, {lead: values[part] for lead, values in fields.items()})


def put_ahead(path, *runs, day=FIRST):
    with ArchiveWriter(path) as writer:
        return writer.put_ahead(day, runs)


def test_what_was_stored_is_read_by_start_day_group_and_lead(path):
    weather, composition = run(), run("composition", (1, 2, 12), model="cams-europe")
    with ArchiveWriter(path) as writer:
        writer.put(replace(make_day(FIRST), ahead=[weather, composition]))
    ahead = Archive(path).ahead
    assert ahead.leads(FIRST, "weather") == (1, 2)
    assert ahead.leads(FIRST, "composition") == (1, 2, 12)
    assert ahead.days("weather") == [FIRST]
    for one in (weather, composition):
        for lead in one.leads:
            assert np.array_equal(ahead.fields(FIRST, lead, one.group), one.fields[lead])
    assert str(ahead.run(FIRST, "composition")) == "cams-europe of 2020-02-27 00 UTC"
    assert len(ahead.channels("weather")) == WEATHER == 30
    assert COMPOSITION == 5


def test_a_forecast_is_not_seen_from_any_other_start_day(path):
    put_ahead(path, run())
    ahead = Archive(path).ahead
    for other in (FIRST - timedelta(days=1), FIRST + timedelta(days=1), FIRST + timedelta(days=2)):
        assert ahead.leads(other, "weather") == ()
        assert ahead.run(other, "weather") is None
        with pytest.raises(CranpmError, match=rf"weather 1 days after {other}.*found leads none.*--ahead"):
            ahead.fields(other, 1, "weather")


def test_a_later_run_replaces_all_leads_in_one_commit_and_the_old_one_stays_in_the_history(path):
    old = put_ahead(path, run(leads=(1, 2, 3)))
    before = describe(Archive(path))["versions"]
    newer = run(leads=(1, 2), seed=1, reference=MIDNIGHT + timedelta(hours=12))
    put_ahead(path, newer)
    now = Archive(path)
    assert describe(now)["versions"] == before + 1
    assert now.ahead.leads(FIRST, "weather") == (1, 2)
    assert np.array_equal(now.ahead.fields(FIRST, 1, "weather"), newer.fields[1])
    assert now.ahead.run(FIRST, "weather").replaces == old
    past = Archive(path, now.ahead.run(FIRST, "weather").replaces)
    assert past.ahead.leads(FIRST, "weather") == (1, 2, 3)
    assert str(past.ahead.run(FIRST, "weather")) == "ifs of 2020-02-27 00 UTC"


def test_storing_the_same_again_changes_nothing(path):
    first = put_ahead(path, run())
    assert put_ahead(path, run()) == first
    with ArchiveWriter(path) as writer:
        day = replace(make_day(FIRST), ahead=[run()])
        snapshot = writer.put(day)
        assert snapshot != first
        assert writer.put(day) == snapshot
        assert writer.put(replace(day, ahead=[run(model="aifs")])) != snapshot


@pytest.mark.parametrize("hours", [0, 12, 24])
def test_runs_up_to_the_end_of_the_start_day_are_stored(path, hours):
    put_ahead(path, run(reference=MIDNIGHT + timedelta(hours=hours)))
    Archive(path).ahead.check_references("weather", [FIRST])


def test_a_run_from_after_its_start_day_is_refused_when_stored_and_when_read_for_training(path):
    late = run(reference=MIDNIGHT + timedelta(hours=30))
    words = r"began by 2020-02-28 00 UTC; found ifs of 2020-02-28 06 UTC.*samples.prognosis=perfect"
    with pytest.raises(CranpmError, match=words):
        put_ahead(path, late)
    put_ahead(path, run())
    with repository.commit(path, "tampered", {}) as root:
        index = (FIRST - date(2000, 1, 1)).days
        root["ahead/reference"][index, 0] = root["ahead/reference"][index, 0] + 30
    with pytest.raises(CranpmError, match="began by 2020-02-28 00 UTC"):
        Archive(path).ahead.check_references("weather", [FIRST])
    Archive(path).ahead.check_references("weather", [FIRST + timedelta(days=1)])


def test_gaps_wrong_units_shapes_and_leads_are_refused(path):
    def changed(**changes):
        return replace(run(), **changes)

    values = run().fields[1]
    holed, celsius = values.copy(), values.copy()
    holed[3, 0, 0] = np.nan
    celsius[2] = 12.0
    cases = {
        r"sp in 45000..110000 Pa, in weather 1 days after .*leave out": changed(fields={1: holed}),
        r"t2m in 180..330 K.*found 12..12": changed(fields={1: celsius}),
        r"of shape \(30, 21, 21\).*found \(5,": changed(fields={1: values[:5]}),
        r"leads in days from 1 to 30.*found 0": changed(fields={0: values}),
        r"a group: weather or composition; found ozone": changed(group="ozone"),
    }
    for words, wrong in cases.items():
        with pytest.raises(CranpmError, match=words):
            put_ahead(path, wrong)
    assert not Archive(path).has("ahead")


def test_archives_of_the_first_schema_are_read_and_move_up_with_their_first_forecast(path):
    with repository.commit(path, "as the first version wrote it", {}) as root:
        root.attrs["schema"] = 1
    with ArchiveWriter(path) as writer:
        writer.put(make_day(FIRST))
    old = Archive(path)
    assert describe(old)["schema"] == 1
    assert describe(old)["days_ahead"] == "none"
    assert old.ahead.days("weather") == []
    assert old.ahead.models("weather") == ()
    put_ahead(path, run())
    assert describe(Archive(path))["schema"] == 2
    assert np.array_equal(Archive(path).coarse(FIRST), old.coarse(FIRST))


def test_info_says_groups_days_leads_and_models(path):
    put_ahead(path, run(), run("composition", (1,), model="cams-global"))
    put_ahead(path, run(model="aifs", day=FIRST + timedelta(days=3)), day=FIRST + timedelta(days=3))
    facts = describe(Archive(path))["days_ahead"]
    assert facts["weather"]["models"] == ["ifs", "aifs"]
    assert facts["weather"]["start_days"] == 2
    assert facts["weather"]["newest_run"] == "aifs of 2020-02-27 00 UTC"
    assert facts["composition"]["leads"] == [1]
    assert facts["composition"]["first"] == str(FIRST)


def test_in_memory_forecasts_are_the_same_and_cannot_be_changed(path):
    put_ahead(path, run())
    kept = ArchiveInMemory(path)
    field = kept.ahead.fields(FIRST, 1, "weather")
    assert np.array_equal(field, Archive(path).ahead.fields(FIRST, 1, "weather"))
    assert field is kept.ahead.fields(FIRST, 1, "weather")
    with pytest.raises(ValueError, match="read-only"):
        field[0] = 1


def test_xarray_shows_forecasts_by_start_day_and_lead(path):
    composition = run("composition", (1, 3), model="cams-global")
    put_ahead(path, composition)
    later = FIRST + timedelta(days=4)
    put_ahead(path, run("composition", (1,), day=later, reference=MIDNIGHT + timedelta(days=4)), day=later)
    tree = Archive(path).to_xarray()
    assert "ahead/weather" not in tree.groups
    found = tree["ahead/composition"].to_dataset()
    assert found.lead.values.tolist() == [1, 3]
    assert found.sizes["time"] == 2
    assert found.cams_o3.attrs["units"] == "ug m-3"
    assert np.array_equal(found.cams_pm10.sel(lead=3)[0].compute(), composition.fields[3][1])
    assert found.cams_pm10.sel(lead=3)[1].isnull().all()


def test_two_runs_of_one_group_are_refused_and_fields_are_stored_as_they_are_compared(path):
    with pytest.raises(CranpmError, match=f"one run of weather for {FIRST}; found several"):
        put_ahead(path, run(), run(seed=1))
    precise = replace(run(), fields={1: run().fields[1].astype(np.float64) + 1e-9})
    first = put_ahead(path, precise)
    assert put_ahead(path, precise) == first
