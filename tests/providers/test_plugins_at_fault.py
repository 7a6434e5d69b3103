"""A provider that fails does no harm to the files and days of others."""

import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS, Provider, sandbox
from cranpm.providers.assemble import IngestJob, MadeDay, _at_stations, _gridded
from cranpm.providers.provider import PM25, STATIONS, Reading, ReadQuery
from cranpm.providers.readers.files import Piece
from cranpm.providers.scan import Scan


@pytest.fixture
def add(monkeypatch):
    """Adds a provider for the time of a test; the one that is added last is asked first."""

    def put(provider):
        monkeypatch.setitem(PROVIDERS._things, provider.name, provider)

    return put


def test_a_zip_with_cams_keeps_what_is_no_channel(here, provider_files, tmp_path):
    with zipfile.ZipFile(tmp_path / "week.zip", "w") as week:
        (cams,) = provider_files.glob("cams-eac4*.zip")
        with zipfile.ZipFile(cams) as inner:
            for name in inner.namelist():
                week.writestr(name, inner.read(name))
        for pattern in ("GHAP*", "elevation.tif", "DataExtract.csv"):
            path = sorted(provider_files.glob(pattern))[0]
            week.write(path, path.name)
    seen = {one.piece.member: one.provider for one in sandbox.look([tmp_path / "week.zip"])}
    assert sorted(seen.values()) == ["cams", "cams", "eea", "elevation", "ghap"], seen


class Clumsy(Provider):
    name, title = "clumsy", "Clumsy"

    def recognise(self, piece):
        raise RuntimeError("clumsy")


def test_an_error_of_one_provider_hides_no_file_from_the_others(here, add, provider_files, tmp_path):
    add(Clumsy())
    (tmp_path / "x.txt").write_text("nothing of interest\n")
    known, (_, reason) = sandbox.look([provider_files / "elevation.tif", tmp_path / "x.txt"])
    assert known.provider == "elevation"
    assert reason == "RuntimeError: clumsy"


class Answers(Provider):
    """Gives what a test wants of it."""

    name, title, required = "answers", "Answers", "no"

    def __init__(self, provides, answer=None):
        self.provides, self.answer = provides, answer

    def open(self, pieces, query):
        return lambda day: self.answer


IDS, VALUES = np.array(["A", "B"]), np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({STATIONS: VALUES}, "expected `station_ids` and `stations`; found stations"),
        ({"station_ids": IDS, STATIONS: VALUES[:1]}, "expected one number per station"),
        ({"station_ids": IDS, STATIONS: IDS}, "expected one number per station"),
    ],
)
def test_a_bad_answer_about_stations_is_a_problem_of_that_day(add, archive, fields, reason):
    add(Answers((STATIONS,)))
    made = MadeDay(archive.days[0])
    values, _ = _at_stations(made, {"answers": Reading(fields)}, archive)
    assert np.isnan(values).all()
    (problem,) = made.station_problems
    assert problem.startswith(f"answers on {archive.days[0]}: {reason}")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Reading({PM25: np.array([{}])}), "numbers or text in pm25; found an array of object"),
        (Reading({PM25: VALUES}, facts={"count": VALUES}), "not JSON serializable"),
        (None, "AttributeError"),
    ],
)
def test_an_answer_that_cannot_be_handed_over_refuses_the_day(archive, answer, reason):
    query = ReadQuery(archive.days[:1], archive.domain, ())
    found, arrays = sandbox._days(Answers((PM25,), answer), [], query)
    assert reason in found[str(archive.days[0])]["refused"]
    assert arrays == {}


def test_arrays_that_need_a_pickle_are_no_answer(monkeypatch):
    def answer(line, **_):
        np.savez(Path(line[-1]) / sandbox.ARRAYS, x=np.array([{}]))
        (Path(line[-1]) / sandbox.ANSWER).write_text("{}")
        return subprocess.CompletedProcess(line, 0, "", "")

    monkeypatch.setattr(sandbox.subprocess, "run", answer)
    with pytest.raises(sandbox.CrashError, match="an answer that cannot be read"):
        sandbox._ask({"job": "days"})


def test_a_reader_cannot_fill_the_disk(monkeypatch, provider_files, archive):
    monkeypatch.setattr(sandbox, "FILE_BYTES", 1000)
    ghap = sorted(provider_files.glob("GHAP*"))[0]
    query = ReadQuery(archive.days[:1], archive.domain, ())
    (found,) = sandbox.read_days("ghap", [Piece(ghap)], query).values()
    assert isinstance(found, str)
    assert "File too large" in found


def test_channels_that_are_not_required_degrade_a_day(add, archive):
    """Also without --degrade; but channels that another provider must give are not excused."""
    add(Answers(("blh", "moss")))
    day, domain = archive.days[0], archive.domain
    ghap = Reading({PM25: np.zeros(domain.fine.shape, np.float32)})

    def notes(channel, **readings):
        job = IngestJob(SimpleNamespace(channel_names=(channel,), domain=domain), Scan([], {}), False)
        asked = {"ghap": (PM25,)} | ({"answers": (channel,)} if readings else {})
        return _gridded(day, asked, {"ghap": ghap, **readings}, job)[1]

    assert notes("moss") == [f"answers: no files of answers for {day}"]
    assert notes("blh", answers="damaged") == ["answers: damaged"]
    with pytest.raises(CranpmError, match="expected era5 for"):
        notes("blh")
