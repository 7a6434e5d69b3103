"""What a server offers of each run, and how much it does at once."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.core.packing import PUBLISHED
from cranpm.forecasting.publication import rasters
from cranpm.forecasting.publication.reader import AbsentError, Run
from cranpm.views.serve.archive_view import Known, Truth
from cranpm.views.serve.raster_cache import Made

AT_ONCE, PATIENCE_SECONDS = 2, 15.0
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class BusyError(CranpmError):
    """More was asked for than this server does at once."""


class Service:
    """What is served, and how long a run counts as fresh. What takes memory has two threads of its own."""

    def __init__(self, folder: Path, archive: str | None, stale_after_hours: float):
        self.folder = folder.resolve()
        self.truth = Truth(archive) if archive else None
        self.stale_after_hours = stale_after_hours
        self.workers = ThreadPoolExecutor(AT_ONCE, "heavy")
        self.made = Made(self.workers)

    def close(self) -> None:
        self.workers.shutdown(cancel_futures=True)
        self.made.close()

    def known(self) -> Known | None:
        return self.truth.now() if self.truth else None

    def need_known(self) -> Known:
        known = self.known()
        if known is None:
            raise AbsentError(
                expected="an archive", found="none", remedy="Start the server with `cranpm serve DIR --archive A`."
            )
        return known

    async def heavy(
        self, work: Callable[Arguments, Result], *given: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Done by one of few threads; nobody waits long, and who waits holds no other thread."""
        return await _patient(asyncio.wrap_future(self.workers.submit(partial(work, *given, **named))))

    def facts(self, run: Run, known: Known | None) -> dict[str, Any]:
        leads = [
            {"lead": lead, "valid": run.valid(lead), "variables": variables(run, lead, known)} for lead in run.leads
        ]
        reason = run.stale_reason(self.stale_after_hours)
        return {
            "id": run.day,
            "version": run.version,
            "made": run.made,
            "age_hours": round(run.age_hours, 2),
            "stale": bool(reason),
            "stale_reason": reason,
            "method": run.method,
            "simulated": run.simulated,
            "degraded": run.degraded,
            "bounds": (run.grid.west, run.grid.south, run.grid.east, run.grid.north),
            "leads": leads,
        }

    async def raster(self, run: Run, variable: str, lead: int) -> Path:
        """What a variable is drawn from. Differences are taken pixel by pixel, and only then averaged for overviews."""
        forecast, known = run.raster(lead), self.known()
        offered = variables(run, lead, known)
        if variable not in offered:
            raise AbsentError(
                expected=f"a variable among {', '.join(offered)}",
                found=variable,
                remedy="See /api/runs; change, truth and error need an archive that has the day.",
            )
        if known is None or variable not in ("truth", "error", "change"):
            return forecast
        day = run.day if variable == "change" else run.valid(lead)
        minuend = None if variable == "truth" else forecast
        key = (known.archive.snapshot, day, run.grid, minuend)
        field = partial(_field, known, run, day, minuend)
        return await _patient(asyncio.shield(asyncio.wrap_future(self.made.raster(key, run.grid, field))))


def variables(run: Run, lead: int, known: Known | None) -> list[str]:
    """What can be shown: what the archive knows only where it covers the run's grid."""
    days = known.days if known and known.window(run.grid) else frozenset()
    change = ["change"] * (run.day in days)
    return ["pm25", "exceedance", "index", *change, *(["truth", "error"] * (run.valid(lead) in days))]


def _field(known: Known, run: Run, day: date, minuend: Path | None) -> Array:
    """The archive's day on the run's grid, or what a forecast differs from it."""
    window = known.window(run.grid)
    assert window is not None, "offered only where the archive covers the run"
    came = known.archive.pm25(day, window)
    if minuend is None:
        return came
    return PUBLISHED.unpack(rasters.window(minuend, slice(0, run.grid.rows), slice(0, run.grid.cols))) - came


async def _patient(future: "asyncio.Future[Result]") -> Result:
    try:
        return await asyncio.wait_for(future, PATIENCE_SECONDS)
    except TimeoutError:
        raise BusyError(expected="a free place", found="too much to do", remedy="Try again in a moment.") from None
