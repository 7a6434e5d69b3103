"""What a forecast owes to an input: the same network, with that input taken away or made false at test time."""

from collections.abc import Callable, Mapping
from datetime import date
from functools import partial

import numpy as np
import torch
from torch import Tensor

from cranpm.channels import COARSE_NAMES
from cranpm.errors import CranpmError
from cranpm.inputs import WIND, Inputs
from cranpm.scale import Scales
from cranpm.store import Archive, Window

U = [i for i, name in enumerate(COARSE_NAMES) if name.startswith("u")]
V = [i for i, name in enumerate(COARSE_NAMES) if name.startswith("v")]
CAMS = [i for i, name in enumerate(COARSE_NAMES) if name.startswith("cams")]
WEATHER = [i for i in range(len(COARSE_NAMES)) if i not in CAMS]
Day = tuple[Tensor, Tensor, Tensor, Tensor]


class Intervened(Inputs):
    """Inputs of an archive in which one cause was changed; targets are read as they are."""

    def __init__(
        self, archive: Archive, scales: Scales, intervention: str, cache_gb: float = 2.0, coarse_pm25: bool = False
    ):
        super().__init__(archive, cache_gb, coarse_pm25=coarse_pm25)
        if intervention not in INTERVENTIONS:
            raise CranpmError(
                expected=f"an intervention: {', '.join(INTERVENTIONS)}", found=intervention, remedy="Name one of these."
            )
        self._change, self._scales, self.intervention = INTERVENTIONS[intervention], scales, intervention

    def day(self, day: date) -> Day:
        coarse, _, relief, corner = super().day(day)
        fields = coarse.clone()
        relief = self._change(self, day, fields, relief.clone())
        return fields, fields[:, WIND], relief, corner

    def tile(self, day: date, window: Window) -> tuple[Tensor, Tensor]:
        fine, position = super().tile(day, window)
        fine = fine.clone()
        if self.intervention == "elevation zero":
            fine[1] = 0
        elif self.intervention == "elevation permuted":
            order = np.random.default_rng([day.toordinal(), window[0].start, window[1].start]).permutation(
                fine[1].numel()
            )
            fine[1] = fine[1].flatten()[torch.from_numpy(order)].unflatten(0, fine.shape[1:])
        elif self.intervention == "yesterday zero":
            fine[4] = torch.nan  # enters as the mean
        return fine, position

    def mean(self, channels: list[int]) -> Tensor:
        """Training means of channels, shaped to stand in for their fields."""
        return torch.tensor([self._scales.mean[channel] for channel in channels])[None, :, None, None]

    def another_day(self, day: date) -> date:
        """Any other day that has a day before it; always the same for a day."""
        held = self.archive.days[1:]
        return held[int(np.random.default_rng(day.toordinal()).integers(len(held)))]


def _both(channels: list[int]) -> list[int]:
    """Channels of today and of yesterday."""
    return channels + [channel + len(COARSE_NAMES) for channel in channels]


def _scale_wind(factor: float, inputs: Intervened, day: date, fields: Tensor, relief: Tensor) -> Tensor:
    fields[:, _both(U + V)] *= factor
    return relief


def _other_wind(inputs: Intervened, day: date, fields: Tensor, relief: Tensor) -> Tensor:
    channels = _both(U + V)
    fields[:, channels] = Inputs.day(inputs, inputs.another_day(day))[0][:, channels]
    return relief


def _to_mean(channels: list[int], inputs: Intervened, day: date, fields: Tensor, relief: Tensor) -> Tensor:
    fields[:, channels] = inputs.mean([channel % len(COARSE_NAMES) for channel in channels])
    return relief


def _no_yesterday(inputs: Intervened, day: date, fields: Tensor, relief: Tensor) -> Tensor:
    count = len(COARSE_NAMES)
    fields[:, count : 2 * count] = inputs.mean(list(range(count)))
    fields[:, 2 * count + 1 :] = torch.nan
    return relief


def _level(inputs: Intervened, day: date, fields: Tensor, relief: Tensor) -> Tensor:
    return torch.zeros_like(relief)


def _shuffled(inputs: Intervened, day: date, fields: Tensor, relief: Tensor) -> Tensor:
    order = torch.from_numpy(np.random.default_rng(day.toordinal()).permutation(relief.numel()))
    return relief.flatten()[order].unflatten(0, relief.shape)


def _nothing(inputs: Intervened, day: date, fields: Tensor, relief: Tensor) -> Tensor:
    return relief


INTERVENTIONS: Mapping[str, Callable[[Intervened, date, Tensor, Tensor], Tensor]] = {
    "none": _nothing,
    "wind zero": partial(_scale_wind, 0.0),
    "wind reversed": partial(_scale_wind, -1.0),
    "wind of another day": _other_wind,
    "elevation zero": _level,
    "elevation permuted": _shuffled,
    "CAMS zero": partial(_to_mean, _both(CAMS)),
    "yesterday zero": _no_yesterday,
    "weather zero": partial(_to_mean, _both(WEATHER)),
}
"""Zero means: the training mean, which is 0 inside the network; for wind and elevation, 0 itself."""
