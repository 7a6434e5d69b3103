import json
from datetime import date, timedelta

import numpy as np
import pytest
from command import run_cli
from sample_days import FIRST, SETTINGS, SMALL

from cranpm.archive.store import Archive
from cranpm.core.channels import CHANNELS, PAPER_CHANNELS, find_channel
from cranpm.core.days import DayRange, needed
from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Domain
from cranpm.simulate.job import SimulationJob, sample, simulate_archive


def days(first, last):
    return DayRange(FIRST + timedelta(days=first), FIRST + timedelta(days=last))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "archive")


def test_extending_an_archive_gives_the_same_days_as_one_run(archive, path):
    """The shared archive was made in one run; this one in three, with a gap filled last."""
    assert simulate_archive(path, SMALL, days(0, 1), SETTINGS) == 2
    assert simulate_archive(path, SMALL, days(4, 4), SETTINGS) == 1
    assert Archive(path).missing == ["2020-02-29..2020-03-01"]
    with pytest.raises(CranpmError, match=r"days without a gap; found none of 2020-02-29\.\.2020-03-01"):
        sample(SimulationJob(domain=SMALL, days=days(0, 4), simulation=SETTINGS), path)
    assert simulate_archive(path, SMALL, days(0, 4), SETTINGS) == 2
    extended = Archive(path)
    assert extended.days == archive.days
    # Filling the gap did not set the saved state back.
    assert extended.restart()[0] == archive.days[-1]
    assert date(2020, 2, 29) in extended.days
    for day in archive.days:
        assert np.array_equal(extended.coarse(day), archive.coarse(day))
        assert np.array_equal(extended.packed_pm25(day), archive.packed_pm25(day))
        assert np.array_equal(extended.stations_pm25(day), archive.stations_pm25(day), equal_nan=True)


def test_some_days_of_a_range_are_those_of_the_whole_range(archive, path):
    """The air in between is moved along, and neither observed nor stored."""
    assert simulate_archive(path, SMALL, [archive.days[0], archive.days[3]], SETTINGS) == 2
    sparse = Archive(path)
    assert sparse.days == [archive.days[0], archive.days[3]]
    assert np.array_equal(sparse.packed_pm25(archive.days[3]), archive.packed_pm25(archive.days[3]))


def test_what_every_nth_day_touches():
    assert needed(DayRange(date(2022, 1, 10), date(2022, 1, 21)), 8) == [
        date(2022, 1, day) for day in (9, 10, 11, 12, 13, 17, 18, 19, 20, 21)
    ]


def test_days_that_are_there_are_left_alone(archive_path):
    before = Archive(str(archive_path)).snapshot
    seen = []
    assert simulate_archive(str(archive_path), SMALL, days(0, 4), SETTINGS, seen.append) == 0
    assert sorted(seen) == list(days(0, 4))
    assert Archive(str(archive_path)).snapshot == before


def test_an_open_first_day_is_the_archives(archive_path):
    open_settings = SETTINGS.model_copy(update={"first_day": None})
    assert simulate_archive(str(archive_path), SMALL, days(2, 3), open_settings) == 0


def test_other_worlds_and_domains_are_refused(archive_path, monkeypatch):
    other = SETTINGS.model_copy(update={"seed": 4, "world": "flat-relief"})
    with pytest.raises(CranpmError, match="seed=0, world=factual; found seed=4, world=flat-relief"):
        simulate_archive(str(archive_path), SMALL, days(5, 5), other)
    with monkeypatch.context() as patch:
        patch.setattr("cranpm.simulate.job.SIMULATOR_VERSION", 99)
        with pytest.raises(CranpmError, match="simulator=1; found simulator=99"):
            simulate_archive(str(archive_path), SMALL, days(5, 5), SETTINGS)
    with pytest.raises(CranpmError, match="an archive of domain alps"):
        simulate_archive(str(archive_path), DOMAINS["alps"], days(5, 5), SETTINGS)


@pytest.mark.parametrize(
    ("domain", "wanted", "message"),
    [
        (Domain("box", -20, 10, -30, 20), DayRange(FIRST, FIRST), "packaged geography"),
        (Domain("box", 50, -24, 44.75, -18.75), DayRange(FIRST, FIRST), "a domain with land"),
        (SMALL, DayRange(date(2020, 1, 1), FIRST), "where this world starts"),
        (SMALL, DayRange(date(1999, 12, 30), FIRST), "a day in 2000-01-01"),
    ],
)
def test_what_is_refused_writes_nothing(path, tmp_path, domain, wanted, message):
    with pytest.raises(CranpmError, match=message):
        simulate_archive(path, domain, wanted, SETTINGS)
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_domain_does_not_matter(archive_path):
    other = Domain("my valley", SMALL.north, SMALL.west, SMALL.south, SMALL.east)
    assert simulate_archive(str(archive_path), other, days(0, 4), SETTINGS) == 0


def test_samples_of_an_archive_and_of_the_world_agree(archive, archive_path):
    job = SimulationJob(domain=SMALL, days=days(0, 4), simulation=SETTINGS)
    stored, run = sample(job, str(archive_path)), sample(job, None)
    assert stored.days == run.days == archive.days
    assert np.allclose(stored.weather, run.weather)
    assert np.array_equal(np.isnan(stored.pm25_ugm3), np.isnan(run.pm25_ugm3))
    # The archive rounds to 0.1; the world is interpolated at the same pixels.
    assert np.allclose(stored.pm25_ugm3, run.pm25_ugm3, atol=0.06, rtol=1e-3, equal_nan=True)


def test_an_archive_with_one_channel_more(archive, path, monkeypatch, capsys):
    """From the command line to what readers see: 36 channels, the last one in metres."""
    line = ["simulate", path, "--domain", "48,7,42.75,12.25", "--days", "2020-02-27", "--channel", "blh", "--quiet"]
    assert run_cli(monkeypatch, *line, "--set", "simulation.spin_up_days=2") == 0
    assert run_cli(monkeypatch, "info", path, "--json") == 0
    shown = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert shown["channels"] == [*archive.channel_names, "blh"]
    made = Archive(path)
    assert made.channel_names == (*archive.channel_names, "blh")
    assert made.channels == (*PAPER_CHANNELS, CHANNELS["blh"])
    assert made.coarse(FIRST).shape == (36, *SMALL.coarse.shape)
    assert np.array_equal(made.coarse(FIRST)[:35], archive.coarse(FIRST))
    height = made.coarse(FIRST)[find_channel(made.channels, "boundary_layer_height")]
    assert 120 <= height.min() < height.max() <= 2500
    # It is extended with its own channels, and by no others.
    settings = SETTINGS.model_copy(update={"first_day": None})
    assert simulate_archive(path, SMALL, days(1, 1), settings) == 1
    assert Archive(path).coarse(FIRST + timedelta(days=1)).shape[0] == 36
    with pytest.raises(CranpmError, match=r"the 36 channels .* found 35 channels: blh"):
        simulate_archive(path, SMALL, days(2, 2), settings, channels=PAPER_CHANNELS)


def test_channels_from_settings():
    job = SimulationJob(domain=SMALL, days=days(0, 0), channels=["blh"])
    assert job.all_channels == (*PAPER_CHANNELS, CHANNELS["blh"])
    assert SimulationJob(domain=SMALL, days=days(0, 0)).all_channels is None
    with pytest.raises(CranpmError, match="a channel: u10"):
        _ = SimulationJob(domain=SMALL, days=days(0, 0), channels=["fog"]).all_channels
