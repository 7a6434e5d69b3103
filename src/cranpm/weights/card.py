"""What must be known about weights to use them rightly, and the refusal of data that do not fit."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

import cranpm.baselines.learned  # noqa: F401  registers the learned baselines
from cranpm import __version__
from cranpm.core.channels import PAPER_CHANNELS, Channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import COARSE_STEP, FINE_STEP, Grid
from cranpm.core.settings import present_keys
from cranpm.network import NETWORKS, ForecastNetwork, ForecastSettings
from cranpm.network.scaling import Scales

LICENCE = "Apache-2.0"


def unreadable(error: ValidationError, table: str = "") -> CranpmError:
    """The refusal of a card that this version cannot read; `table` is where in it the values stand."""
    problem = error.errors()[0]
    return CranpmError(
        expected="settings.json as this version writes it",
        found=f"{'.'.join(map(str, (*table.split(), *problem['loc'])))}: {problem['msg']}",
        remedy="Use the version of cranpm that wrote it.",
    )


class NetworkCard(BaseModel):
    """Which network: the name under which it is registered, and its settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    settings: SerializeAsAny[ForecastSettings]

    @field_validator("settings", mode="before")
    @classmethod
    def _of_kind(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping) or "kind" not in info.data:
            return value
        kind = info.data["kind"]
        if kind not in NETWORKS:
            raise CranpmError(
                expected=f"weights of a network that is known here: {', '.join(NETWORKS)}",
                found=repr(kind),
                remedy="Install the package whose plugin registers it, or use other weights.",
            )
        try:
            settings = NETWORKS[kind].settings
            return settings.model_validate(present_keys(settings, {"kind": kind, **value}))
        except ValidationError as error:
            raise unreadable(error, "network settings") from None

    @model_validator(mode="after")
    def _same(self) -> "NetworkCard":
        if self.kind != self.settings.kind:
            raise ValueError(f"{self.kind} with settings of {self.settings.kind}")
        return self


class Card(BaseModel):
    """Everything beside the tensors; stored as `settings.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    network: NetworkCard
    scales: Scales
    channels: tuple[tuple[str, str], ...]
    """Name and unit of the coarse channels of one day, in order."""
    coarse_step: float = COARSE_STEP
    fine_step: float = FINE_STEP
    leads: tuple[int, ...]
    domain: str | None = None
    """Where it was trained: a name or a box N,W,S,E."""
    data: str | None = None
    """What it was trained on: archive, its snapshot, days. None: not trained here."""
    source: str | None = None
    """What filled that archive: `simulation`, or the name of a provider."""
    stations_in_loss: dict[str, float] | Literal["unknown"] | None = None
    """How many `stations` there were, and the share `held_out` and `seed` that chose those which the loss did not see.

    None: it saw none at all.
    """
    changes: dict[int, tuple[float, float]] = Field(default_factory=dict)
    """By lead, the later mean of the domain over the earlier: the lowest and the highest of the training days."""
    ahead: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By group of the days ahead that it reads, the models whose forecasts it learned from."""
    licence: str = LICENCE
    software: str = f"cranpm {__version__}"
    about: str = ""
    """What a reader of the model card must know: recipe, scores, limits."""

    @model_validator(mode="after")
    def _agrees(self) -> "Card":
        settings = self.network.settings
        if self.leads != settings.leads or len(self.channels) != settings.channels:
            raise ValueError("leads and channels must be those of the network")
        if len(self.scales.mean) != settings.channels:
            raise ValueError("scales must be those of the network's channels")
        if (self.coarse_step, self.fine_step) != (COARSE_STEP, FINE_STEP):
            raise ValueError(f"this version knows grids of {COARSE_STEP} and {FINE_STEP} degrees")
        return self

    @property
    def days_ahead(self) -> str:
        """What it reads of the days ahead, in words."""
        read = "; ".join(f"{group} as forecast by {', '.join(models)}" for group, models in self.ahead.items())
        return read or self.network.settings.ahead

    @property
    def channel_names(self) -> tuple[str, ...]:
        """Coarse channels of one day, in the order in which the network reads them."""
        return tuple(name for name, _ in self.channels)

    def check(self, channels: Sequence[Channel], coarse: Grid, fine: Grid, leads: Sequence[int]) -> None:
        """Refuse data that these weights were not made for: other channels, grid steps, half-cell shifts, leads."""
        self.check_channels(channels)
        for name, step, grid in (("coarse", self.coarse_step, coarse), ("fine", self.fine_step, fine)):
            if abs(grid.step - step) > 1e-9:
                _refuse(f"a {name} grid of {step} degrees", f"{grid.step} degrees")
            if any(abs(edge / step - round(edge / step)) > 1e-6 for edge in (grid.north, grid.west)):
                _refuse(f"{name} cell edges on multiples of {step} degrees", f"N {grid.north}, W {grid.west}")
        if unknown := [lead for lead in leads if lead not in self.leads]:
            _refuse(f"leads among {self.leads}", str(unknown))

    def check_channels(self, channels: Sequence[Channel]) -> None:
        """Refuse data without one of the channels of these weights, or with one in another unit.

        Which others there are, and in which order, does not matter.
        """
        units = {channel.name: channel.unit for channel in channels}
        if missing := [name for name in self.channel_names if name not in units]:
            _refuse(f"the channels {', '.join(missing)}", f"only {', '.join(units)}")
        if others := [(name, unit) for name, unit in self.channels if units[name] != unit]:
            found = ", ".join(f"{name} in {units[name]}" for name, _ in others)
            _refuse(", ".join(f"{name} in {unit}" for name, unit in others), found)


def _refuse(expected: str, found: str) -> None:
    raise CranpmError(
        expected=f"{expected}, which the weights were made for",
        found=found,
        remedy="Use data like those of the training, or weights trained for these.",
    )


def card_for(network: ForecastNetwork, channels: Sequence[Channel] = PAPER_CHANNELS, **facts: Any) -> Card:
    """The card of a network of these channels; `facts` are domain, data, source, changes, ahead, licence, about."""
    return Card(
        network=NetworkCard(kind=network.settings.kind, settings=network.settings),
        scales=network.scales,
        channels=tuple((channel.name, channel.unit) for channel in channels),
        leads=network.settings.leads,
        **{name: value for name, value in facts.items() if value is not None},
    )
