"""What a server offers of each run, and how much it does at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from cranpm.errors import CranpmError
from cranpm.published.runs import AbsentError, Run
from cranpm.serve.truth import Truth

PATIENCE_SECONDS = 10.0


class BusyError(CranpmError):
    """More was asked for than this server does at once."""


@dataclass(frozen=True)
class Service:
    """What is served, and how long a run counts as fresh."""

    folder: Path
    truth: Truth | None
    stale_after_hours: float
    gate: threading.BoundedSemaphore

    @contextmanager
    def heavy(self) -> Iterator[None]:
        """Few at once do what takes memory."""
        if not self.gate.acquire(timeout=PATIENCE_SECONDS):
            raise BusyError(expected="a free place", found="too many requests", remedy="Try again in a moment.")
        try:
            yield
        finally:
            self.gate.release()

    def knows(self, day: date) -> bool:
        return self.truth is not None and self.truth.knows(day)

    def need_truth(self) -> Truth:
        if self.truth is None:
            raise AbsentError(
                expected="an archive",
                found="none",
                remedy="Start the server with `cranpm serve DIR --archive ARCHIVE`.",
            )
        return self.truth

    def facts(self, run: Run) -> dict[str, Any]:
        return {
            "id": run.day,
            "version": run.version,
            "made": run.made,
            "age_hours": round(run.age_hours, 2),
            "stale": run.age_hours > self.stale_after_hours,
            "method": run.method,
            "simulated": run.simulated,
            "degraded": run.degraded,
            "bounds": (run.grid.west, run.grid.south, run.grid.east, run.grid.north),
            "leads": [
                {"lead": lead, "valid": run.valid(lead), "variables": self.variables(run, lead)} for lead in run.leads
            ],
        }

    def variables(self, run: Run, lead: int) -> list[str]:
        change = ["change"] * self.knows(run.day)
        return ["pm25", "exceedance", "index", *change, *(["truth", "error"] * self.knows(run.valid(lead)))]

    def rasters(self, run: Run, variable: str, lead: int) -> tuple[Path, Path | None]:
        """What a variable is read from, and what is taken from it."""
        forecast = run.raster(lead)
        if variable not in self.variables(run, lead):
            raise AbsentError(
                expected=f"a variable among {', '.join(self.variables(run, lead))}",
                found=variable,
                remedy="See /api/runs; change, truth and error need an archive that has the day.",
            )
        if variable in ("truth", "error"):
            with self.heavy():
                came = self.need_truth().raster(run.valid(lead))
            return (came, None) if variable == "truth" else (forecast, came)
        if variable == "change":
            with self.heavy():
                return forecast, self.need_truth().raster(run.day)
        return forecast, None
