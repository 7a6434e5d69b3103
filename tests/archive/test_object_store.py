"""The archive on an object store: the same promises, on a local server that speaks S3."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from sample_days import FIRST, PRODUCER, SMALL, STATIONS, make_day

from cranpm.archive import repository
from cranpm.archive.day_data import Statics
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive, describe
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.errors import CranpmError


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_bucket(endpoint):
    request = urllib.request.Request(f"{endpoint}/bucket", method="PUT")
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    pytest.fail("the S3 server did not start")


@pytest.fixture(scope="module")
def endpoint():
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-c", "from moto.server import main; main()", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        make_bucket(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
        server.kill()


@pytest.fixture
def place(endpoint, monkeypatch, request):
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    location = f"s3://bucket/{request.node.name}"
    statics = Statics(*(np.ones(SMALL.fine.shape, np.float32) for _ in range(3)))
    create_archive(location, SMALL, statics, STATIONS, PRODUCER)
    return location


def put(place):
    with ArchiveWriter(place) as writer:
        writer.put(make_day(FIRST))


def test_round_trip(place):
    put(place)
    archive = Archive(place)
    assert archive.days == [FIRST]
    assert np.array_equal(archive.coarse(FIRST), make_day(FIRST).coarse)
    assert repository.exists(place)
    assert describe(archive)["size_mb"] is None


def overtaken_commit(place):
    """A commit during which another writer commits the same day."""
    with repository.commit(place, "slow", {}) as root:
        root["quality"][0] = 2
        put(place)


def test_of_two_writers_one_wins_and_the_other_is_told(place):
    with pytest.raises(CranpmError, match="to be the only writer"):
        overtaken_commit(place)
    assert Archive(place).days == [FIRST]
