"""What is usual on that day of the year, whatever today is like."""

from datetime import date, timedelta

import numpy as np

from cranpm.baselines.simple.damped import FittedBaseline
from cranpm.core.grid import EVERYWHERE, Array, Window


class Climatology(FittedBaseline):
    """The mean of the pixel times the domain's yearly cycle, fitted on training days."""

    def forecast(self, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        usual = self.fitted.usual(day + timedelta(days=lead), window)
        return np.where(np.isfinite(self.archive.pm25(day, window)), usual, np.float32(np.nan))
