"""From fine tokens back to pixels: four doublings of resolution and a last 1x1 convolution (paper, Sec. 3.6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from cranpm.network.reach import Part, Span, cover


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

    def forward(
        self, tokens: Float[Tensor, "b rows cols width"], wanted: Bool[Tensor, "b rows cols"] | None = None
    ) -> Float[Tensor, "b h w"]:
        """With `wanted`, the pixels of these tokens are those of the full computation, others may be anything."""
        # Tokens with the width last are, seen as an image, already in channels-last order: no copy.
        image = tokens.permute(0, 3, 1, 2)
        whole = [((0, image.shape[2]), (0, image.shape[3]))]
        parts = whole if wanted is None else cover(wanted.any(dim=0), self.cost((image.shape[2], image.shape[3])))
        if parts == whole:
            return self.head(self.stages(image)).squeeze(1)
        size = 2 ** len(self.stages)
        out = image.new_zeros(image.shape[0], size * image.shape[2], size * image.shape[3])
        for part in parts:
            rows, cols = (slice(size * start, size * end) for start, end in part)
            out[:, rows, cols] = self._part(image, part)
        return out

    def _part(self, image: Float[Tensor, "b width rows cols"], part: Part) -> Float[Tensor, "b h w"]:
        """The pixels of a rectangle of tokens; every stage is computed as far around it as the next ones reach."""
        down, along = (reads(span, len(self.stages), size) for span, size in zip(part, image.shape[2:], strict=True))
        x = image[:, :, slice(*down[0]), slice(*along[0])]
        for number, stage in enumerate(self.stages):
            rows, cols = (
                slice(spans[number + 1][0] - 2 * spans[number][0], spans[number + 1][1] - 2 * spans[number][0])
                for spans in (down, along)
            )
            x = stage(x)[:, :, rows, cols]
        return self.head(x).squeeze(1)

    @property
    def reach(self) -> int:
        """How many tokens away from a token its pixels look."""
        far = 1 << 20
        return far - reads((far, far + 1), len(self.stages), 2 * far)[0][0]

    def cost(self, grid: tuple[int, int]) -> Callable[[Part], float]:
        """What a rectangle on a grid of tokens costs: the tokens that its stages compute, which cost the same."""
        return _Cost(len(self.stages), grid)


@dataclass(frozen=True)
class _Cost:
    stages: int
    grid: tuple[int, int]

    def __call__(self, part: Part) -> float:
        down, along = (reads(span, self.stages, size) for span, size in zip(part, self.grid, strict=True))
        areas = ((r[1] - r[0]) * (c[1] - c[0]) for r, c in zip(down[:-1], along[:-1], strict=True))
        return sum(area / 4**number for number, area in enumerate(areas))


@cache
def reads(span: Span, stages: int, size: int) -> tuple[Span, ...]:
    """What each stage of a decoder must be given for the pixels of a span of tokens, in its own pixels, and the pixels.

    A residual looks two pixels around, the doubling before it one pixel of its input; nothing lies beyond `size`.
    """
    found = [(span[0] << stages, span[1] << stages)]
    for number in reversed(range(stages)):
        start, end = found[0]
        found.insert(0, (max((start - 2) // 2 - 1, 0), min(-(-(end + 2) // 2) + 1, size << number)))
    return tuple(found)


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
