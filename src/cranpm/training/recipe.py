"""Everything that decides a training run, from one TOML file."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_validator,
)

import cranpm.baselines.learned  # noqa: F401  registers the learned baselines
from cranpm.core.days import DayRange, Splits, parse_days
from cranpm.core.errors import CranpmError
from cranpm.core.settings import load
from cranpm.network import NETWORKS, ForecastSettings
from cranpm.network.precision import Precision
from cranpm.network.presets import read_network
from cranpm.training.batches import SampleSettings
from cranpm.training.loss import LossSettings

SHIPPED = Path(__file__).parent / "recipes"
"""Settings that come with the package."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class OptimiserSettings(_Frozen):
    """AdamW, warm-up and cosine; the defaults are the paper's (table S3)."""

    learning_rate: PositiveFloat = 5e-5
    least_rate: NonNegativeFloat = 1e-6
    """The cosine ends here."""
    weight_decay: NonNegativeFloat = 0.05
    """Not on biases, norms, embeddings, relative positions, alpha and beta."""
    beta2: Annotated[float, Field(gt=0, lt=1)] = 0.999
    """Decay of the mean of squared gradients (Adam's second): lower forgets a rare, large gradient sooner."""
    warmup_epochs: NonNegativeFloat = 5
    epochs: PositiveInt = 30
    clip: PositiveFloat = 1.0
    """Largest norm of the gradient."""
    accumulate: PositiveInt = 16
    """Batches to one step of the optimiser: with 2 days x 4 tiles, 16 make the paper's 128."""
    average: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Decay of the running mean of the weights that is scored and kept; 0: the weights themselves."""


class MachineSettings(_Frozen):
    """How the work is done; nothing here changes what is learned beyond rounding."""

    precision: Precision = "bf16"
    compile: bool = False
    recompute: bool = False
    """Compute blocks again in the backward pass instead of keeping them: slower, less memory."""
    workers: NonNegativeInt = 1
    """Processes that read and draw batches; 0: none."""
    save_steps: PositiveInt = 200
    """Steps of the optimiser between states from which training can go on."""


class ScoreSettings(_Frozen):
    """What is scored after every epoch and at the end."""

    days: PositiveInt = 40
    """Start days, evenly spread over a split."""
    tiles: PositiveInt = 4
    """Tiles of each day, the same at every epoch."""
    keep: PositiveInt = 3
    """Best weights to keep."""
    patience: PositiveInt | None = None
    """Stop after so many epochs without a better score."""


class SplitSettings(_Frozen):
    """Ranges of days; refused where they overlap."""

    train: DayRange
    validation: DayRange
    test: DayRange

    @field_validator("train", "validation", "test", mode="before")
    @classmethod
    def _days(cls, value: Any) -> Any:
        return parse_days(str(value)) if isinstance(value, str | int | date) else value

    def checked(self) -> Splits:
        return Splits(self.train, self.validation, self.test)


class FinetuneSettings(_Frozen):
    """Weights to begin with instead of a new network, and which part of them may change."""

    weights: str
    """A folder of weights; the network and its scales are theirs."""
    part: Literal["all", "head", "lora"] = "all"
    """Everything; the decoder alone; or changes of low rank to the attentions' projections."""
    rank: PositiveInt = 8
    """Of the changes, for `lora`."""


class TrainSettings(_Frozen):
    """A training run."""

    earlier_names: ClassVar[Mapping[str, str]] = {
        "opponent": "baseline",
        "start": "finetune",
        "optimiser.memory": "optimiser.beta2",
    }

    splits: SplitSettings
    network: SerializeAsAny[ForecastSettings]
    """A table with `kind` (cran-pm unless named), perhaps `preset`, and the settings of that network."""
    loss: LossSettings = LossSettings()
    samples: SampleSettings = SampleSettings()
    optimiser: OptimiserSettings = OptimiserSettings()
    machine: MachineSettings = MachineSettings()
    scores: ScoreSettings = ScoreSettings()
    finetune: FinetuneSettings | None = None
    baseline: dict[str, Any] | None = None
    """Train another registered network instead, on the grid, tiles, channels and leads of `network`: its `kind` and
    its settings; of the learned baselines `size`, `patch` and `start`. Those that change nothing are left out."""

    @property
    def model(self) -> ForecastSettings:
        """What is trained."""
        return self.network if self.baseline is None else _on_grid_of(self.network, self.baseline)

    @model_validator(mode="after")
    def _agrees(self) -> "TrainSettings":
        if self.baseline and self.finetune:
            raise ValueError("a baseline is trained from the beginning: leave out finetune, or the baseline")
        if not self.model.trainable:
            raise ValueError(f"{self.model.kind} forecasts with the weights of its authors and is not trained here")
        return self

    @field_validator("network", mode="before")
    @classmethod
    def _by_kind(cls, value: Any) -> Any:
        return read_network(value) if isinstance(value, Mapping) else value

    @field_validator("baseline")
    @classmethod
    def _without_defaults(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        network = info.data.get("network")
        return _shortest(network, value) if network and value is not None else value

    def to_json(self, defaults: bool = True) -> dict[str, Any]:
        """Plain values that `model_validate` reads back; without `defaults`, those that a newer field cannot change."""
        splits = {name: str(getattr(self.splits, name)) for name in ("train", "validation", "test")}
        return self.model_dump(mode="json", exclude={"splits"}, exclude_defaults=not defaults) | {"splits": splits}


def _on_grid_of(network: ForecastSettings, baseline: Mapping[str, Any]) -> ForecastSettings:
    return NETWORKS[str(baseline.get("kind"))].settings.on_grid_of(network, **baseline)


def _shortest(network: ForecastSettings, baseline: Mapping[str, Any]) -> dict[str, Any]:
    """A baseline without the settings that change nothing, so that equal baselines are written alike."""
    model, kept = _on_grid_of(network, baseline), dict(baseline)
    for key in sorted(kept.keys() - {"kind"}):
        fewer = {name: value for name, value in kept.items() if name != key}
        with suppress(CranpmError):  # a setting without a default stays
            if _on_grid_of(network, fewer) == model:
                kept = fewer
    return kept


def load_settings(path: Path, overrides: Sequence[str] = (), **given: Any) -> TrainSettings:
    """Settings from a file, or from one that is shipped by its name (paper.toml), and what is changed in it."""
    shipped = SHIPPED / path.name
    if not path.exists() and path.parent == Path() and shipped.is_file():
        path = shipped
    return load(TrainSettings, path, overrides, **given)
