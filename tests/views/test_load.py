"""Many clients at once: answers stay right, memory stays bounded, and the server lives on."""

import http.client
import random
import socket
import threading
import time
from collections import Counter
from contextlib import closing

import pytest

from benchmarks.serving import peak_memory_of, running_server
from cranpm.forecasting.engine import predict
from cranpm.forecasting.publication import Publication, publish

pytestmark = pytest.mark.long


@pytest.fixture
def served(archive, archive_path, tmp_path):
    day = archive.days[1]
    publish(predict(archive, day, None), archive, tmp_path, ("tif",))
    version = Publication(tmp_path).run(day).version
    with running_server(tmp_path, str(archive_path)) as (port, process):
        yield port, process, f"/api/runs/{day}/{version}"


def anything(below):
    """Tiles, points, boxes, and requests that must be refused."""
    kind = random.random()
    if kind < 0.6:
        z = random.randint(5, 11)
        x, y = (random.randint(int(start * 2**z), int(end * 2**z)) for start, end in ((0.519, 0.534), (0.349, 0.37)))
        variable = random.choice(["pm25", "error", "change", "truth", "index"])
        return f"{below}/tiles/{variable}/{random.randint(1, 3)}/{z}/{x}/{y}.png"
    if kind < 0.85:
        return f"{below}/{random.choice(['point', 'history'])}?lat={random.uniform(43, 48)}&lon={random.uniform(7, 12)}"
    if kind < 0.9:
        return f"{below}/box?north={random.uniform(45, 48)}&south=43&west=7&east={random.uniform(9, 12)}"
    return random.choice(
        [f"{below}/point?lat=nan&lon=9", "/api/runs/../etc", f"{below}/tiles/pm25/1/99/0/0.png", "/api/runs"]
    )


def test_fifty_clients_for_half_a_minute(served):
    port, process, below = served
    until, statuses = time.monotonic() + 30, Counter()

    def client():
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            while time.monotonic() < until:
                connection.request("GET", anything(below))
                answer = connection.getresponse()
                answer.read()
                statuses[answer.status] += 1

    threads = [threading.Thread(target=client) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 404, 422, 503}
    assert statuses[200] > 1000
    assert statuses[503] < 0.02 * statuses.total()
    assert peak_memory_of(process) < 1.5


def test_thousands_of_connections_are_turned_away(served):
    port, process, _ = served
    held = []
    try:
        for _ in range(2000):
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            connection.sendall(b"GET /api/runs HTTP/1.1\r\nHost: here\r\n\r\n")
            held.append(connection)
        answered = Counter(connection.recv(12).decode()[9:12] for connection in held)
    finally:
        for connection in held:
            connection.close()
    assert set(answered) == {"200", "503"}
    assert peak_memory_of(process) < 1.5
    time.sleep(1)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as after:
        after.request("GET", "/api/health")
        assert after.getresponse().status == 200
