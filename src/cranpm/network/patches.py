"""From fields to tokens: patches, their means, their positions."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class PatchEmbedding(nn.Linear):
    """Tokens on a grid: each patch x patch block of all channels, channel-major, through one linear map.

    Unfold and a matrix product instead of a strided convolution (paper, table S1).
    """

    def __init__(self, channels: int, patch: int, width: int):
        super().__init__(channels * patch * patch, width)
        self.patch = patch

    def forward(self, field: Float[Tensor, "b ch h w"]) -> Float[Tensor, "b rows cols width"]:
        field = pad(field, self.patch)
        blocks = field.unflatten(2, (-1, self.patch)).unflatten(4, (-1, self.patch))  # b ch rows p cols p
        return super().forward(blocks.permute(0, 2, 4, 1, 3, 5).flatten(3))


def pad(field: Float[Tensor, "*rest h w"], multiple: int) -> Float[Tensor, "*rest h2 w2"]:
    """A field whose last two sides are multiples of `multiple`: its south and east edges are repeated."""
    south, east = (-side % multiple for side in field.shape[-2:])
    return functional.pad(field, (0, east, 0, south), mode="replicate") if south or east else field


def patch_mean(field: Float[Tensor, "*b h w"], patch: int) -> Float[Tensor, "*b rows cols"]:
    """Mean of the pixels in each patch; a patch cut by the edge averages what it has."""
    lead = field.shape[:-2]
    means = functional.avg_pool2d(
        field.reshape(-1, 1, *field.shape[-2:]), patch, ceil_mode=True, count_include_pad=False
    )
    return means.reshape(*lead, *means.shape[-2:])


def sine_cosine(
    rows: int, cols: int, width: int, device: torch.device | None = None
) -> Float[Tensor, "{rows} {cols} {width}"]:
    """Fixed positions: the first half of the width encodes the column, the second the row, each as [sin, cos]
    of index / 10000^(k / (width/4)), k = 0 .. width/4 - 1."""
    quarter = width // 4
    frequency = torch.exp(torch.arange(quarter, device=device) * (-math.log(10000.0) / quarter))
    col = torch.arange(cols, device=device)[:, None] * frequency
    row = torch.arange(rows, device=device)[:, None] * frequency
    col, row = (torch.cat([angle.sin(), angle.cos()], dim=1) for angle in (col, row))
    return torch.cat([col[None].expand(rows, -1, -1), row[:, None].expand(-1, cols, -1)], dim=2)
