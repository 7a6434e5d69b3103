"""From the archive to the inputs of a network: a day for the coarse branch, a tile for the fine one."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from cranpm.archive.store import Archive
from cranpm.core.channels import find_channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Window, coarsen
from cranpm.core.packing import ARCHIVED
from cranpm.network import DayInputs, TileInputs

WIND = ("wind_u", "wind_v")
"""What the biases are made of."""
YESTERDAY = timedelta(days=1)
GIGABYTE = 2**30
FEW = 16
"""Days that a batch may need; where fewer fit in memory, PM2.5 is read by windows."""


class Inputs:
    """Fields of an archive as tensors in physical units, its `channels` picked by name (all of them unless named).

    What was read of a day is kept in memory, PM2.5 packed, for as many days as `cache_gb` allows; on a domain of which
    only a few days would fit, windows of PM2.5 are read as they are needed. A day that is a key of `replaced` is read
    from its value instead. With `coarse_pm25`, PM2.5 at 25 km of today and yesterday follows the coarse channels.
    """

    def __init__(
        self,
        archive: Archive,
        cache_gb: float = 2.0,
        replaced: Mapping[date, date] | None = None,
        coarse_pm25: bool = False,
        channels: Sequence[str] | None = None,
    ):
        self.archive, self._replaced, self._coarse_pm25 = archive, dict(replaced or {}), coarse_pm25
        names = archive.channel_names if channels is None else tuple(channels)
        places = find_channels(archive, names)
        self._picked = None if names == archive.channel_names else places
        self.channels = tuple(archive.channels[place] for place in places)
        self.wind = [find_channel(self.channels, quantity) for quantity in WIND]
        """Where the wind at 10 m, eastward and northward, stands among the channels."""
        fine, coarse = archive.domain.fine, archive.domain.coarse
        self._day_bytes = 2 * fine.rows * fine.cols + 4 * len(self.channels) * coarse.rows * coarse.cols
        self._room = int(cache_gb * GIGABYTE / self._day_bytes)
        self._kept: dict[str, OrderedDict[date, Array]] = {}

    def size_gb(self, days: int) -> float:
        """GB that so many days take in memory."""
        return days * self._day_bytes / GIGABYTE

    def _remember(self, what: str, day: date, read: Callable[[date], Array], small: bool = False) -> Array:
        """What was read of a day; what is small is never forgotten."""
        kept, day = self._kept.setdefault(what, OrderedDict()), self._replaced.get(day, day)
        if day not in kept:
            kept[day] = read(day)
            if not small and len(kept) > max(self._room, FEW):
                kept.popitem(last=False)
        kept.move_to_end(day)
        return kept[day]

    def day(self, day: date) -> DayInputs:
        """What a network is given of one day."""
        both = (day, day - YESTERDAY)
        fields = [self._remember("coarse", when, self._coarse) for when in both]
        if self._coarse_pm25:
            fields += [self.pm25_25km(when)[None] for when in both]
        coarse = torch.from_numpy(np.concatenate(fields))[None]
        domain = self.archive.domain
        corner = torch.tensor([[domain.north, domain.west]], dtype=torch.float32)
        return DayInputs(coarse, coarse[:, self.wind], self._relief[None], corner)

    def _coarse(self, day: date) -> Array:
        fields = self.archive.coarse(day)
        return fields if self._picked is None else fields[self._picked]

    def stations_pm25(self, day: date) -> Array:
        """One value per station (ug m-3), NaN where it did not report."""
        return self._remember("stations", day, self.archive.stations_pm25)

    def tile(self, day: date, window: Window) -> TileInputs:
        """What a network is given of one tile."""
        grid = self.archive.domain.fine.window(*window)
        today, yesterday = (self.pm25(when, window) for when in (day, day - YESTERDAY))
        lat = np.broadcast_to(grid.lat[:, None], grid.shape)
        lon = np.broadcast_to(grid.lon, grid.shape)
        fields = [today, self._elevation[window], lat, lon, yesterday]
        position = torch.tensor([[grid.north, grid.west]], dtype=torch.float32)
        return TileInputs(torch.from_numpy(np.stack(fields).astype(np.float32))[None], position)

    def pm25(self, day: date, window: Window) -> Array:
        """PM2.5 (ug m-3) in a window, NaN where missing."""
        if self._room < FEW:
            return self.archive.pm25(self._replaced.get(day, day), window)
        return ARCHIVED.unpack(self._remember("pm25", day, self.archive.packed_pm25)[window])

    def pm25_25km(self, day: date) -> Array:
        """PM2.5 (ug m-3), means over the land of coarse cells; NaN in cells without."""
        return self._remember("pm25 at 25 km", day, self._coarsened, small=True)

    def _coarsened(self, day: date) -> Array:
        domain = self.archive.domain
        return coarsen(self.archive.pm25(day), domain.fine, domain.coarse).astype(np.float32)

    @cached_property
    def _elevation(self) -> Array:
        return self.archive.elevation()

    @cached_property
    def _relief(self) -> Tensor:
        return torch.from_numpy(self.archive.coarse_statics()["elevation"].astype(np.float32))


def find_channels(archive: Archive, names: Sequence[str]) -> list[int]:
    """Where channels stand in an archive; refused, by name, where it lacks one."""
    if missing := [name for name in names if name not in archive.channel_names]:
        raise CranpmError(
            expected=f"the channels {', '.join(missing)} in {archive.location}",
            found=", ".join(archive.channel_names),
            remedy="Use an archive that has them, or weights that were trained without them.",
        )
    return [archive.channel_names.index(name) for name in names]
