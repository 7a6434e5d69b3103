"""What an experiment found, as data: `experiment.json` and one table of sums, from which every number is made again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator

from cranpm.core.errors import CranpmError
from cranpm.core.files import whole_file, write_whole
from cranpm.core.grid import Array

RESULT, SUMS = "experiment.json", "sums.parquet"
AS_IT_IS = "as it is"
"""The condition in which nothing was changed."""
NETWORK = "network"
"""The method that was trained; the others are baselines on the same pixels."""
COLUMNS = pa.schema(
    [
        ("row", pa.string()),
        ("seed", pa.int32()),
        ("condition", pa.string()),
        ("day", pa.date32()),
        ("lead", pa.int16()),
        ("method", pa.string()),
        ("count", pa.int64()),
        ("squared", pa.float64()),
        ("absolute", pa.float64()),
    ]
)
"""Pixels, sum of squared errors, sum of absolute errors. No row and no seed: the same for every run."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(_Frozen):
    """One line of the table: what differs from the recipe."""

    name: str
    set: tuple[str, ...] = ()
    against: str | None = None
    """The row that it is compared with, where that is not the reference of all."""


class Design(_Frozen):
    """What an experiment compares, and how."""

    title: str
    question: str
    recipe: str = "trials.toml"
    budget: str = "3min"
    set: tuple[str, ...] = ()
    """What all rows share."""
    rows: tuple[Row, ...]
    reference: str
    """The row that the others are compared with."""
    seeds: tuple[int, ...] = (0, 1, 2)
    score_days: PositiveInt = 180
    score_tiles: PositiveInt = 6
    """Test days, evenly spread, and tiles of each day on which runs are scored."""
    interventions: tuple[str, ...] = ()
    """Inputs to take away or make false at test time (see `intervene`)."""
    worlds: tuple[str, ...] = ()
    """Counterfactual worlds in which the networks, trained on the factual one, are scored too."""

    @model_validator(mode="after")
    def _names(self) -> "Design":
        names = [row.name for row in self.rows]
        if len(set(names)) != len(names) or self.reference not in names:
            raise ValueError(f"rows need different names, one of them the reference {self.reference}")
        if lost := [row.against for row in self.rows if row.against not in (None, *names)]:
            raise ValueError(f"no row {', '.join(map(str, lost))} to compare another with")
        return self


class RunResult(_Frozen):
    """One training run: what it was made of and what came out."""

    row: str
    seed: int
    settings: dict[str, Any]
    """Those that differ from the defaults."""
    learned_from: Any
    """The archive's days: of a simulated archive its world, else the snapshot."""
    archive_snapshot: str
    parameters: int
    weights_sha256: str


class Circumstances(_Frozen):
    """When, by what and where the last run was added."""

    date: date
    software: str
    processor: str


class ExperimentResult(Design):
    """An experiment and the runs that have ended."""

    leads: tuple[int, ...]
    """Of all rows; a row may have fewer."""
    conditions: tuple[str, ...]
    """Nothing changed, then interventions, then worlds."""
    scoring: str = ""
    """Identity of how runs were tested; empty in results of older versions."""
    circumstances: Circumstances
    runs: tuple[RunResult, ...]

    @property
    def complete(self) -> bool:
        """Whether every row has every seed."""
        return {(run.row, run.seed) for run in self.runs} == {
            (row.name, seed) for row in self.rows for seed in self.seeds
        }


@dataclass(frozen=True)
class ErrorSums:
    """Sums of errors under one condition: (day, lead, [count, squared error, absolute error]) by method."""

    days: tuple[date, ...]
    leads: tuple[int, ...]
    sums: Mapping[str, Array]

    def daily(self, lead: int, method: str = NETWORK) -> Array:
        """(day, [count, squared error, absolute error]) of one lead."""
        of_lead: Array = self.sums[method][:, self.leads.index(lead)]
        return of_lead

    def rmse(self, lead: int, method: str = NETWORK) -> float:
        """Root mean squared error over all days (ug m-3); NaN where no pixel counts."""
        count, squared, _ = self.daily(lead, method).sum(axis=0)
        return float(np.sqrt(max(squared, 0) / count)) if count else float("nan")

    def skill(self, lead: int, baseline: str) -> float:
        """1 - RMSE / RMSE of a baseline on the same pixels: above 0 is better."""
        return 1 - self.rmse(lead) / self.rmse(lead, baseline)


