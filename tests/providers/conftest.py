"""Five simulated days as the providers would send them, and archives made of them."""

import json
import shutil

import pytest

from cranpm.archive.store import Archive
from cranpm.core.cluster import open_pool
from cranpm.providers import sandbox
from cranpm.providers.export import write_provider_files
from cranpm.providers.ingest import ingest


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
def here(monkeypatch, filled):
    """Files are opened in this process: quicker, where what is tested is not the process."""

    def ask(job):
        answer, arrays = sandbox._work(json.loads(json.dumps(job)))
        return json.loads(json.dumps(answer)), arrays

    monkeypatch.setattr(sandbox, "_ask", ask)


@pytest.fixture
def copy(provider_files, tmp_path):
    """The same files, to be spoilt."""
    return shutil.copytree(provider_files, tmp_path / "provider_files")
