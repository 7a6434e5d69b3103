"""Where fine tokens learn from coarse ones: the paper's cross-attention, and the fusions it is compared with.

Every fusion offers the same two steps: `prepare`, once per day, and `forward`, for every batch of tiles.
"""

import math
from collections.abc import Mapping
from typing import ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from cranpm.network.attention import Block, Mlp, SelfAttention, attend, heads_first
from cranpm.network.context import Memory
from cranpm.network.cranpm_settings import FusionName, NetworkSettings
from cranpm.network.tile_geometry import PairGeometry, TileGeometry
from cranpm.network.token_geometry import fold, unfold

LEAST = 1e-3
"""1000 km: a distance of nothing has no gradient."""
NEARNESS = (2.0, 64.0)
"""Fall of the logits over 1000 km at first: of the head that looks farthest, and of the one that looks nearest."""


class CrossAttention(nn.Module):
    """Tokens query others, with beta_h gamma added to the logits of head h; then an MLP (paper, Sec. 3.5).

    With the distance bias, which the paper does not have, -nearness_h distance is added too. With `reach`, the share
    of the air's path at which each head looks at first, distances are from there, and that is the wind bias.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        mlp_ratio: int,
        wind_bias: bool,
        distance_bias: bool,
        reach: Float[Tensor, " heads"] | None = None,
    ):
        super().__init__()
        self.heads = heads
        self.norm_query, self.norm_key = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.norm_mlp, self.mlp = nn.LayerNorm(width), Mlp(width, mlp_ratio)
        if reach is not None:
            self.reach = nn.Parameter(reach)
        elif wind_bias:
            self.beta = nn.Parameter(torch.ones(heads))
        if distance_bias:
            farthest, nearest = map(math.log10, NEARNESS)
            self.nearness = nn.Parameter(torch.logspace(farthest, nearest, heads))

    def keys(self, others: Float[Tensor, "b m width"]) -> tuple[Tensor, Tensor]:
        """Keys and values, heads first."""
        others = self.norm_key(others)
        return heads_first(self.key(others), self.heads), heads_first(self.value(others), self.heads)

    def forward(
        self,
        tokens: Float[Tensor, "b n width"],
        key: Float[Tensor, "b heads m d"],
        value: Float[Tensor, "b heads m d"],
        pairs: PairGeometry,
    ) -> Float[Tensor, "b n width"]:
        query = heads_first(self.query(self.norm_query(tokens)), self.heads)
        tokens = tokens + self.out(attend(query, key, value, self.bias(pairs, query.dtype)))
        return tokens + self.mlp(self.norm_mlp(tokens))

    def bias(self, pairs: PairGeometry, dtype: torch.dtype) -> Float[Tensor, "b heads #n m"] | None:
        bias = None
        distance = None if pairs.distance is None else pairs.distance[:, None]
        if pairs.offset is not None and pairs.drift is not None:
            departed = self.reach[:, None, None, None] * pairs.drift[:, None, :, None]
            distance = (pairs.offset[:, None] - departed).square().sum(dim=4).add(LEAST**2).sqrt()
        if pairs.upwind is not None:
            bias = self.beta.to(dtype)[:, None, None] * pairs.upwind.to(dtype)[:, None]
        if distance is not None:
            fall = -self.nearness.abs().to(dtype)[:, None, None] * distance.to(dtype)
            bias = fall if bias is None else bias + fall
        return bias


class CrossLayers(nn.Module):
    """Cross-attention layers, one after the other. What they look at is prepared first and can be used again."""

    def __init__(
        self,
        count: int,
        width: int,
        heads: int,
        mlp_ratio: int,
        wind_bias: bool,
        distance_bias: bool = False,
        departure: bool = False,
    ):
        super().__init__()
        # Of two neighbours among heads and layers one begins here, the other where the air sets out.
        reaches = [(torch.arange(heads) + layer).remainder(2).float() if departure else None for layer in range(count)]
        self.layers = nn.ModuleList(
            CrossAttention(width, heads, mlp_ratio, wind_bias, distance_bias, reach) for reach in reaches
        )

    @classmethod
    def of(cls, settings: NetworkSettings, count: int) -> "CrossLayers":
        width, heads = settings.fine.width, settings.fine.heads
        departure = settings.wind_bias and settings.wind_form == "departure"
        return cls(count, width, heads, settings.mlp_ratio, settings.wind_bias, settings.distance_bias, departure)

    def prepare(self, others: Float[Tensor, "b m width"]) -> Memory:
        """Keys and values of every layer."""
        return tuple(part for layer in self.layers for part in cast(CrossAttention, layer).keys(others))

    def forward(
        self, tokens: Float[Tensor, "b n width"], memory: Memory, pairs: PairGeometry
    ) -> Float[Tensor, "b n width"]:
        for layer, key, value in zip(self.layers, memory[::2], memory[1::2], strict=True):
            tokens = layer(tokens, key, value, pairs)
        return tokens


class Fusion(nn.Module):
    """Fine tokens stay as they are: no fusion. The others keep a projection of the coarse tokens."""

    token_by_token: ClassVar[bool] = True
    """Whether what becomes of a fine token does not depend on the other fine ones, so that some can be left out."""

    def __init__(self, settings: NetworkSettings):
        super().__init__()

    def prepare(self, coarse: Float[Tensor, "days m coarse_width"]) -> Memory:
        return ()

    def forward(self, fine: Float[Tensor, "tiles n width"], memory: Memory, geometry: TileGeometry) -> Tensor:
        return fine


class _Projected(Fusion):
    """Keeps the coarse tokens, brought to the width of the fine ones (or a multiple) by a linear map without bias."""

    def __init__(self, settings: NetworkSettings, multiple: int = 1):
        super().__init__(settings)
        self.project = nn.Linear(settings.coarse.width, multiple * settings.fine.width, bias=False)

    def prepare(self, coarse: Float[Tensor, "days m coarse_width"]) -> Memory:
        return (self.project(coarse),)


class Cross(_Projected):
    """Fine queries coarse, the paper's bridge: keys and values are computed once per day."""

    def __init__(self, settings: NetworkSettings):
        super().__init__(settings)
        self.cross = CrossLayers.of(settings, settings.bridge_layers)

    def prepare(self, coarse: Float[Tensor, "days m coarse_width"]) -> Memory:
        return self.cross.prepare(self.project(coarse))

    def forward(self, fine: Float[Tensor, "tiles n width"], memory: Memory, geometry: TileGeometry) -> Tensor:
        return unfold(self.cross(fold(fine, geometry.days), memory, geometry.by_day), fine.shape[0])


