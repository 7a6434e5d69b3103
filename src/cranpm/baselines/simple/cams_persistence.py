"""CAMS at 25 km, brought to 1 km by bilinear interpolation: no learning, no fine structure.

An archive holds CAMS's analysis of each day, not its forecasts. The analysis of the start day is used for every lead.
"""

from datetime import date

import numpy as np

from cranpm.baselines.simple.simple_baseline import SimpleBaseline
from cranpm.core.errors import CranpmError
from cranpm.core.grid import EVERYWHERE, Array, Window
from cranpm.core.interpolation import refine

CHANNEL = "cams_pm25"


class Cams(SimpleBaseline):
    """CAMS's PM2.5 of the start day."""

    resolution = "25 km"

    def forecast(self, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        domain, names = self.archive.domain, self.archive.channel_names
        if CHANNEL not in names:
            raise CranpmError(
                expected=f"the channel {CHANNEL} in {self.archive.location}",
                found=", ".join(names),
                remedy="Leave cams out of --baselines, or use an archive that has CAMS.",
            )
        field = refine(self.archive.coarse(day)[names.index(CHANNEL)], domain.coarse, domain.fine.window(*window))
        return np.where(np.isfinite(self.archive.pm25(day, window)), np.maximum(field, 0), np.float32(np.nan))
