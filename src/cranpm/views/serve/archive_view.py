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
class Known:
    """One version of the archive: what a request asks of it comes from here and from nowhere else."""

    archive: Archive
    days: frozenset[date]
    stations_pm25: Callable[[date], Array]
    """By day, one value a station."""

    @classmethod
    def of(cls, archive: Archive) -> "Known":
        return cls(archive, frozenset(archive.days), lru_cache(maxsize=128)(archive.stations_pm25))

    @property
    def simulated(self) -> bool:
        return SIMULATION in self.archive.source

    def window(self, grid: Grid) -> Window | None:
        """Where a grid lies on the archive's; None where it is not a part of it."""
        return part_of(grid, self.archive.domain.fine)


class Truth:
    """An archive that may grow while it is served."""

    def __init__(self, location: str):
        self._lock = threading.Lock()
        self._known = Known.of(Archive(location))
        self._opened = time.monotonic()

    def now(self) -> Known:
        """Its newest version, looked for once a minute; where that cannot be read, the one before."""
        with self._lock:
            if time.monotonic() - self._opened > REOPEN_SECONDS:
                self._opened = time.monotonic()
                with suppress(CranpmError):
                    newest = Archive(self._known.archive.location)
                    if newest.snapshot != self._known.archive.snapshot:
                        self._known = Known.of(newest)
            return self._known
