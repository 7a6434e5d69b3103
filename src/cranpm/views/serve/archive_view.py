"""The archive beside which forecasts are shown, as one version at a time."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from cranpm.archive.store import SIMULATION, Archive
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid, Window
from cranpm.core.regions import part_of

REOPEN_SECONDS = 60.0


@dataclass(frozen=True)
class ArchiveView:
    """One version of the archive: everything that a request needs of it is read from this version."""

    archive: Archive
    days: frozenset[date]
    stations_pm25: Callable[[date], Array]
    """By day, one value per station, ug m-3."""

    @classmethod
    def of(cls, archive: Archive) -> "ArchiveView":
        return cls(archive, frozenset(archive.days), lru_cache(maxsize=128)(archive.stations_pm25))

    @property
    def simulated(self) -> bool:
        return SIMULATION in self.archive.source

    def window(self, grid: Grid) -> Window | None:
        """Where a grid lies on the archive's; None where it is not a part of it."""
        return part_of(grid, self.archive.domain.fine)


class GrowingArchive:
    """An archive that may get more days while it is served."""

    def __init__(self, location: str):
        self._lock = threading.Lock()
        self._view = ArchiveView.of(Archive(location))
        self._opened = time.monotonic()

    def now(self) -> ArchiveView:
        """Its newest version, looked for once per minute; where that cannot be read, the one before."""
        with self._lock:
            if time.monotonic() - self._opened > REOPEN_SECONDS:
                self._opened = time.monotonic()
                with suppress(CranpmError):
                    newest = Archive(self._view.archive.location)
                    if newest.snapshot != self._view.archive.snapshot:
                        self._view = ArchiveView.of(newest)
            return self._view
