"""How fast training goes: the loader alone, the step alone, both together, and what grouping tiles by day saves."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.archive import passing_archive
from cranpm.core.days import DayRange
from cranpm.core.machine import forget_peak_memory, peak_memory, timed
from cranpm.network import DayInputs, ForecastSettings, build
from cranpm.network.cost import example
from cranpm.network.interface import flat
from cranpm.training.loop import TrainingRun
from cranpm.training.recipe import SplitSettings, TrainSettings

SPLITS = SplitSettings.model_validate(
    {"train": "2021-01-01..2021-02-20", "validation": "2021-02-21..2021-02-27", "test": "2021-02-28..2021-03-06"}
)
ROUNDS = 3


def bench_training(settings: TrainSettings, domain: str = "alps", steps: int = 30) -> dict[str, Any]:
    """Tiles a second of a run on two simulated months, over `steps` batches."""
    endless = settings.optimiser.model_copy(update={"epochs": 1_000})
    changed = settings.model_copy(update={"splits": SPLITS, "optimiser": endless})
    days = DayRange(SPLITS.train.first, SPLITS.test.last)
    with passing_archive(domain, days) as archive, tempfile.TemporaryDirectory() as folder:
        return _speeds(TrainingRun(changed, archive, Path(folder) / "run", resume=False), steps)


def _speeds(run: TrainingRun, steps: int) -> dict[str, Any]:
    tiles = run.settings.samples.days * run.settings.samples.tiles
    batches = iter(run.loader())
    kept = list(itertools.islice(batches, max(steps, len(run.batches))))[-steps:]  # every day was read once
    loader = tiles * steps / timed(lambda: list(itertools.islice(batches, steps)))
    run.step(kept[:1])
    forget_peak_memory()
    step = tiles * steps / timed(lambda: [run.step([batch]) for batch in kept])
    both = tiles * steps / timed(lambda: [run.step([batch]) for batch in itertools.islice(batches, steps)])
    return {
        "tiles a batch": tiles,
        "loader alone, tiles/s": loader,
        "step alone, tiles/s": step,
        "both together, tiles/s": both,
        "together / step alone (goal 0.9)": both / step,
        "peak resident memory of a step, GB": peak_memory(),
    }


def bench_grouping(settings: ForecastSettings, tiles: int = 4) -> dict[str, Any]:
    """Forward and backward of some tiles of one day, with the day encoded once, against once for every tile."""
    network = build(settings).train()
    day, of_tiles, lead = example(network, tiles, "cpu")
    repeated = DayInputs.join([day] * tiles)

    def once() -> None:
        network(*flat(day, of_tiles, lead)).square().sum().backward()

    def every_time() -> None:
        network(*flat(repeated, of_tiles, lead)).square().sum().backward()

    forget_peak_memory()
    once()
    grouped, separate = zip(*((timed(once), timed(every_time)) for _ in range(ROUNDS)), strict=True)
    return {
        "tiles of a day": tiles,
        "day encoded once, s": min(grouped),
        "day encoded for every tile, s": min(separate),
        "speed by grouping (goal 1.5 for paper, 4 tiles)": min(separate) / min(grouped),
        "peak resident memory of both, GB": peak_memory(),
    }
