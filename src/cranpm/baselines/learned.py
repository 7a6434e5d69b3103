"""The paper's learned opponents: networks at 25 km, with the interface of ours, so that one loop trains them all.

Each reads what CRAN-PM reads, PM2.5 as means over coarse cells, and gives a change of the coarse field for every lead.
What they forecast at 1 km is that field, refined bilinearly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import torch
from jaxtyping import Float, Int
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from cranpm.baselines.body import FRAMES, Body, BodySettings
from cranpm.baselines.climax import ClimaX
from cranpm.baselines.convlstm import ConvLSTM
from cranpm.baselines.earthformer import Earthformer
from cranpm.baselines.simvp import SimVP
from cranpm.baselines.topoflow import TopoFlow
from cranpm.days import LEADS
from cranpm.errors import CranpmError
from cranpm.grid import COARSE_STEP, FINE_STEP
from cranpm.model.context import check_channels, check_finite, check_tiles, lead_index
from cranpm.model.places import sample, token_centres
from cranpm.scale import Scales

OpponentName = Literal["convlstm", "simvp", "earthformer", "climax", "topoflow"]
BODIES: Mapping[OpponentName, type[Body]] = {
    "convlstm": ConvLSTM,
    "simvp": SimVP,
    "earthformer": Earthformer,
    "climax": ClimaX,
    "topoflow": TopoFlow,
}
SIZES: Mapping[str, Mapping[OpponentName, BodySettings]] = {
    "paper": {
        "convlstm": BodySettings(patch=2, width=168, depth=2),
        "simvp": BodySettings(patch=2, width=112, depth=6),
        "earthformer": BodySettings(patch=2, width=384, depth=2, heads=8),
        "climax": BodySettings(patch=4, width=640, depth=11, heads=10),
        "topoflow": BodySettings(patch=4, width=640, depth=11, heads=10, window=7),
    },
    "small": {
        "convlstm": BodySettings(patch=2, width=48, depth=2),
        "simvp": BodySettings(patch=2, width=32, depth=3),
        "earthformer": BodySettings(patch=2, width=64, depth=1, heads=4),
        "climax": BodySettings(patch=4, width=96, depth=3, heads=4),
        "topoflow": BodySettings(patch=2, width=96, depth=3, heads=4, window=4),
    },
}
"""As large as in the paper's table 1 (8.2, 4.9, 61, 57 and 61 M parameters), and for two cores."""


