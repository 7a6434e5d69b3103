"""A network judged day by day on tiles of unseen days: sums from which means, spreads and intervals follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import torch

from cranpm.baselines.damped import DampedPersistence
from cranpm.grid import Array
from cranpm.inputs import Inputs
from cranpm.store import Window
from cranpm.verify.tally import BINS, MOMENTS, Tally

METHODS = ("network", "persistence", "damped")


@dataclass(frozen=True)
class DailySums:
    """Moments by (day, method, lead, bin of the truth, moment)."""

    days: list[date]
    leads: tuple[int, ...]
    moments: Array

    def rmse(self, method: str = "network") -> Array:
        """By lead, over all days."""
        total = Tally(self.moments[:, METHODS.index(method)].sum(axis=0), np.zeros((len(self.leads), BINS, BINS)))
        return total.rmse


@torch.no_grad()
def evaluate(
    network: Any,
    inputs: Inputs,
    tiles: Sequence[tuple[date, Window]],
    leads: tuple[int, ...],
    damped: DampedPersistence,
) -> DailySums:
    """Sums of a network and of what it must beat; `inputs` may be intervened on, targets never are."""
    days = list(dict.fromkeys(day for day, _ in tiles))
    moments = np.zeros((len(days), len(METHODS), len(leads), BINS, MOMENTS))
    for number, day in enumerate(days):
        context = network.encode_day(*inputs.day(day))
        for window in (window for when, window in tiles if when == day):
            fine, position = inputs.tile(day, window)
            repeated = (fine.expand(len(leads), *fine.shape), position.expand(len(leads), 2), torch.tensor(leads))
            forecasts = network.forecast_tile(context, *repeated).float().numpy()
            today = inputs.pm25(day, window)
            for index, lead in enumerate(leads):
                truth = inputs.pm25(day + timedelta(days=lead), window)
                fields = (forecasts[index], today, damped.forecast(today, day, lead, window))
                for method, field in enumerate(fields):
                    moments[number, method, index] += Tally.of(np.maximum(field, 0), truth).moments
    return DailySums(days, leads, moments)
