"""What the simple baselines have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date
from typing import Any

from cranpm.archive.store import Archive
from cranpm.core.grid import EVERYWHERE, Array, Window


class SimpleBaseline(ABC):
    """A forecast that the archive alone can make."""

    resolution = "1 km"

    def __init__(self, archive: Archive):
        self.archive = archive

    def identity(self, day: date) -> str:
        """Changes when its forecasts from a start day do."""
        return type(self).__name__

    def facts(self, days: Sequence[date], leads: Sequence[int]) -> dict[str, Any]:
        """What tables say of it beside its name and resolution, for these start days and days ahead."""
        return {}

    @abstractmethod
    def forecast(self, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        """PM2.5 (ug m-3) `lead` days after `day`, NaN where today's is."""
