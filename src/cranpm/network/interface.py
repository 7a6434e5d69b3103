"""What every network here has in common: what it is given, what its settings say, and the two steps of a forecast.

An own network is a subclass of `ForecastNetwork` with the decorator `cranpm.network.registry.register`
(docs/network.md shows one in 30 lines).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import torch
from jaxtyping import Float, Int
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from cranpm.core.days import LEADS
from cranpm.core.errors import CranpmError
from cranpm.core.settings import validate
from cranpm.network.scaling import Scales, typical_scales

Positive = Annotated[int, Field(gt=0, le=16384)]
Parts = Mapping[tuple[str, str], Sequence[nn.Module]]
"""Modules by stage (`day` or `tile`) and name of a part, in the order in which they run."""


Part = TypeVar("Part")


class _Tensors:
    """A dataclass of tensors whose first dimension counts days or tiles."""

    def to(self: Part, device: torch.device | str) -> Part:
        """The same on another device."""
        return type(self)(*(getattr(self, field.name).to(device) for field in fields(self)))  # type: ignore[arg-type]

    @classmethod
    def join(cls: type[Part], parts: Sequence[Part]) -> Part:
        """Several days, or several tiles, as one batch."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class DayInputs(_Tensors):
    """What a network is given of one or more days, in physical units."""

    coarse: Float[Tensor, "days ch h w"]
    """Today's channels, then yesterday's; where the settings say `coarse_pm25`, then PM2.5 at 25 km of both days."""
    wind: Float[Tensor, "days 2 h w"]
    """u (eastward) and v (northward) at 10 m, m/s."""
    elevation: Float[Tensor, "days h w"]
    """Metres."""
    corner: Float[Tensor, "days 2"]
    """Latitude and longitude of the coarse grid's north-west edge."""


@dataclass(frozen=True)
class TileInputs(_Tensors):
    """What a network is given of tiles, in physical units; tiles are ordered by day, equally many per day."""

    fine: Float[Tensor, "tiles 5 h w"]
    """PM2.5 today (ug m-3, NaN where missing), elevation (m), latitude, longitude, PM2.5 yesterday."""
    position: Float[Tensor, "tiles 2"]
    """Latitude and longitude of each tile's north-west edge."""

    def repeat(self, count: int) -> "TileInputs":
        """One tile as a batch of `count`, for as many leads."""
        return TileInputs(self.fine.expand(count, -1, -1, -1), self.position.expand(count, -1))


class ForecastSettings(BaseModel):
    """What the rest of the package must know of any network; what else the settings hold is the network's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trainable: ClassVar[bool] = True
    """Whether `cranpm train` may train it."""
    coarse_pm25: ClassVar[bool] = False
    """Whether it reads PM2.5 at 25 km after the coarse channels."""

    kind: str
    """The name under which the network is registered."""

    if TYPE_CHECKING:  # each a field or a property of the subclass; `register` refuses settings without one

        @property
        def channels(self) -> int:
            """Coarse channels of one day; the network is given today's and yesterday's."""

        @property
        def leads(self) -> tuple[int, ...]:
            """Days ahead that it forecasts."""

        @property
        def coarse_shape(self) -> tuple[int, int]:
            """Rows and columns of the coarse grid that it is made for."""

        @property
        def tile_shape(self) -> tuple[int, int]:
            """Rows and columns of its tiles, in pixels."""

        @property
        def resolution(self) -> str:
            """At which forecasts are made."""

    @property
    def any_grid(self) -> bool:
        """Whether it may be trained on a coarse grid of another shape than `coarse_shape`."""
        return False

    @property
    def scales(self) -> Scales:
        """Round figures for its channels, for a network that is not trained."""
        return typical_scales(self.channels)

    @classmethod
    def on_grid_of(cls, other: "ForecastSettings", **given: Any) -> "ForecastSettings":
        """Settings with `given` values and the grid, tiles, channels and leads of another network's."""
        shared = {name: getattr(other, name) for name in GridSettings.SHARED}
        return validate(cls, {**shared, **given}, "baseline")

    def with_channels(self, channels: int) -> "ForecastSettings":
        """The same for so many channels per day; refused where `channels` is not a field."""
        if channels != self.channels and "channels" not in type(self).model_fields:
            raise CranpmError(
                expected=f"{self.channels} channels per day, for {self.kind}",
                found=str(channels),
                remedy="Use data with the channels of this network, or another network.",
            )
        return self.model_copy(update={"channels": channels}) if channels != self.channels else self


class GridSettings(ForecastSettings):
    """Settings of a network that needs no more than its grid, tiles, channels and leads; others add their fields."""

    SHARED: ClassVar[tuple[str, ...]] = ("channels", "leads", "coarse_shape", "tile_shape")
    resolution: ClassVar[str] = "1 km"

    channels: Positive = 35
    leads: tuple[Positive, ...] = LEADS
    coarse_shape: tuple[Positive, Positive] = (168, 280)
    tile_shape: tuple[Positive, Positive] = (512, 512)


class ForecastNetwork(nn.Module, ABC):
    """A network that encodes a day once and then forecasts its tiles; training takes both steps at once."""

    coarse_mean: Tensor
    coarse_spread: Tensor
    earlier_names: ClassVar[Mapping[str, str]] = {}
    """First parts of the names of tensors as older versions wrote them, and what they are called now."""

    def __init__(self, settings: ForecastSettings, scales: Scales):
        super().__init__()
        scales.check(settings.channels)
        self.settings, self.scales = settings, scales
        for name, values in (("mean", scales.mean), ("spread", scales.spread)):
            self.register_buffer(f"coarse_{name}", torch.tensor(values)[:, None, None], persistent=False)

    @abstractmethod
    def encode_day(self, day: DayInputs) -> Any:
        """What serves every tile and lead of the days."""

    @abstractmethod
    def forecast_tile(self, context: Any, tile: TileInputs, lead: Int[Tensor, " tiles"]) -> Float[Tensor, "tiles h w"]:
        """PM2.5 (ug m-3) of tiles `lead` days ahead; NaN where today's is missing. `context` is from `encode_day`."""

    def forward(self, *tensors: Tensor) -> Float[Tensor, "tiles h w"]:
        """Both steps at once, for training, from the tensors of a day, of tiles, and the leads: see `flat`."""
        return self.forecast_tile(self.encode_day(DayInputs(*tensors[:4])), TileInputs(*tensors[4:6]), tensors[6])

    def head(self) -> list[nn.Module]:
        """The modules that tuning of the head alone changes; none where the network has no such part."""
        return []

    def parts(self) -> Parts:
        """The parts by which costs are counted; what lies outside of them is counted together."""
        return {}


def flat(day: DayInputs, tiles: TileInputs, lead: Tensor) -> tuple[Tensor, ...]:
    """Arguments of a network's `forward`: what wraps a module for training knows tensors only."""
    return *(getattr(day, field.name) for field in fields(day)), tiles.fine, tiles.position, lead


def current_names(network: type[ForecastNetwork], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors under the names of this version."""
    renamed = {}
    for name, tensor in tensors.items():
        for old, new in network.earlier_names.items():
            if name.startswith(old):
                name = new + name.removeprefix(old)
        renamed[name] = tensor
    return renamed
