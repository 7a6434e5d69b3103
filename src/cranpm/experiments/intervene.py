"""What a forecast owes to an input: the same network, with that input taken away or made false at test time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

import numpy as np
import torch
from torch import Tensor

from cranpm.archive.store import Archive
from cranpm.core.channels import COARSE_NAMES
from cranpm.core.grid import Window
from cranpm.network.scaling import Scales
from cranpm.training.inputs import WIND, Inputs

WINDS = [index for index, name in enumerate(COARSE_NAMES) if name[0] in "uv"]
CAMS = [index for index, name in enumerate(COARSE_NAMES) if name.startswith("cams")]
WEATHER = [index for index in range(len(COARSE_NAMES)) if index not in CAMS]
Day = tuple[Tensor, Tensor, Tensor, Tensor]
ELEVATION, YESTERDAY = 1, 4
"""Channels of a tile."""


class Intervened(Inputs):
    """Inputs of an archive in which one cause was changed; targets are read as they are."""

    def __init__(
        self, archive: Archive, scales: Scales, intervention: str, cache_gb: float = 2.0, coarse_pm25: bool = False
    ):
        super().__init__(archive, cache_gb, coarse_pm25=coarse_pm25)
        self._change, self._scales = INTERVENTIONS[intervention], scales

    def day(self, day: date) -> Day:
        coarse, _, relief, corner = super().day(day)
        fields = self._change.coarse(self, day, coarse.clone())
        return fields, self._change.priors_wind * fields[:, WIND], self._change.relief(day, relief.clone()), corner

    def tile(self, day: date, window: Window) -> tuple[Tensor, Tensor]:
        fine, position = super().tile(day, window)
        fine = fine.clone()
        fine[ELEVATION] = self._change.relief(day, fine[ELEVATION])
        if self._change.without_yesterday:
            fine[YESTERDAY] = torch.nan  # enters as the mean
        return fine, position

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
    priors_wind: float = 1.0


def _both(channels: list[int]) -> list[int]:
    """Channels of today and of yesterday."""
    return channels + [channel + len(COARSE_NAMES) for channel in channels]


def _scale_wind(factor: float, inputs: Intervened, day: date, fields: Tensor) -> Tensor:
    fields[:, _both(WINDS)] *= factor
    return fields


def _other_wind(inputs: Intervened, day: date, fields: Tensor) -> Tensor:
    channels = _both(WINDS)
    fields[:, channels] = Inputs.day(inputs, inputs.another_day(day))[0][:, channels]
    return fields


def _to_mean(channels: list[int], inputs: Intervened, day: date, fields: Tensor) -> Tensor:
    fields[:, channels] = inputs.mean([channel % len(COARSE_NAMES) for channel in channels])
    return fields


def _no_yesterday(inputs: Intervened, day: date, fields: Tensor) -> Tensor:
    count = len(COARSE_NAMES)
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
    "CAMS at its mean": Intervention(partial(_to_mean, _both(CAMS))),
    "yesterday at its mean": Intervention(_no_yesterday, without_yesterday=True),
    "weather at its mean": Intervention(partial(_to_mean, _both(WEATHER))),
}
"""Means are those of the training days, which the network sees as 0. Tiles of a day are shuffled in the same order."""
