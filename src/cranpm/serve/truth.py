"""Days of an archive as rasters, beside which forecasts are shown: made when first asked for, kept while they last."""

import threading
import time
from collections import OrderedDict
from datetime import date
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cranpm.grid import Array
from cranpm.raster import write_cog
from cranpm.store import Archive

KEPT_DAYS = 32
REOPEN_SECONDS = 60.0


class Truth:
    """An archive that may grow while it is served."""

    def __init__(self, location: str):
        self._open(location)
        self._folder = TemporaryDirectory(prefix="cranpm-serve-")
        self._made: OrderedDict[tuple[str, date], Path] = OrderedDict()
        self._lock = threading.Lock()
        self.stations_pm25 = lru_cache(maxsize=128)(self._stations_pm25)

    @property
    def archive(self) -> Archive:
        """Its newest version, looked for once a minute."""
        if time.monotonic() - self._opened > REOPEN_SECONDS:
            self._open(self._archive.location)
        return self._archive

    def _open(self, location: str) -> None:
        self._archive, self._opened = Archive(location), time.monotonic()
        self._days = frozenset(self._archive.days)

    def knows(self, day: date) -> bool:
        return day in self._days

    def raster(self, day: date) -> Path:
        """PM2.5 of a day as a GeoTIFF with overviews."""
        archive = self.archive
        key = (archive.snapshot, day)
        with self._lock:
            if key not in self._made:
                path = Path(self._folder.name) / f"{archive.snapshot}-{day}.tif"
                write_cog(archive.pm25(day), archive.domain.fine, path, f"PM2.5 on {day}", {"source": archive.source})
                self._made[key] = path
            self._made.move_to_end(key)
            while len(self._made) > KEPT_DAYS:
                self._made.popitem(last=False)[1].unlink(missing_ok=True)
            return self._made[key]

    def _stations_pm25(self, snapshot: str, day: date) -> Array:
        """One value a station; `snapshot` is the version that the answer belongs to."""
        return self._archive.stations_pm25(day)

    def close(self) -> None:
        self._folder.cleanup()
