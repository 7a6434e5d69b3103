"""The paper's learned baselines: networks at 25 km, with the interface of ours, so that one loop trains them all.

Each reads what CRAN-PM reads, PM2.5 as means over coarse cells, and gives a change of the coarse field for every lead.
What they forecast at 1 km is that field, refined bilinearly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from cranpm.baselines.learned.backbone import Backbone, BackboneSettings, Positive
from cranpm.baselines.learned.climax import ClimaX
from cranpm.baselines.learned.convlstm import ConvLSTM
from cranpm.baselines.learned.earthformer import Earthformer
from cranpm.baselines.learned.simvp import SimVP
from cranpm.baselines.learned.topoflow import TopoFlow
from cranpm.core.days import LEADS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import COARSE_STEP, FINE_STEP
from cranpm.core.settings import validate
from cranpm.network.context import DAYS_READ, check_day, check_lead, check_tiles, lead_index
from cranpm.network.cranpm import FINE_SCALE
from cranpm.network.cranpm_settings import NetworkSettings
from cranpm.network.interface import DayInputs, ForecastNetwork, ForecastSettings, TileInputs
from cranpm.network.registry import register
from cranpm.network.scaling import Scales
from cranpm.network.token_geometry import token_centres

BaselineName = Literal["convlstm", "simvp", "earthformer", "climax", "topoflow"]
BACKBONES: Mapping[str, type[Backbone]] = {
    "convlstm": ConvLSTM,
    "simvp": SimVP,
    "earthformer": Earthformer,
    "climax": ClimaX,
    "topoflow": TopoFlow,
}
SIZES: Mapping[str, Mapping[str, BackboneSettings]] = {
    "paper": {
        "convlstm": BackboneSettings(patch=2, width=168, depth=2),
        "simvp": BackboneSettings(patch=2, width=112, depth=6),
        "earthformer": BackboneSettings(patch=2, width=384, depth=2, heads=8),
        "climax": BackboneSettings(patch=4, width=640, depth=11, heads=10),
        "topoflow": BackboneSettings(patch=4, width=640, depth=11, heads=10, window=7),
    },
    "small": {
        "convlstm": BackboneSettings(patch=2, width=48, depth=2),
        "simvp": BackboneSettings(patch=2, width=32, depth=3),
        "earthformer": BackboneSettings(patch=2, width=48, depth=1, heads=4),
        "climax": BackboneSettings(patch=4, width=96, depth=3, heads=4),
        "topoflow": BackboneSettings(patch=4, width=96, depth=3, heads=4, window=7),
    },
}
"""About as large as in the paper's table 1 (8.2, 4.9, 61, 57 and 61 M parameters), and for two cores."""


