"""Runs of experiments, shared out among processes; what is done is never done again."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cache
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import torch

from cranpm.archive.store import SIMULATION, Archive, ArchiveInMemory
from cranpm.core.days import reach, usable
from cranpm.core.errors import CranpmError
from cranpm.experiments.intervene import Intervened
from cranpm.experiments.spec import Experiment, Job
from cranpm.network.cost import size
from cranpm.network.scaling import Scales
from cranpm.simulate import SimulationSettings
from cranpm.simulate.job import simulate_archive
from cranpm.training.inputs import Inputs
from cranpm.training.loop import TrainingRun
from cranpm.training.recipe import TrainSettings
from cranpm.training.tile_scores import TileScores, fixed_tiles, score, spread_days
from cranpm.training.training_data import gather
from cranpm.verification.tally import Tally
from cranpm.weights import load_weights

FACTUAL = "as it is"
SIMULATED = frozenset(SimulationSettings.model_fields) - {"world", "first_day"}
"""What counterfactual worlds have in common with the factual one."""


def run_folder(job: Job, out: Path) -> Path:
    return out / "runs" / job.run


def result_file(job: Job, out: Path) -> Path:
    return run_folder(job, out) / f"tested-{job.test}.npz"


def do(job: Job, experiment: Experiment, archive: Archive, out: Path) -> None:
    """Train (or go on), judge the last weights on test days, and leave the result.

    Not the best: which epoch looks best on some validation days is chance, and would be taken for the row's merit.
    """
    folder = run_folder(job, out)
    here = job.settings.machine.model_copy(update={"workers": 0})  # the days are in this process' memory
    settings = job.settings.model_copy(update={"machine": here})
    if (folder / "test.json").is_file():
        material = gather(archive, settings, load_weights(folder / "last").card)
    else:
        run = TrainingRun(settings, archive, folder, resume=(folder / "state").is_dir())
        run.train(lambda _: None, lambda _: None)
        material = run.data
    weights = load_weights(folder / "last")
    network, model = weights.network.eval(), settings.model
    tiles = fixed_tiles(
        archive.land(), model.tile_shape[0], material.test, experiment.score_days, experiment.score_tiles
    )
    scores = {
        name: score(network, inputs, tiles, model.leads, material.damped)
        for name, inputs in conditions(experiment, job, archive, out, material.scales)
    }
    facts = {
        "parameters": size(network),
        "weights_sha256": weights.sha256,
        "archive_snapshot": archive.snapshot,
    }
    found = result_file(job, out)
    passing = found.with_name(f".{found.name}.{os.getpid()}")
    with passing.open("wb") as file:
        np.savez_compressed(
            file,
            facts=json.dumps(facts),
            days=[str(day) for day in scores[FACTUAL].days],
            conditions=list(scores),
            moments=np.stack([one.tally.moments for one in scores.values()]).astype(np.float32),
            joint=np.stack([one.tally.joint for one in scores.values()]).astype(np.float32),
        )
    os.replace(passing, found)


def load_result(job: Job, out: Path) -> tuple[dict[str, TileScores], dict[str, Any]]:
    """Scores by condition, and facts of the run."""
    with np.load(result_file(job, out)) as stored:
        days = [date.fromisoformat(str(day)) for day in stored["days"]]
        sums = (stored[name].astype(np.float64) for name in ("moments", "joint"))
        tallies = [Tally(*pair) for pair in zip(*sums, strict=True)]
        scores = {
            str(name): TileScores(days, job.settings.model.leads, tally)
            for name, tally in zip(stored["conditions"], tallies, strict=True)
        }
        return scores, json.loads(str(stored["facts"]))


def conditions(
    experiment: Experiment, job: Job, archive: Archive, out: Path, scales: Scales
) -> Iterator[tuple[str, Inputs]]:
    """What the network is judged under: the archive as it is, inputs that were intervened on, other worlds."""
    cache, coarse = job.settings.samples.cache_gb, job.settings.model.coarse_pm25
    yield FACTUAL, Inputs(archive, cache, coarse_pm25=coarse)
    for name in experiment.interventions:
        yield name, Intervened(archive, scales, name, cache, coarse_pm25=coarse)
    for world in experiment.worlds:
        yield world, Inputs(_in_memory(str(world_place(world, out))), cache, coarse_pm25=coarse)


def world_place(world: str, out: Path) -> Path:
    return out / "worlds" / f"{world.replace(':', '-').replace(',', '_')}.archive"


def make_worlds(
    experiment: Experiment,
    archive: Archive,
    days: Sequence[date],
    out: Path,
    on_day: Callable[[date], None] = lambda _: None,
) -> None:
    """Counterfactual archives of days, by the settings and the seed of the factual one."""
    if experiment.worlds and archive.source != SIMULATION:
        raise CranpmError(
            expected="a simulated archive, for worlds with one cause changed",
            found=archive.source,
            remedy="Leave `worlds` out of the experiment.",
        )
    made = {name: value for name, value in archive.attributes["producer"].items() if name in SIMULATED}
    for world in experiment.worlds:
        settings = SimulationSettings.model_validate(made | {"world": world})
        simulate_archive(str(world_place(world, out)), archive.domain, days, settings, on_day, archive.channels)


def judged_days(experiment: Experiment, archive: Archive, settings: TrainSettings) -> list[date]:
    """What the test of an experiment touches: its start days, the days before and the days ahead."""
    leads = settings.network.leads
    found = usable(archive.days, settings.splits.test, leads)
    if not found:
        raise CranpmError(
            expected=f"test days in the archive: {settings.splits.test}",
            found="none",
            remedy="Simulate them, or --set splits.test=FIRST..LAST.",
        )
    starts = spread_days(found, experiment.score_days)
    return sorted({day for start in starts for day in reach(start, leads)})


@cache
def _in_memory(location: str, snapshot: str | None = None) -> Archive:
    return ArchiveInMemory(location, snapshot)


def command(name: str, job: Job, archive: Archive, out: Path, options: Sequence[str]) -> list[str]:
    """The command that does one run: for this machine or a scheduler."""
    return ["experiment", name, "--archive", archive.location, "--out", str(out), *options, "--only", job.name]


@dataclass(frozen=True)
class Task:
    """A run of one of several experiments."""

    experiment: Experiment
    job: Job


def run_all(
    tasks: Sequence[Task],
    archive: Archive,
    out: Path,
    at_once: int = 1,
    on_done: Callable[[int], None] = lambda _: None,
) -> None:
    """All that is not done yet, by so many processes, which share the cores; `on_done` gets the number of done tasks.

    A process keeps the archive's days in memory for all of its runs. Runs share nothing else. After one that failed
    no other is begun.
    """
    waiting: dict[str, list[Task]] = {}
    for task in tasks:
        if not result_file(task.job, out).is_file():
            waiting.setdefault(task.job.run, []).append(task)
    done = len(tasks) - sum(map(len, waiting.values()))
    threads = max(1, (os.cpu_count() or 1) // at_once)
    with ProcessPoolExecutor(at_once, get_context("spawn"), initializer=_begin, initargs=(threads,)) as pool:
        begun = {pool.submit(_work, part, archive, out): len(part) for part in waiting.values()}
        try:
            for ended in as_completed(begun):
                ended.result()
                done += begun[ended]
                on_done(done)
        except BrokenProcessPool as error:
            raise CranpmError(
                expected="every process to live until its runs are done",
                found="one that was killed, perhaps for want of memory: each holds the archive's days",
                remedy="Give the same command again, with fewer --jobs: what is done is kept.",
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(threads: int) -> None:
    """What a process of its own does first: it takes its share of the cores, and ends when its parent has."""
    torch.set_num_threads(threads)
    Thread(target=_end_with, args=[parent_process()], daemon=True).start()


def _end_with(parent: BaseProcess | None) -> None:
    if parent is not None:
        parent.join()
        os._exit(1)


def work(tasks: Sequence[Task], archive: Archive, out: Path) -> None:
    """Do the tasks of one run that nobody else has done meanwhile."""
    with claimed(run_folder(tasks[0].job, out)):
        for task in tasks:
            if not result_file(task.job, out).is_file():
                _do_or_say(task, archive, out)


def _work(tasks: Sequence[Task], archive: Archive, out: Path) -> None:
    fits = Inputs(archive).size_gb(len(archive.days)) <= tasks[0].job.settings.samples.cache_gb
    work(tasks, _in_memory(archive.location, archive.snapshot) if fits else archive, out)


def _do_or_say(task: Task, archive: Archive, out: Path) -> None:
    try:
        do(task.job, task.experiment, archive, out)
    except Exception as error:
        raise CranpmError(
            expected=f"the run {task.job.name} to end",
            found=f"{type(error).__name__}: {error}",
            remedy="Correct the cause and give the same command again: what is done is kept.",
        ) from error


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """A run for this process alone, waited for; the claim ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "claim").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
