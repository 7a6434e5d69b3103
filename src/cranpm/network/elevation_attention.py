"""Attention that finds it hard to look uphill (paper, Sec. 3.4)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from cranpm.network.attention import RelativeBias, SelfAttention, key_mask

FLOOR = -10.0


def elevation_bias(
    elevation_m: Float[Tensor, "b n"],
    scale_m: float,
    alpha: Float[Tensor, ""],
    highest_m: Float[Tensor, "#b n n"] | None = None,
) -> Float[Tensor, "b n n"]:
    """B[i, j] = clamp(-alpha ReLU((E_j - E_i) / E0), -10, 0): 0 downhill, down to -10 for a key high above its query.

    With `highest_m` (see `highest_between`) that is used instead of E_j. A missing elevation gives 0; the bias is
    finite for every input.
    """
    above = elevation_m[:, None, :] if highest_m is None else highest_m
    rise = torch.relu((above - elevation_m[:, :, None]) / scale_m)
    return torch.nan_to_num(-alpha * rise).clamp(FLOOR, 0)


@torch.no_grad()
def highest_between(elevation_m: Float[Tensor, "b rows cols"]) -> Float[Tensor, "#b n n"]:
    """Highest ground (m) on the straight line from each token to each other, both ends included.

    Where all of the batch have the same relief, as the days of a coarse grid do, once for all of them.
    """
    if torch.equal(elevation_m, elevation_m[:1].expand_as(elevation_m)):
        elevation_m = elevation_m[:1]
    rows, cols = elevation_m.shape[1:]
    flat = elevation_m.flatten(1)
    place = torch.arange(rows * cols, device=flat.device)
    row, col = place // cols, place % cols
    highest = flat[:, None, :].expand(-1, rows * cols, -1).clone()
    steps = max(rows, cols) - 1
    for step in range(steps):  # the last, at the key itself, is where it began
        share = step / steps
        on_row, on_col = (
            torch.lerp(at[:, None].float(), at[None, :].float(), share).round().long() for at in (row, col)
        )
        highest = torch.maximum(highest, flat[:, on_row * cols + on_col])
    return highest


class ElevationAttention(nn.Module):
    """Full attention over a grid with relative positions and, where `scale_m` is given, the elevation bias.

    With `wind_bias`, which the paper does not have here, beta_h gamma is added where gamma is given.
    """

    def __init__(self, width: int, heads: int, grid: tuple[int, int], scale_m: float | None, wind_bias: bool = False):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.relative = RelativeBias(heads, *grid)
        self.scale_m = scale_m
        if scale_m is not None:
            self.alpha = nn.Parameter(torch.tensor(1.0))
        if wind_bias:
            self.beta = nn.Parameter(torch.ones(heads))

    @property
    def strength(self) -> Float[Tensor, ""]:
        """alpha >= 0. The parameter itself may cross zero in training; its size counts."""
        return self.alpha.abs()

    def forward(
        self,
        tokens: Float[Tensor, "b rows cols width"],
        elevation_m: Float[Tensor, "b rows cols"],
        valid: Bool[Tensor, "b rows cols"] | None,
        highest_m: Float[Tensor, "#b n n"] | None = None,
        upwind: Float[Tensor, "b n n"] | None = None,
    ) -> Float[Tensor, "b rows cols width"]:
        rows, cols = tokens.shape[1:3]
        relative, *others = self.biases(elevation_m, highest_m, upwind).values()
        bias = sum(others, start=relative)
        if valid is not None:
            bias = bias + key_mask(valid.flatten(1))
        return self.attention(tokens.flatten(1, 2), bias).unflatten(1, (rows, cols))

    def biases(
        self,
        elevation_m: Float[Tensor, "b rows cols"],
        highest_m: Float[Tensor, "#b n n"] | None = None,
        upwind: Float[Tensor, "b n n"] | None = None,
    ) -> dict[str, Float[Tensor, "#b #heads n n"]]:
        """What is added to the logits, by its cause; positions come first."""
        rows, cols = elevation_m.shape[1:]
        found = {"positions": self.relative(rows, cols)[None]}
        if self.scale_m is not None:
            found["elevation"] = elevation_bias(elevation_m.flatten(1), self.scale_m, self.strength, highest_m)[:, None]
        if upwind is not None:
            found["wind"] = self.beta[:, None, None] * upwind[:, None]
        return found
