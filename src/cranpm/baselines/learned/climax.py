"""ClimaX (Nguyen et al. 2023): every variable has separate tokens, which are pooled by attention; then a ViT."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cranpm.baselines.learned.backbone import Backbone, BackboneSettings, ToCells
from cranpm.network.attention import Block, SelfAttention, attend, heads_first
from cranpm.network.context import DAYS_READ
from cranpm.network.patches import pad, sine_cosine


class VariablePool(nn.Module):
    """At each place, one learned query looks at the tokens of all variables."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Parameter(torch.zeros(1, 1, width))
        self.key_value, self.out = nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, tokens: Float[Tensor, "n v width"]) -> Float[Tensor, "n width"]:
        key, value = (heads_first(part, self.heads) for part in self.key_value(tokens).chunk(2, dim=2))
        query = heads_first(self.query.expand(tokens.shape[0], -1, -1), self.heads)
        return self.out(attend(query, key, value, None)).squeeze(1)


class ClimaX(Backbone):
    """The lead is added to every token, so that one network serves all leads."""

    def __init__(
        self, settings: BackboneSettings, channels: int, shape: tuple[int, int], leads: Sequence[int], outputs: int
    ):
        super().__init__(settings, channels, shape, leads, outputs)
        width, variables = settings.width, DAYS_READ * channels
        self.embed = nn.Conv2d(variables, variables * width, settings.patch, settings.patch, groups=variables)
        self.variable = nn.Parameter(0.02 * torch.randn(variables, width))
        self.pool = VariablePool(width, settings.heads)
        self.lead = nn.Embedding(len(leads), width)
        self.blocks = nn.ModuleList(
            Block(SelfAttention(width, settings.heads), width, mlp_ratio=4) for _ in range(settings.depth)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.out = ToCells(width, settings.patch, outputs)

    def forward(
        self, frames: Float[Tensor, "b t ch h w"], wind: Float[Tensor, "b 2 h w"], elevation_m: Float[Tensor, "b h w"]
    ) -> Float[Tensor, "b leads out h w"]:
        days, leads, shape = frames.shape[0], len(self.leads), (frames.shape[3], frames.shape[4])
        tokens = self.embed(pad(frames.flatten(1, 2), self.settings.patch))
        rows, cols = tokens.shape[2:]
        tokens = tokens.unflatten(1, (-1, self.settings.width)).permute(0, 3, 4, 1, 2) + self.variable
        pooled = self.pool(tokens.flatten(0, 2)).unflatten(0, (days, rows, cols))
        pooled = pooled + sine_cosine(rows, cols, self.settings.width, pooled.device)
        ahead = pooled.flatten(1, 2)[:, None] + self.lead.weight[:, None]
        tokens = ahead.flatten(0, 1)
        for block in self.blocks:
            tokens = block(tokens)
        grid = self.head(self.norm(tokens)).unflatten(1, (rows, cols)).permute(0, 3, 1, 2)
        return self.out(grid, shape).unflatten(0, (days, leads))
