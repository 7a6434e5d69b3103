"""From fine tokens back to pixels: four doublings of resolution and a last 1x1 convolution (paper, Sec. 3.6)."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class Residual(nn.Module):
    """x + conv(act(conv(x))), both 3x3."""

    def __init__(self, channels: int, activation: nn.Module):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.activation = activation

    def forward(self, x: Float[Tensor, "b ch h w"]) -> Float[Tensor, "b ch h w"]:
        return x + self.second(self.activation(self.first(x)))


class Doubling(nn.Module):
    """Twice the resolution: by pixel shuffle (Shi et al. 2016) or by a transposed convolution, then a residual."""

    def __init__(self, channels: int, out: int, upsampling: str, activation: nn.Module):
        super().__init__()
        if upsampling == "pixel-shuffle":
            self.up: nn.Module = nn.Sequential(nn.Conv2d(channels, 4 * out, 3, padding=1), nn.PixelShuffle(2))
        else:
            self.up = nn.ConvTranspose2d(channels, out, 4, stride=2, padding=1)
        self.activation = activation
        self.residual = Residual(out, activation)

    def forward(self, x: Float[Tensor, "b ch h w"]) -> Float[Tensor, "b out h2 w2"]:
        return self.residual(self.activation(self.up(x)))


class Decoder(nn.Module):
    """Tokens on a grid -> one value per pixel; exactly 0 until trained, since the last convolution starts at 0."""

    def __init__(self, width: int, channels: Sequence[int], upsampling: str):
        super().__init__()
        sizes = zip((width, *channels), channels, strict=False)
        self.stages = nn.Sequential(*(Doubling(size, out, upsampling, nn.GELU()) for size, out in sizes))
        self.head = nn.Conv2d(channels[-1], 1, 1)
        self.stages.apply(_initialise)
        for parameter in self.head.parameters():
            nn.init.zeros_(parameter)

    def forward(self, tokens: Float[Tensor, "b rows cols width"]) -> Float[Tensor, "b h w"]:
        # Tokens with the width last are, seen as an image, already in channels-last order: no copy.
        return self.head(self.stages(tokens.permute(0, 3, 1, 2))).squeeze(1)


class SmoothChange(nn.Module):
    """Two values per token, 0 until trained, interpolated to pixels: a shift, and a share of what is there today."""

    def __init__(self, width: int, patch: int):
        super().__init__()
        self.patch = patch
        self.norm, self.values = nn.LayerNorm(width), nn.Linear(width, 2)
        for parameter in self.values.parameters():
            nn.init.zeros_(parameter)

    def forward(self, tokens: Float[Tensor, "b rows cols width"]) -> Float[Tensor, "b 2 h w"]:
        values = self.values(self.norm(tokens)).permute(0, 3, 1, 2).contiguous()
        return functional.interpolate(values, scale_factor=self.patch, mode="bilinear")


def _initialise(module: nn.Module) -> None:
    """Doublings keep the size of what passes (He et al. 2015); residuals begin as 0."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    if isinstance(module, Residual):
        nn.init.zeros_(module.second.weight)
