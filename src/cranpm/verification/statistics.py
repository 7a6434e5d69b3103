"""The seam of verification: a statistic is a set of sums that add up, a metric is a function of those sums.

Sums over strips, days and workers add up in any order, so a statistic that knows one part of a field is known for a
year. Whoever registers a statistic in `STATISTICS` finds its metrics, with intervals, in the tables, the report and
`scores.json`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from cranpm.archive.store import Archive
from cranpm.core.grid import Array
from cranpm.core.registry import Registry

SCALES = ("1 km", "25 km")


@dataclass(frozen=True)
class Pixels:
    """Part of a day on one grid: all arrays are (row, column), NaN where the truth or any method has no value."""

    forecast: Array
    """PM2.5 (ug m-3)."""
    truth: Array
    """PM2.5 (ug m-3)."""
    weight: Array
    """Area of the land in the pixel (km2); 1 for pairs at stations."""
    rows: slice = field(default_factory=lambda: slice(None))
    """The rows that count; those around them are there for statistics that look at surroundings."""
    first_row: int = 0
    """Number of the first row on the whole grid."""
    row_area_km2: Array | None = None
    """Area of a pixel in each row, land or not."""
    fields: Mapping[str, Array] = field(default_factory=dict)
    """More fields of the same forecast by name, such as quantiles or members; none for a single forecast."""

    def counted(self) -> tuple[Array, Array, Array]:
        """Forecast, truth and weight in the rows that count, one value per pixel that has both."""
        parts = [np.asarray(part)[self.rows] for part in (self.forecast, self.truth, self.weight)]
        known = np.isfinite(parts[0]) & np.isfinite(parts[1])
        forecast, truth, weight = (part[known] for part in parts)
        return forecast, truth, weight


@dataclass(frozen=True)
class Metric:
    """A number that follows from the sums of one statistic."""

    title: str
    """As tables name it, with the unit."""
    of: Callable[[Array], Array]
    """From sums with any leading axes, (..., *shape), to numbers (...)."""


class Statistic(ABC):
    """Sums of one kind over pixels and over pairs at stations. Derive from it, and register the class."""

    shape: ClassVar[tuple[int, ...]] = ()
    """Of the sums."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    scales: ClassVar[tuple[str, ...]] = SCALES
    """The grids on which it is computed."""
    by_place: ClassVar[bool] = True
    """Whether each region has sums; else the whole domain alone, with the rows around each strip."""
    at_stations: ClassVar[bool] = True
    halo: ClassVar[int] = 0
    """Rows that it needs to see around those that count."""
    version: ClassVar[int] = 1
    """To be raised when the sums change their meaning: days are then verified again."""

    def __init__(self, archive: Archive):
        """What all days share may be prepared here."""
        self.archive = archive

    @abstractmethod
    def pixels(self, part: Pixels) -> Array:
        """The sums over the pixels of a part, as an array of `shape`."""

    def pairs(self, forecast: Array, observed: Array) -> Array:
        """The sums over pairs at stations (ug m-3, NaN where missing), all with the weight 1."""
        forecasts, truths = np.atleast_2d(forecast, observed)
        return self.pixels(Pixels(forecasts, truths, np.ones(forecasts.shape)))


STATISTICS: Registry[type[Statistic]] = Registry("statistic")
"""All statistics by name; plugins add to it."""


def ratio(top: Array, bottom: Array) -> Array:
    """top / bottom, NaN where nothing was counted."""
    top, bottom = np.broadcast_arrays(np.asarray(top, np.float64), np.asarray(bottom, np.float64))
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0)
