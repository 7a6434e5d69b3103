"""How fast the server answers, against what a tile costs without a server."""

import gzip
import itertools
import json
import math
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from http.client import HTTPConnection
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.archive import passing_archive
from cranpm.core.days import DayRange
from cranpm.core.grid import Grid
from cranpm.core.machine import timed
from cranpm.forecasting.engine import predict
from cranpm.forecasting.publication import Publication, publish
from cranpm.views.serve.tiles import draw_tile

DAY = date(2022, 1, 25)
ZOOMS = (4, 5, 6, 7, 8, 9)
CLIENTS, TILES, POINTS = 6, 300, 300


def bench_serve(domain: str = "europe", seconds: float = 5.0) -> dict[str, Any]:
    """Tiles and points of a forecast over a domain, from a server of its own; client and server share the machine."""
    rng = np.random.default_rng(0)
    with passing_archive(domain, DayRange(DAY, DAY)) as archive, tempfile.TemporaryDirectory() as folder:
        publish(predict(archive, DAY, None), archive, Path(folder), ("tif",))
        run, grid = Publication(folder).run(DAY), archive.domain.fine
        bare = [timed(lambda: draw_tile("pm25", run.raster(1), *_place(grid, rng))) for _ in range(60)]
        below = f"/api/runs/{DAY}/{run.version}"
        places = [_place(grid, rng) for _ in range(TILES)]
        known = [f"{below}/tiles/pm25/1/{z}/{x}/{y}.png" for z, x, y in places]
        with running_server(Path(folder), archive.location) as (port, process):
            first = _latencies(port, known)
            warm = _latencies(port, known)
            fresh = _rate(port, lambda: _new_tiles(below, grid), seconds)
            again = _rate(port, lambda: itertools.cycle(known), seconds)
            points = _latencies(port, [f"{below}/point?lat={lat}&lon={lon}" for lat, lon in _points(grid, rng)])
            memory = peak_memory_of(process)
    return {
        "domain": domain,
        "pixels": grid.rows * grid.cols,
        "tile asked for the first time, p50 / p95, ms": _pair(first),
        "tile asked for again, p50 / p95, ms (goal p95 50)": _pair(warm),
        "tiles asked for the first time, /s": fresh,
        "tiles asked for again, /s (goal 150)": again,
        "point, p50 / p95, ms (goal p95 20)": _pair(points),
        "tile without a server, p50, ms": 1000 * float(np.median(bare)),
        "first tile from the server / without": float(np.median(first) / np.median(bare)),
        "server's peak memory, GB": memory,
        "page as first seen, MB gzipped (goal 1)": _page_size(),
    }


def _place(grid: Grid, rng: np.random.Generator, zooms: tuple[int, ...] = ZOOMS) -> tuple[int, int, int]:
    """A tile on the grid."""
    z = int(rng.choice(zooms))
    lat, lon = rng.uniform(grid.south, grid.north), rng.uniform(grid.west, grid.east)
    across, down = (lon + 180) / 360, (1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2
    return z, int(across * 2**z), int(down * 2**z)


def _new_tiles(below: str, grid: Grid) -> Iterator[str]:
    """Tiles that nobody asked for yet: of other variables and leads, near the size of the pixels."""
    rng = np.random.default_rng()
    while True:
        z, x, y = _place(grid, rng, (7, 8, 9, 10))
        yield f"{below}/tiles/{rng.choice(['pm25', 'index', 'exceedance'])}/{rng.integers(2, 4)}/{z}/{x}/{y}.png"


def _points(grid: Grid, rng: np.random.Generator) -> list[tuple[float, float]]:
    lats, lons = rng.uniform(grid.south, grid.north, POINTS), rng.uniform(grid.west, grid.east, POINTS)
    return list(zip(lats.tolist(), lons.tolist(), strict=True))


@contextmanager
def running_server(folder: Path, archive: str) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "cranpm", "serve", str(folder), "--archive", archive, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield port, process
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, patience: float = 120.0) -> None:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"no server on port {port} within {patience:g} s")


def _ask(connection: HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {json.loads(body)['detail']}")
    return body


def _latencies(port: int, paths: list[str]) -> list[float]:
    """Seconds of each, one after the other over one connection."""
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        return [timed(lambda path=path: _ask(connection, path)) for path in paths]  # type: ignore[misc]


def _rate(port: int, paths: Callable[[], Iterator[str]], seconds: float) -> float:
    """Answers a second to several clients at once."""
    until, counts = time.monotonic() + seconds, [0] * CLIENTS

    def client(number: int) -> None:
        asked = paths()
        with closing(HTTPConnection("127.0.0.1", port)) as connection:
            while time.monotonic() < until:
                _ask(connection, next(asked))
                counts[number] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    took = timed(lambda: [*map(threading.Thread.start, threads), *map(threading.Thread.join, threads)])
    return sum(counts) / took


def _pair(times: list[float]) -> str:
    middle, high = (1000 * float(np.quantile(times, share)) for share in (0.5, 0.95))
    return f"{middle:.1f} / {high:.1f}"


def peak_memory_of(process: "subprocess.Popen[bytes]") -> float:
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024 / 1e9


def _page_size() -> float | str:
    """All files but the borders for close views, which are loaded on the way."""
    root = Path(str(files("cranpm.views.serve") / "page"))
    first = [path for path in root.rglob("*") if path.is_file() and "close" not in path.parts]
    return sum(len(gzip.compress(path.read_bytes())) for path in first) / 1e6 if first else "not built: make page"
