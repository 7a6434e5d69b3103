"""The network as its authors released it (v1.0), built from our parts so that their published weights run here.

It is not the paper's network: plain transformer blocks instead of Swin, so that its wind scan changes nothing and is
left out; lead time in the coarse branch; one wind vector per tile; an elevation bias about 500 times too weak.
Reproduced as it is. Do not train it.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cranpm.core.errors import CranpmError
from cranpm.core.grid import COARSE_STEP, FINE_STEP
from cranpm.network.attention import Block, SelfAttention
from cranpm.network.bridge import CrossLayers
from cranpm.network.context import DAYS_READ, DayContext, Memory, check_day, check_tiles, lead_index
from cranpm.network.decoder import Doubling
from cranpm.network.elevation_attention import elevation_bias
from cranpm.network.encoder import branch_parts
from cranpm.network.interface import DayInputs, ForecastNetwork, Parts, TileInputs
from cranpm.network.patches import PatchEmbedding, patch_mean, sine_cosine
from cranpm.network.registry import register
from cranpm.network.released_settings import LEADS, ReleasedSettings
from cranpm.network.scaling import Scales
from cranpm.network.tile_geometry import PairGeometry
from cranpm.network.token_geometry import sample, token_centres
from cranpm.network.wind import unit_wind

ELEVATION_M = (300.0, 500.0)
"""Mean and spread of the elevation, which their biases see normalised."""
COARSE_SCALE, FINE_SCALE = 1000.0, 500.0
"""E0 of the two branches, in metres: applied to normalised elevation, hence the weakness."""


class BucketBias(nn.Module):
    """Relative positions in T5-style buckets: 32 per axis, exact for near tokens and logarithmic for far ones."""

    def __init__(self, heads: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(32 * 32, heads))

    def forward(self, rows: int, cols: int) -> Float[Tensor, "heads n n"]:
        row, col = (((torch.arange(size) + 0.5) / size * 128).int() for size in (rows, cols))
        index = _bucket(col.repeat(rows)) * 32 + _bucket(row.repeat_interleave(cols))
        return self.table[index.to(self.table.device)].permute(2, 0, 1)


def _bucket(position: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    offset = position[None, :] - position[:, None]
    far = 8 + (torch.log(offset.abs().clamp(min=8) / 8) / math.log(16) * 8).int()
    return torch.where(offset.abs() < 8, offset.abs(), far.clamp(max=15)) + 16 * (offset < 0)


class ReleasedEncoder(nn.Module):
    """Patches, their norm, positions, one block with biases, plain blocks."""

    def __init__(
        self, channels: int, shape: tuple[int, int], patch: int, width: int, depth: int, heads: int, ratio: int
    ):
        super().__init__()
        self.patch, self.tokens = patch, (shape[0] // patch, shape[1] // patch)
        self.patches = PatchEmbedding(channels, patch, width)
        self.norm_patches = nn.LayerNorm(width)
        positions = sine_cosine(*self.tokens, width).flatten(0, 1)[None]
        self.positions = nn.Parameter(positions, requires_grad=False)
        self.relative = BucketBias(heads)
        self.alpha = nn.Parameter(torch.full((1,), 2.0))
        self.blocks = nn.ModuleList(Block(SelfAttention(width, heads), width, ratio) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(
        self, raw: Float[Tensor, "b n width"], elevation: Float[Tensor, "b h w"], scale: float, added: Tensor | float
    ) -> Float[Tensor, "b n width"]:
        """Tokens from the raw patch embedding and the normalised elevation."""
        height = patch_mean(elevation, self.patch).flatten(1)
        bias = self.relative(*self.tokens)[None] + elevation_bias(height, scale, self.alpha[0])[:, None]
        first, *others = self.blocks
        tokens = first(self.norm_patches(raw) + self.positions + added, bias)
        for block in others:
            tokens = block(tokens)
        return self.norm(tokens)


class ReleasedDecoder(nn.Module):
    """The tokens and the raw patch embedding, fused and doubled four times."""

    def __init__(self, width: int):
        super().__init__()
        self.fuse = nn.Conv2d(2 * width, width, 1)
        sizes = zip((width, 256, 128, 64), (256, 128, 64, 32), strict=True)
        leaky = nn.LeakyReLU(0.2)
        self.stages = nn.Sequential(
            *(nn.Sequential(Doubling(size, out, "pixel-shuffle", leaky), leaky) for size, out in sizes)
        )
        self.head = nn.Conv2d(32, 1, 1)

    def forward(
        self, tokens: Float[Tensor, "b rows cols width"], skip: Float[Tensor, "b rows cols width"]
    ) -> Float[Tensor, "b h w"]:
        both = torch.cat([tokens, skip], dim=3).permute(0, 3, 1, 2)
        return self.head(self.stages(nn.functional.leaky_relu(self.fuse(both), 0.2))).squeeze(1)


class ReleasedBridge(nn.Module):
    """Fine queries coarse; the projection has a bias, and one alignment serves the whole tile."""

    def __init__(self, settings: ReleasedSettings):
        super().__init__()
        s, width = settings, settings.local_embed_dim
        self.project = nn.Linear(s.global_embed_dim, width)
        self.cross = CrossLayers(s.cross_layers, width, s.cross_num_heads, s.mlp_ratio, wind_bias=True)

    def prepare(self, coarse: Float[Tensor, "contexts m coarse_width"]) -> Memory:
        return self.cross.prepare(self.project(coarse))

    def forward(
        self, tokens: Float[Tensor, "tiles n width"], memory: Memory, align: Float[Tensor, "tiles 1 m"] | None
    ) -> Float[Tensor, "tiles n width"]:
        return self.cross(tokens, memory, PairGeometry(upwind=align))


@register("released", ReleasedSettings)
class Released(ForecastNetwork):
    """The released network behind the same two steps as `CranPM`.

    Its coarse branch depends on the lead, so a day is encoded once for each of its leads.
    """

    settings: ReleasedSettings
    fine_mean: Tensor
    fine_spread: Tensor

    def __init__(self, settings: ReleasedSettings, scales: Scales):
        super().__init__(settings, scales)
        s = settings
        self.coarse = ReleasedEncoder(
            *(s.era5_channels, s.global_img_size, s.global_patch_size, s.global_embed_dim),
            *(s.global_depth, s.global_num_heads, s.mlp_ratio),
        )
        self.fine = ReleasedEncoder(
            *(s.local_channels, s.local_img_size, s.local_patch_size, s.local_embed_dim),
            *(s.local_depth, s.local_num_heads, s.mlp_ratio),
        )
        self.lead = nn.Linear(1, s.global_embed_dim)
        self.bridge = ReleasedBridge(s)
        self.decoder = ReleasedDecoder(s.local_embed_dim)
        self.decoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        place = ((30.0, 42.0), (-25.0, 70.0)) if s.coordinates == "domain" else ((0.0, 90.0), (0.0, 180.0))
        pm25 = (scales.pm25_mean, scales.pm25_spread)
        fine = torch.tensor([pm25, ELEVATION_M, *place, pm25])[..., None, None]
        for name, values in (("fine_mean", fine[:, 0]), ("fine_spread", fine[:, 1])):
            self.register_buffer(name, values, persistent=False)

    def encode_day(self, day: DayInputs) -> DayContext:
        """The coarse branch, once per day and lead, on the centre of the grid."""
        check_day(day, self.settings)
        rows, cols = self._centre(day.coarse.shape[2], day.coarse.shape[3])
        mean, spread = (part.repeat(DAYS_READ, 1, 1) for part in (self.coarse_mean, self.coarse_spread))
        coarse = (day.coarse[:, :, rows, cols] - mean) / spread
        elevation = (day.elevation[:, rows, cols] - ELEVATION_M[0]) / ELEVATION_M[1]
        tokens = self.coarse_tokens(coarse, elevation)
        corner = day.corner + day.corner.new_tensor([-rows.start * COARSE_STEP, cols.start * COARSE_STEP])
        return DayContext(tokens, self.bridge.prepare(tokens), day.wind[:, :, rows, cols], corner, self.coarse.tokens)

    def parts(self) -> Parts:
        return branch_parts({"coarse": self.coarse, "fine": self.fine}, self.bridge, self.decoder)

    def coarse_tokens(
        self, coarse: Float[Tensor, "days ch h w"], elevation: Float[Tensor, "days h w"]
    ) -> Float[Tensor, "contexts n width"]:
        """Tokens of normalised fields: all leads of the first day, then of the next."""
        leads = torch.tensor(LEADS, dtype=coarse.dtype, device=coarse.device)
        raw = self.coarse.patches(coarse).flatten(1, 2).repeat_interleave(len(LEADS), dim=0)
        added = self.lead(leads[:, None])[:, None].repeat(coarse.shape[0], 1, 1)
        return self.coarse(raw, elevation.repeat_interleave(len(LEADS), dim=0), COARSE_SCALE, added)

    def _centre(self, rows: int, cols: int) -> tuple[slice, slice]:
        wanted = self.settings.global_img_size
        if rows < wanted[0] or cols < wanted[1]:
            raise CranpmError(
                expected=f"a coarse grid of at least {wanted[0]} x {wanted[1]} cells",
                found=f"{rows} x {cols}",
                remedy="The released network has fixed positions: use it on Europe, or another preset.",
            )
        north, west = (rows - wanted[0]) // 2, (cols - wanted[1]) // 2
        return slice(north, north + wanted[0]), slice(west, west + wanted[1])

    def forecast_tile(
        self, context: DayContext, tile: TileInputs, lead: Int[Tensor, " tiles"]
    ) -> Float[Tensor, "tiles h w"]:
        """PM2.5 (ug m-3) `lead` days ahead; NaN where today's is missing."""
        fine = tile.fine
        check_tiles(context.days, fine.shape[0])
        if tuple(fine.shape[2:]) != self.settings.local_img_size:
            raise CranpmError(
                expected=f"tiles of {self.settings.local_img_size} pixels",
                found=str(tuple(fine.shape[2:])),
                remedy="The released network has fixed positions: give tiles of that size.",
            )
        day = torch.arange(fine.shape[0], device=fine.device) // (fine.shape[0] // context.days)
        chosen = day * len(LEADS) + lead_index(lead, LEADS)
        memory = tuple(part[chosen] for part in context.memory)
        normal = (fine - self.fine_mean) / self.fine_spread
        normal[:, [0, 4]] = torch.nan_to_num(normal[:, [0, 4]], nan=0.0)
        align = self._alignment(context, tile.position) if self.settings.wind_bias else None
        change = self.change(normal, normal[:, 1], memory, align)
        return fine[:, 0] + change.float() * self.scales.pm25_spread

    def change(
        self,
        fine: Float[Tensor, "tiles 5 h w"],
        elevation: Float[Tensor, "tiles h w"],
        memory: Memory,
        align: Float[Tensor, "tiles 1 m"] | None,
    ) -> Float[Tensor, "tiles h w"]:
        """The forecast change of normalised PM2.5, from normalised fields and the keys and values of each tile."""
        raw = self.fine.patches(fine)
        rows, cols = raw.shape[1:3]
        tokens = self.fine(raw.flatten(1, 2), elevation, FINE_SCALE, 0.0)
        tokens = self.bridge(tokens, memory, align)
        return self.decoder(tokens.unflatten(1, (rows, cols)), raw)

    def _alignment(self, context: DayContext, position: Float[Tensor, "tiles 2"]) -> Float[Tensor, "tiles 1 m"]:
        """Upwind alignment of the tile's centre with every coarse token, in plain degrees, as they do it."""
        rows, cols = self.settings.local_img_size
        centre = position + position.new_tensor([-rows / 2, cols / 2]) * FINE_STEP
        wind = sample(context.wind, context.corner, COARSE_STEP, centre[:, None])
        there = token_centres(context.corner, *context.grid, self.settings.global_patch_size * COARSE_STEP)
        return degrees_aligned(centre, there.repeat_interleave(len(centre) // context.days, dim=0), wind[:, 0])


def degrees_aligned(
    centre: Float[Tensor, "b 2"], there: Float[Tensor, "b m 2"], wind: Float[Tensor, "b 2"]
) -> Float[Tensor, "b 1 m"]:
    """unit(centre - there) . unit(v, u) with (latitude, longitude) taken as a plane."""
    direction = nn.functional.normalize(centre[:, None] - there, dim=2)
    return (direction * unit_wind(wind).flip(1)[:, None]).sum(dim=2)[:, None]
