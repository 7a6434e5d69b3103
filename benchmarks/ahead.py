"""What the days ahead cost: a training step and a forecast with them against the same without, and their ingestion."""

import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyproj  # noqa: F401  before eccodes: the other order can crash PROJ

import eccodes  # isort: skip

from benchmarks.archive import passing_archive
from benchmarks.training import SPLITS
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive
from cranpm.core.cluster import open_pool
from cranpm.core.days import LEADS, DayRange
from cranpm.core.grid import Array
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
    """One start day of forecasts, from IFS and CAMS files to its commit.

    IFS open data come for the whole globe: simulated fields are mirrored over it, so that as much is decoded.
    """
    with passing_archive(domain, DayRange(DAY, DAY), 5) as archive, tempfile.TemporaryDirectory() as folder:
        files, place = Path(folder) / "files", str(Path(folder) / "ingested")
        write_forecasts(archive, [DAY], files)
        fetched = Path(folder) / "fetched" / f"ifs_{DAY}.grib2"
        over_the_globe(sorted((files / "ifs").rglob("*.grib2")), fetched)
        given = [fetched.parent, files / "cams-europe"]
        size = sum(path.stat().st_size for place in given for path in place.rglob("*") if path.is_file()) / 1e9
        create_archive(place, archive.domain, archive.statics(), archive.stations, {"source": AS_FILES})
        with open_pool(2) as pool:
            seconds = timed(lambda: ingest(given, place, pool=pool))
        held = {group: archive.ahead.leads(DAY, group) for group in ("weather", "composition")}
        stored = {group: Archive(place).ahead.leads(DAY, group) for group in held}
    return {
        "domain": domain,
        "leads stored, of those simulated": f"{stored} of {held}",
        "files of a start day, GB": size,
        "from files to the commit, s (goal 25)": seconds,
    }


def over_the_globe(parts: Sequence[Path], target: Path) -> None:
    """The messages of GRIB files in one file as `cranpm fetch` leaves it, each field mirrored again and again at its
    edges until it covers the globe from 90 N and 180 E."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                while (message := eccodes.codes_grib_new_from_file(file)) is not None:
                    out.write(_global(message))


def _global(message: int) -> bytes:
    north, west, step = (
        eccodes.codes_get(message, f"{key}InDegrees")
        for key in ("latitudeOfFirstGridPoint", "longitudeOfFirstGridPoint", "iDirectionIncrement")
    )
    rows, cols = round(180 / step) + 1, round(360 / step)
    values = eccodes.codes_get_array(message, "values").reshape(eccodes.codes_get(message, "Nj"), -1)
    down = _mirrored(rows, values.shape[0], round((90 - north) / step))
    along = _mirrored(cols, values.shape[1], round((west - 180) % 360 / step))
    edges = {"First": (90.0, 180.0), "Last": (-90.0, 180.0 - step)}
    for which, (lat, lon) in edges.items():
        eccodes.codes_set(message, f"latitudeOf{which}GridPointInDegrees", lat)
        eccodes.codes_set(message, f"longitudeOf{which}GridPointInDegrees", lon)
    eccodes.codes_set(message, "Ni", cols)
    eccodes.codes_set(message, "Nj", rows)
    eccodes.codes_set_values(message, values[np.ix_(down, along)].ravel())
    try:
        return bytes(eccodes.codes_get_message(message))
    finally:
        eccodes.codes_release(message)


def _mirrored(count: int, size: int, first: int) -> Array:
    """For each of `count` places, which of `size` it takes: 0 at `first`, and turned back at both ends."""
    place = (np.arange(count) - first) % (2 * size)
    return np.where(place < size, place, 2 * size - 1 - place)


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
