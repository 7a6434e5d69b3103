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
from pydantic import BaseModel, ConfigDict, Field, field_validator
from torch import Tensor, nn

from cranpm.core.channels import GROUPS, Channel, channels_of
from cranpm.core.days import LEADS
from cranpm.core.errors import CranpmError
from cranpm.core.settings import validate
from cranpm.network.ahead import AheadForm, AheadName, WayName
from cranpm.network.scaling import Scales, typical_scales

Positive = Annotated[int, Field(gt=0, le=16384)]
Parts = Mapping[tuple[str, str], Sequence[nn.Module]]
"""Modules by stage (`day` or `tile`) and name of a part, in the order in which they run."""


Part = TypeVar("Part")


class _Tensors:
    """A dataclass of tensors, some of them perhaps absent, whose first dimension counts days or tiles."""

    def to(self: Part, device: torch.device | str) -> Part:
        """The same on another device."""
        parts = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return type(self)(*(None if part is None else part.to(device) for part in parts))

    @classmethod
    def join(cls: type[Part], parts: Sequence[Part]) -> Part:
        """Several days, or several tiles, as one batch."""
        columns = ([getattr(part, field.name) for part in parts] for field in fields(cls))  # type: ignore[arg-type]
        return cls(*(None if column[0] is None else torch.cat(column) for column in columns))


@dataclass(frozen=True)
class DayInputs(_Tensors):
    """What a network is given of one or more days, in physical units."""

    coarse: Float[Tensor, "days ch h w"]
    """Today's channels, then yesterday's; where the settings say `coarse_pm25`, then PM2.5 at 25 km of both days."""
    wind: Float[Tensor, "days 2 h w"]
    """u (eastward) and v (northward) at 10 m, m/s: of today or, where the weather ahead is read and known, the mean
    from the middle of today to the middle of the target day."""
    elevation: Float[Tensor, "days h w"]
    """Metres."""
    corner: Float[Tensor, "days 2"]
    """Latitude and longitude of the coarse grid's north-west edge."""
    ahead: Float[Tensor, "days slots fields h w"] | None = None
    """Where the settings say `ahead`, the channels of its groups as they were forecast for the days up to `lead`:
    see `network.ahead`. What their mask declares unknown may be anything."""
    known: Float[Tensor, "days slots groups"] | None = None
    """Their masks: 1 where a group is known."""
    lead: Int[Tensor, " days"] | None = None
    """Days ahead that these inputs are for; None where they serve every lead."""


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
    reads_ahead: ClassVar[bool] = False
    """Whether it can read the days ahead: a network that cannot is refused with `ahead`."""

    kind: str
    """The name under which the network is registered."""
    ahead: AheadName = "none"
    """Which forecasts of the days ahead it reads beside today and yesterday; none in the paper."""
    way: WayName = "mean"
    """Their form: the target day and the mean of the days up to it, or one slot for each of these days."""
    group_sizes: tuple[int, int] = (30, 5)
    """How many of the channels are weather and composition; taken from the archive."""

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

    @field_validator("ahead")
    @classmethod
    def _can_read(cls, value: AheadName) -> AheadName:
        if value != "none" and not cls.reads_ahead:
            raise ValueError("this network reads no days ahead; one that does says reads_ahead: ClassVar[bool] = True")
        return value

    @property
    def coarse_pm25(self) -> bool:
        """Whether it reads PM2.5 at 25 km after the coarse channels."""
        return False

    @property
    def days_ahead(self) -> AheadForm:
        """What it reads of the days ahead."""
        return AheadForm.of(self.ahead, self.way, self.group_sizes, self.leads)

    @property
    def any_grid(self) -> bool:
        """Whether it may be trained on a coarse grid of another shape than `coarse_shape`."""
        return False

    @property
    def looks_around(self) -> bool:
        """Whether a pixel's forecast depends on its tile, so that tiles must overlap to leave no seams."""
        return True

    @property
    def scales(self) -> Scales:
        """Round figures for its channels, for a network that is not trained."""
        return typical_scales(self.channels, self.days_ahead.channels)

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

    def for_channels(self, channels: Sequence[Channel]) -> "ForecastSettings":
        """The same for these channels per day, and for their groups where it reads the days ahead."""
        sized = self.with_channels(len(channels))
        sizes = tuple(len(channels_of(channels, group)) for group in GROUPS)
        return sized.model_copy(update={"group_sizes": sizes}) if self.ahead != "none" else sized


