"""Where a tile looks: weights of the cross-attention on the coarse grid, with and without the biases."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cranpm.grid import Array
from cranpm.inputs import Inputs
from cranpm.model import CranPM
from cranpm.model.attention import heads_first
from cranpm.model.bridge import CrossAttention, Sight
from cranpm.store import Window


@dataclass(frozen=True)
class Look:
    """Attention of a tile on a day: (layer, head, row, column) of coarse tokens, mean over the tile's own tokens."""

    day: date
    weights: Array
    wind_ms: tuple[float, float]
    """Mean (u, v) at 10 m over the tile."""


@contextmanager
def watched(network: CranPM, biased: bool) -> Iterator[list[Tensor]]:
    """Collects the attention weights of every cross-attention that runs inside; without biases as if they were 0."""
    found: list[Tensor] = []

    def note(layer: CrossAttention, arguments: tuple[Any, ...]) -> None:
        tokens, key, _, sight = arguments
        query = heads_first(layer.query(layer.norm_query(tokens)), layer.heads)
        logits = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
        bias = layer._bias(sight if biased else Sight(), query.dtype)
        found.append(torch.softmax(logits if bias is None else logits + bias, dim=3))

    layers = [module for module in network.modules() if isinstance(module, CrossAttention)]
    handles = [layer.register_forward_pre_hook(note) for layer in layers]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def look(network: CranPM, inputs: Inputs, day: date, window: Window, lead: int, biased: bool = True) -> Look:
    """What a tile looks at on one day."""
    context = network.encode_day(*inputs.day(day))
    fine, position = inputs.tile(day, window)
    with watched(network, biased) as found:
        network.forecast_tile(context, fine[None], position[None], torch.tensor([lead]))
    weights = torch.stack([part[0].mean(dim=1) for part in found]).unflatten(2, context.grid)
    domain = inputs.archive.domain
    grid = domain.fine.window(*window)
    rows, cols = domain.coarse.slices(grid.north, grid.west, grid.south, grid.east)
    u, v = (float(np.mean(part)) for part in context.wind[0, :, rows, cols].numpy())
    return Look(day, weights.numpy(), (u, v))


def strengths(network: CranPM) -> dict[str, list[float]]:
    """The learned alpha (elevation), beta (wind) and nearness (distance) of every layer that has them."""
    kept = ("alpha", "beta", "nearness")
    return {
        name: parameter.detach().abs().flatten().tolist()
        for name, parameter in network.named_parameters()
        if name.rpartition(".")[2] in kept
    }
