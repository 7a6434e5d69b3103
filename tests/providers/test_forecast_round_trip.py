"""Forecasts of an archive, written as the providers send them, fetched, and ingested again: the same forecasts."""

import json

import numpy as np
import pytest
import zarr
from ahead_days import LATER, LEADS, START, days_of
from ecmwf_server import serve

from cranpm.archive.day_data import Quality
from cranpm.archive.store import Archive
from cranpm.core.days import DayRange
from cranpm.providers import PROVIDERS, sandbox
from cranpm.providers.export import write_provider_files
from cranpm.providers.fetch import fetch, plan
from cranpm.providers.ingest import ingest
from cranpm.providers.provider import FetchQuery

PACKING = 1 / 65535
"""Of the range of a field, by which a packed value may be off."""


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Files are opened in this process: quicker, where what is tested is not the process."""

    def ask(job):
        answer, arrays = sandbox._work(json.loads(json.dumps(job)))
        return json.loads(json.dumps(answer)), arrays

    monkeypatch.setattr(sandbox, "_ask", ask)


@pytest.fixture(scope="module")
def analysed(ahead_world, tmp_path_factory):
    """The same days without forecasts."""
    folder = tmp_path_factory.mktemp("analysed")
    assert write_provider_files(ahead_world, ahead_world.days, folder, forecasts=False) == {}
    return folder


def assert_same(made, ahead_world, start, group, leads, share):
    """Forecasts agree to a share of the range of each field, and float32; of rain, a difference of two sums."""
    assert made.ahead.leads(start, group) == leads
    for number, channel in enumerate(ahead_world.ahead.channels(group)):
        wanted = days_of(ahead_world, start, channel)
        rain = channel.quantity == "precipitation"
        span = 2 * np.ptp(wanted.sum(axis=0)) if rain else np.ptp(wanted, axis=(1, 2)).max()
        bound = share * span + 2e-7 * np.abs(wanted).max()
        for lead in leads:
            off = np.abs(made.ahead.fields(start, lead, group)[number] - wanted[lead]).max()
            assert off <= bound, (channel.name, lead)


def test_ifs_fetched_from_a_server(ahead_world, exported, analysed, tmp_path, monkeypatch):
    """Steps of the run by their indices and ranges of bytes, as from ECMWF."""
    with serve(exported / "ifs") as url:
        monkeypatch.setattr(PROVIDERS["ifs"], "mirrors", (url,))
        (path,) = fetch(plan("ifs", FetchQuery([START], ahead_world.domain, leads=5)), tmp_path / "files", wait=0)
    whole = sum(one.stat().st_size for one in (exported / "ifs" / "20240229").rglob("*.grib2"))
    assert path.stat().st_size == whole  # all that is there is wanted
    report = ingest([tmp_path / "files", analysed], str(tmp_path / "a"), ahead_world.domain, DayRange(START, START))
    assert report.refused_files == report.refused_days == report.notes == {}
    made = Archive(str(tmp_path / "a"))
    assert_same(made, ahead_world, START, "weather", (1, 2, 3, 4, 5), PACKING)
    assert made.ahead.run(START, "weather").model == "ifs"
    assert made.quality(START) is Quality.GOOD
    assert made.source == "simulation, written as providers' files"


def test_hres_copied_out_of_the_zarr(ahead_world, exported, analysed, tmp_path, monkeypatch):
    monkeypatch.setattr(type(PROVIDERS["hres"]), "group", lambda _: zarr.open_group(exported / "hres.zarr", mode="r"))
    query = FetchQuery([START], ahead_world.domain, leads=5)
    fetch(plan("hres", query), tmp_path / "files", wait=0)
    ingest([tmp_path / "files", analysed], str(tmp_path / "a"), ahead_world.domain, DayRange(START, START))
    assert_same(Archive(str(tmp_path / "a")), ahead_world, START, "weather", (1, 2, 3, 4, 5), 0)


def test_the_whole_export_gives_days_and_forecasts(ahead_world, exported, tmp_path):
    """Files are read where they lie; the first day's rain is ERA5's, though its midnight is missing."""
    assert write_provider_files(ahead_world, [LATER], tmp_path / "files")["ifs"] == 1
    cams = exported / "cams-europe" / f"cams-europe-forecast_{START}.nc"
    report = ingest([tmp_path / "files", cams], str(tmp_path / "a"), ahead_world.domain)
    assert report.refused_files == report.refused_days == report.notes == {}
    made = Archive(str(tmp_path / "a"))
    assert made.days == [LATER]
    assert made.quality(LATER) is Quality.GOOD
    for one, other in zip(made.coarse(LATER), ahead_world.coarse(LATER), strict=True):
        assert np.allclose(one, other, rtol=1e-6, atol=2e-6 * np.abs(other).max())
    assert_same(made, ahead_world, LATER, "weather", LEADS[LATER], PACKING)
    assert_same(made, ahead_world, LATER, "composition", LEADS[LATER], 0)
    assert_same(made, ahead_world, START, "composition", (1, 2, 3), 0)  # 96 hours are three days ahead
    assert made.ahead.run(LATER, "composition").model == "cams-europe"
