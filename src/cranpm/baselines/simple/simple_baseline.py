"""What the simple baselines have in common."""

from abc import ABC, abstractmethod
from datetime import date

from cranpm.archive.store import Archive
from cranpm.core.grid import EVERYWHERE, Array, Window


class SimpleBaseline(ABC):
    """A forecast that the archive alone can make."""

    resolution = "1 km"

    def __init__(self, archive: Archive):
        self.archive = archive

    @property
    def identity(self) -> str:
        """Changes when its forecasts do."""
        return type(self).__name__

    @abstractmethod
    def forecast(self, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        """PM2.5 (ug m-3) `lead` days after `day`, NaN where today's is."""
