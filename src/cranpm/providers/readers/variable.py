"""One variable of one file, whatever the format: named, in the file's unit, read by time and level when needed."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cranpm.core.grid import Array
from cranpm.providers.quantities import LevelKind, Quantity
from cranpm.providers.readers.file_grid import FileGrid

Reader = Callable[[Array, int], Array]
"""(indices of times, index of a level) -> (time, row, column) as stored, NaN missing."""
PRELIMINARY, OPERATIONAL = "0005", "oper"
"""ERA5's expver of the last months; what we call ECMWF's open forecasts. Final data have 0001."""
ORDER = {PRELIMINARY: 1, OPERATIONAL: 2}
IFS, AIFS, CAMS_GLOBAL, CAMS_EUROPE = "ifs", "aifs", "cams-global", "cams-europe"
"""Models whose runs we know, as they are recorded."""


@dataclass(frozen=True, eq=False)
class Variable:
    """`read` gives fields in our order of rows and columns and in the file's unit."""

    file: str
    quantity: Quantity
    unit: str
    times: Array
    """datetime64[s], one each; UTC."""
    kind: LevelKind
    levels: tuple[float, ...]
    """hPa, or numbers of model levels; 0 at the surface."""
    file_grid: FileGrid
    reader: Reader = field(repr=False)
    leads: Array
    """Hours since the start of the forecast, of each time; 0 for analyses."""
    versions: Array
    """Of each time: ERA5's expver, or `OPERATIONAL`, or nothing."""
    sum_hours: float = 1.0
    """Of what is summed (rain): over how many hours."""
    accumulated: bool = False
    """Whether values are sums since the start of the run (rain)."""
    field_by_field: bool = False
    """Whether every time lies by itself in the file: what is needed is then cut out of one field after the other."""
    institution: str = ""
    """Who made the file, where it says so."""
    source: str = ""
    """What the file was copied from, where it says so."""
    model: str = ""
    """Of a forecast: which model's; empty for analyses."""
    start: np.datetime64 | None = None
    """Of a forecast: when its run began, UTC. All times of a variable are of one run."""

    @property
    def what(self) -> str:
        return f"{self.file} ({self.quantity.name})"

    def read(self, times: Array, level: int = 0) -> Array:
        """(time, row, column) float32."""
        parts = [times] if not self.field_by_field else np.split(times, range(1, len(times)))
        return np.concatenate([self.file_grid.turn(np.asarray(self.reader(part, level), np.float32)) for part in parts])

    def rank(self, time: int) -> tuple[int, float]:
        """Which of two values of the same time counts: final, preliminary, forecast; then the shorter lead."""
        return ORDER.get(self.versions[time], 0), float(self.leads[time])
