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
from cranpm.forecasting.publication import AbsentError, Run, open_publication
from cranpm.forecasting.publication.watch import Watch
from cranpm.views.serve.archive_view import ArchiveView, GrowingArchive
from cranpm.views.serve.raster_cache import RasterCache

AT_ONCE, PATIENCE_SECONDS = 2, 15.0
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class BusyError(CranpmError):
    """More requests than this server answers at once."""


class Service:
    """What is served, and for how long a run counts as fresh. Work that needs much memory has two threads."""

    def __init__(self, folder: Path, archive: str | None, stale_after_hours: float):
        self.publication = open_publication(folder)
        self.watch = Watch(self.publication)
        self.archive = GrowingArchive(archive) if archive else None
        self.stale_after_hours = stale_after_hours
        self.workers = ThreadPoolExecutor(AT_ONCE, "heavy")
        self.rasters = RasterCache(self.workers)

    def close(self) -> None:
        self.watch.close()
        self.workers.shutdown(cancel_futures=True)
        self.rasters.close()

    def view(self) -> ArchiveView | None:
        """The newest version of the archive, if there is one."""
        return self.archive.now() if self.archive else None

    def need_view(self) -> ArchiveView:
        """The same, refused where there is none."""
        view = self.view()
        if view is None:
            raise AbsentError(
                expected="an archive", found="none", remedy="Start the server with `cranpm serve DIR --archive A`."
            )
        return view

    async def heavy(
        self, work: Callable[Arguments, Result], *given: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """The result of work that needs much memory, by one of few threads; refused after a few seconds of waiting."""
        return await _patient(asyncio.wrap_future(self.workers.submit(partial(work, *given, **named))))

    def facts(self, run: Run, view: ArchiveView | None) -> dict[str, Any]:
        leads = [
            {"lead": lead, "valid": run.valid(lead), "variables": variables(run, lead, view)} for lead in run.leads
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
            "checked": run.checked,
            "bounds": (run.grid.west, run.grid.south, run.grid.east, run.grid.north),
            "leads": leads,
        }

    async def raster(self, run: Run, variable: str, lead: int) -> Path:
        """The file that a variable is drawn from. Differences are of pixels, and only then averaged for overviews."""
        forecast, view = run.raster(lead), self.view()
        offered = variables(run, lead, view)
        if variable not in offered:
            raise AbsentError(
                expected=f"a variable among {', '.join(offered)}",
                found=variable,
                remedy="See /api/runs; change, truth and error need an archive that has the day.",
            )
        if view is None or variable not in ("truth", "error", "change"):
            return forecast
        day = run.day if variable == "change" else run.valid(lead)
        minuend = None if variable == "truth" else lead
        key = (view.archive.snapshot, day, run.grid, minuend and (run.version, forecast))
        field = partial(_field, view, run, day, minuend)
        return await _patient(asyncio.shield(asyncio.wrap_future(self.rasters.raster(key, run.grid, field))))


def variables(run: Run, lead: int, view: ArchiveView | None) -> list[str]:
    """What can be shown of a lead; what needs the archive only where it covers the run's grid."""
    days = view.days if view and view.window(run.grid) else frozenset()
    change = ["change"] * (run.day in days)
    return ["pm25", "exceedance", "index", *change, *(["truth", "error"] * (run.valid(lead) in days))]


def _field(view: ArchiveView, run: Run, day: date, minuend: int | None) -> Array:
    """PM2.5 (ug m-3) of the archive's day on the run's grid, or a lead of the forecast minus it."""
    window = view.window(run.grid)
    assert window is not None, "offered only where the archive covers the run"
    observed = view.archive.pm25(day, window)
    return observed if minuend is None else run.pm25(minuend) - observed


async def _patient(future: "asyncio.Future[Result]") -> Result:
    try:
        return await asyncio.wait_for(future, PATIENCE_SECONDS)
    except TimeoutError:
        raise BusyError(expected="a free place", found="too much to do", remedy="Try again in a moment.") from None
