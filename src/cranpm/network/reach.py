"""What the land of a tile needs: the tokens that land can be reached from, and rectangles of tokens that hold it.

A forecast is missing wherever today's PM2.5 is. What only missing pixels would need is left out; on land the outcome is
that of the full computation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from cranpm.core.grid import Array

Span = tuple[int, int]
"""First place and the place after the last."""
Part = tuple[Span, Span]
"""Rows and columns of a rectangle."""
PART_COST = 48.0
"""What one more rectangle costs by itself: starting its kernels takes as long as a stage takes for so many tokens."""


def holds_land(pm25: Float[Tensor, "b h w"], patch: int) -> Bool[Tensor, "b rows cols"]:
    """Tokens in which PM2.5 is known somewhere; at the south and east edge also those that are cut."""
    known = pm25.isfinite().float()[:, None]
    return functional.max_pool2d(known, patch, ceil_mode=True)[:, 0] > 0


def around(tokens: Bool[Tensor, "b rows cols"], distance: int) -> Bool[Tensor, "b rows cols"]:
    """Tokens that are at most so many rows and columns away."""
    side = 2 * distance + 1
    return functional.max_pool2d(tokens.float()[:, None], side, stride=1, padding=distance)[:, 0] > 0


@dataclass(frozen=True)
class Chosen:
    """Some tokens of every tile, equally many: a tile that needs fewer repeats one of its own."""

    index: Int[Tensor, "b q"]

    @classmethod
    def of(cls, wanted: Bool[Tensor, "b rows cols"]) -> "Chosen":
        flat = wanted.flatten(1).int()
        count = flat.sum(dim=1, keepdim=True)
        first = flat.argsort(dim=1, descending=True, stable=True)[:, : int(count.max())]
        place = torch.arange(first.shape[1], device=first.device)
        return cls(torch.where(place < count, first, first[:, :1]))

    def take(self, tokens: Float[Tensor, "b n ch"]) -> Float[Tensor, "b q ch"]:
        return tokens.gather(1, self.index[:, :, None].expand(-1, -1, tokens.shape[2]))

    def put(self, tokens: Float[Tensor, "b n ch"], chosen: Float[Tensor, "b q ch"]) -> Float[Tensor, "b n ch"]:
        """The tokens with the chosen ones in their places; the others stay as they were."""
        return tokens.scatter(1, self.index[:, :, None].expand(-1, -1, tokens.shape[2]), chosen.to(tokens.dtype))


def cover(wanted: Bool[Tensor, "rows cols"], cost: Callable[[Part], float]) -> list[Part]:
    """Rectangles that together hold all wanted tokens, in strips of rows or of columns, so that they cost least."""
    found = wanted.cpu().numpy()
    by_rows = _strips(found.tobytes(), (found.shape[0], found.shape[1]), cost)
    by_cols = _strips(found.T.tobytes(), (found.shape[1], found.shape[0]), _turned(cost))
    if by_rows[0] <= by_cols[0]:
        return list(by_rows[1])
    return [(down, along) for along, down in by_cols[1]]


@lru_cache
def _turned(cost: Callable[[Part], float]) -> Callable[[Part], float]:
    return lambda part: cost((part[1], part[0]))


@lru_cache(maxsize=1024)
def _strips(wanted: bytes, shape: Span, cost: Callable[[Part], float]) -> tuple[float, tuple[Part, ...]]:
    """The best strips of rows, each as wide as what it holds, and their cost; kept for the other leads of a tile."""
    field: Array = np.frombuffer(wanted, bool).reshape(shape)
    rows, cols = shape
    used = np.asarray(field.any(axis=1))
    first = np.where(used, field.argmax(axis=1), cols)
    last = np.where(used, cols - field[:, ::-1].argmax(axis=1), 0)
    best: list[tuple[float, tuple[Part, ...]]] = [(0.0, ())]
    for end in range(1, rows + 1):
        options = [best[end - 1]] if not used[end - 1] else []
        west, east = cols, 0
        for start in range(end - 1, -1, -1):
            west, east = min(west, int(first[start])), max(east, int(last[start]))
            if used[start] and used[end - 1]:
                part = ((start, end), (west, east))
                before, parts = best[start]
                options.append((before + PART_COST + cost(part), (*parts, part)))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1]