Scores = Mapping[str, ErrorSums]
"""Of one run, by condition."""


@dataclass(frozen=True)
class Outcome:
    """A run and its scores."""

    run: RunResult
    scores: Scores


@dataclass(frozen=True)
class Results:
    """An experiment's result and the scores of its runs, in the order of `result.runs`."""

    result: ExperimentResult
    scores: Sequence[Scores]

    def of(self, row: str, condition: str = AS_IT_IS) -> list[ErrorSums]:
        """The scores of a row under a condition, one per seed."""
        pairs = zip(self.result.runs, self.scores, strict=True)
        return [scores[condition] for run, scores in pairs if run.row == row]

    def first_with(self, lead: int) -> ErrorSums:
        """The scores of the first run that has a lead, as it is: for baselines at leads that the reference lacks."""
        return next(scores[AS_IT_IS] for scores in self.scores if lead in scores[AS_IT_IS].leads)

    def outcomes(self) -> list[Outcome]:
        """Every run with its scores."""
        return [Outcome(*pair) for pair in zip(self.result.runs, self.scores, strict=True)]


def write_results(folder: Path, results: Results) -> None:
    """Write `sums.parquet` and then `experiment.json`, each in one step: no run is named before its sums are there."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = zip(*_lines(results), strict=True)
    table = pa.table([pa.array(values, field.type) for field, values in zip(COLUMNS, columns, strict=True)], COLUMNS)
    with whole_file(folder / SUMS) as path:
        pq.write_table(table, path, compression="zstd", compression_level=19)
    write_whole(folder / RESULT, results.result.model_dump_json(indent=1) + "\n")


def _lines(results: Results) -> Iterator[tuple[Any, ...]]:
    """Rows of the table; a baseline that is the same in all runs is written once."""
    outcomes = results.outcomes()
    for condition in results.result.conditions:
        for method in outcomes[0].scores[condition].sums:
            parts = [outcome.scores[condition].sums[method] for outcome in outcomes]
            same = method != NETWORK and all(np.array_equal(part, parts[0]) for part in parts[1:])  # all leads alike
            for outcome in outcomes[:1] if same else outcomes:
                run = (None, None) if same else (outcome.run.row, outcome.run.seed)
                for day, lead, *sums in _lines_of(outcome.scores[condition], method):
                    yield *run, condition, day, lead, method, *sums


def _lines_of(scores: ErrorSums, method: str) -> Iterator[tuple[date, int, int, float, float]]:
    for day, of_day in zip(scores.days, scores.sums[method], strict=True):
        for lead, (count, squared, absolute) in zip(scores.leads, of_day, strict=True):
            yield day, lead, int(count), float(squared), float(absolute)


def read_results(folder: Path) -> Results:
    """The result of an experiment from its folder; refuses one that is missing, damaged or incomplete."""
    try:
        result = ExperimentResult.model_validate_json((folder / RESULT).read_text())
        lines = zip(*(pq.read_table(folder / SUMS)[name].to_pylist() for name in COLUMNS.names), strict=True)
        return Results(result, _scores(result, lines))
    except (OSError, ValueError, KeyError, ValidationError, pa.ArrowException) as error:
        raise CranpmError(
            expected=f"an experiment's {RESULT} and {SUMS} in {folder}",
            found=f"{type(error).__name__}: {str(error).splitlines()[0]}",
            remedy="Make them with `cranpm experiment NAME --out FOLDER`.",
        ) from None


def _scores(result: ExperimentResult, lines: Iterator[tuple[Any, ...]]) -> list[Scores]:
    found: dict[tuple[Any, ...], dict[tuple[date, int], Any]] = {}
    for row, seed, condition, day, lead, method, *sums in lines:
        found.setdefault((row, seed, condition, method), {})[day, lead] = sums
    methods = dict.fromkeys(name for *_, name in found)

    def scores(run: RunResult, condition: str) -> ErrorSums:
        own = {
            method: found.get((run.row, run.seed, condition, method)) or found[None, None, condition, method]
            for method in methods
        }
        days, leads = (tuple(sorted(set(part))) for part in zip(*own[NETWORK], strict=True))
        arrays = {
            method: np.array([[part[day, lead] for lead in leads] for day in days], np.float64)
            for method, part in own.items()
        }
        return ErrorSums(days, leads, arrays)

    return [{condition: scores(run, condition) for condition in result.conditions} for run in result.runs]
