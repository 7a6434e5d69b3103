"""Rasters that the server computes at the first request: days of the archive, and differences to them."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cranpm.core.grid import Array, Grid
from cranpm.forecasting.publication.geotiff import write_cog

MOST = 24


class RasterCache:
    """Files in a temporary folder that the server removes when it ends; the least recently requested go first."""

    def __init__(self, workers: Executor):
        self._workers = workers
        self._folder = TemporaryDirectory(prefix="cranpm-serve-")
        self._lock = threading.Lock()
        self._files: OrderedDict[Hashable, Future[Path]] = OrderedDict()
        self._count = 0

    def raster(self, key: Hashable, grid: Grid, field: Callable[[], Array]) -> "Future[Path]":
        """The raster of a key, computed once by one worker however many requests wait for it."""
        with self._lock:
            known = self._files.get(key)
            if known is None or (known.done() and known.exception()):
                self._count += 1
                path = Path(self._folder.name) / f"{self._count}.tif"
                self._files[key] = self._workers.submit(_write, field, grid, path)
            self._files.move_to_end(key)
            while len(self._files) > MOST:
                self._remove(self._files.popitem(last=False)[1])
            return self._files[key]

    def _remove(self, old: "Future[Path]") -> None:
        """Once it is written; a request that has it open can still read it."""
        old.add_done_callback(lambda done: None if done.exception() else done.result().unlink(missing_ok=True))

    def close(self) -> None:
        self._folder.cleanup()


def _write(field: Callable[[], Array], grid: Grid, path: Path) -> Path:
    write_cog(np.asarray(field(), np.float32), grid, path, "computed by the server", {})
    return path
