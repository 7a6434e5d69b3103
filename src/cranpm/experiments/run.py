"""Runs of an experiment, one after the other, each in a process of its own; what is done is never done again."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.days import DayRange
from cranpm.errors import CranpmError
from cranpm.experiments.evaluate import DailySums, evaluate
from cranpm.experiments.intervene import Intervened
from cranpm.experiments.spec import Experiment, Job, jobs
from cranpm.fill import simulate_archive
from cranpm.inputs import Inputs
from cranpm.scale import Scales
from cranpm.simulate import SimulationSettings
from cranpm.store import Archive
from cranpm.train.loop import Run
from cranpm.train.validate import fixed_tiles
from cranpm.weights import load_weights

RESULT = "result.npz"
FACTUAL = "as it is"
FACTUAL_SETTINGS = frozenset(SimulationSettings.model_fields) - {"world", "first_day"}


def folder_of(job: Job, out: Path) -> Path:
    return out / "runs" / job.key


def is_done(job: Job, out: Path) -> bool:
    return (folder_of(job, out) / RESULT).is_file()


def do(job: Job, experiment: Experiment, archive: Archive, out: Path) -> None:
    """Train (or go on), judge on test days, and leave the result."""
    folder = folder_of(job, out)
    began = time.perf_counter()
    run = Run(job.settings, archive, folder, resume=(folder / "state").is_dir())
    run.train(lambda _: None, lambda _: None)
    weights = load_weights(folder / "best")
    settings = job.settings.model
    size = settings.tile_shape[0]
    tiles = fixed_tiles(archive.land(), size, run.material.test, experiment.score_days, experiment.score_tiles)
    sums = {
        name: evaluate(weights.network, inputs, tiles, settings.leads, run.material.damped)
        for name, inputs in conditions(experiment, job, archive, out, run.material.scales)
    }
    facts = {
        "row": job.row,
        "seed": job.seed,
        "steps": run.steps,
        "seconds": time.perf_counter() - began,
        "parameters": sum(parameter.numel() for parameter in weights.network.parameters()),
        "weights_sha256": weights.sha256,
        "archive_snapshot": archive.snapshot,
    }
    passing = folder / f".{RESULT}"
    with passing.open("wb") as file:
        days = [str(day) for day in sums[FACTUAL].days]
        moments = {name: part.moments for name, part in sums.items()}
        np.savez(file, days=days, facts=json.dumps(facts), conditions=list(moments), moments=list(moments.values()))
    os.replace(passing, folder / RESULT)


def load_result(job: Job, out: Path) -> tuple[dict[str, DailySums], dict[str, Any]]:
    """Sums by condition, and facts of the run."""
    with np.load(folder_of(job, out) / RESULT) as stored:
        days = [date.fromisoformat(str(day)) for day in stored["days"]]
        sums = {
            str(name): DailySums(days, job.settings.model.leads, moments)
            for name, moments in zip(stored["conditions"], stored["moments"], strict=True)
        }
        return sums, json.loads(str(stored["facts"]))


def conditions(
    experiment: Experiment, job: Job, archive: Archive, out: Path, scales: Scales
) -> Iterator[tuple[str, Inputs]]:
    """What the network is judged under: the archive as it is, inputs that were intervened on, other worlds."""
    cache, coarse = job.settings.samples.cache_gb, job.settings.model.coarse_pm25
    yield FACTUAL, Inputs(archive, cache, coarse_pm25=coarse)
    for name in experiment.interventions:
        yield name, Intervened(archive, scales, name, cache, coarse_pm25=coarse)
    for world in experiment.worlds:
        yield world, Inputs(Archive(str(world_place(world, out))), cache, coarse_pm25=coarse)


def world_place(world: str, out: Path) -> Path:
    return out / "worlds" / f"{world.replace(':', '-').replace(',', '_')}.archive"


def make_worlds(
    experiment: Experiment, archive: Archive, days: DayRange, out: Path, on_day: Callable[[date], None] = lambda _: None
) -> None:
    """Counterfactual archives of the test days, by the settings and the seed of the factual one."""
    made = {name: value for name, value in archive.attributes["producer"].items() if name in FACTUAL_SETTINGS}
    for world in experiment.worlds:
        settings = SimulationSettings.model_validate(made | {"world": world})
        simulate_archive(str(world_place(world, out)), archive.domain, days, settings, on_day)


def command(name: str, job: Job, archive: Archive, out: Path, overrides: Sequence[str]) -> list[str]:
    """The command that does one run: for this machine or a scheduler."""
    line = ["experiment", name, "--archive", archive.location, "--out", str(out), "--only", job.name]
    return [*line, *(part for change in overrides for part in ("--set", change))]


def run_all(
    name: str,
    experiment: Experiment,
    archive: Archive,
    out: Path,
    overrides: Sequence[str] = (),
    on_job: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> list[Job]:
    """All runs that are not done yet, each in a process of its own."""
    found = jobs(experiment, archive, overrides)
    make_worlds(experiment, archive, found[0].settings.splits.test, out)
    for number, job in enumerate(found):
        on_job(number, len(found), job.name)
        if not is_done(job, out):
            line = [sys.executable, "-m", "cranpm", *command(name, job, archive, out, overrides)]
            ended = subprocess.run(line, check=False, capture_output=True, text=True)
            if not is_done(job, out):
                raise CranpmError(
                    expected=f"the run {job.name} to end",
                    found=f"exit code {ended.returncode}: {ended.stderr.strip()[-800:]}",
                    remedy="Correct the cause and give the same command again: what is done is kept.",
                )
    on_job(len(found), len(found), "")
    return found
