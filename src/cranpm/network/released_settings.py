"""Sizes of the network that its authors released, the channels that it reads, and their scales."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import model_validator

from cranpm.network.interface import ForecastSettings, Positive
from cranpm.network.scaling import Scales, typical_scales

LEADS = (1, 2, 3, 4)
_ALOFT = {"t": "K", "u": "m s-1", "v": "m s-1", "q": "kg kg-1", "z": "m2 s-2"}
UNITS: Mapping[str, str] = {
    **{"u10": "m s-1", "v10": "m s-1", "t2m": "K", "msl": "Pa", "sp": "Pa"},
    **{f"{name}{level}": unit for name, unit in _ALOFT.items() for level in (1000, 925, 850, 700, 500)},
    **dict.fromkeys(("cams_no2", "cams_o3", "cams_so2", "cams_co", "cams_pm10"), "ug m-3"),
}
"""Of each channel of a day, by name and in order."""
CHANNELS: tuple[str, ...] = tuple(UNITS)
_TYPICAL = (
    *((0, 10), (0, 10), (280, 20), (101325, 1500), (97000, 5000)),
    *([(260, 30)] * 5 + [(0, 15)] * 5 + [(0, 10)] * 5 + [(0.003, 0.004)] * 5 + [(50000, 40000)] * 5),
    *((2.15, 3.52), (71.75, 18.18), (0.85, 1.69), (140.8, 36.7), (14.0, 13.7)),
)
SCALES = Scales(mean=tuple(mean for mean, _ in _TYPICAL), spread=tuple(spread for _, spread in _TYPICAL))


class ReleasedSettings(ForecastSettings):
    """The authors' `config["model"]`, key by key, and two choices they left open."""

    trainable: ClassVar[bool] = False
    resolution: ClassVar[str] = "1 km"

    kind: Literal["released"] = "released"
    era5_channels: Positive = 70
    global_img_size: tuple[Positive, Positive] = (168, 280)
    global_patch_size: Positive = 8
    global_embed_dim: Positive = 768
    global_depth: Positive = 8
    global_num_heads: Positive = 12
    local_channels: Literal[5] = 5
    local_img_size: tuple[Positive, Positive] = (512, 512)
    local_patch_size: Literal[16] = 16
    local_embed_dim: Positive = 512
    local_depth: Positive = 6
    local_num_heads: Positive = 8
    cross_num_heads: Positive = 8
    cross_layers: Positive = 2
    out_channels: Literal[1] = 1
    mlp_ratio: Positive = 4
    drop_rate: float = 0.0
    drop_path: float = 0.0
    global_region_h: Positive = 7
    global_region_w: Positive = 7

    @model_validator(mode="after")
    def _consistent(self) -> "ReleasedSettings":
        for name, width, heads in (
            ("global", self.global_embed_dim, self.global_num_heads),
            ("local", self.local_embed_dim, self.local_num_heads),
            ("cross", self.local_embed_dim, self.cross_num_heads),
        ):
            if width % heads or width % 4:
                raise ValueError(f"{name} width {width} must be a multiple of 4 and of its {heads} heads")
        for name, sides, patch in (
            ("global", self.global_img_size, self.global_patch_size),
            ("local", self.local_img_size, self.local_patch_size),
        ):
            if any(side % patch for side in sides):
                raise ValueError(f"{name} image {sides} must be whole patches of {patch}")
        if self.era5_channels % 2:
            raise ValueError(f"{self.era5_channels} channels cannot be those of two days")
        return self

    wind_bias: bool = True
    """Their forecaster passes no wind, which switches the bias off; their training passed it."""
    coordinates: Literal["domain", "globe"] = "domain"
    """(lat-30)/42 and (lon+25)/70 as in their training code, or lat/90 and lon/180 as in their forecaster."""

    @property
    def channels(self) -> int:
        return self.era5_channels // 2

    @property
    def coarse_shape(self) -> tuple[int, int]:
        return self.global_img_size

    @property
    def tile_shape(self) -> tuple[int, int]:
        return self.local_img_size

    @property
    def leads(self) -> tuple[int, ...]:
        return LEADS

    @property
    def scales(self) -> Scales:
        return SCALES if self.channels == len(CHANNELS) else typical_scales(self.channels)
