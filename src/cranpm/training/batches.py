"""What training sees: days, and tiles of each day, drawn so that the same seed gives the same batch for ever.

A batch is D days with K tiles each, so the coarse branch runs once per day. Which days make up batch i of an epoch
depends on seed and epoch alone; which tiles and leads of a day, on seed, epoch, batch and number in the batch. Several
processes share a batch by days, and together see what one process would see.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from cranpm.archive.day_data import held_out
from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Window
from cranpm.network import DayInputs, ForecastSettings, TileInputs
from cranpm.network.interface import flat
from cranpm.training.days_ahead import Prognosis
from cranpm.training.inputs import Inputs

Share = Annotated[float, Field(ge=0, le=1)]
CORNER_STEP = 64
"""Tiles begin at multiples of this many pixels, or end at the far edge."""
LEAST_LAND = 0.05


class SampleSettings(BaseModel):
    """How batches are drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: PositiveInt = 2
    """Days in a batch, over all processes."""
    tiles: PositiveInt = 4
    """Tiles of each day."""
    epoch_days: PositiveInt | None = None
    """Start days of an epoch: less than all of them, or all of them more than once. None: all of them once."""
    hotspot_ratio: Share = 0.5
    """Share of tiles drawn in proportion to the day's PM2.5; the others are drawn evenly over land."""
    held_out_stations: Share = 0.2
    """Share of stations that the loss never sees."""
    hidden_groups: Share = 0.15
    """Of networks that read the days ahead: how often each group of forecasts is hidden from a day, and half as often
    all of them, so that the same weights can do without."""
    prognosis: Prognosis = "forecast"
    """Days ahead as they were forecast; or `perfect`, for research: as they came true."""
    seed: int = 0
    cache_gb: float = 2.0
    """Memory for days of PM2.5, packed; on domains that fit, the archive is read once."""


@dataclass(frozen=True)
class TileBatch:
    """Days and tiles for the network, targets and stations (row, column, PM2.5) for the loss."""

    day: DayInputs
    tiles: TileInputs
    lead: Tensor
    target: Tensor
    stations: Tensor
    names: tuple[str, ...]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Arguments of the network's `forward`."""
        return flat(self.day, self.tiles, self.lead)

    def to(self, device: torch.device) -> "TileBatch":
        parts = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "names"}
        return replace(self, **{name: part.to(device) for name, part in parts.items()})


