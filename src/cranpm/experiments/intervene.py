"""What a forecast owes to an input: the same network, with that input taken away or made false at test time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cranpm.archive.store import Archive
from cranpm.core.channels import GROUPS, Channel
from cranpm.core.grid import Window
from cranpm.network import DayInputs, TileInputs
from cranpm.network.scaling import Scales
from cranpm.training.inputs import Inputs

Choice = Callable[[Channel], bool]
ELEVATION, YESTERDAY = 1, 4
"""Channels of a tile."""


class Intervened(Inputs):
    """Inputs of an archive in which one cause was changed; targets are read as they are."""

    def __init__(self, archive: Archive, scales: Scales, intervention: str, cache_gb: float = 2.0, **reading: Any):
        super().__init__(archive, cache_gb, **reading)
        self._change, self._scales = INTERVENTIONS[intervention], scales

    def day(self, day: date, lead: int | None = None, hidden: Collection[str] = ()) -> DayInputs:
        as_it_is = super().day(day, lead, {*hidden, *self._change.hidden})
        fields = self._change.coarse(self, day, as_it_is.coarse.clone())
        wind = self._change.priors_wind * self._wind(as_it_is, fields)
        return replace(
            as_it_is, coarse=fields, wind=wind, elevation=self._change.relief(day, as_it_is.elevation.clone())
        )

    def tile(self, day: date, window: Window) -> TileInputs:
        as_it_is = super().tile(day, window)
        fine = as_it_is.fine.clone()
        fine[:, ELEVATION] = self._change.relief(day, fine[:, ELEVATION])
        if self._change.without_yesterday:
            fine[:, YESTERDAY] = torch.nan  # enters as the mean
        return replace(as_it_is, fine=fine)

    def _wind(self, as_it_is: DayInputs, fields: Tensor) -> Tensor:
        """Of the changed fields; where the weather ahead is known, that of the way as it is."""
        known = as_it_is.known is not None and as_it_is.known[:, 0, 0].any()
        return as_it_is.wind if known else fields[:, self.wind]

    def mean(self, channels: list[int]) -> Tensor:
        """Training means of channels, shaped to replace their fields."""
        return torch.tensor([self._scales.mean[channel] for channel in channels])[None, :, None, None]

    def another_day(self, day: date) -> date:
        """Any other day that has a day before it; always the same for a day."""
        held = set(self.archive.days)
        others = [other for other in sorted(held - {day}) if other - timedelta(days=1) in held]
        return others[int(np.random.default_rng(day.toordinal()).integers(len(others)))]


@dataclass(frozen=True)
class Intervention:
    """What happens to the coarse fields, to elevation, to a tile's yesterday, and to the wind that the priors see."""

    coarse: Callable[[Intervened, date, Tensor], Tensor] = lambda inputs, day, fields: fields
    relief: Callable[[date, Tensor], Tensor] = lambda day, metres: metres
    without_yesterday: bool = False
    hidden: tuple[str, ...] = ()
    """Groups of the days ahead that are missing."""
    priors_wind: float = 1.0


def is_wind(channel: Channel) -> bool:
    return channel.quantity in ("wind_u", "wind_v")


def is_composition(channel: Channel) -> bool:
    return channel.group == "composition"


def is_weather(channel: Channel) -> bool:
    return not is_composition(channel)


def of_both_days(channels: Sequence[Channel], choice: Choice) -> list[int]:
    """Indices of the chosen channels of today, then of yesterday."""
    today = [index for index, channel in enumerate(channels) if choice(channel)]
    return today + [index + len(channels) for index in today]


def _scale_wind(factor: float, inputs: Intervened, day: date, fields: Tensor) -> Tensor:
    fields[:, of_both_days(inputs.channels, is_wind)] *= factor
    return fields


def _other_wind(inputs: Intervened, day: date, fields: Tensor) -> Tensor:
    channels = of_both_days(inputs.channels, is_wind)
    other = inputs.another_day(day)
    both = np.concatenate([inputs.coarse(other), inputs.coarse(other - timedelta(days=1))])
    fields[:, channels] = torch.from_numpy(both[channels])[None]
    return fields


def _to_mean(choice: Choice, inputs: Intervened, day: date, fields: Tensor) -> Tensor:
    channels = of_both_days(inputs.channels, choice)
    fields[:, channels] = inputs.mean([channel % len(inputs.channels) for channel in channels])
    return fields


def _no_yesterday(inputs: Intervened, day: date, fields: Tensor) -> Tensor:
    count = len(inputs.channels)
    fields[:, count : 2 * count] = inputs.mean(list(range(count)))
    fields[:, 2 * count + 1 :] = torch.nan
    return fields


def _flat(day: date, metres: Tensor) -> Tensor:
    return torch.zeros_like(metres)


def _shuffled(day: date, metres: Tensor) -> Tensor:
    order = torch.from_numpy(np.random.default_rng(day.toordinal()).permutation(metres.numel()))
    return metres.flatten()[order].unflatten(0, metres.shape)


INTERVENTIONS: Mapping[str, Intervention] = {
    "wind zero": Intervention(partial(_scale_wind, 0.0)),
    "wind reversed": Intervention(partial(_scale_wind, -1.0)),
    "wind of another day": Intervention(_other_wind),
    "wind reversed in scan and bias alone": Intervention(priors_wind=-1.0),
    "elevation zero": Intervention(relief=_flat),
    "elevation shuffled": Intervention(relief=_shuffled),
    "CAMS at its mean": Intervention(partial(_to_mean, is_composition)),
    "yesterday at its mean": Intervention(_no_yesterday, without_yesterday=True),
    "weather at its mean": Intervention(partial(_to_mean, is_weather)),
    "weather ahead missing": Intervention(hidden=("weather",)),
    "composition ahead missing": Intervention(hidden=("composition",)),
    "all days ahead missing": Intervention(hidden=GROUPS),
}
"""Means are those of the training days, which the network sees as 0. Tiles of a day are shuffled in the same order."""
