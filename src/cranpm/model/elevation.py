"""Attention that finds it hard to look uphill (paper, Sec. 3.4)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from cranpm.model.attention import RelativeBias, SelfAttention, key_mask

FLOOR = -10.0


def elevation_bias(
    elevation_m: Float[Tensor, "b n"], scale_m: float, alpha: Float[Tensor, ""]
) -> Float[Tensor, "b n n"]:
    """B[i, j] = clamp(-alpha ReLU((E_j - E_i) / E0), -10, 0): 0 downhill, down to -10 for a key high above its query.

    A missing elevation gives 0; the bias is finite for every input.
    """
    rise = torch.relu((elevation_m[:, None, :] - elevation_m[:, :, None]) / scale_m)
    return torch.nan_to_num(-alpha * rise).clamp(FLOOR, 0)


class ElevationAttention(nn.Module):
    """Full attention over a grid with relative positions and, where `scale_m` is given, the elevation bias."""

    def __init__(self, width: int, heads: int, grid: tuple[int, int], scale_m: float | None):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.relative = RelativeBias(heads, *grid)
        self.scale_m = scale_m
        if scale_m is not None:
            self.alpha = nn.Parameter(torch.tensor(1.0))

    @property
    def strength(self) -> Float[Tensor, ""]:
        """alpha >= 0. The parameter itself may cross zero in training; its size counts."""
        return self.alpha.abs()

    def forward(
        self,
        tokens: Float[Tensor, "b rows cols width"],
        elevation_m: Float[Tensor, "b rows cols"],
        valid: Bool[Tensor, "b rows cols"] | None,
    ) -> Float[Tensor, "b rows cols width"]:
        rows, cols = tokens.shape[1:3]
        bias = self.relative(rows, cols)[None]
        if self.scale_m is not None:
            bias = bias + elevation_bias(elevation_m.flatten(1), self.scale_m, self.strength)[:, None]
        if valid is not None:
            bias = bias + key_mask(valid.flatten(1))
        return self.attention(tokens.flatten(1, 2), bias).unflatten(1, (rows, cols))
