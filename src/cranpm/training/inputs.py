"""From the archive to the network's arguments: a day for the coarse branch, a tile for the fine one."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from cranpm.archive.store import Archive
from cranpm.core.channels import COARSE, INDEX
from cranpm.core.grid import Array, Window, coarsen
from cranpm.core.packing import ARCHIVED

WIND = [INDEX["u10"], INDEX["v10"]]
YESTERDAY = timedelta(days=1)
GIGABYTE = 2**30
FEW = 16
"""Days that a batch may need; where fewer fit in memory, PM2.5 is read by windows."""


class Inputs:
    """Fields of an archive as tensors in physical units.

    What was read of a day is kept in memory, PM2.5 packed, for as many days as `cache_gb` allows; on a domain of which
    only a few days would fit, windows of PM2.5 are read as they are needed. A day that is a key of `stand_in` is read
    from its value instead. With `coarse_pm25`, PM2.5 at 25 km of today and yesterday follows the coarse channels.
    """

    def __init__(
        self,
        archive: Archive,
        cache_gb: float = 2.0,
        stand_in: Mapping[date, date] | None = None,
        coarse_pm25: bool = False,
    ):
        self.archive, self._stand_in, self._coarse_pm25 = archive, dict(stand_in or {}), coarse_pm25
        fine, coarse = archive.domain.fine, archive.domain.coarse
        self._day_bytes = 2 * fine.rows * fine.cols + 4 * len(COARSE) * coarse.rows * coarse.cols
        self._room = int(cache_gb * GIGABYTE / self._day_bytes)
        self._kept: dict[str, OrderedDict[date, Array]] = {}

    def size_gb(self, days: int) -> float:
        """GB that so many days take in memory."""
        return days * self._day_bytes / GIGABYTE

    def _remember(self, what: str, day: date, read: Callable[[date], Array], small: bool = False) -> Array:
        """What was read of a day; what is small is never forgotten."""
        kept, day = self._kept.setdefault(what, OrderedDict()), self._stand_in.get(day, day)
        if day not in kept:
            kept[day] = read(day)
            if not small and len(kept) > max(self._room, FEW):
                kept.popitem(last=False)
        kept.move_to_end(day)
        return kept[day]

    def day(self, day: date) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Arguments of `encode_day` for one day: coarse, wind, elevation, corner."""
        today, yesterday = (self._remember("coarse", when, self.archive.coarse) for when in (day, day - YESTERDAY))
        domain = self.archive.domain
        corner = torch.tensor([[domain.north, domain.west]], dtype=torch.float32)
        fields = [today, yesterday]
        if self._coarse_pm25:
            both = (day, day - YESTERDAY)
            fields += [self._remember("pm25 at 25 km", when, self._pm25_25km, small=True)[None] for when in both]
        coarse = torch.from_numpy(np.concatenate(fields))[None]
        return coarse, coarse[:, WIND], self._relief[None], corner

    def stations_pm25(self, day: date) -> Array:
        """One value a station, NaN where it did not report."""
        return self._remember("stations", day, self.archive.stations_pm25)

    def tile(self, day: date, window: Window) -> tuple[Tensor, Tensor]:
        """PM2.5 today, elevation, latitude, longitude, PM2.5 yesterday; and the tile's position."""
        grid = self.archive.domain.fine.window(*window)
        today, yesterday = (self.pm25(when, window) for when in (day, day - YESTERDAY))
        lat = np.broadcast_to(grid.lat[:, None], grid.shape)
        lon = np.broadcast_to(grid.lon, grid.shape)
        fields = [today, self._elevation[window], lat, lon, yesterday]
        position = torch.tensor([grid.north, grid.west], dtype=torch.float32)
        return torch.from_numpy(np.stack(fields).astype(np.float32)), position

    def pm25(self, day: date, window: Window) -> Array:
        """PM2.5 (ug m-3) in a window, NaN where missing."""
        if self._room < FEW:
            return self.archive.pm25(self._stand_in.get(day, day), window)
        return ARCHIVED.unpack(self._remember("pm25", day, self.archive.packed_pm25)[window])

    def _pm25_25km(self, day: date) -> Array:
        """Means over the land of coarse cells; NaN in cells without PM2.5."""
        domain = self.archive.domain
        return coarsen(self.archive.pm25(day), domain.fine, domain.coarse).astype(np.float32)

    @cached_property
    def _elevation(self) -> Array:
        return self.archive.elevation()

    @cached_property
    def _relief(self) -> Tensor:
        return torch.from_numpy(self.archive.coarse_statics()["elevation"].astype(np.float32))


def days_together(parts: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]]) -> tuple[Tensor, ...]:
    """Several days as one batch."""
    return tuple(torch.cat(fields) for fields in zip(*parts, strict=True))
