"""Tomorrow is like today."""

from datetime import date

from cranpm.baselines.simple.simple_baseline import SimpleBaseline
from cranpm.core.grid import EVERYWHERE, Array, Window


class Persistence(SimpleBaseline):
    """Today's 1-km PM2.5 for every lead."""

    def forecast(self, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        return self.archive.pm25(day, window)