class OpponentSettings(BaseModel):
    """A learned opponent: which, how large, and what its change is added to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: OpponentName
    body: BodySettings
    shape: tuple[Annotated[int, Field(gt=0)], Annotated[int, Field(gt=0)]] = (168, 280)
    """Rows and columns of the coarse grid."""
    tile: Annotated[int, Field(gt=0)] = 512
    """Side of the tiles in which the 1-km field is given, in pixels; they do not change it."""
    channels: Annotated[int, Field(gt=0)] = 35
    leads: tuple[Annotated[int, Field(gt=0)], ...] = LEADS
    start: Literal["coarse", "fine", "mean"] = "coarse"
    """The change is added to today's PM2.5 at 25 km (as the paper compares), to today's at 1 km, or to the mean."""

    @property
    def coarse_shape(self) -> tuple[int, int]:
        return self.shape

    @property
    def tile_shape(self) -> tuple[int, int]:
        return self.tile, self.tile

    @property
    def coarse_pm25(self) -> bool:
        """Whether it reads PM2.5 at 25 km beside the coarse channels."""
        return True

    @property
    def resolution(self) -> str:
        """At which forecasts are made."""
        return "1 km" if self.start == "fine" else "25 km"


def opponent(name: str, size: str = "small", **given: object) -> OpponentSettings:
    """The settings of an opponent by name."""
    if name not in get_args(OpponentName) or size not in SIZES:
        raise CranpmError(
            expected=f"one of {', '.join(get_args(OpponentName))}, {' or '.join(SIZES)}",
            found=f"{name}, {size}",
            remedy="For example --model convlstm --size small.",
        )
    return OpponentSettings.model_validate({"kind": name, "body": SIZES[size][name], **given})  # type: ignore[index]


@dataclass(frozen=True)
class CoarseForecast:
    """What an opponent knows of one or more days: all of its forecast but the refining."""

    change: Float[Tensor, "days leads h w"]
    """Normalised."""
    today: Float[Tensor, "days 1 h w"]
    """PM2.5 at 25 km, NaN where a cell has none."""
    corner: Float[Tensor, "days 2"]

    @property
    def days(self) -> int:
        return self.corner.shape[0]


class Opponent(nn.Module):
    """A body between the physical units of `Inputs` and of forecasts."""

    coarse_mean: Tensor
    coarse_spread: Tensor

    def __init__(self, settings: OpponentSettings, scales: Scales):
        super().__init__()
        scales.check(settings.channels)
        self.settings, self.scales = settings, scales
        channels = settings.channels + 3  # PM2.5, elevation, where there is PM2.5
        self.body = BODIES[settings.kind](settings.body, channels, settings.shape, settings.leads)
        for name, values in (("mean", scales.mean), ("spread", scales.spread)):
            self.register_buffer(f"coarse_{name}", torch.tensor(values)[:, None, None], persistent=False)

    def encode_day(
        self,
        coarse: Float[Tensor, "days ch h w"],
        wind: Float[Tensor, "days 2 h w"],
        elevation: Float[Tensor, "days h w"],
        corner: Float[Tensor, "days 2"],
    ) -> CoarseForecast:
        """As in CRAN-PM; `coarse` holds today's channels, yesterday's, and PM2.5 at 25 km of today and yesterday."""
        channels = self.settings.channels
        check_channels(FRAMES * (channels + 1), coarse.shape[1])
        fields, pm25 = coarse[:, : FRAMES * channels], coarse[:, FRAMES * channels :]
        check_finite(coarse=fields, wind=wind, elevation=elevation)
        by_day = (fields.unflatten(1, (FRAMES, -1)) - self.coarse_mean) / self.coarse_spread
        known = torch.nan_to_num((pm25 - self.scales.pm25_mean) / self.scales.pm25_spread)[:, :, None]
        ground = torch.stack([elevation / 1000, pm25[:, 0].isfinite().float()], dim=1)
        frames = torch.cat([by_day, known, ground[:, None].expand(-1, FRAMES, -1, -1, -1)], dim=2)
        change = self.body(frames.flip(1), wind, elevation)  # yesterday first
        return CoarseForecast(change, pm25[:, :1], corner)

    def forecast_tile(
        self,
        context: CoarseForecast,
        fine: Float[Tensor, "tiles 5 h w"],
        position: Float[Tensor, "tiles 2"],
        lead: Int[Tensor, " tiles"],
    ) -> Float[Tensor, "tiles h w"]:
        """PM2.5 (ug m-3) `lead` days ahead, NaN where today's is missing; arguments as in CRAN-PM."""
        check_tiles(context.days, fine.shape[0])
        rows, cols = fine.shape[2:]
        places = token_centres(position, rows, cols, FINE_STEP)

        def refined(field: Tensor) -> Tensor:
            return sample(field, context.corner, COARSE_STEP, places)

        index = lead_index(lead, self.settings.leads)
        change = refined(context.change).gather(2, index[:, None, None].expand(-1, places.shape[1], 1))
        missing = torch.where(fine[:, 0].isnan(), torch.nan, 0.0)
        if self.settings.start == "fine":
            begin = fine[:, 0]
        elif self.settings.start == "mean":
            begin = torch.full_like(missing, self.scales.pm25_mean)
        else:  # cells without PM2.5 leave their weight to their neighbours
            whole = context.today.isfinite()
            total, weight = refined(torch.nan_to_num(context.today)), refined(whole.float())
            begin = torch.where(weight > 0, total / weight, torch.nan).squeeze(2).unflatten(1, (rows, cols))
        return begin + missing + change.squeeze(2).unflatten(1, (rows, cols)) * self.scales.pm25_spread

    def forward(
        self,
        coarse: Float[Tensor, "days ch ch_h ch_w"],
        wind: Float[Tensor, "days 2 ch_h ch_w"],
        elevation: Float[Tensor, "days ch_h ch_w"],
        corner: Float[Tensor, "days 2"],
        fine: Float[Tensor, "tiles 5 h w"],
        position: Float[Tensor, "tiles 2"],
        lead: Int[Tensor, " tiles"],
    ) -> Float[Tensor, "tiles h w"]:
        """Both steps at once, for training."""
        return self.forecast_tile(self.encode_day(coarse, wind, elevation, corner), fine, position, lead)
