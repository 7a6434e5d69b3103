"""From fine tokens back to pixels: four doublings of resolution and a last 1x1 convolution (paper, Sec. 3.6)."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn


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
    """Tokens on a grid -> one value a pixel; exactly 0 until trained, since the last convolution starts at 0."""

    def __init__(self, width: int, channels: Sequence[int], upsampling: str):
        super().__init__()
        sizes = zip((width, *channels), channels, strict=False)
        self.stages = nn.Sequential(*(Doubling(size, out, upsampling, nn.GELU()) for size, out in sizes))
        self.head = nn.Conv2d(channels[-1], 1, 1)
        for parameter in self.head.parameters():
            nn.init.zeros_(parameter)

    def forward(self, tokens: Float[Tensor, "b rows cols width"]) -> Float[Tensor, "b h w"]:
        # Tokens with the width last are, seen as an image, already in channels-last order: no copy.
        return self.head(self.stages(tokens.permute(0, 3, 1, 2))).squeeze(1)
