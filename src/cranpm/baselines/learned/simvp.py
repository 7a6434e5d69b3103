"""SimVP (Gao et al. 2022): convolutions in space, then over all days at once by Inception blocks; nothing recurrent."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cranpm.baselines.learned.backbone import Backbone, BackboneSettings, ToCells
from cranpm.network.context import DAYS_READ
from cranpm.network.patches import pad

KERNELS = (3, 5, 7, 11)
GROUPS = 8


class ConvNorm(nn.Sequential):
    """Convolution, group norm, SiLU."""

    def __init__(self, into: int, out: int, kernel: int, stride: int = 1, groups: int = 1):
        super().__init__(
            nn.Conv2d(into, out, kernel, stride, kernel // 2 if stride == 1 else 0, groups=groups),
            nn.GroupNorm(GROUPS, out),
            nn.SiLU(),
        )


class Inception(nn.Module):
    """Grouped convolutions with small and large kernels side by side; their sum is added to what came in."""

    def __init__(self, width: int):
        super().__init__()
        self.narrow = nn.Conv2d(width, width // 2, 1)
        self.branches = nn.ModuleList(ConvNorm(width // 2, width, kernel, groups=GROUPS) for kernel in KERNELS)

    def forward(self, x: Float[Tensor, "b ch h w"]) -> Float[Tensor, "b ch h w"]:
        narrow = self.narrow(x)
        return x + torch.stack([branch(narrow) for branch in self.branches]).sum(dim=0)


class SimVP(Backbone):
    """Encoder for each day, translator over the days together, decoder for each lead with a bridge from the encoder."""

    def __init__(
        self, settings: BackboneSettings, channels: int, shape: tuple[int, int], leads: Sequence[int], outputs: int
    ):
        super().__init__(settings, channels, shape, leads, outputs)
        width, patch = settings.width, settings.patch
        self.first = ConvNorm(channels, width, patch, stride=patch)
        self.encoder = nn.Sequential(ConvNorm(width, width, 3), ConvNorm(width, width, 3))
        inner = width * DAYS_READ
        self.translator = nn.Sequential(*(Inception(inner) for _ in range(settings.depth)))
        self.lead = nn.Conv2d(inner, width * len(leads), 1)
        self.decoder = nn.Sequential(ConvNorm(2 * width, width, 3), ConvNorm(width, width, 3))
        self.out = ToCells(width, patch, outputs)

    def forward(
        self, frames: Float[Tensor, "b t ch h w"], wind: Float[Tensor, "b 2 h w"], elevation_m: Float[Tensor, "b h w"]
    ) -> Float[Tensor, "b leads out h w"]:
        days, leads, shape = frames.shape[0], len(self.leads), (frames.shape[3], frames.shape[4])
        skip = self.first(pad(frames.flatten(0, 1), self.settings.patch))
        hidden = self.encoder(skip).unflatten(0, (days, DAYS_READ)).flatten(1, 2)
        ahead = self.lead(self.translator(hidden)).unflatten(1, (leads, -1)).flatten(0, 1)
        today = skip.unflatten(0, (days, DAYS_READ))[:, -1].repeat_interleave(leads, dim=0)
        cells = self.out(self.decoder(torch.cat([ahead, today], dim=1)), shape)
        return cells.unflatten(0, (days, leads))