def land_corners(land: Array, size: int) -> tuple[Array, Array]:
    """North-west corners of the tiles that hold land, and the share of land in each."""
    if size > min(land.shape):
        raise CranpmError(
            expected=f"tiles no larger than the domain, {land.shape[0]} x {land.shape[1]} pixels",
            found=f"{size} x {size}",
            remedy="Choose smaller tiles (of CRAN-PM: network.fine.shape) or a larger domain.",
        )
    rows, cols = (sorted({*range(0, length - size + 1, CORNER_STEP), length - size}) for length in land.shape)
    sums = np.pad(land.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    row, col = (axis.ravel() for axis in np.meshgrid(rows, cols, indexing="ij"))
    held = sums[row + size, col + size] - sums[row, col + size] - sums[row + size, col] + sums[row, col]
    share = held / size**2
    kept = share >= LEAST_LAND
    if not kept.any():
        raise CranpmError(expected="a domain with land", found="none", remedy="Choose a domain that has some.")
    return np.stack([row, col], axis=1)[kept], share[kept]


class Batches(Dataset[TileBatch]):
    """Batches of an archive by (epoch, number); one process of several gets its days of each."""

    def __init__(
        self,
        archive: Archive,
        days: Sequence[date],
        network: ForecastSettings,
        settings: SampleSettings,
        rank: int = 0,
        processes: int = 1,
        channels: Sequence[str] | None = None,
    ):
        if settings.days % processes:
            raise CranpmError(
                expected=f"samples.days that {processes} processes can share evenly",
                found=str(settings.days),
                remedy="Choose a multiple of the number of processes.",
            )
        if len(days) < settings.days:
            raise CranpmError(
                expected=f"at least {settings.days} usable training days (one batch)",
                found=str(len(days)),
                remedy="Widen the training range, or simulate or ingest more days.",
            )
        self.archive, self.days, self.network, self.settings = archive, list(days), network, settings
        self.size = network.tile_shape[0]
        self.rank, self.processes, self.channels = rank, processes, channels
        self._inputs: Inputs | None = None

    def __len__(self) -> int:
        return (self.settings.epoch_days or len(self.days)) // self.settings.days

    def __getstate__(self) -> dict[str, Any]:
        """Workers open the archive's days for themselves."""
        return self.__dict__ | {"_inputs": None}

    def __getitem__(self, key: tuple[int, int]) -> TileBatch:
        epoch, number = key
        if self._inputs is None:
            self._inputs = Inputs.of(
                self.network,
                self.archive,
                cache_gb=self.settings.cache_gb,
                channels=self.channels,
                prognosis=self.settings.prognosis,
            )
            self._corners, self._land = land_corners(self.archive.land(), self.size)
            stations = self.archive.stations
            self._row, self._col = self.archive.domain.fine.row_col(stations.lat, stations.lon)
            self._hidden = held_out(len(stations), self.settings.held_out_stations, self.settings.seed)
        random = np.random.default_rng([self.settings.seed, 1, epoch])
        passes = math.ceil(len(self) * self.settings.days / len(self.days))
        order = np.concatenate([random.permutation(len(self.days)) for _ in range(passes)])
        slots = range(self.rank, self.settings.days, self.processes)
        chosen = [(slot, self.days[order[number * self.settings.days + slot]]) for slot in slots]
        parts = [
            self._day(day, np.random.default_rng([self.settings.seed, 2, epoch, number, slot])) for slot, day in chosen
        ]
        tiles = [tile for _, of_day in parts for tile in of_day]
        inputs, lead, target, readings, names = zip(*tiles, strict=True)
        return TileBatch(
            day=DayInputs.join([day for day, _ in parts]),
            tiles=TileInputs.join(inputs),
            lead=torch.tensor(lead),
            target=torch.stack(target),
            stations=_padded(readings),
            names=names,
        )

    def _day(self, day: date, random: np.random.Generator) -> tuple[DayInputs, list[Any]]:
        assert self._inputs is not None
        hotspots = round(self.settings.hotspot_ratio * self.settings.tiles)
        weight = self._land * self._tile_means(self._level(day))
        picks = [
            *random.choice(len(weight), hotspots, p=weight / weight.sum()),
            *random.choice(len(weight), self.settings.tiles - hotspots, p=self._land / self._land.sum()),
        ]
        leads = random.choice(self.network.leads, self.settings.tiles)
        groups = self.network.days_ahead.groups
        if groups:  # a day is encoded for one lead
            leads[:] = leads[0]
        inputs = self._inputs.day(day, int(leads[0]), self._hidden_groups(groups, random))
        return inputs, [
            self._tile(day, self._corners[pick], int(lead)) for pick, lead in zip(picks, leads, strict=True)
        ]

    def _hidden_groups(self, groups: Sequence[str], random: np.random.Generator) -> list[str]:
        """Those that are hidden from a day: each by itself, and sometimes all."""
        share = self.settings.hidden_groups
        every, *each = random.random(1 + len(groups)) if groups else (1.0,)
        return [group for group, chance in zip(groups, each, strict=True) if chance < share or every < share / 2]

    def _level(self, day: date) -> Array:
        """How high PM2.5 is on coarse cells, by the channel that tells it or by the day's own values."""
        assert self._inputs is not None
        for index, channel in enumerate(self._inputs.channels):
            if channel.quantity == "pm25":
                return self._inputs.coarse(day)[index]
        return np.nan_to_num(self._inputs.pm25_25km(day))

    def _tile_means(self, field: Array) -> Array:
        """Mean of a coarse field over each candidate tile, by its cells' sums."""
        domain = self.archive.domain
        ratio = domain.coarse.step / domain.fine.step
        sums = np.pad(field.astype(np.float64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        low = (self._corners / ratio).astype(int)
        high = np.minimum(-(-(self._corners + self.size) // ratio).astype(int), field.shape)
        total = sums[high[:, 0], high[:, 1]] - sums[low[:, 0], high[:, 1]] - sums[high[:, 0], low[:, 1]]
        return (total + sums[low[:, 0], low[:, 1]]) / (high - low).prod(axis=1)

    def _tile(self, day: date, corner: Array, lead: int) -> tuple[Any, ...]:
        assert self._inputs is not None
        row, col = (int(edge) for edge in corner)
        size, valid = self.size, day + timedelta(days=lead)
        window: Window = (slice(row, row + size), slice(col, col + size))
        tile = self._inputs.tile(day, window)
        target = torch.from_numpy(self._inputs.pm25(valid, window))
        target[tile.fine[0, 0].isnan()] = torch.nan  # where today is missing there is no forecast to judge
        inside = (self._row >= row) & (self._row <= row + size - 1) & (self._col >= col) & (self._col <= col + size - 1)
        inside &= ~self._hidden
        values = self._inputs.stations_pm25(valid)[inside]
        stations = np.stack([self._row[inside] - row, self._col[inside] - col, values], axis=1)
        name = f"{day} T+{lead} rows {row}.. columns {col}.."
        return tile, lead, target, torch.from_numpy(stations.astype(np.float32)), name


def _padded(stations: Sequence[Tensor]) -> Tensor:
    """Lists of stations of different length as one tensor; NaN where there is none."""
    longest = max(1, *(len(part) for part in stations))
    return torch.stack([torch.nn.functional.pad(p, (0, 0, 0, longest - len(p)), value=torch.nan) for p in stations])


class BatchOrder(Sampler[tuple[int, int]]):
    """(epoch, number) of the batches, in order, from a given one to the end of training."""

    def __init__(self, batches: int, epochs: int, start: int = 0):
        self.batches, self.epochs, self.start = batches, epochs, start

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return (divmod(place, self.batches) for place in range(self.start, self.batches * self.epochs))

    def __len__(self) -> int:
        return self.batches * self.epochs - self.start
