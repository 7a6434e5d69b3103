"""Runs of experiments, shared out among workers; a run whose result exists is never done again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from cranpm import __version__
from cranpm.archive.store import Archive, ArchiveInMemory
from cranpm.core.cluster import Pool
from cranpm.core.days import usable
from cranpm.core.errors import CranpmError
from cranpm.core.files import locked
from cranpm.core.machine import processor
from cranpm.core.settings import validate
from cranpm.experiments.intervene import Intervened
from cranpm.experiments.results import (
    AS_IT_IS,
    RESULT,
    Circumstances,
    ErrorSums,
    ExperimentResult,
    Outcome,
    Results,
    RunResult,
    read_results,
    write_results,
)
from cranpm.experiments.spec import Experiment, Job, run_identity, scoring_identity
from cranpm.experiments.worlds import world_place
from cranpm.network.cost import size
from cranpm.training.inputs import Inputs
from cranpm.training.recipe import TrainSettings
from cranpm.training.tile_scores import METHODS, TileScores, fixed_tiles, score
from cranpm.training.training_data import gather
from cranpm.training.training_runs import begin_run
from cranpm.weights import Card, load_weights

Outcomes = Mapping[tuple[str, str], Outcome]
"""By the identity of the run and of its test."""


@dataclass(frozen=True)
class Study:
    """An experiment, its runs and the folder in which its result is kept."""

    experiment: Experiment
    jobs: Sequence[Job]
    folder: Path


@dataclass(frozen=True)
class Task:
    """A run of one of several experiments."""

    experiment: Experiment
    job: Job


def run_folder(job: Job, work: Path) -> Path:
    """Where the states and weights of a run are kept."""
    return work / "runs" / job.run


def do(task: Task, archive: Archive, work: Path) -> Outcome:
    """Train (or go on), and score the last weights on test days.

    Not the best: which epoch looks best on some validation days is chance, and would be taken for the row's merit.
    """
    job, experiment, folder = task.job, task.experiment, run_folder(task.job, work)
    here = job.settings.machine.model_copy(update={"workers": 0})  # the days are in this process' memory
    settings = job.settings.model_copy(update={"machine": here})
    if (folder / "test.json").is_file():
        material = gather(archive, settings, load_weights(folder / "last").card)
    else:
        run = begin_run(
            settings, archive, folder, resume=any((folder / name).is_dir() for name in ("state", "weights"))
        )
        run.train(lambda _: None, lambda _: None)
        material = run.data
    weights = load_weights(folder / "last")
    network, model = weights.network.eval(), settings.model
    days, each = experiment.score_days, experiment.score_tiles
    starts = usable(material.sound, settings.splits.test, job.leads)
    tiles = fixed_tiles(archive.land(), model.tile_shape[0], starts, days, each)
    scores = {
        name: error_sums(score(network, inputs, tiles, model.leads, material.damped))
        for name, inputs in conditions(task, archive, work, weights.card)
    }
    found = RunResult(
        row=job.row,
        seed=job.seed,
        settings=job.settings.to_json(defaults=False),
        learned_from=job.learned_from,
        archive_snapshot=archive.snapshot,
        parameters=size(network),
        weights_sha256=weights.sha256,
    )
    return Outcome(found, scores)


def error_sums(scores: TileScores) -> ErrorSums:
    """The sums of a network and of the baselines, by the name of the method."""
    by_method = {name: scores.sums[:, index] for index, name in enumerate(METHODS)}
    return ErrorSums(tuple(scores.days), tuple(scores.leads), by_method)


def conditions(task: Task, archive: Archive, work: Path, card: Card) -> Iterator[tuple[str, Inputs]]:
    """What the network is scored under: the archive as it is, inputs that were intervened on, other worlds.

    Each gives the network the channels of its `card`.
    """
    samples, model = task.job.settings.samples, card.network.settings
    read: dict[str, Any] = {
        "cache_gb": samples.cache_gb,
        "channels": card.channel_names,
        "prognosis": samples.prognosis,
    }
    yield AS_IT_IS, Inputs.of(model, archive, **read)
    for name in task.experiment.interventions:
        yield name, Intervened.of(model, archive, scales=card.scales, intervention=name, **read)
    for world in task.experiment.worlds:
        yield world, Inputs.of(model, _in_memory(str(world_place(world, work))), **read)


@cache
def _in_memory(location: str, snapshot: str | None = None) -> Archive:
    return ArchiveInMemory(location, snapshot)


def command(name: str, job: Job, archive: Archive, out: Path, options: Sequence[str]) -> list[str]:
    """The command that does one run: for this machine or a scheduler."""
    return ["experiment", name, "--archive", archive.location, "--out", str(out), *options, "--only", job.name]


def run_all(
    studies: Sequence[Study],
    archive: Archive,
    work: Path,
    pool: Pool,
    only: str | None = None,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Do every run that has no result yet, and write the result of its experiments as soon as it has ended.

    `only` is the one ROW/SEED to do. A worker keeps the archive's days in memory for all of its runs. After a run
    that failed no other is begun. `on_done` gets how many of how many runs have a result.
    """
    known: dict[tuple[str, str], Outcome] = {}
    for folder in sorted({study.folder.parent for study in studies}):
        known |= known_outcomes(folder)
    for study in studies:
        keep(study, known)
    tasks = [Task(study.experiment, job) for study in studies for job in study.jobs if only in (None, job.name)]
    waiting: dict[str, dict[tuple[str, str], Task]] = {}
    for task in tasks:
        if task.job.identity not in known:
            waiting.setdefault(task.job.run, {})[task.job.identity] = task
    on_done(sum(task.job.identity in known for task in tasks), len(tasks))
    groups = [tuple(group.values()) for group in waiting.values()]
    for group, outcomes in pool.each(work_on, groups, archive, work):
        known |= {task.job.identity: outcome for task, outcome in zip(group, outcomes, strict=True)}
        for study in studies:
            keep(study, known)
        on_done(sum(task.job.identity in known for task in tasks), len(tasks))


