"""ECMWF's open data from mirrors that are down, have not got the run yet, or break off; then what arrived is read."""

import json
import shutil
from datetime import date, datetime

import numpy as np
import pytest
from ecmwf_server import nowhere, serve
from forecast_files import day_of_run, run_messages, write_mirror
from sample_days import SMALL

from cranpm.core.errors import CranpmError
from cranpm.core.files import locked
from cranpm.providers import PROVIDERS, open_data
from cranpm.providers.download import source_note
from cranpm.providers.fetch import fetch, plan
from cranpm.providers.gridded import variables
from cranpm.providers.open_data import _joined
from cranpm.providers.provider import FetchQuery, ReadQuery
from cranpm.providers.readers.files import Piece

DAY, START = date(2025, 11, 3), datetime(2025, 11, 3)
IFS = "20251103/00z/ifs/0p25/oper/20251103000000-{step}h-oper-fc"
AIFS = "20251103/00z/aifs-single/0p25/oper/20251103000000-{step}h-oper-fc"
WAIT = 1e-4


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    """Three steps of IFS."""
    folder = tmp_path_factory.mktemp("mirror")
    write_mirror(folder, IFS, START, (0, 3, 6), SMALL)
    return folder


@pytest.fixture(scope="module")
def wanted():
    """The bytes of the fields that are needed, in the order in which they lie in the files."""
    return b"".join(data for _, _, data in run_messages(START, (0, 3, 6), SMALL))


def request(mirrors, provider="ifs", steps=3, **changes):
    (found,) = plan(provider, FetchQuery([DAY], SMALL))
    ask = {**found.ask, "mirrors": list(mirrors), "files": found.ask["files"][:steps], **changes}
    return type(found)(found.provider, found.name, ask, found.gigabytes)


def test_all_steps_of_all_leads_are_asked_for():
    (found,) = plan("ifs", FetchQuery([DAY], SMALL))
    assert [found.ask["files"][0], found.ask["files"][-1]] == [IFS.format(step=0), IFS.format(step=144)]
    assert len(found.ask["files"]) == 49
    assert found.ask["mirrors"][0] == "https://data.ecmwf.int/forecasts"
    assert len(found.ask["mirrors"]) == 3
    assert found.ask["surface"] == ["10u", "10v", "2t", "sp", "tp"]
    (short,) = plan("ifs", FetchQuery([DAY], SMALL, leads=1))
    assert len(short.ask["files"]) == 17
    with pytest.raises(CranpmError, match=r"channels that ifs gives; found blh, which is given by cams-global"):
        plan("ifs", FetchQuery([DAY], SMALL, channels=["blh"]))
    (other,) = plan("aifs", FetchQuery([DAY], SMALL, leads=2))
    assert [place.split("-")[2] for place in other.ask["files"]][:2] == ["0h", "6h"]
    assert other.ask["files"] == [AIFS.format(step=step) for step in range(0, 73, 6)]
    assert "/0p4-beta/oper/" in plan("ifs", FetchQuery([date(2023, 6, 1)], SMALL))[0].ask["files"][0]
    assert "/00z/0p25/oper/" in plan("ifs", FetchQuery([date(2024, 2, 10)], SMALL))[0].ask["files"][0]


def test_only_what_is_needed_comes_in_few_questions(mirror, wanted, tmp_path):
    with serve(mirror) as url:
        (path,) = fetch([request([url])], tmp_path, WAIT)
        asked = url.asked
    assert path.read_bytes() == wanted
    ranges = [where for place, where in asked if place.endswith(".grib2")]
    assert len(ranges) < 3 * 30  # fields that touch come together
    assert all(where for where in ranges)
    assert sorted(one.name for one in tmp_path.iterdir()) == [f".{path.name}.source", path.name]


def test_two_fetches_of_one_file_do_not_mix(mirror, tmp_path):
    with serve(mirror) as url:
        asked = request([url])
        with locked(tmp_path / (asked.name + open_data.PART)), pytest.raises(CranpmError, match="no other command"):
            fetch([asked], tmp_path, WAIT)
        (path,) = fetch([asked], tmp_path, WAIT)
    assert path.is_file()


@pytest.mark.parametrize("fault", ["403", "404", "503", "cut"])
def test_the_next_mirror_serves_and_is_recorded(mirror, wanted, tmp_path, fault):
    with serve(mirror, [fault] * 1000) as broken, serve(mirror) as good:
        (path,) = fetch([request([nowhere(), broken, good])], tmp_path, WAIT)
    assert path.read_bytes() == wanted
    assert json.loads(source_note(path).read_text()) == {"mirrors": [good]}
    assert len(broken.asked) <= open_data.TRIES  # it is not asked again for the steps that follow


