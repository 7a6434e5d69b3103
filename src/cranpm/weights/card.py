"""What must be known about weights to use them rightly, and the refusal of data that do not fit."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cranpm import __version__
from cranpm.baselines.learned.baseline import OpponentName, OpponentSettings
from cranpm.core.channels import COARSE
from cranpm.core.errors import CranpmError
from cranpm.core.grid import COARSE_STEP, FINE_STEP, Grid
from cranpm.network import NetworkSettings, ReleasedSettings
from cranpm.network.registry import AnyNetwork
from cranpm.network.scaling import Scales

LICENCE = "Apache-2.0"


class CranPMKind(BaseModel):
    """The paper's network."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["cran-pm"] = "cran-pm"
    settings: NetworkSettings


class ReleasedKind(BaseModel):
    """The network as its authors released it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["released"] = "released"
    settings: ReleasedSettings


class OpponentKind(BaseModel):
    """A learned opponent."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: OpponentName
    settings: OpponentSettings

    @model_validator(mode="after")
    def _same(self) -> "OpponentKind":
        if self.kind != self.settings.kind:
            raise ValueError(f"{self.kind} with settings of {self.settings.kind}")
        return self


class Card(BaseModel):
    """Everything beside the tensors; stored as `settings.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    network: Annotated[CranPMKind | ReleasedKind | OpponentKind, Field(discriminator="kind")]
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

    def check(self, channels: Sequence[str], coarse: Grid, fine: Grid, leads: Sequence[int]) -> None:
        """Refuse data that these weights were not made for: other channels, grid steps, half-cell shifts, leads."""
        own = [name for name, _ in self.channels]
        for index, (wanted, found) in enumerate(zip(own, channels, strict=False)):
            if wanted != found:
                _refuse(f"{wanted} as channel {index}", found)
        if len(own) != len(channels):
            _refuse(f"{len(own)} channels", str(len(channels)))
        for name, step, grid in (("coarse", self.coarse_step, coarse), ("fine", self.fine_step, fine)):
            if abs(grid.step - step) > 1e-9:
                _refuse(f"a {name} grid of {step} degrees", f"{grid.step} degrees")
            if any(abs(edge / step - round(edge / step)) > 1e-6 for edge in (grid.north, grid.west)):
                _refuse(f"{name} cell edges on multiples of {step} degrees", f"N {grid.north}, W {grid.west}")
        if unknown := [lead for lead in leads if lead not in self.leads]:
            _refuse(f"leads among {self.leads}", str(unknown))


def _refuse(expected: str, found: str) -> None:
    raise CranpmError(
        expected=f"{expected}, which the weights were made for",
        found=found,
        remedy="Use data like those of the training, or weights trained for these.",
    )


def card_for(network: AnyNetwork, **facts: Any) -> Card:
    """The card of a network of the 35 channels; `facts` are domain, data, source, changes, licence, about."""
    kind: CranPMKind | OpponentKind
    if isinstance(network.settings, NetworkSettings):
        kind = CranPMKind(settings=network.settings)
    elif isinstance(network.settings, OpponentSettings):
        kind = OpponentKind(kind=network.settings.kind, settings=network.settings)
    else:
        raise TypeError("the card of the released network comes from its authors' folder")
    return Card(
        network=kind,
        scales=network.scales,
        channels=tuple((channel.name, channel.unit) for channel in COARSE),
        leads=network.settings.leads,
        **{name: value for name, value in facts.items() if value is not None},
    )
