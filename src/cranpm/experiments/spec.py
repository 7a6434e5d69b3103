"""An experiment: a question, rows that differ from a recipe by named settings, seeds, conditions of the test."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator

from cranpm.archive.store import SIMULATION, Archive
from cranpm.core.errors import CranpmError
from cranpm.core.settings import load
from cranpm.experiments.intervene import INTERVENTIONS
from cranpm.training.recipe import TrainSettings, load_settings

PLANS = Path(__file__).parent / "plans"
FORMAT = 2
"""Of results: to be raised when what they mean changes."""
BUDGETS: Mapping[str, tuple[str, ...]] = {
    "1min": ("optimiser.epochs=1", "samples.epoch_days=1600", "scores.days=30"),
    "3min": ("optimiser.epochs=3", "samples.epoch_days=2400", "scores.days=60"),
    "whole": (),
}
"""How much of the recipe a run takes; the names say how long that is about with trials.toml on one core.

Counted in days and not in minutes: a run gives the same result on every machine.
"""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(_Frozen):
    """One line of the table: what differs from the recipe."""

    name: str
    set: tuple[str, ...] = ()
    against: str | None = None
    """The row that it is held against, where that is not the reference of all."""


class Experiment(_Frozen):
    """Everything that decides an experiment, from one TOML file."""

    title: str
    question: str
    recipe: str = "trials.toml"
    budget: str = "3min"
    set: tuple[str, ...] = ()
    """What all rows share."""
    rows: tuple[Row, ...]
    reference: str
    """The row that the others are held against."""
    seeds: tuple[int, ...] = (0, 1, 2)
    score_days: PositiveInt = 180
    score_tiles: PositiveInt = 6
    """Test days, evenly spread, and tiles of each on which runs are judged."""
    interventions: tuple[str, ...] = ()
    """Inputs to take away or make false at test time (see `intervene`)."""
    worlds: tuple[str, ...] = ()
    """Counterfactual worlds in which the networks, trained on the factual one, are judged too."""

    @model_validator(mode="after")
    def _sound(self) -> "Experiment":
        names = [row.name for row in self.rows]
        if len(set(names)) != len(names) or self.reference not in names:
            raise ValueError(f"rows need names of their own, one of them the reference {self.reference}")
        if lost := [row.against for row in self.rows if row.against not in (None, *names)]:
            raise ValueError(f"no row {', '.join(map(str, lost))} to hold another against")
        if unknown := [name for name in self.interventions if name not in INTERVENTIONS]:
            raise ValueError(f"no intervention {', '.join(unknown)}; there are {', '.join(INTERVENTIONS)}")
        if self.budget not in BUDGETS:
            raise ValueError(f"a budget is one of {', '.join(BUDGETS)}, not {self.budget}")
        return self


@dataclass(frozen=True)
class Job:
    """One training run of an experiment, and its test."""

    row: str
    seed: int
    settings: TrainSettings
    run: str
    """Of everything that the weights depend on: rows of several experiments share a run where this is the same."""
    test: str
    """Of everything else that the result depends on."""

    @property
    def name(self) -> str:
        return f"{self.row}/{self.seed}"


def load_experiment(name: str, budget: str | None = None) -> Experiment:
    """From a file, or one that is shipped by its name."""
    path = Path(name)
    shipped = PLANS / f"{name}.toml"
    if not path.is_file() and not shipped.is_file():
        raise CranpmError(
            expected=f"a TOML file or an experiment: {', '.join(sorted(p.stem for p in PLANS.glob('*.toml')))}",
            found=name,
            remedy="For example cranpm experiment table3a.",
        )
    return load(Experiment, path if path.is_file() else shipped, budget=budget)


def jobs(experiment: Experiment, archive: Archive, overrides: Sequence[str] = ()) -> list[Job]:
    """All runs, rows in order and seeds within; the same budget, days and sampler for every row."""
    test = _hash(FORMAT, experiment.model_dump(include={"score_days", "score_tiles", "interventions", "worlds"}))
    shared = [*BUDGETS[experiment.budget], *experiment.set, *overrides]
    found = []
    for row in experiment.rows:
        for seed in experiment.seeds:
            settings = load_settings(Path(experiment.recipe), [*shared, *row.set, f"samples.seed={seed}"])
            run = _hash(settings.to_json(defaults=False), _known_days(archive))
            found.append(Job(row=row.name, seed=seed, settings=settings, run=run, test=test))
    return found


def _known_days(archive: Archive) -> Any:
    """What a run may learn from: of a simulated archive its world and days, which every machine can make again."""
    if archive.source != SIMULATION:
        return archive.snapshot
    days = archive.days
    return [archive.domain.to_json(), archive.attributes["producer"], *map(str, days[:1] + days[-1:]), archive.missing]


def _hash(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def differences(one: TrainSettings, other: TrainSettings) -> dict[str, tuple[Any, Any]]:
    """Settings, by dotted name, in which two runs differ."""
    left, right = _flat(one.to_json()), _flat(other.to_json())
    return {name: (left.get(name), right.get(name)) for name in left | right if left.get(name) != right.get(name)}


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(values, dict):
        return {prefix: values}
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}.{name}" if prefix else name)
    return found