class BaselineChoice(BaseModel):
    """What a table of settings says of a learned baseline; grid, tiles, channels and leads are another network's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: BaselineName
    size: Literal["small", "paper"] = "small"
    patch: Positive | None = None
    """Side of its tokens in coarse cells, where the usual one does not suit the grid."""
    start: Literal["coarse", "fine", "mean"] = "coarse"
    """What its change is added to: see `LearnedBaselineSettings`."""


class LearnedBaselineSettings(ForecastSettings):
    """A learned baseline: which, how large, and what its change is added to."""

    reads_ahead: ClassVar[bool] = True
    earlier_names: ClassVar[Mapping[str, str]] = {"body": "backbone"}

    kind: BaselineName
    backbone: BackboneSettings
    shape: tuple[Annotated[int, Field(gt=0)], Annotated[int, Field(gt=0)]] = (168, 280)
    """Rows and columns of the coarse grid."""
    tile: Annotated[int, Field(gt=0)] = 512
    """Side of the tiles in which the 1-km field is given, in pixels; they do not change it."""
    channels: Annotated[int, Field(gt=0)] = 35
    leads: tuple[Annotated[int, Field(gt=0)], ...] = LEADS
    start: Literal["coarse", "fine", "mean"] = "coarse"
    """The change is added to today's PM2.5 at 25 km (as the paper compares), to today's at 1 km, or to the mean."""
    smooth_change: bool = False
    """Beside the shift, a share of what the change is added to, as in CRAN-PM with the same switch."""

    @classmethod
    def on_grid_of(cls, other: ForecastSettings, **given: Any) -> ForecastSettings:
        """A baseline chosen by `BaselineChoice`, on the grid, tiles, channels and leads of another network.

        Where that is CRAN-PM, it must read yesterday and forecast the change; `smooth_change` is as there.
        """
        chosen = validate(BaselineChoice, given, "baseline")
        grid = {"shape": other.coarse_shape, "tile": other.tile_shape[0], "leads": other.leads, "start": chosen.start}
        if isinstance(other, NetworkSettings):
            if not (other.delta and other.yesterday):
                raise CranpmError(
                    expected="network.delta and network.yesterday, beside a learned baseline",
                    found=f"delta {other.delta}, yesterday {other.yesterday}",
                    remedy="Leave both out; baseline.start chooses what the baseline's change is added to.",
                )
            grid["smooth_change"] = other.smooth_change
        shared = {name: getattr(other, name) for name in ("channels", "ahead", "way", "group_sizes")}
        return learned_baseline(chosen.kind, chosen.size, chosen.patch, **shared, **grid)

    @property
    def coarse_pm25(self) -> bool:
        return True

    @property
    def coarse_shape(self) -> tuple[int, int]:
        return self.shape

    @property
    def tile_shape(self) -> tuple[int, int]:
        return self.tile, self.tile

    @property
    def resolution(self) -> str:
        return "1 km" if self.start == "fine" else "25 km"


def learned_baseline(
    name: str, size: str = "small", patch: int | None = None, **given: object
) -> LearnedBaselineSettings:
    """The settings of a learned baseline by name; `patch` is for grids that are smaller or larger than usual."""
    if name not in BACKBONES or size not in SIZES:
        raise CranpmError(
            expected=f"one of {', '.join(BACKBONES)}, {' or '.join(SIZES)}",
            found=f"{name}, {size}",
            remedy="For example --model convlstm, --set baseline.size=small.",
        )
    backbone = SIZES[size][name]
    backbone = backbone.model_copy(update={"patch": patch or backbone.patch})
    return LearnedBaselineSettings.model_validate({"kind": name, "backbone": backbone, **given})


@dataclass(frozen=True)
class CoarseForecast:
    """What a learned baseline knows of one or more days: all of its forecast but the refining."""

    change: Float[Tensor, "days leads out h w"]
    """Normalised: a shift and, with `smooth_change`, a share."""
    today: Float[Tensor, "days 1 h w"]
    """PM2.5 at 25 km, NaN where a cell has none."""
    corner: Float[Tensor, "days 2"]
    lead: Int[Tensor, " days"] | None = None
    """Days ahead that it is for; None where it serves every lead."""

    @property
    def days(self) -> int:
        return self.corner.shape[0]


@dataclass(frozen=True)
class Refinement:
    """Bilinear values of coarse fields at the pixels of tiles: two matrix products, since both are grids."""

    down: Float[Tensor, "tiles rows h"]
    right: Float[Tensor, "tiles cols w"]

    @classmethod
    def of(
        cls,
        corner: Float[Tensor, "tiles 2"],
        shape: Sequence[int],
        position: Float[Tensor, "tiles 2"],
        tile: tuple[int, int],
    ) -> "Refinement":
        """From the grid with its north-west `corner` to tiles at `position`; beyond its centres the nearest value."""
        away = torch.stack([corner[:, 0] - position[:, 0], position[:, 1] - corner[:, 1]])

        def weights(start: Tensor, pixels: int, cells: int) -> Tensor:
            steps = torch.arange(pixels, device=start.device)
            place = ((start[:, None] + (steps + 0.5) * FINE_STEP) / COARSE_STEP - 0.5).clamp(0, cells - 1)
            return torch.relu(1 - (place[:, :, None] - torch.arange(cells, device=start.device)).abs())

        return cls(*(weights(*part) for part in zip(away, tile, shape, strict=True)))

    def __call__(self, field: Float[Tensor, "tiles ch h w"]) -> Float[Tensor, "tiles ch rows cols"]:
        return self.down[:, None] @ field @ self.right[:, None].transpose(2, 3)


def unblurred(field: Float[Tensor, "b ch h w"], known: Tensor) -> Float[Tensor, "b ch h w"]:
    """A field whose bilinear refinement has, over each cell, the mean that the field had there.

    Refining blurs: the mean over a cell is 3/4 of its own value and 1/8 of each neighbour's, in rows and in columns.
    What is lost is added, thrice. Where nothing is known, NaN stays.
    """
    kernel = torch.tensor([0.125, 0.75, 0.125], device=field.device)
    kernel = (kernel[:, None] * kernel)[None, None]
    mask = known.float()

    def blurred(values: Tensor) -> Tensor:
        total, weight = (
            functional.conv2d(functional.pad(part.flatten(0, 1)[:, None], (1, 1, 1, 1), mode="replicate"), kernel)
            for part in (values * mask, mask.expand_as(values))
        )
        return (total / weight.clamp(min=1e-6)).squeeze(1).unflatten(0, values.shape[:2])

    wanted = torch.nan_to_num(field)
    sharp = wanted
    for _ in range(3):
        sharp = sharp + (wanted - blurred(sharp)) * mask
    return torch.where(mask > 0, sharp, torch.nan)


class LearnedBaseline(ForecastNetwork):
    """A backbone between the physical units of `Inputs` and of forecasts."""

    settings: LearnedBaselineSettings
    earlier_names: ClassVar[Mapping[str, str]] = {"body.": "backbone."}

    def __init__(self, settings: LearnedBaselineSettings, scales: Scales):
        super().__init__(settings, scales)
        # PM2.5; elevation, where there is PM2.5, latitude, longitude; the days ahead with both of the days
        channels = settings.channels + 5 + settings.days_ahead.inputs
        outputs = 2 if settings.smooth_change else 1
        self.backbone = BACKBONES[settings.kind](settings.backbone, channels, settings.shape, settings.leads, outputs)

    def encode_day(self, day: DayInputs) -> CoarseForecast:
        """As in CRAN-PM; after the channels of both days it reads PM2.5 at 25 km of today and yesterday."""
        check_day(day, self.settings)
        fields, pm25 = day.coarse.tensor_split([DAYS_READ * self.settings.channels], dim=1)
        by_day = (fields.unflatten(1, (DAYS_READ, -1)) - self.coarse_mean) / self.coarse_spread
        known = torch.nan_to_num((pm25 - self.scales.pm25_mean) / self.scales.pm25_spread)[:, :, None]
        rows, cols = day.elevation.shape[1:]
        lat, lon = token_centres(day.corner, rows, cols, COARSE_STEP).unflatten(1, (rows, cols)).unbind(3)
        metres, *degrees = FINE_SCALE
        where = (day.elevation / metres, pm25[:, 0].isfinite().float(), lat / degrees[0], lon / degrees[1])
        both = [torch.stack(where, dim=1), *self.normalised_ahead(day)]
        frames = torch.cat([by_day, known, *(f[:, None].expand(-1, DAYS_READ, -1, -1, -1) for f in both)], dim=2)
        change = self.backbone(frames.flip(1), day.wind, day.elevation)  # yesterday first
        whole = torch.ones_like(change[:, :1, 0])
        return CoarseForecast(
            unblurred(change.flatten(1, 2), whole).unflatten(1, change.shape[1:3]),
            unblurred(pm25[:, :1], pm25[:, :1].isfinite()),
            day.corner,
            day.lead,
        )

    def forecast_tile(
        self, context: CoarseForecast, tile: TileInputs, lead: Int[Tensor, " tiles"]
    ) -> Float[Tensor, "tiles h w"]:
        """PM2.5 (ug m-3) `lead` days ahead, NaN where today's is missing."""
        fine = tile.fine
        check_tiles(context.days, fine.shape[0])
        check_lead(context.lead, lead)
        rows, cols = fine.shape[2:]
        day = torch.arange(context.days, device=lead.device).repeat_interleave(fine.shape[0] // context.days)
        refined = Refinement.of(context.corner[day], context.today.shape[2:], tile.position, (rows, cols))
        shift, *share = refined(context.change[day, lead_index(lead, self.settings.leads)]).unbind(1)
        missing = torch.where(fine[:, 0].isnan(), torch.nan, 0.0)
        if self.settings.start == "fine":
            begin = fine[:, 0]
        elif self.settings.start == "mean":
            begin = torch.full_like(missing, self.scales.pm25_mean)
        else:  # cells without PM2.5 leave their weight to their neighbours
            known = context.today[day].isfinite()
            total, weight = refined(torch.nan_to_num(context.today[day])), refined(known.float())
            begin = torch.where(weight > 0, total / weight, torch.nan).squeeze(1)
        change = shift
        for part in share:  # one, or none
            change = change + part * torch.nan_to_num((begin - self.scales.pm25_mean) / self.scales.pm25_spread)
        return begin + missing + change * self.scales.pm25_spread


for _name in BACKBONES:
    register(_name, LearnedBaselineSettings)(LearnedBaseline)
