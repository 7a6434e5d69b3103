from datetime import date, timedelta

import numpy as np
import pytest
from conftest import SETTINGS
from sample_days import FIRST, SMALL

from cranpm.days import DayRange
from cranpm.errors import CranpmError
from cranpm.fill import SimulationJob, sample, simulate_archive
from cranpm.grid import DOMAINS
from cranpm.store import Archive


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
    assert simulate_archive(path, SMALL, days(0, 4), SETTINGS) == 2
    extended = Archive(path)
    assert extended.days == archive.days
    assert date(2020, 2, 29) in extended.days
    for day in archive.days:
        assert np.array_equal(extended.coarse(day), archive.coarse(day))
        assert np.array_equal(extended.packed_pm25(day), archive.packed_pm25(day))
        assert np.array_equal(extended.stations_pm25(day), archive.stations_pm25(day), equal_nan=True)


def test_days_that_are_there_are_left_alone(archive_path):
    before = Archive(str(archive_path)).snapshot
    seen = []
    assert simulate_archive(str(archive_path), SMALL, days(0, 4), SETTINGS, seen.append) == 0
    assert seen == []
    assert Archive(str(archive_path)).snapshot == before


def test_an_open_first_day_is_the_archives(archive_path):
    open_settings = SETTINGS.model_copy(update={"first_day": None})
    assert simulate_archive(str(archive_path), SMALL, days(2, 3), open_settings) == 0


def test_other_worlds_and_domains_are_refused(archive_path):
    other = SETTINGS.model_copy(update={"seed": 4, "world": "flat-relief"})
    with pytest.raises(CranpmError, match="seed=0, world=factual; found seed=4, world=flat-relief"):
        simulate_archive(str(archive_path), SMALL, days(5, 5), other)
    with pytest.raises(CranpmError, match="an archive of domain alps"):
        simulate_archive(str(archive_path), DOMAINS["alps"], days(5, 5), SETTINGS)


def test_a_box_without_geography_writes_nothing(path, tmp_path):
    from cranpm.grid import Domain

    with pytest.raises(CranpmError, match="embedded geography"):
        simulate_archive(path, Domain("box", -20, 10, -30, 20), days(0, 0), SETTINGS)
    assert list(tmp_path.iterdir()) == []


def test_samples_of_an_archive_and_of_the_world_agree(archive, archive_path):
    job = SimulationJob(domain=SMALL, days=days(0, 4), simulation=SETTINGS)
    stored, run = sample(job, str(archive_path)), sample(job, None)
    assert stored.days == run.days == archive.days
    assert np.allclose(stored.weather, run.weather)
    assert np.array_equal(np.isnan(stored.pm25_ugm3), np.isnan(run.pm25_ugm3))
    # The noise of the retrieval is drawn anew for the sample; the field beneath is the same.
    assert np.nanstd(np.log(stored.pm25_ugm3 / run.pm25_ugm3)) < 0.15
