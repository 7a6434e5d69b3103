"""CAMS at 25 km, brought to 1 km by bilinear interpolation: no learning, no fine structure.

Where the archive holds CAMS's forecast of a lead, as it was made on the start day, that is used; where it does not,
CAMS's analysis of the start day. Which of the two it was is told, day by day and in the facts of tables.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from cranpm.baselines.simple.simple_baseline import SimpleBaseline
from cranpm.core.channels import find_channel
from cranpm.core.days import check_reference
from cranpm.core.errors import CranpmError
from cranpm.core.grid import EVERYWHERE, Array, Window
from cranpm.core.interpolation import refine

GROUP = "composition"
FORECAST = "CAMS forecast"
ANALYSIS = "CAMS analysis of the start day, for days without a forecast"


class Cams(SimpleBaseline):
    """CAMS's PM2.5 of the target day as forecast on the start day, or else of the start day."""

    resolution = "25 km"

    def forecast(self, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        domain = self.archive.domain
        field = refine(self._coarse(day, lead), domain.coarse, domain.fine.window(*window))
        return np.where(np.isfinite(self.archive.pm25(day, window)), np.maximum(field, 0), np.float32(np.nan))

    def identity(self, day: date) -> str:
        run = self.archive.ahead.run(day, GROUP)
        return f"{super().identity(day)} {ANALYSIS if run is None else f'{FORECAST}, {run}, leads {run.leads}'}"

    def facts(self, days: Sequence[date], leads: Sequence[int]) -> dict[str, Any]:
        """What the row is made of; where that is not the same for all days and leads, how many have a forecast."""
        held = {lead: sum(lead in self.archive.ahead.leads(day, GROUP) for day in days) for lead in leads}
        if not days or not leads:
            return {}
        if not any(held.values()):
            return {"made_of": ANALYSIS}
        models = sorted({run.model for day in days if (run := self.archive.ahead.run(day, GROUP))})
        named = f"{FORECAST} ({', '.join(models)})"
        if all(count == len(days) for count in held.values()):
            return {"made_of": named}
        counts = ", ".join(f"T+{lead} on {count}" for lead, count in held.items())
        return {"made_of": f"{named} for {counts} of {len(days)} start days; {ANALYSIS}, on the others"}

    def _coarse(self, day: date, lead: int) -> Array:
        """PM2.5 (ug m-3) at 25 km."""
        ahead, run, channel = self.archive.ahead, self.archive.ahead.run(day, GROUP), self._channel()
        if run is None or lead not in run.leads:
            return self.archive.coarse(day)[channel]
        check_reference(day, run.reference, run.model)
        return ahead.fields(day, lead, GROUP)[find_channel(ahead.channels(GROUP), "pm25")]

    def _channel(self) -> int:
        try:
            return find_channel(self.archive.channels, "pm25")
        except CranpmError as error:
            raise CranpmError(
                expected=f"{error.expected} in {self.archive.location}",
                found=error.found,
                remedy="Leave cams out of --baselines, or use an archive that has CAMS.",
            ) from None