def work_on(tasks: Sequence[Task], archive: Archive, work: Path) -> list[Outcome]:
    """The outcomes of tasks that share one run; if another command has it under way, after that has ended."""
    settings = tasks[0].job.settings
    inputs = Inputs.of(settings.model.for_channels(archive.channels), archive)
    fits = inputs.size_gb(len(archive.days)) <= settings.samples.cache_gb
    days = _in_memory(archive.location, archive.snapshot) if fits else archive
    with locked(run_folder(tasks[0].job, work) / "claim"):
        return [_do_or_explain(task, days, work) for task in tasks]


def _do_or_explain(task: Task, archive: Archive, work: Path) -> Outcome:
    try:
        return do(task, archive, work)
    except Exception as error:
        raise CranpmError(
            expected=f"the run {task.job.name} to end",
            found=f"{type(error).__name__}: {error}",
            remedy="Correct the cause and give the same command again: what is done is kept.",
        ) from error


def known_outcomes(out: Path) -> dict[tuple[str, str], Outcome]:
    """All runs with a result below a folder of experiments."""
    found: dict[tuple[str, str], Outcome] = {}
    for path in sorted(out.glob(f"*/{RESULT}")):
        found |= _outcomes_in(path.parent)
    return found


def _outcomes_in(folder: Path) -> dict[tuple[str, str], Outcome]:
    """Runs in an experiment's folder; none where it cannot be read: they are done again."""
    results = _read(folder)
    return {} if results is None else outcomes_of(results)


def _read(folder: Path) -> Results | None:
    try:
        return read_results(folder)
    except CranpmError:
        return None


def outcomes_of(results: Results) -> dict[tuple[str, str], Outcome]:
    """The outcomes of an experiment by identity.

    Settings are read as the present software understands them, so that a setting that is new, or has another name
    now, leaves a run what it is.
    """
    read = [(outcome, _settings(outcome)) for outcome in results.outcomes()]
    known = [(outcome, settings) for outcome, settings in read if settings is not None]
    scoring = results.result.scoring or _scoring(results.result, [settings for _, settings in known])
    return {(run_identity(settings, outcome.run.learned_from), scoring): outcome for outcome, settings in known}


def _settings(outcome: Outcome) -> TrainSettings | None:
    """Those of a run; None where a software wrote them that knew other settings."""
    try:
        return validate(TrainSettings, outcome.run.settings)
    except CranpmError:
        return None


def _scoring(result: ExperimentResult, settings: Sequence[TrainSettings]) -> str:
    """The identity of the test of a result that does not state it, by the leads of all rows."""
    some = [one for one in settings if tuple(sorted(one.model.leads)) == result.leads]
    whole = some[0] if some else None
    if whole is None and settings:
        network = settings[0].network.model_copy(update={"leads": result.leads})
        whole = settings[0].model_copy(update={"network": network})
    return scoring_identity(result, [*settings, *([whole] if whole else [])])


def keep(study: Study, outcomes: Outcomes) -> None:
    """Write the result of an experiment with the outcomes that belong to it, if that changes it."""
    with locked(study.folder / ".lock"):
        held = _read(study.folder)
        both = {**outcomes, **(outcomes_of(held) if held else {})}
        found = [(job, both[job.identity]) for job in study.jobs if job.identity in both]
        runs = tuple(outcome.run.model_copy(update={"row": job.row, "seed": job.seed}) for job, outcome in found)
        result = _result(study, runs)
        if runs and not (held and held.result.model_copy(update={"circumstances": result.circumstances}) == result):
            write_results(study.folder, Results(result, [outcome.scores for _, outcome in found]))


def _result(study: Study, runs: tuple[RunResult, ...]) -> ExperimentResult:
    experiment, here = study.experiment, "; ".join(processor().values())
    return ExperimentResult(
        **experiment.model_dump(),
        leads=study.jobs[0].leads,
        conditions=(AS_IT_IS, *experiment.interventions, *experiment.worlds),
        scoring=study.jobs[0].scoring,
        circumstances=Circumstances(date=date.today(), software=f"cranpm {__version__}", processor=here),
        runs=runs,
    )
