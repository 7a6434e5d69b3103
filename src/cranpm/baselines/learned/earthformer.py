"""Earthformer (Gao et al. 2022): attention inside cuboids of time and space, and global vectors that all can ask."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cranpm.baselines.learned.backbone import Backbone, BackboneSettings, ToCells
from cranpm.network.attention import Mlp, SelfAttention, attend, heads_first
from cranpm.network.context import DAYS_READ
from cranpm.network.patches import pad, sine_cosine

VECTORS = 8
Axis = Literal[1, 2, 3]
AXES: tuple[Axis, ...] = (1, 2, 3)
"""Cuboids are lines: along time, along columns, along rows (the authors' axial pattern)."""


class Ask(nn.Module):
    """Tokens look at others: attention with queries from one set and keys and values from another."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm, self.norm_others = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)

    def forward(self, tokens: Float[Tensor, "b n width"], others: Float[Tensor, "b m width"]) -> Tensor:
        keys_values = self.key_value(self.norm_others(others))
        key, value = (heads_first(part, self.heads) for part in keys_values.chunk(2, dim=2))
        return self.out(attend(heads_first(self.query(self.norm(tokens)), self.heads), key, value, None))


class CuboidBlock(nn.Module):
    """Attention along one axis, together with the global vectors, which then look at everything; then an MLP.

    After the last block of all the vectors are not used again: they stay as they are.
    """

    def __init__(self, width: int, heads: int, axis: Axis, last: bool):
        super().__init__()
        self.axis = axis
        self.norm, self.norm_mlp, self.norm_vectors = (nn.LayerNorm(width) for _ in range(3))
        self.inside, self.globally = SelfAttention(width, heads), None if last else Ask(width, heads)
        self.mlp = Mlp(width, 4)

    def forward(
        self, tokens: Float[Tensor, "b t h w width"], vectors: Float[Tensor, "b v width"]
    ) -> tuple[Tensor, Tensor]:
        lines = self.norm(tokens).movedim(self.axis, 3)  # b . . n width
        outer = lines.shape[:3]
        shared = self.norm_vectors(vectors)
        beside = shared[:, None, None].expand(-1, *outer[1:], -1, -1)
        mixed = self.inside(torch.cat([lines, beside], dim=3).flatten(0, 2))[:, : lines.shape[3]]
        tokens = tokens + mixed.unflatten(0, outer).movedim(3, self.axis)
        if self.globally is not None:
            vectors = vectors + self.globally(vectors, tokens.flatten(1, 3))
        return tokens + self.mlp(self.norm_mlp(tokens)), vectors


class Stack(nn.Module):
    """Blocks along all axes in turn, `depth` times."""

    def __init__(self, width: int, heads: int, depth: int, last: bool = False):
        super().__init__()
        axes = AXES * depth
        self.blocks = nn.ModuleList(
            CuboidBlock(width, heads, axis, last and index == len(axes) - 1) for index, axis in enumerate(axes)
        )

    def forward(self, tokens: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        for block in self.blocks:
            tokens, vectors = block(tokens, vectors)
        return tokens, vectors


class Earthformer(Backbone):
    """Two levels of an encoder over the days; a decoder over the leads that asks the encoder's tokens at its place."""

    def __init__(
        self, settings: BackboneSettings, channels: int, shape: tuple[int, int], leads: Sequence[int], outputs: int
    ):
        super().__init__(settings, channels, shape, leads, outputs)
        width, heads, depth = settings.width, settings.heads, settings.depth
        self.embed = nn.Conv2d(channels, width, settings.patch, settings.patch)
        self.time, self.ahead = (nn.Parameter(torch.randn(count, 1, 1, width)) for count in (DAYS_READ, len(leads)))
        self.vectors = nn.Parameter(0.02 * torch.randn(1, VECTORS, width))
        self.upper, self.lower = Stack(width, heads, depth), Stack(width, heads, depth)
        self.down = nn.Sequential(nn.LayerNorm(4 * width), nn.Linear(4 * width, width))
        self.up = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width))
        self.ask_lower, self.ask_upper = Ask(width, heads), Ask(width, heads)
        self.lower_out, self.upper_out = Stack(width, heads, depth), Stack(width, heads, depth, last=True)
        self.norm = nn.LayerNorm(width)
        self.out = ToCells(width, settings.patch, outputs)

    def forward(
        self, frames: Float[Tensor, "b t ch h w"], wind: Float[Tensor, "b 2 h w"], elevation_m: Float[Tensor, "b h w"]
    ) -> Float[Tensor, "b leads out h w"]:
        days, leads, shape = frames.shape[0], len(self.leads), (frames.shape[3], frames.shape[4])
        tokens = self.embed(pad(frames.flatten(0, 1), 2 * self.settings.patch))
        tokens = tokens.unflatten(0, (days, DAYS_READ)).permute(0, 1, 3, 4, 2)
        tokens = tokens + self.time + _places(tokens)
        upper, vectors = self.upper(tokens, self.vectors.expand(days, -1, -1))
        lower, vectors = self.lower(self.down(_merge(upper)), vectors)
        ahead = self.ahead + _places(lower)
        ahead = _ask(self.ask_lower, ahead.expand(days, -1, -1, -1, -1), lower)
        ahead, vectors = self.lower_out(ahead, vectors)
        ahead = _ask(self.ask_upper, _split(self.up(ahead)), upper)
        ahead, _ = self.upper_out(ahead, vectors)
        grid = self.norm(ahead).flatten(0, 1).permute(0, 3, 1, 2)
        return self.out(grid, shape).unflatten(0, (days, leads))


def _ask(attention: Ask, tokens: Float[Tensor, "b t h w width"], memory: Float[Tensor, "b s h w width"]) -> Tensor:
    """Each lead looks at all days at its own place."""
    here, there = (x.permute(0, 2, 3, 1, 4).flatten(0, 2) for x in (tokens, memory))
    answer = attention(here, there).unflatten(0, (tokens.shape[0], *tokens.shape[2:4]))
    return tokens + answer.permute(0, 3, 1, 2, 4)


def _places(tokens: Float[Tensor, "b t h w width"]) -> Float[Tensor, "h w width"]:
    rows, cols, width = tokens.shape[2:]
    return sine_cosine(rows, cols, width, tokens.device)


def _merge(tokens: Float[Tensor, "b t h w width"]) -> Tensor:
    """Four neighbours as one token."""
    squares = tokens.unflatten(3, (-1, 2)).unflatten(2, (-1, 2))  # b t h 2 w 2 width
    return squares.permute(0, 1, 2, 4, 3, 5, 6).flatten(4)


def _split(tokens: Float[Tensor, "b t h w wide"]) -> Tensor:
    """The inverse of `_merge`."""
    squares = tokens.unflatten(4, (2, 2, -1)).permute(0, 1, 2, 4, 3, 5, 6)
    return squares.flatten(4, 5).flatten(2, 3)
