"""CAMS at 25 km, brought to 1 km by bilinear interpolation: no learning, no fine structure.

An archive holds CAMS's analysis of each day, not its forecasts. The analysis of the start day is used for every lead.
"""

from datetime import date

import numpy as np

from cranpm.baselines.simple.simple_baseline import SimpleBaseline
from cranpm.core.channels import find_channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import EVERYWHERE, Array, Window
from cranpm.core.interpolation import refine


class Cams(SimpleBaseline):
    """CAMS's PM2.5 of the start day."""

    resolution = "25 km"

    def forecast(self, day: date, lead: int, window: Window = EVERYWHERE) -> Array:
        domain = self.archive.domain
        field = refine(self.archive.coarse(day)[self._channel()], domain.coarse, domain.fine.window(*window))
        return np.where(np.isfinite(self.archive.pm25(day, window)), np.maximum(field, 0), np.float32(np.nan))

    def _channel(self) -> int:
        try:
            return find_channel(self.archive.channels, "pm25")
        except CranpmError as error:
            raise CranpmError(
                expected=f"{error.expected} in {self.archive.location}",
                found=error.found,
                remedy="Leave cams out of --baselines, or use an archive that has CAMS.",
            ) from None
