"""Runs of an experiment, one after the other, each in a process of its own; what is done is never done again."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.days import DayRange
from cranpm.errors import CranpmError
from cranpm.experiments.intervene import Intervened
from cranpm.experiments.spec import Experiment, Job
from cranpm.fill import simulate_archive
from cranpm.inputs import Inputs
from cranpm.model.cost import size
from cranpm.scale import Scales
from cranpm.simulate import SimulationSettings
from cranpm.store import SIMULATION, Archive
from cranpm.train.loop import Run
from cranpm.train.material import gather
from cranpm.train.validate import TileScores, fixed_tiles, score
from cranpm.verify.tally import Tally
from cranpm.weights import load_weights

FACTUAL = "as it is"
SIMULATED = frozenset(SimulationSettings.model_fields) - {"world", "first_day"}
"""What counterfactual worlds have in common with the factual one."""


def run_folder(job: Job, out: Path) -> Path:
    return out / "runs" / job.run


def result_file(job: Job, out: Path) -> Path:
    return run_folder(job, out) / f"tested-{job.test}.npz"


def do(job: Job, experiment: Experiment, archive: Archive, out: Path) -> None:
    """Train (or go on), judge on test days, and leave the result."""
    folder, settings = run_folder(job, out), job.settings
    if (folder / "test.json").is_file():
        material = gather(archive, settings, load_weights(folder / "best").card.scales)
    else:
        run = Run(settings, archive, folder, resume=(folder / "state").is_dir())
        run.train(lambda _: None, lambda _: None)
        material = run.material
    weights = load_weights(folder / "best")
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
        np.savez(
            file,
            facts=json.dumps(facts),
            days=[str(day) for day in scores[FACTUAL].days],
            conditions=list(scores),
            moments=[one.tally.moments for one in scores.values()],
            joint=[one.tally.joint for one in scores.values()],
        )
    os.replace(passing, found)


def load_result(job: Job, out: Path) -> tuple[dict[str, TileScores], dict[str, Any]]:
    """Scores by condition, and facts of the run."""
    with np.load(result_file(job, out)) as stored:
        days = [date.fromisoformat(str(day)) for day in stored["days"]]
        tallies = [Tally(*pair) for pair in zip(stored["moments"], stored["joint"], strict=True)]
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
        yield world, Inputs(Archive(str(world_place(world, out))), cache, coarse_pm25=coarse)


def world_place(world: str, out: Path) -> Path:
    return out / "worlds" / f"{world.replace(':', '-').replace(',', '_')}.archive"


def make_worlds(
    experiment: Experiment, archive: Archive, days: DayRange, out: Path, on_day: Callable[[date], None] = lambda _: None
) -> None:
    """Counterfactual archives of the test days, by the settings and the seed of the factual one."""
    if experiment.worlds and archive.source != SIMULATION:
        raise CranpmError(
            expected="a simulated archive, for worlds with one cause changed",
            found=archive.source,
            remedy="Leave `worlds` out of the experiment.",
        )
    made = {name: value for name, value in archive.attributes["producer"].items() if name in SIMULATED}
    for world in experiment.worlds:
        settings = SimulationSettings.model_validate(made | {"world": world})
        simulate_archive(str(world_place(world, out)), archive.domain, days, settings, on_day)


def command(name: str, job: Job, archive: Archive, out: Path, options: Sequence[str]) -> list[str]:
    """The command that does one run: for this machine or a scheduler."""
    return ["experiment", name, "--archive", archive.location, "--out", str(out), *options, "--only", job.name]


def run_all(
    commands: Mapping[Job, Sequence[str]], out: Path, on_job: Callable[[int, str], None] = lambda number, name: None
) -> None:
    """All runs that are not done yet, each by its command in a process of its own."""
    for number, (job, line) in enumerate(commands.items()):
        on_job(number, job.name)
        if not result_file(job, out).is_file():
            ended = subprocess.run(
                [sys.executable, "-m", "cranpm", *line], check=False, stderr=subprocess.PIPE, text=True
            )
            if not result_file(job, out).is_file():
                raise CranpmError(
                    expected=f"the run {job.name} to end",
                    found=f"exit code {ended.returncode}: {ended.stderr.strip()[-800:]}",
                    remedy="Correct the cause and give the same command again: what is done is kept.",
                )
    on_job(len(commands), "")
