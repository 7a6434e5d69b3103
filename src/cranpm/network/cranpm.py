"""CRAN-PM (paper, Sec. 3): 1-km tiles of PM2.5 query 25-km meteorology and forecast the change.

Physical units in and out; normalisation is inside. Sea or missing PM2.5 is NaN, enters as the mean and leaves as NaN.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cranpm.core.grid import COARSE_STEP
from cranpm.network.bridge import FUSIONS
from cranpm.network.context import DayContext, TwoSteps, check_channels, check_finite, check_tiles, lead_index
from cranpm.network.decoder import Decoder, SmoothChange
from cranpm.network.encoder import Encoder
from cranpm.network.scaling import Scales
from cranpm.network.settings import NetworkSettings
from cranpm.network.tile_geometry import meet

FINE_CHANNELS = 5
FINE_SCALE = (1000.0, 90.0, 180.0)
"""Divisors of elevation (m), latitude and longitude (degrees)."""


class CranPM(TwoSteps):
    """The network of the paper; every ablation is a switch of its settings."""

    fine_scale: Tensor

    def __init__(self, settings: NetworkSettings, scales: Scales):
        super().__init__(settings.channels, scales)
        self.settings = settings
        coarse, fine = settings.coarse, settings.fine
        if settings.fusion != "none":
            biased = settings.wind_scan and settings.scan_form == "bias"
            step = coarse.patch * COARSE_STEP if biased else None
            self.coarse = Encoder(coarse, settings.days * settings.channels, settings, step)
        self.fine = Encoder(fine, FINE_CHANNELS - 3 + settings.elevation_channel + settings.days, settings)
        self.lead = nn.Embedding(len(settings.leads), fine.width)
        self.bridge = FUSIONS[settings.fusion](settings)
        self.apply(_initialise)
        self.decoder = Decoder(fine.width, settings.decoder, settings.upsampling)
        if settings.smooth_change:
            self.smooth = SmoothChange(fine.width, fine.patch)
        self.decoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.register_buffer("fine_scale", torch.tensor(FINE_SCALE)[:, None, None], persistent=False)

    def encode_day(
        self,
        coarse: Float[Tensor, "days ch h w"],
        wind: Float[Tensor, "days 2 h w"],
        elevation: Float[Tensor, "days h w"],
        corner: Float[Tensor, "days 2"],
    ) -> DayContext:
        """The coarse branch, once a day.

        `coarse` holds today's channels and then yesterday's, in their units; `wind` is (u10, v10) in m/s;
        `elevation` is in metres; `corner` is the (latitude, longitude) of the grid's north-west edge.
        """
        settings = self.settings
        check_channels(2 * settings.channels, coarse.shape[1])
        check_finite(coarse=coarse, wind=wind, elevation=elevation)
        if settings.fusion == "none":
            return DayContext(coarse.new_zeros(coarse.shape[0], 0, 0), (), wind, corner, (0, 0))
        scanned = wind if settings.wind_scan else None
        tokens = self.coarse(self._normalise_coarse(coarse), elevation, wind=scanned, corner=corner)
        grid, tokens = tokens.shape[1:3], tokens.flatten(1, 2)
        return DayContext(tokens, self.bridge.prepare(tokens), wind, corner, (grid[0], grid[1]))

    def forecast_tile(
        self,
        context: DayContext,
        fine: Float[Tensor, "tiles 5 h w"],
        position: Float[Tensor, "tiles 2"],
        lead: Int[Tensor, " tiles"],
    ) -> Float[Tensor, "tiles h w"]:
        """PM2.5 (ug m-3) `lead` days ahead; NaN where today's is missing.

        `fine` holds PM2.5 today, elevation (m), latitude, longitude, PM2.5 yesterday; `position` is the
        (latitude, longitude) of a tile's north-west edge. Tiles are ordered by day, equally many a day.
        """
        check_tiles(context.days, fine.shape[0])
        today = fine[:, 0]
        tokens = self.fine(
            self._normalise_fine(fine), fine[:, 1], added=self.lead(lead_index(lead, self.settings.leads))
        )
        tokens = self._fuse(tokens, context, position, lead)
        rows, cols = fine.shape[2:]
        change = self.decoder(tokens)[:, :rows, :cols].float()
        if self.settings.smooth_change:
            # NaN in today's PM2.5 would spoil the gradient of its share.
            excess = torch.nan_to_num((today - self.scales.pm25_mean) / self.scales.pm25_spread)
            shift, share = self.smooth(tokens)[:, :, :rows, :cols].float().unbind(1)
            change = change + shift + share * excess
        start = today if self.settings.delta else torch.where(today.isnan(), torch.nan, self.scales.pm25_mean)
        return start + change * self.scales.pm25_spread

    def _fuse(self, tokens: Tensor, context: DayContext, position: Tensor, lead: Tensor) -> Tensor:
        rows, cols = tokens.shape[1:3]
        meeting = meet(context, position, lead, (rows, cols), self.settings)
        return self.bridge(tokens.flatten(1, 2), context.memory, meeting).unflatten(1, (rows, cols))

    def _normalise_coarse(self, coarse: Tensor) -> Tensor:
        by_day = coarse.unflatten(1, (2, -1))[:, : self.settings.days]
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
