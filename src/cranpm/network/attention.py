"""What every transformer block here is made of: attention with an additive bias, an MLP, stochastic depth."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

BLOCKED = -1e4
"""Logit of a forbidden pair. Finite, so that a row with nothing to attend to stays finite; exp() of it is 0."""


def heads_first(x: Float[Tensor, "b n width"], heads: int) -> Float[Tensor, "b {heads} n d"]:
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def attend(
    query: Float[Tensor, "b heads n d"],
    key: Float[Tensor, "b heads m d"],
    value: Float[Tensor, "b heads m d"],
    bias: Float[Tensor, "*#bhnm"] | None,
) -> Float[Tensor, "b n width"]:
    """softmax(q k^T / sqrt(d) + bias) v, the heads joined again."""
    if bias is not None:
        bias = bias.to(query.dtype)
    if bias is not None and bias.requires_grad and query.device.type != "cuda":
        # A CPU has no fused kernel for a bias that learns, and torch's general kernel looks for empty rows: none is.
        logits = torch.matmul(query * query.shape[3] ** -0.5, key.transpose(2, 3)) + bias
        mixed = torch.matmul(torch.softmax(logits, dim=3), value)
    else:
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    return mixed.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Multi-head attention of tokens to each other."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(
        self, tokens: Float[Tensor, "b n width"], bias: Float[Tensor, "*#bhnm"] | None = None
    ) -> Float[Tensor, "b n width"]:
        query, key, value = self.project(tokens)
        return self.out(attend(query, key, value, bias))

    def project(self, tokens: Float[Tensor, "b n width"]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, heads first."""
        query, key, value = (heads_first(part, self.heads) for part in self.qkv(tokens).chunk(3, dim=2))
        return query, key, value


class Mlp(nn.Sequential):
    """Two linear maps around a GELU."""

    def __init__(self, width: int, ratio: int):
        super().__init__(nn.Linear(width, ratio * width), nn.GELU(), nn.Linear(ratio * width, width))


class DropPath(nn.Module):
    """Skips a residual branch for some samples of a training batch and scales the others up (Huang et al. 2016)."""

    def __init__(self, share: float):
        super().__init__()
        self.share = share

    def forward(self, x: Float[Tensor, "b ..."]) -> Float[Tensor, "b ..."]:
        if not self.training or self.share == 0:
            return x
        keep = torch.rand(x.shape[0], *[1] * (x.ndim - 1), device=x.device) >= self.share
        return x * keep / (1 - self.share)


class RelativeBias(nn.Module):
    """One learned logit per head for every offset (rows, columns) between query and key.

    Offsets beyond the table take its edge, so that weights run on larger grids than they were made for.
    """

    def __init__(self, heads: int, rows: int, cols: int):
        super().__init__()
        self.reach = (rows - 1, cols - 1)
        self.table = nn.Parameter(torch.empty(heads, (2 * rows - 1) * (2 * cols - 1)))
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, rows: int, cols: int) -> Float[Tensor, "heads n n"]:
        index = self.index(rows, cols)
        return self.table[:, index.flatten()].unflatten(1, index.shape)

    def index(self, rows: int, cols: int) -> Int[Tensor, "n n"]:
        """Column of the table for each (query, key) of a raster-ordered grid."""
        row, col = (
            _offsets(size, reach, self.table.device) for size, reach in zip((rows, cols), self.reach, strict=True)
        )
        pairs = row[:, None, :, None] * (2 * self.reach[1] + 1) + col[None, :, None, :]  # rows cols rows cols
        return pairs.flatten(2).flatten(0, 1)


def _offsets(size: int, reach: int, device: torch.device) -> Int[Tensor, "{size} {size}"]:
    step = torch.arange(size, device=device)
    return (step[:, None] - step).clamp(-reach, reach) + reach


def key_mask(valid: Bool[Tensor, "b n"]) -> Float[Tensor, "b 1 1 n"]:
    """Bias that hides the tokens which only pad the grid."""
    return torch.zeros(valid.shape, device=valid.device).masked_fill(~valid, BLOCKED)[:, None, None]


class Block(nn.Module):
    """Pre-norm transformer block: x + attention(norm(x)), then x + MLP(norm(x))."""

    def __init__(self, attention: nn.Module, width: int, mlp_ratio: int, drop_path: float = 0.0):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), attention
        self.norm_mlp, self.mlp = nn.LayerNorm(width), Mlp(width, mlp_ratio)
        self.drop = DropPath(drop_path)

    def forward(self, tokens: Float[Tensor, "b *n width"], *ground: Tensor | None) -> Float[Tensor, "b *n width"]:
        tokens = tokens + self.drop(self.attention(self.norm(tokens), *ground))
        return tokens + self.drop(self.mlp(self.norm_mlp(tokens)))
