"""Sizes and switches of the network, validated. The defaults are the paper's."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cranpm.core.days import LEADS
from cranpm.network.interface import ForecastSettings, Positive

FusionName = Literal["cross", "none", "add", "film", "concat", "coarse-queries-fine", "bidirectional"]
Share = Annotated[float, Field(ge=0, lt=1)]


class BranchSettings(BaseModel):
    """One branch: patches, one elevation-aware block, then Swin blocks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shape: tuple[Positive, Positive]
    """Pixels (rows, columns) of the usual input; others run too, clamped to its relative positions."""
    patch: Positive
    width: Positive
    heads: Positive
    depth: Positive
    """Swin blocks after the elevation-aware block."""
    window: Positive
    elevation_scale_m: Annotated[float, Field(gt=0)]
    """E0 of the elevation bias: a rise by E0 costs alpha in the attention logits."""

    @model_validator(mode="after")
    def _divisible(self) -> "BranchSettings":
        if self.width % self.heads or self.width % 4:
            raise ValueError(f"width {self.width} must be a multiple of 4 and of its {self.heads} heads")
        return self

    @property
    def tokens(self) -> tuple[int, int]:
        """Rows and columns of patches; a patch that is only partly filled counts."""
        return -(-self.shape[0] // self.patch), -(-self.shape[1] // self.patch)


class NetworkSettings(ForecastSettings):
    """The whole network. The defaults are the paper's (96 M parameters)."""

    resolution: ClassVar[str] = "1 km"
    reads_ahead: ClassVar[bool] = True

    kind: Literal["cran-pm"] = "cran-pm"
    channels: Positive = 35
    """Coarse channels of one day; the network reads today's and yesterday's."""
    coarse: BranchSettings = BranchSettings(
        shape=(168, 280), patch=8, width=768, heads=12, depth=7, window=7, elevation_scale_m=1000
    )
    fine: BranchSettings = BranchSettings(
        shape=(512, 512), patch=16, width=512, heads=8, depth=5, window=8, elevation_scale_m=500
    )
    bridge_layers: Positive = 2
    decoder: tuple[Positive, ...] = (256, 128, 64, 32)
    """Channels after each doubling of resolution."""
    leads: tuple[Positive, ...] = LEADS
    mlp_ratio: Positive = 4
    drop_path: Share = 0.1
    """Share of skipped blocks at the last block of a branch; grows linearly from 0."""
    dropout: Share = 0.1
    """On the tokens that enter a branch."""

    fusion: FusionName = "cross"
    """How coarse tokens reach fine ones; `cross` is the paper's."""
    elevation_bias: bool = True
    elevation_form: Literal["rise", "barrier"] = "rise"
    """What is above a query: the key, or (not in the paper) the highest ground on the straight line to it."""
    elevation_channel: bool = True
    """Read a tile's elevation beside its PM2.5; without it relief enters by the bias alone."""
    wind_scan: bool = True
    scan_form: Literal["order", "bias"] = "order"
    """Tokens change places, or (not in the paper) keep them and look upwind by a bias in the first coarse block."""
    wind_bias: bool = True
    wind_form: Literal["direction", "departure"] = "direction"
    """Look upwind, or (not in the paper, needs distance_bias) around where the air of that lead sets out."""
    distance_bias: bool = False
    """In the cross-attentions between the branches, near tokens weigh more; not in the paper (docs/decisions/0008)."""
    upsampling: Literal["pixel-shuffle", "transpose"] = "pixel-shuffle"
    delta: bool = True
    """Forecast the change from today; otherwise the concentration itself."""
    smooth_change: bool = False
    """Beside the decoder's change, one read straight off the tokens: a shift, and a share of today's PM2.5.

    Not in the paper (docs/decisions/0008).
    """
    yesterday: bool = True
    """Read yesterday's fields in both branches."""
    local: bool = False
    """Let every fine token also read all coarse fields at its own place, before the fine branch. Not in the paper,
    where weather reaches a tile through coarse tokens alone."""
    carried: bool = False
    """Read how the wind of the way alone would change PM2.5 at 25 km, and count the change from there, by a share
    that is learned for each lead, with and without the weather ahead. Not in the paper."""

    @model_validator(mode="after")
    def _consistent(self) -> "NetworkSettings":
        if 2 ** len(self.decoder) != self.fine.patch:
            raise ValueError(f"{len(self.decoder)} doublings do not turn a token into {self.fine.patch} pixels")
        if len(set(self.leads)) != len(self.leads) or not self.leads:
            raise ValueError(f"leads {self.leads} must name each lead once")
        if self.fusion == "none" and (self.ahead != "none" or self.carried or self.local):
            raise ValueError("fusion none reads nothing coarse: it does not go with ahead, carried or local")
        if self.carried and self.ahead == "none":
            raise ValueError("carried follows the air of a lead by the weather ahead: it needs ahead")
        if self.distance_bias and self.fusion not in ("cross", "coarse-queries-fine", "bidirectional"):
            raise ValueError(f"fusion {self.fusion} has no cross-attention for distance_bias")
        if self.wind_bias and self.wind_form == "departure" and not (self.distance_bias and self.fusion == "cross"):
            raise ValueError("wind_form departure moves the distances of fusion cross: it needs distance_bias")
        return self

    @property
    def coarse_pm25(self) -> bool:
        return self.carried

    @property
    def coarse_inputs(self) -> int:
        """Fields that the coarse branch reads."""
        return self.days * self.channels + self.days_ahead.inputs + self.carried

    @property
    def coarse_shape(self) -> tuple[int, int]:
        return self.coarse.shape

    @property
    def tile_shape(self) -> tuple[int, int]:
        return self.fine.shape

    @property
    def any_grid(self) -> bool:
        return self.fusion == "none"

    @property
    def days(self) -> int:
        return 2 if self.yesterday else 1
