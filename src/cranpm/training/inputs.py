"""From the archive to the inputs of a network: a day for the coarse branch, a tile for the fine one."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from cranpm.archive.store import Archive
from cranpm.core.channels import find_channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Window, coarsen
from cranpm.core.packing import ARCHIVED
from cranpm.network import AheadForm, DayInputs, ForecastSettings, TileInputs
from cranpm.network.ahead import NOTHING_AHEAD
from cranpm.training.days_ahead import AheadFields, Prognosis

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
    from its value instead. With `coarse_pm25`, PM2.5 at 25 km of today and yesterday follows the coarse channels; with
    a form of the days `ahead`, days are read for one lead each.
    """

    def __init__(
        self,
        archive: Archive,
        cache_gb: float = 2.0,
        replaced: Mapping[date, date] | None = None,
        coarse_pm25: bool = False,
        channels: Sequence[str] | None = None,
        ahead: AheadForm = NOTHING_AHEAD,
        prognosis: Prognosis = "forecast",
    ):
        self.archive, self._replaced, self._coarse_pm25 = archive, dict(replaced or {}), coarse_pm25
        names = archive.channel_names if channels is None else tuple(channels)
        places = find_channels(archive, names)
        self._picked = None if names == archive.channel_names else places
        self.channels = tuple(archive.channels[place] for place in places)
        self.wind = [find_channel(self.channels, quantity) for quantity in WIND]
        """Where the wind at 10 m, eastward and northward, stands among the channels."""
        fine, coarse = archive.domain.fine, archive.domain.coarse
        fields = len(self.channels) + ahead.furthest * ahead.channels
        self._day_bytes = 2 * fine.rows * fine.cols + 4 * fields * coarse.rows * coarse.cols
        self._room = int(cache_gb * GIGABYTE / self._day_bytes)
        self._kept: dict[str, OrderedDict[date, Array]] = {}
        self.ahead = AheadFields(archive, ahead, self.channels, self.wind, self.coarse, prognosis)

    @classmethod
    def of(cls, network: ForecastSettings, archive: Archive, **given: Any) -> Self:
        """What a network of these settings reads; `given` is as for the class."""
        return cls(archive, coarse_pm25=network.coarse_pm25, ahead=network.days_ahead, **given)

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

    def leads(self, day: date, leads: Sequence[int]) -> DayInputs:
        """What a network is given of one day for some leads: a day that serves all, or one for each lead."""
        return DayInputs.join([self.day(day, lead) for lead in (leads if self.ahead.form.groups else leads[:1])])

    def day(self, day: date, lead: int | None = None, hidden: Collection[str] = ()) -> DayInputs:
        """What a network is given of one day; where it reads the days ahead, for a lead.

        Groups of the days ahead that are `hidden` count as unknown.
        """
        both = (day, day - YESTERDAY)
        fields = [self.coarse(when) for when in both]
        if self._coarse_pm25:
            fields += [self.pm25_25km(when)[None] for when in both]
        coarse = torch.from_numpy(np.concatenate(fields))[None]
        domain = self.archive.domain
        corner = torch.tensor([[domain.north, domain.west]], dtype=torch.float32)
        today = DayInputs(coarse, coarse[:, self.wind], self._relief[None], corner)
        if not self.ahead.form.groups:
            return today
        if lead is None:
            raise CranpmError(
                expected="a lead, for a network that reads the days ahead", found="none", remedy="Name the lead."
            )
        ahead, known, ahead_of, wind = self.ahead.of(day, lead, hidden)
        of_the_way = today.wind if wind is None else torch.from_numpy(wind)[None]
        return replace(today, wind=of_the_way, ahead=ahead, known=known, lead=ahead_of)

    def coarse(self, day: date) -> Array:
        """(channels, rows, cols) of a day, in their units."""
        return self._remember("coarse", day, self._coarse)

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
