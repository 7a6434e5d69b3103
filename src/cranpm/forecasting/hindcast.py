"""Forecasts of many start days, each computed and published by itself, so that any worker can take any day."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from pathlib import Path

from cranpm import __version__
from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.grid import EVERYWHERE, Window
from cranpm.forecasting.engine import predict
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.publication import Publication, Run, publish
from cranpm.network.precision import Precision, best_precision
from cranpm.training.days_ahead import Prognosis
from cranpm.weights import Weights, find_weights


@dataclass(frozen=True)
class Job:
    """How start days are forecast and published. Small: workers read archive and weights for themselves."""

    archive: Archive
    weights: str
    """A folder, `shipped` or `persistence`."""
    weights_sha256: str | None
    """Of the weights that are meant: a worker that finds others refuses. None for persistence."""
    folder: Path
    leads: tuple[int, ...]
    formats: tuple[str, ...]
    region: Window = EVERYWHERE
    degrade: bool = False
    prognosis: Prognosis = "forecast"
    """`perfect`, for research: weights that read the days ahead read their analyses."""
    precision: Precision = field(default_factory=best_precision)
    """Chosen once, where the job is made: workers on other processors compute in the same one."""
    compiled: bool = False
    keep: bool = False
    """Whether a day that was published from the same archive and weights is left as it is."""


@dataclass(frozen=True)
class Outcome:
    """A published day: where, the forecast unless it was there before, and seconds for computing and writing."""

    path: Path
    forecast: Forecast | None
    computed_s: float = 0.0
    written_s: float = 0.0


def forecast_day(
    day: date,
    job: Job,
    on_tile: Callable[[int, int], None] = lambda done, total: None,
    on_file: Callable[[str], None] = lambda name: None,
) -> Outcome:
    """Forecast and publish one start day."""
    if job.keep and _is_published(day, job):
        return Outcome(job.folder / str(day), None)
    began = time.perf_counter()
    result = predict(
        *(job.archive, day, _weights(job.weights, job.weights_sha256), job.leads, job.region),
        degrade=job.degrade,
        prognosis=job.prognosis,
        precision=job.precision,
        compiled=job.compiled,
        on_tile=on_tile,
    )
    computed = time.perf_counter() - began
    path = publish(result, job.archive, job.folder, job.formats, on_file)
    return Outcome(path, result, computed, time.perf_counter() - began - computed)


def _is_published(day: date, job: Job) -> bool:
    """Whether the product of a day is sound and the same forecast would be made again."""
    try:
        run = Publication(job.folder).run(day)
    except CranpmError:
        return False
    wanted = {
        "software": f"cranpm {__version__}",
        "archive_snapshot": job.archive.snapshot,
        "weights_sha256": job.weights_sha256,
        "precision": job.precision if job.weights_sha256 else None,
        "compiled": job.compiled if job.weights_sha256 else None,
    }
    same = all(run.provenance.get(name) == value for name, value in wanted.items())
    same = same and (job.degrade or not run.degraded)
    same = same and run.provenance.get("prognosis", "none") in ("none", job.prognosis)
    grid = job.archive.domain.fine.window(*job.region)
    return same and run.checked and run.leads == tuple(sorted(job.leads)) and run.grid == grid and _has(run, job)


def _has(run: Run, job: Job) -> bool:
    """Whether a run has all the formats; others than those that hold numbers are looked for by their files."""
    held = run.formats | {path.suffix[1:] for path in run.folder.iterdir()}
    return set(job.formats) <= held


@lru_cache(maxsize=1)
def _weights(name: str, sha256: str | None) -> Weights | None:
    """The weights that are meant, loaded once per process."""
    found = find_weights(name)
    if (found and found.sha256) != sha256:
        raise CranpmError(
            expected=f"the weights {sha256} in {name}",
            found=str(found and found.sha256),
            remedy="All workers must find the same weights under the same path.",
        )
    return found