class Add(_Projected):
    """Feature addition: the coarse tokens at the place of a fine one are added to it."""

    def forward(self, fine: Float[Tensor, "tiles n width"], memory: Memory, geometry: TileGeometry) -> Tensor:
        return fine + geometry.aligned(memory[0])


class Film(_Projected):
    """FiLM: the coarse tokens at the place of a fine one scale and shift it."""

    def __init__(self, settings: NetworkSettings):
        super().__init__(settings, multiple=2)

    def forward(self, fine: Float[Tensor, "tiles n width"], memory: Memory, geometry: TileGeometry) -> Tensor:
        scale, shift = geometry.aligned(memory[0]).chunk(2, dim=2)
        return fine * (1 + scale) + shift


class Concat(_Projected):
    """Fine and coarse tokens in one sequence with self-attention; the fine ones go on."""

    token_by_token = False

    def __init__(self, settings: NetworkSettings):
        super().__init__(settings)
        branch = settings.fine
        self.blocks = nn.ModuleList(
            Block(SelfAttention(branch.width, branch.heads), branch.width, settings.mlp_ratio)
            for _ in range(settings.bridge_layers)
        )
        if settings.wind_bias:
            self.beta = nn.Parameter(torch.ones(settings.bridge_layers, branch.heads))

    def forward(self, fine: Float[Tensor, "tiles n width"], memory: Memory, geometry: TileGeometry) -> Tensor:
        both = torch.cat([fine, geometry.of_tiles(memory[0])], dim=1)
        n, m, upwind = fine.shape[1], memory[0].shape[1], geometry.by_tile.upwind
        for index, block in enumerate(self.blocks):
            bias = None
            if upwind is not None:
                bias = self.beta[index, :, None, None] * functional.pad(upwind, (n, 0, 0, m))[:, None]
            both = block(both, bias)
        return both[:, :n]


class CoarseQueriesFine(_Projected):
    """The reverse direction: coarse tokens query the tile's fine ones, and are then added where the fine ones lie."""

    token_by_token = False

    def __init__(self, settings: NetworkSettings):
        super().__init__(settings)
        self.cross = CrossLayers.of(settings, settings.bridge_layers)

    def forward(self, fine: Float[Tensor, "tiles n width"], memory: Memory, geometry: TileGeometry) -> Tensor:
        coarse = self.cross(geometry.of_tiles(memory[0]), self.cross.prepare(fine), geometry.by_tile.reversed())
        return fine + geometry.aligned(coarse)


class Bidirectional(_Projected):
    """In every layer coarse tokens query fine ones, then fine tokens query coarse ones."""

    token_by_token = False

    def __init__(self, settings: NetworkSettings):
        super().__init__(settings)
        self.up, self.down = (
            nn.ModuleList(CrossLayers.of(settings, 1) for _ in range(settings.bridge_layers)) for _ in range(2)
        )

    def forward(self, fine: Float[Tensor, "tiles n width"], memory: Memory, geometry: TileGeometry) -> Tensor:
        coarse = geometry.of_tiles(memory[0])
        for up, down in zip(self.up, self.down, strict=True):
            coarse = up(coarse, cast(CrossLayers, up).prepare(fine), geometry.by_tile.reversed())
            fine = down(fine, cast(CrossLayers, down).prepare(coarse), geometry.by_tile)
        return fine


FUSIONS: Mapping[FusionName, type[Fusion]] = {
    "cross": Cross,
    "none": Fusion,
    "add": Add,
    "film": Film,
    "concat": Concat,
    "coarse-queries-fine": CoarseQueriesFine,
    "bidirectional": Bidirectional,
}
