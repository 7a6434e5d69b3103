"""Days that a provider cannot have are refused before anything is asked, and the source that has them is named."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from command import run_cli

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain
from cranpm.providers import PROVIDERS
from cranpm.providers.availability import Availability
from cranpm.providers.fetch import doubts, plan
from cranpm.providers.provider import FetchQuery

EUROPE = Domain("europe", 72, -25, 30, 45)
TODAY = date(2026, 11, 18)


def query(*days, today=TODAY):
    return FetchQuery(list(days), EUROPE, leads=3, today=today)


IMPOSSIBLE = [
    ("era5", TODAY, "days appear at least 4 days later", "ifs"),
    ("era5", TODAY + timedelta(days=1), "it is in the future", None),
    ("ifs", date(2022, 6, 1), "the first day is 2023-01-18", "hres"),
    ("ifs", date(2015, 6, 1), "the first day is 2023-01-18", "cams-global"),
    ("aifs", date(2024, 6, 1), "the first day is 2025-02-26", "ifs"),
    ("hres", date(2025, 6, 1), "the last day is 2022-12-31", "ifs"),
    ("cams", date(2026, 11, 3), "days appear at least 90 days later", "cams-europe"),
    ("cams-europe", date(2020, 6, 1), "days are kept for about 1095 days", "cams-global"),
    ("cams-global", date(2014, 6, 1), "the first day is 2015-01-01", "cams"),
    ("ghap", date(2024, 6, 1), "the last day is 2022-12-31", None),
]


def test_a_domain_beyond_europe_is_refused_and_never_sent_to_the_european_ensemble():
    china = FetchQuery([date(2026, 11, 3)], Domain("china", 45, 100, 30, 120), today=TODAY)
    with pytest.raises(CranpmError, match=r"within 30\.\.72 N and -25\.\.45 E, which cams-europe covers") as e:
        plan("cams-europe", china)
    assert e.value.found == "30..45 N and 100..120 E"
    assert e.value.remedy == "cranpm fetch cams-global ..."
    with pytest.raises(CranpmError, match=r"days that cams can have.* cranpm fetch cams-global \.\.\.$"):
        plan("cams", china)


def test_only_days_that_can_stand_in_are_named():
    with pytest.raises(CranpmError) as e:
        plan("era5", query(TODAY))
    assert e.value.remedy == "cranpm fetch ifs ... (ifs, aifs have such days)"  # not cams-global: read as CAMS's
    with pytest.raises(CranpmError) as e:
        plan("hres", query(date(2023, 6, 1)))
    assert e.value.remedy.startswith("cranpm fetch cams-global ... (cams-global, ifs, ")  # no doubt of its days
    with pytest.raises(CranpmError) as e:
        plan("cams-europe", query(date(2015, 6, 1)))
    assert e.value.remedy == "cranpm fetch cams-global ... (cams-global, cams have such days)"


LONGER = [("ifs", "_144h"), ("aifs", "_144h"), ("cams-europe", "_96h"), ("cams-global", "_120h")]


@pytest.mark.parametrize(("name", "reach"), LONGER)
def test_names_of_files_say_how_far_a_forecast_reaches(name, reach):
    short, long = (plan(name, FetchQuery([TODAY], EUROPE, leads=leads, today=TODAY))[0].name for leads in (1, 5))
    assert Path(long).stem.endswith(f"{TODAY}{reach}")
    assert Path(short).stem.endswith(f"{TODAY}_48h")


def test_names_of_files_say_how_far_old_forecasts_reach_and_what_is_beside():
    assert plan("hres", FetchQuery([date(2020, 1, 1)], EUROPE))[0].name == "hres_72_-25_30_45_2020-01-01_144h.nc"
    (more,) = plan("cams-global", FetchQuery([TODAY], EUROPE, channels=["blh"]))
    assert more.name == f"cams-global_72_-25_30_45_{TODAY}_120h_blh.zip"


@pytest.mark.parametrize(("name", "day", "reason", "instead"), IMPOSSIBLE)
def test_impossible_days_are_refused_and_the_source_that_has_them_is_named(name, day, reason, instead):
    with pytest.raises(CranpmError) as e:
        plan(name, query(day))
    assert e.value.expected == f"days that {name} can have"
    assert e.value.found == f"{day}, but {reason}"
    assert e.value.remedy.startswith(f"cranpm fetch {instead} " if instead else "Choose other days")


DOUBTFUL = [
    ("era5", TODAY - timedelta(days=5), "days usually appear about 6 days later"),
    ("cams", date(2026, 1, 1), "days usually appear about 540 days later"),
    ("cams-europe", date(2023, 10, 1), "days are kept for about 1095 days"),
    ("ifs", date(2023, 6, 1), "days before 2024-02-29 may be laid out in another way"),
]


@pytest.mark.parametrize(("name", "day", "reason"), DOUBTFUL)
def test_uncertain_days_are_planned_with_a_warning(name, day, reason):
    assert plan(name, query(day))
    assert doubts(name, query(day)) == [f"{day} may not be there: of {name}, {reason}"]


def test_certain_days_give_no_warning():
    for name, day in (("era5", date(2022, 1, 1)), ("ifs", TODAY), ("hres", date(2018, 5, 5)), ("cams-europe", TODAY)):
        assert plan(name, query(day))
        assert doubts(name, query(day)) == []
    assert plan("ifs", query(date(2022, 1, 1), today=None))  # who does not say which day it is, is not asked
    assert doubts("ifs", query(date(2023, 6, 1), today=None)) == []


@pytest.mark.parametrize(
    ("name", "leads", "warning"),
    [
        ("cams-europe", 5, "runs of cams-europe give 3 days ahead, not 5; others give more: cams-global 4"),
        ("cams-global", 5, "runs of cams-global give 4 days ahead, not 5; others give more: ifs 5, aifs 14"),
        ("ifs", 10, "runs of ifs give 5 days ahead, not 10; others give more: aifs 14"),
        ("aifs", 20, "runs of aifs give 14 days ahead, not 20"),
    ],
)
def test_leads_that_a_provider_cannot_have_are_told_with_who_has_more(name, leads, warning):
    assert doubts(name, FetchQuery([TODAY], EUROPE, leads=leads, today=TODAY)) == [warning]
    assert doubts(name, FetchQuery([TODAY], EUROPE, leads=3, today=TODAY)) == []


def test_who_is_named_for_a_channel_can_have_the_days():
    with pytest.raises(CranpmError, match="cranpm fetch cams-global --channel blh"):
        plan("ifs", FetchQuery([TODAY], EUROPE, channels=["blh"], today=TODAY))


def test_several_days_are_named_as_a_range():
    with pytest.raises(CranpmError, match=r"2022-12-30\.\.2022-12-31 \(2 days\), but the first day"):
        plan("ifs", query(date(2022, 12, 30), date(2022, 12, 31), date(2025, 1, 1)))


def test_availability_in_words():
    assert str(Availability()) == "any"
    assert str(PROVIDERS["hres"].has) == "from 2016-01-01, until 2022-12-31"
    assert str(PROVIDERS["era5"].has) == "from 1940-01-01, about 6 days later"
    assert str(PROVIDERS["cams-europe"].has) == "the last 1095 days"


def test_the_command_refuses_warns_and_takes_leads(monkeypatch, capsys, tmp_path):
    line = ["--domain", "alps", "--to", str(tmp_path), "--dry-run"]
    assert run_cli(monkeypatch, "fetch", "ifs", "--days", "2022-06-01", *line) == 1
    assert "cranpm fetch hres" in capsys.readouterr().err
    today = datetime.now(UTC).date()
    assert run_cli(monkeypatch, "fetch", "era5", "--days", str(today), *line) == 1
    assert "cranpm fetch ifs" in capsys.readouterr().err
    assert run_cli(monkeypatch, "fetch", "ifs", "--days", "2023-06-01", "--leads", "2", *line) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == (
        "warning: 2023-06-01 may not be there: of ifs, days before 2024-02-29 may be laid out in another way"
    )
    assert len(json.loads(printed[1])["files"]) == 25


# Requests to the Atmosphere Data Store


def test_the_global_forecast_is_one_request_for_both_groups():
    new, old = plan("cams-global", FetchQuery([date(2024, 1, 5), date(2018, 1, 5)], EUROPE, channels=["blh"]))
    asked = new.ask["request"]
    assert new.ask["collection"] == "cams-global-atmospheric-composition-forecasts"
    assert asked["area"] == [72.4, -25.6, 29.6, 45.6]
    assert (asked["leadtime_hour"][0], asked["leadtime_hour"][-1], len(asked["leadtime_hour"])) == ("0", "120", 41)
    assert (asked["type"], asked["time"], asked["date"]) == (["forecast"], ["00:00"], ["2024-01-05/2024-01-05"])
    assert asked["pressure_level"] == ["500", "700", "850", "925", "1000"]
    assert (asked["model_level"], old.ask["request"]["model_level"]) == (["137"], ["60"])
    assert {"total_precipitation", "ozone", "geopotential", "boundary_layer_height"} <= set(asked["variable"])
    assert new.licence.startswith("https://ads.atmosphere.copernicus.eu/datasets/cams-global-atmospheric")


def test_the_european_analysis_is_asked_for_days_that_have_ended():
    asked = plan("cams-europe", query(TODAY - timedelta(days=1), TODAY))
    assert [(one.ask["request"]["type"], one.ask["request"]["date"]) for one in asked] == [
        (["forecast"], ["2026-11-17/2026-11-17"]),
        (["forecast"], ["2026-11-18/2026-11-18"]),
        (["analysis"], ["2026-11-17/2026-11-17"]),
    ]
    assert asked[0].ask["request"]["leadtime_hour"] == [str(hour) for hour in range(97)]
    assert len(asked[2].ask["request"]["time"]) == 24
    assert asked[0].ask["request"]["area"] == [72, -25, 30, 45]
    (short, _) = plan("cams-europe", FetchQuery([date(2026, 11, 1)], EUROPE, leads=1))
    assert len(short.ask["request"]["leadtime_hour"]) == 49
