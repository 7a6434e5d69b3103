"""CRAN-PM (paper, Sec. 3): 1-km tiles of PM2.5 query 25-km meteorology and forecast the change.

Physical units in and out; normalisation is inside. Sea or missing PM2.5 is NaN, enters as the mean and leaves as NaN.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from cranpm.core.errors import CranpmError
from cranpm.core.grid import COARSE_STEP, FINE_STEP
from cranpm.network.bridge import FUSIONS
from cranpm.network.carry import carried_change
from cranpm.network.context import DAYS_READ, DayContext, check_day, check_lead, check_tiles, lead_index
from cranpm.network.cranpm_settings import NetworkSettings
from cranpm.network.decoder import Decoder, SmoothChange
from cranpm.network.encoder import Encoder, branch_parts
from cranpm.network.interface import DayInputs, ForecastNetwork, Parts, TileInputs
from cranpm.network.reach import Chosen, around, holds_land
from cranpm.network.registry import register
from cranpm.network.scaling import Scales
from cranpm.network.tile_geometry import tile_geometry
from cranpm.network.token_geometry import sample, token_centres

FINE_CHANNELS = 5
CARRY_GAIN = 10.0
"""The share of what the wind brings begins at 1: by steps of the usual size it would fall too slowly."""
FINE_SCALE = (1000.0, 90.0, 180.0)
"""Divisors of elevation (m), latitude and longitude (degrees)."""


@register("cran-pm", NetworkSettings)
class CranPM(ForecastNetwork):
    """The network of the paper; every ablation is a switch of its settings."""

    settings: NetworkSettings
    fine_scale: Tensor
    skips_sea: bool = True
    """Whether forecasts leave out what no land needs; off for comparisons: on land nothing changes."""

    def __init__(self, settings: NetworkSettings, scales: Scales):
        super().__init__(settings, scales)
        coarse, fine = settings.coarse, settings.fine
        if settings.fusion != "none":
            biased = settings.wind_scan and settings.scan_form == "bias"
            step = coarse.patch * COARSE_STEP if biased else None
            self.coarse = Encoder(coarse, settings.coarse_inputs, settings, step)
        self.fine = Encoder(fine, FINE_CHANNELS - 3 + settings.elevation_channel + settings.days, settings)
        self.lead = nn.Embedding(len(settings.leads), fine.width)
        if settings.local:
            self.local = nn.Sequential(
                nn.Linear(settings.coarse_inputs, fine.width), nn.GELU(), nn.Linear(fine.width, fine.width)
            )
        self.bridge = FUSIONS[settings.fusion](settings)
        self.apply(_initialise)
        self.decoder = Decoder(fine.width, settings.decoder, settings.upsampling)
        if settings.smooth_change:
            self.smooth = SmoothChange(fine.width, fine.patch)
        if settings.carried:
            self.carry = nn.Parameter(torch.zeros(2, len(settings.leads)))
        self.decoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.register_buffer("fine_scale", torch.tensor(FINE_SCALE)[:, None, None], persistent=False)

    def encode_day(self, day: DayInputs) -> DayContext:
        """The coarse branch, once per day; where the days ahead are read, once per day and lead."""
        settings = self.settings
        check_day(day, settings)
        if settings.fusion == "none":
            return DayContext(day.coarse.new_zeros(day.coarse.shape[0], 0, 0), (), day.wind, day.corner, (0, 0))
        scanned = day.wind if settings.wind_scan else None
        carried = self._carried(day)
        fields = [self._normalise_coarse(day.coarse), *self.normalised_ahead(day)]
        if carried is not None:
            fields.append(carried / self.scales.pm25_spread)
        field = torch.cat(fields, dim=1) if len(fields) > 1 else fields[0]
        tokens = self.coarse(field, day.elevation, wind=scanned, corner=day.corner)
        grid, tokens = tokens.shape[1:3], tokens.flatten(1, 2)
        memory = self.bridge.prepare(tokens)
        read = field if settings.local else None
        start = None if carried is None else self._share(day) * carried
        return DayContext(tokens, memory, day.wind, day.corner, (grid[0], grid[1]), day.lead, start, read)

    def _carried(self, day: DayInputs) -> Tensor | None:
        """Change of PM2.5 at 25 km (ug m-3) by the wind alone, where the network reads it."""
        if not self.settings.carried:
            return None
        if day.lead is None:
            raise CranpmError(
                expected="a lead, to follow the air back", found="none", remedy="Give a lead to `Inputs.day`."
            )
        today = day.coarse[:, DAYS_READ * self.settings.channels :][:, :1]
        return carried_change(today, day.wind, day.corner, day.lead, max(self.settings.leads))

    def _share(self, day: DayInputs) -> Float[Tensor, "days 1 1 1"]:
        """How much of what the wind brings counts: learned for each lead, without and with the weather ahead."""
        assert day.lead is not None
        assert day.known is not None
        weather_known = (day.known[:, 0, 0] > 0).long()
        learned = self.carry[weather_known, lead_index(day.lead, self.settings.leads)]
        return (1 + CARRY_GAIN * learned)[:, None, None, None]

    def forecast_tile(
        self, context: DayContext, tile: TileInputs, lead: Int[Tensor, " tiles"]
    ) -> Float[Tensor, "tiles h w"]:
        """PM2.5 (ug m-3) `lead` days ahead; NaN where today's is missing."""
        fine = tile.fine
        check_tiles(context.days, fine.shape[0])
        check_lead(context.lead, lead)
        today = fine[:, 0]
        added = self.lead(lead_index(lead, self.settings.leads))[:, None, None]
        if context.field is not None:
            added = added + self._local(context.field, context.corner, tile)
        tokens = self.fine(self._normalise_fine(fine), fine[:, 1], added=added)
        land = self._land(today)
        tokens = self._fuse(tokens, context, tile.position, lead, land)
        rows, cols = fine.shape[2:]
        change = self.decoder(tokens, land)[:, :rows, :cols].float()
        if self.settings.smooth_change:
            # NaN in today's PM2.5 would spoil the gradient of its share.
            excess = torch.nan_to_num((today - self.scales.pm25_mean) / self.scales.pm25_spread)
            shift, share = self.smooth(tokens)[:, :, :rows, :cols].float().unbind(1)
            change = change + shift + share * excess
        start = today if self.settings.delta else torch.where(today.isnan(), torch.nan, self.scales.pm25_mean)
        if context.carried is not None:
            places = token_centres(tile.position, rows, cols, FINE_STEP)
            moved = sample(context.carried, context.corner, COARSE_STEP, places)
            start = start + moved.unflatten(1, (rows, cols)).squeeze(3)
        return start + change * self.scales.pm25_spread

    def _local(self, field: Tensor, corner: Tensor, tile: TileInputs) -> Float[Tensor, "tiles rows cols width"]:
        """What the fine tokens of tiles take from the coarse fields at their own places."""
        patch = self.settings.fine.patch
        rows, cols = (-(-side // patch) for side in tile.fine.shape[2:])
        centres = token_centres(tile.position, rows, cols, patch * FINE_STEP)
        return self.local(sample(field, corner, COARSE_STEP, centres)).unflatten(1, (rows, cols))

    def head(self) -> list[nn.Module]:
        return [self.decoder, self.smooth] if self.settings.smooth_change else [self.decoder]

    def parts(self) -> Parts:
        branches = {} if self.settings.fusion == "none" else {"coarse": self.coarse}
        return branch_parts(branches | {"fine": self.fine}, self.bridge, self.decoder)

    def _land(self, today: Tensor) -> Bool[Tensor, "tiles rows cols"] | None:
        """Tokens with land, where the others need no forecast; None where all are computed.

        In training they are: its batches are of land, and shapes that change with the data would cost more.
        """
        if self.training or not self.skips_sea or today.is_meta or torch.compiler.is_compiling():
            return None
        land = holds_land(today, self.settings.fine.patch)
        return None if land.all() or not land.any() else land

    def _fuse(
        self, tokens: Tensor, context: DayContext, position: Tensor, lead: Tensor, land: Tensor | None
    ) -> Float[Tensor, "tiles rows cols width"]:
        """Tokens that know the weather; with `land`, those from which land can be reached."""
        grid = (tokens.shape[1], tokens.shape[2])
        flat, chosen = tokens.flatten(1, 2), None
        if land is not None and self.bridge.token_by_token:
            chosen = Chosen.of(around(land, self.decoder.reach))
        geometry = tile_geometry(context, position, lead, grid, self.settings, chosen)
        if chosen is None:
            return self.bridge(flat, context.memory, geometry).unflatten(1, grid)
        return chosen.put(flat, self.bridge(chosen.take(flat), context.memory, geometry)).unflatten(1, grid)

    def _normalise_coarse(self, coarse: Tensor) -> Tensor:
        own = coarse[:, : DAYS_READ * self.settings.channels]  # beyond them PM2.5 at 25 km
        by_day = own.unflatten(1, (DAYS_READ, -1))[:, : self.settings.days]
        return ((by_day - self.coarse_mean) / self.coarse_spread).flatten(1, 2)

    def _normalise_fine(self, fine: Tensor) -> Tensor:
        """A missing PM2.5 becomes 0, the mean; a missing elevation stays missing and spoils the tile visibly."""
        pm25 = torch.nan_to_num((fine[:, [0, 4]] - self.scales.pm25_mean) / self.scales.pm25_spread, nan=0.0)
        place = fine[:, 1:4] / self.fine_scale
        if not self.settings.elevation_channel:
            place = place[:, 1:]
        return torch.cat([pm25[:, :1], place, pm25[:, 1 : self.settings.days]], dim=1)


def _initialise(module: nn.Module) -> None:
    """Linear maps begin with a spread of 0.02 at the paper's width of 768, and keep the size of what passes at others.

    The lead's vectors keep torch's spread of 1, the size of the positions beside them.
    """
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02 * math.sqrt(768 / module.in_features))
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
