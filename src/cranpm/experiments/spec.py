"""An experiment: a question, rows that differ from a recipe by named settings, seeds, conditions of the test."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import model_validator

from cranpm.archive.store import SIMULATION, Archive
from cranpm.core.errors import CranpmError
from cranpm.core.settings import load
from cranpm.experiments.intervene import INTERVENTIONS
from cranpm.experiments.results import Design
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


class Experiment(Design):
    """Everything that decides an experiment, from one TOML file."""

    @model_validator(mode="after")
    def _known(self) -> "Experiment":
        if unknown := [name for name in self.interventions if name not in INTERVENTIONS]:
            raise ValueError(f"no intervention {', '.join(unknown)}; there are {', '.join(INTERVENTIONS)}")
        if self.budget not in BUDGETS:
            raise ValueError(f"a budget is one of {', '.join(BUDGETS)}, not {self.budget}")
        return self


@dataclass(frozen=True)
class Job:
    """One training run of an experiment and how it is tested."""

    row: str
    seed: int
    settings: TrainSettings
    learned_from: Any
    """The archive's days: of a simulated archive its world, else the snapshot."""
    scoring: str
    """Identity of how runs are tested: days, tiles, conditions."""
    leads: tuple[int, ...]
    """Of all rows: the days of the test have truths for all of them, so that all rows are tested on the same days."""

    @property
    def name(self) -> str:
        return f"{self.row}/{self.seed}"

    @cached_property
    def run(self) -> str:
        """Identity of all that the weights depend on: rows of several experiments share a run where it is the same."""
        return run_identity(self.settings, self.learned_from)

    @property
    def identity(self) -> tuple[str, str]:
        """Of all that the result depends on."""
        return self.run, self.scoring


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
    shared = [*BUDGETS[experiment.budget], *experiment.set, *overrides]
    names = [(row, seed) for row in experiment.rows for seed in experiment.seeds]
    recipe = Path(experiment.recipe)
    every = [load_settings(recipe, [*shared, *row.set, f"samples.seed={seed}"]) for row, seed in names]
    leads = all_leads(every)
    scoring = scoring_identity(experiment, every)
    pairs = zip(names, every, strict=True)
    return [Job(row.name, seed, one, known_days(archive, one), scoring, leads) for (row, seed), one in pairs]


def all_leads(settings: Sequence[TrainSettings]) -> tuple[int, ...]:
    """The leads of all rows, in days."""
    return tuple(sorted({lead for one in settings for lead in one.model.leads}))


def known_days(archive: Archive, settings: TrainSettings) -> Any:
    """What a run may learn from: of a simulated archive its world and days, which every machine can make again.

    Forecasts of the days ahead count where the run reads them.
    """
    if archive.source != SIMULATION:
        return archive.snapshot
    days = archive.days
    ends = map(str, days[:1] + days[-1:])
    known = [archive.domain.to_json(), archive.attributes["producer"], *ends, archive.missing]
    runs = {group: archive.ahead.run(days[-1], group) for group in settings.model.days_ahead.groups if days}
    return known + ([{group: [r.model, r.leads, r.provenance] for group, r in runs.items() if r}] if runs else [])


def run_identity(settings: TrainSettings, learned_from: Any) -> str:
    """Identity of a run by the settings that differ from the defaults, under their present names, and its days."""
    return _hash(settings.to_json(defaults=False), learned_from)


def scoring_identity(design: Design, settings: Sequence[TrainSettings]) -> str:
    """Identity of the test of an experiment's runs; leads decide its days where rows differ in them."""
    leads = all_leads(settings)
    differ = any(tuple(sorted(one.model.leads)) != leads for one in settings)
    parts = design.model_dump(include={"score_days", "score_tiles", "interventions", "worlds"})
    return _hash(FORMAT, parts, *([leads] if differ else []))


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
