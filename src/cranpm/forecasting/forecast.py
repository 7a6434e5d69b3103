"""A forecast in memory, before it is published. No torch: readers and writers of products need none."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from cranpm.core.grid import Array, Grid


@dataclass(frozen=True)
class Forecast:
    """PM2.5 (ug m-3) of each lead on a grid, NaN off land, and what it was made from."""

    day: date
    """The start day."""
    leads: tuple[int, ...]
    """Days ahead."""
    fields: Array
    """(lead, row, column)."""
    grid: Grid
    degraded: tuple[str, ...]
    """What was missing in the inputs and what replaced it; empty for a sound forecast."""
    provenance: Mapping[str, Any]

    def valid(self, lead: int) -> date:
        """The day that a lead is for."""
        return self.day + timedelta(days=lead)

    def of(self, lead: int) -> Array:
        """(row, column) PM2.5 of one lead, ug m-3."""
        return self.fields[self.leads.index(lead)]
