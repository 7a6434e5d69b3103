"""Five simulated days as the providers would send them, and archives made of them."""

import json
import shutil

import numpy as np
import pytest
from ahead_days import LATER, LEADS, START, put_forecasts
from sample_days import SMALL, STATIONS

from cranpm.archive.day_data import Statics
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive
from cranpm.core.cluster import open_pool
from cranpm.core.days import DayRange
from cranpm.providers import sandbox
from cranpm.providers.export import write_provider_files
from cranpm.providers.export_forecasts import write_forecasts
from cranpm.providers.ingest import AS_FILES, ingest
from cranpm.simulate import SimulationSettings
from cranpm.simulate.job import simulate_archive


@pytest.fixture(scope="session")
def provider_files(archive, tmp_path_factory):
    """The five days of `archive` as the providers would send them. Treat as read-only."""
    folder = tmp_path_factory.mktemp("provider_files")
    write_provider_files(archive, archive.days, folder, forecasts=False)
    return folder


@pytest.fixture(scope="session")
def filled(provider_files, archive, tmp_path_factory):
    """An archive made of them by two workers, whose sandboxes are processes too, and the report."""
    place = str(tmp_path_factory.mktemp("filled") / "archive")
    with open_pool(2) as pool:
        report = ingest([provider_files], place, archive.domain, pool=pool)
    return Archive(place), report


@pytest.fixture
def in_process(monkeypatch):
    """Files are opened in this process: quicker, where what is tested is not the process."""

    def ask(job):
        answer, arrays = sandbox._work(json.loads(json.dumps(job)))
        return json.loads(json.dumps(answer)), arrays

    monkeypatch.setattr(sandbox, "_ask", ask)


@pytest.fixture
def here(filled, in_process):
    """The same, after the shared archive was made by real sandboxes."""


@pytest.fixture
def place(tmp_path):
    """Where an archive without days is."""
    fine = SMALL.fine.shape
    location = str(tmp_path / "archive")
    statics = Statics(np.full(fine, 100.0), np.full(fine, 5.0), np.ones(fine, bool))
    create_archive(location, SMALL, statics, STATIONS, {"source": AS_FILES})
    return location


@pytest.fixture
def files(tmp_path):
    """A folder for files."""
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@pytest.fixture
def copy(provider_files, tmp_path):
    """The same files, to be spoilt."""
    return shutil.copytree(provider_files, tmp_path / "provider_files")


@pytest.fixture(scope="session")
def ahead_world(tmp_path_factory):
    """Two simulated days with forecasts. Treat as read-only."""
    place = str(tmp_path_factory.mktemp("ahead") / "archive")
    settings = SimulationSettings(first_day=START, spin_up_days=1)
    simulate_archive(place, SMALL, DayRange(START, LATER), settings, ahead=0)
    put_forecasts(place, LEADS)
    return Archive(place)


@pytest.fixture(scope="session")
def exported(ahead_world, tmp_path_factory):
    """Their forecasts in the providers' formats. Treat as read-only."""
    folder = tmp_path_factory.mktemp("exported")
    assert write_forecasts(ahead_world, list(LEADS), folder) == {"ifs": 2, "hres.zarr": 2, "cams-europe": 2}
    return folder