def test_a_hiccup_is_no_reason_to_change_the_mirror(mirror, wanted, tmp_path):
    with serve(mirror, ["503", "cut", "", "cut"]) as first, serve(mirror) as second:
        (path,) = fetch([request([first, second])], tmp_path, WAIT)
    assert path.read_bytes() == wanted
    assert second.asked == []


def test_a_stopped_fetch_goes_on_with_the_step_that_it_was_at(mirror, wanted, tmp_path):
    one = request([], steps=3)
    target = tmp_path / one.name
    with serve(mirror) as url:
        fetch([request([url], steps=1)], tmp_path / "count", WAIT)
        questions = len(url.asked)
    one_step = [""] * (questions + 2)
    refused = pytest.raises(CranpmError, match="3h-oper-fc on one of 1 mirrors")
    with serve(mirror, one_step + ["404"] * 1000) as url, refused:
        fetch([request([url])], tmp_path, WAIT)
    assert not target.exists()
    part = tmp_path / f"{one.name}.part"
    assert 0 < part.stat().st_size < len(wanted)
    with part.open("ab") as file:
        file.write(b"half a step")
    with serve(mirror) as url:
        fetch([request([url])], tmp_path, WAIT)
        assert not [place for place, _ in url.asked if "-0h-" in place]
    assert target.read_bytes() == wanted
    assert not part.exists()


def test_what_was_left_of_another_request_is_dropped(mirror, wanted, tmp_path):
    with serve(mirror, [""] * 10 + ["404"] * 1000) as url, pytest.raises(CranpmError):
        fetch([request([url], levels=[500])], tmp_path, WAIT)
    with serve(mirror) as url:
        (path,) = fetch([request([url])], tmp_path, WAIT)
    assert path.read_bytes() == wanted


def test_a_run_that_is_not_there_yet_names_every_mirror(tmp_path):
    with serve(tmp_path) as one:
        dead = nowhere()
        with pytest.raises(CranpmError, match="on one of 2 mirrors") as e:
            fetch([request([dead, one])], tmp_path / "to", WAIT)
    assert dead in e.value.found
    assert f"{one}: 404" in e.value.found
    assert "about seven hours after it began" in e.value.remedy


def test_an_index_that_lacks_fields_is_refused_by_name(mirror, tmp_path):
    with serve(mirror) as url:
        with pytest.raises(CranpmError, match=r"no blh in .*-0h-oper-fc\.index") as e:
            fetch([request([nowhere(), url], surface=["10u", "blh"])], tmp_path, WAIT)
        assert e.value.remedy == "The run is there without blh: fetch another day or another provider."
        with pytest.raises(CranpmError, match=r"no t at 300 hPa, gh at 300 hPa|no gh at 300 hPa"):
            fetch([request([url], aloft=["t", "gh"], levels=[300])], tmp_path, WAIT)


def test_aifs_has_the_geopotential_and_arrives_whole(tmp_path):
    """Its index has `z`, not `gh`; what arrives is read, rain in kg m-2 as metres."""
    write_mirror(tmp_path / "mirror", AIFS, START, range(0, 25, 6), SMALL, kind="ai")
    with serve(tmp_path / "mirror") as url:
        (path,) = fetch([request([url], "aifs", 5)], tmp_path, WAIT)
    names = ["tp", "z500", "t2m"]
    reading = PROVIDERS["era5"].open([Piece(path)], ReadQuery([DAY], SMALL, names))(DAY)
    for name in names:
        assert np.allclose(reading.fields[name], day_of_run(name, 0, 6, SMALL), rtol=1e-4), name
    assert {one.unit for one in variables(Piece(path)) if one.quantity.name == "tp"} == {"kg m**-2"}


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("<html>busy</html>", "an index that begins with '<html>busy</html>'"),
        ("[]", r"an index that begins with '\[\]'"),
        ('{"levtype": "sfc"}', "an index that begins with"),
        (None, "no message from byte 5 to byte"),
    ],
)
def test_an_index_that_is_none_or_of_another_file_leaves_it_to_the_next_mirror(mirror, wanted, tmp_path, index, reason):
    bad = tmp_path / "bad"
    shutil.copytree(mirror, bad)
    for path in bad.rglob("*.index"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        moved = "\n".join(json.dumps({**line, "_offset": line["_offset"] + 1}) for line in lines)
        path.write_text(moved if index is None else index)
    with serve(bad) as first, serve(mirror) as second:
        with pytest.raises(CranpmError, match=reason):
            fetch([request([first])], tmp_path / "to", WAIT)
        (path,) = fetch([request([first, second])], tmp_path / "to", WAIT)
    assert path.read_bytes() == wanted


def test_ranges_that_touch_are_one():
    assert list(_joined([(0, 4), (4, 6), (12, 3), (15, 1)])) == [(0, 10), (12, 4)]
    assert list(_joined([])) == []


def test_mirrors_are_hosts_that_the_doctor_asks():
    assert set(PROVIDERS["ifs"].hosts.values()) == set(PROVIDERS["ifs"].mirrors)