class GridSettings(ForecastSettings):
    """Settings of a network that needs no more than its grid, tiles, channels and leads; others add their fields."""

    SHARED: ClassVar[tuple[str, ...]] = ("channels", "leads", "coarse_shape", "tile_shape", "ahead", "way")
    resolution: ClassVar[str] = "1 km"

    channels: Positive = 35
    leads: tuple[Positive, ...] = LEADS
    coarse_shape: tuple[Positive, Positive] = (168, 280)
    tile_shape: tuple[Positive, Positive] = (512, 512)


class ForecastNetwork(nn.Module, ABC):
    """A network that encodes a day once and then forecasts its tiles; training takes both steps at once."""

    coarse_mean: Tensor
    coarse_spread: Tensor
    ahead_mean: Tensor
    ahead_spread: Tensor
    earlier_names: ClassVar[Mapping[str, str]] = {}
    """First parts of the names of tensors as older versions wrote them, and what they are called now."""

    def __init__(self, settings: ForecastSettings, scales: Scales):
        super().__init__()
        scales.check(settings.channels, settings.days_ahead.channels)
        self.settings, self.scales = settings, scales
        for name in ("mean", "spread"):
            for part, values in (("coarse", getattr(scales, name)), ("ahead", getattr(scales, f"ahead_{name}"))):
                self.register_buffer(f"{part}_{name}", torch.tensor(values)[:, None, None], persistent=False)

    @abstractmethod
    def encode_day(self, day: DayInputs) -> Any:
        """What serves every tile of the days; and every lead, unless the days ahead are read, which are of one lead."""

    @abstractmethod
    def forecast_tile(self, context: Any, tile: TileInputs, lead: Int[Tensor, " tiles"]) -> Float[Tensor, "tiles h w"]:
        """PM2.5 (ug m-3) of tiles `lead` days ahead; NaN where today's is missing. `context` is from `encode_day`."""

    def forward(self, *tensors: Tensor) -> Float[Tensor, "tiles h w"]:
        """Both steps at once, for training, from the tensors of a day, of tiles, and the leads: see `flat`."""
        day, tiles, lead = DayInputs(*tensors[:4], *tensors[7:]), TileInputs(*tensors[4:6]), tensors[6]
        return self.forecast_tile(self.encode_day(day), tiles, lead)

    def normalised_ahead(self, day: DayInputs) -> list[Float[Tensor, "days inputs h w"]]:
        """The days ahead and their masks, of the size of 1, in a list that is empty where they are not read."""
        form = self.settings.days_ahead
        if not form.groups:
            return []
        form.check(day.ahead, day.known)
        assert day.ahead is not None
        assert day.known is not None
        return [form.normalised(day.ahead, day.known, self.ahead_mean, self.ahead_spread)]

    def head(self) -> list[nn.Module]:
        """The modules that tuning of the head alone changes; none where the network has no such part."""
        return []

    def parts(self) -> Parts:
        """The parts by which costs are counted; what lies outside of them is counted together."""
        return {}


def flat(day: DayInputs, tiles: TileInputs, lead: Tensor) -> tuple[Tensor, ...]:
    """Arguments of a network's `forward`: what wraps a module for training knows tensors only.

    What the day says of the days ahead comes last, where there is any.
    """
    always, ahead = (day.coarse, day.wind, day.elevation, day.corner), (day.ahead, day.known, day.lead)
    return *always, tiles.fine, tiles.position, lead, *(part for part in ahead if part is not None)


def current_names(network: type[ForecastNetwork], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors under the names of this version."""
    renamed = {}
    for name, tensor in tensors.items():
        for old, new in network.earlier_names.items():
            if name.startswith(old):
                name = new + name.removeprefix(old)
        renamed[name] = tensor
    return renamed
