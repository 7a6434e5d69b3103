"""What the days ahead cost: a training step and a forecast with them against the same without, and their ingestion."""

import itertools
import tempfile
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.archive import passing_archive
from benchmarks.training import SPLITS
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive
from cranpm.core.cluster import open_pool
from cranpm.core.days import LEADS, DayRange
from cranpm.core.machine import timed
from cranpm.core.settings import validate
from cranpm.forecasting.engine import predict
from cranpm.network import ForecastSettings, build
from cranpm.network.precision import best_precision
from cranpm.providers.export_forecasts import write_forecasts
from cranpm.providers.ingest import AS_FILES, ingest
from cranpm.training.batches import TileBatch
from cranpm.training.loop import TrainingRun
from cranpm.training.recipe import TrainSettings
from cranpm.weights import Weights, card_for

DAY = date(2022, 1, 25)
NONE, ALL = "none", "weather+composition"
ROUNDS = 3


def bench_step(settings: TrainSettings, domain: str = "alps", steps: int = 12) -> dict[str, Any]:
    """Steps of training on two simulated months, with the days ahead and without, in turn."""
    endless = settings.optimiser.model_copy(update={"epochs": 1_000})
    days = DayRange(SPLITS.train.first, SPLITS.test.last)
    with passing_archive(domain, days, max(LEADS)) as archive, tempfile.TemporaryDirectory() as folder:
        work = {}
        for name in (NONE, ALL):
            network = settings.network.model_copy(update={"ahead": name})
            changed = settings.model_copy(update={"splits": SPLITS, "optimiser": endless, "network": network})
            run = TrainingRun(changed, archive, Path(folder) / name, resume=False)
            work[name] = partial(_steps, run, list(itertools.islice(iter(run.loader()), steps)))
        seconds = _in_turn(work)
    return {
        "a step without the days ahead, s": seconds[NONE] / steps,
        "a step with them, s": seconds[ALL] / steps,
        "with / without (goal 1.25)": seconds[ALL] / seconds[NONE],
    }


def bench_forecast_ahead(settings: ForecastSettings, domain: str = "europe") -> dict[str, Any]:
    """Three leads over a domain by an untrained network that reads the days ahead, against the same that does not."""
    precision = best_precision()
    with passing_archive(domain, DayRange(DAY - timedelta(days=1), DAY), max(LEADS)) as archive:
        found = {name: _weights(settings, name) for name in (NONE, ALL)}
        work = {name: partial(predict, archive, DAY, one, LEADS, precision=precision) for name, one in found.items()}
        seconds = _in_turn(work)
    return {
        "domain": domain,
        "precision": precision,
        "three leads without the days ahead, s": seconds[NONE],
        "three leads with them, s": seconds[ALL],
        "with / without (goal 1.05)": seconds[ALL] / seconds[NONE],
    }


def bench_ingest_ahead(domain: str = "europe") -> dict[str, Any]:
    """One start day of forecasts, from IFS and CAMS files to its commit."""
    with passing_archive(domain, DayRange(DAY, DAY), 5) as archive, tempfile.TemporaryDirectory() as folder:
        files, place = Path(folder) / "files", str(Path(folder) / "ingested")
        write_forecasts(archive, [DAY], files)
        size = sum(path.stat().st_size for path in files.rglob("*") if path.is_file()) / 1e9
        create_archive(place, archive.domain, archive.statics(), archive.stations, {"source": AS_FILES})
        with open_pool(2) as pool:
            seconds = timed(lambda: ingest([files / "ifs", files / "cams-europe"], place, pool=pool))
        held = {group: archive.ahead.leads(DAY, group) for group in ("weather", "composition")}
        stored = {group: Archive(place).ahead.leads(DAY, group) for group in held}
    return {
        "domain": domain,
        "leads stored, of those simulated": f"{stored} of {held}",
        "files of a start day, with HRES, GB": size,
        "from files to the commit, s (goal 25)": seconds,
    }


def _steps(run: TrainingRun, batches: list[TileBatch]) -> None:
    for batch in batches:
        run.step([batch])


def _weights(settings: ForecastSettings, ahead: str) -> Weights:
    network = build(validate(type(settings), {**settings.model_dump(), "ahead": ahead}, "network")).eval()
    return Weights(network, card_for(network), "untrained")


def _in_turn(work: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The least seconds of each in several rounds, one after the other, so that all see the same machine."""
    for one in work.values():
        one()
    rounds = [{name: timed(one) for name, one in work.items()} for _ in range(ROUNDS)]
    return {name: min(seconds[name] for seconds in rounds) for name in work}
