"""Days from the times of one or several files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid
from cranpm.providers.quantities import factor
from cranpm.providers.readers.variable import Variable

LEAST_SHARE = 0.75
"""Of the hours of a day, where a policy lets days be incomplete."""
ROUNDING = 1e-4
"""m: by which packed sums of rain may seem to fall from one time to the next."""


@dataclass(frozen=True)
class Moment:
    """One time of one variable at one level."""

    variable: Variable
    time: int
    level: int

    @property
    def rank(self) -> tuple[int, float]:
        return self.variable.rank(self.time)


class Timeline:
    """All times of one quantity at one level, over the files that hold it."""

    def __init__(self, name: str, variables: Iterable[Variable], level: float):
        self.name, self.moments = name, dict[np.datetime64, Moment]()
        self._twice: dict[np.datetime64, Moment] = {}
        for variable in variables:
            if level in variable.levels:
                index = variable.levels.index(level)
                for number, time in enumerate(variable.times):
                    self._add(time, Moment(variable, number, index))
        self._check_grids()

    def _add(self, time: np.datetime64, found: Moment) -> None:
        old = self.moments.get(time)
        if old is None or found.rank < old.rank:
            self.moments[time] = found
            self._twice.pop(time, None)
        elif found.rank == old.rank:
            self._twice[time] = found

    def _check_grids(self) -> None:
        grids = {
            (float(one.lat[0]), float(one.lat[-1]), float(one.lon[0]), float(one.lon[-1]), len(one.lat))
            for one in (moment.variable.file_grid for moment in self.moments.values())
        }
        if len(grids) > 1:
            raise CranpmError(
                expected=f"{self.name} on one grid",
                found=" and ".join(str(grid) for grid in grids),
                remedy="Ingest files of one request at a time.",
            )

    @property
    def some(self) -> Variable:
        """Any of its variables: they share a grid."""
        return next(iter(self.moments.values())).variable

    def grid(self) -> Grid:
        return self.some.file_grid.grid(self.some.what)

    def versions(self, times: Sequence[np.datetime64]) -> set[str]:
        """Of the values that count at some times."""
        return {str(m.variable.versions[m.time]) for m in (self.moments[time] for time in times)} - {""}

    def fields(self, times: Sequence[np.datetime64]) -> Array:
        """(time, row, column) in our unit, and possible."""
        variable = self.some
        values = self.stored(times) * np.float32(factor(variable.quantity, variable.unit, variable.what))
        check_range(values, variable.quantity.low, variable.quantity.high, variable.what)
        return values

    def stored(self, times: Sequence[np.datetime64]) -> Array:
        """(time, row, column) in the file's unit; where two files have a time, they must say the same."""
        values = self._read([self.moments[time] for time in times])
        if doubled := [time for time in times if time in self._twice]:
            again = self._read([self._twice[time] for time in doubled])
            if not np.array_equal(again, values[[times.index(time) for time in doubled]], equal_nan=True):
                one, other = self.moments[doubled[0]].variable, self._twice[doubled[0]].variable
                raise CranpmError(
                    expected=f"one value of {self.name} at {doubled[0]}",
                    found=f"different ones in {one.file} and {other.file}",
                    remedy="Leave one of the two out.",
                )
        return values

    def _read(self, chosen: Sequence[Moment]) -> Array:
        """In one go from each file."""
        file_grid = self.some.file_grid
        out = np.empty((len(chosen), len(file_grid.lat), len(file_grid.lon)), np.float32)
        for variable in dict.fromkeys(moment.variable for moment in chosen):
            if variable.unit != self.some.unit:
                raise CranpmError(
                    expected=f"{self.name} in one unit",
                    found=f"{self.some.unit!r} and {variable.unit!r}",
                    remedy="Leave one of the files out.",
                )
            where = [number for number, moment in enumerate(chosen) if moment.variable is variable]
            indices = np.array([chosen[number].time for number in where])
            out[where] = variable.read(indices, chosen[where[0]].level)
        return out

    def within(self, day: date) -> list[np.datetime64]:
        """The times of a day, in order."""
        start = np.datetime64(day, "s")
        return sorted(time for time in self.moments if start <= time < start + np.timedelta64(1, "D"))

    def step(self, day: date) -> int:
        """Hours between the fields of a day as the files have them; 1 where that is not clear."""
        there = self.within(day)
        gaps = set(np.diff(there).astype("timedelta64[h]").astype(int)) if len(there) > 1 else set()
        return int(min(gaps)) if gaps and min(gaps) in (1, 2, 3, 6) else 1

    def is_whole(self, day: date) -> bool:
        """Whether a day has all its times in the steps of the files; rain of some hours is dated by their end.

        Of sums since the start of a run, both ends of the day.
        """
        if self.some.accumulated:
            return all(time in self.moments for time in self._ends(day))
        step = self.step(day)
        first = np.datetime64(day, "s") + np.timedelta64(step if self.some.quantity.name == "tp" else 0, "h")
        return all(first + np.timedelta64(hour, "h") in self.moments for hour in range(0, 24, step))

    def _ends(self, day: date) -> list[np.datetime64]:
        """Times whose sums since the start of a run say what a day adds; at the start itself nothing has fallen."""
        begin = np.datetime64(day, "s")
        end = begin + np.timedelta64(1, "D")
        return [end] if begin == self.some.start else [begin, end]

    def increase(self, day: date) -> tuple[Array, list[np.datetime64]]:
        """What sums since the start of a run grew by during a day, in our unit, and the times that say so."""
        needed = self._ends(day)
        if missing := [time for time in needed if time not in self.moments]:
            raise CranpmError(
                expected=f"{self.name} at {' and '.join(_hour(time) for time in needed)}, summed since the run began",
                found=f"none at {' and '.join(_hour(time) for time in missing)}",
                remedy="Fetch all steps of the run.",
            )
        sums = self.fields(needed).astype(np.float64)
        values = sums[-1] - sums[0] if len(needed) == 2 else sums[0]
        if np.nanmin(values) < -ROUNDING:
            raise CranpmError(
                expected=f"sums of {self.name} that only grow on {day} in {self.some.what}",
                found=f"one that falls by {-np.nanmin(values):g} m",
                remedy="Fetch the steps of one run.",
            )
        return np.maximum(values, 0), needed

    def present(self, day: date, step_hours: int, lenient: bool, ends: bool = False) -> tuple[list[np.datetime64], str]:
        """The times of a day in even steps, and a note where some are missing; too few are refused.

        `ends`: times are the ends of what was summed, so the first is a step after midnight and the last is midnight.
        """
        start = np.datetime64(day, "s") + np.timedelta64(step_hours if ends else 0, "h")
        wanted: list[np.datetime64] = [start + np.timedelta64(hour, "h") for hour in range(0, 24, step_hours)]
        there = [time for time in wanted if time in self.moments]
        if len(there) == len(wanted):
            return there, ""
        if len(there) < (LEAST_SHARE * len(wanted) if lenient else len(wanted)):
            shown = ", ".join(str(time)[11:16] for time in there[:6]) + (", ..." if len(there) > 6 else "")
            last = f", the last of them 00 UTC of {day + timedelta(days=1)}" if ends else ""
            remedy = "Fetch the missing hours, or ingest with --degrade to accept three quarters of them."
            raise CranpmError(
                expected=f"{len(wanted)} times of {self.name} for {day}{last}",
                found=f"{len(there)} ({shown or 'none'})",
                remedy=remedy if self.some.start is None else "Fetch all steps of the run.",
            )
        return there, f"{self.name}: {len(there)} of {len(wanted)} times"


def _hour(time: np.datetime64) -> str:
    return f"{str(time)[11:13]} UTC of {str(time)[:10]}"


def check_range(values: Array, low: float, high: float, what: str) -> None:
    """Refuse what no such quantity can be: another unit, a fill value read as a number."""
    if np.isinf(values).any():
        raise CranpmError(expected=f"numbers in {what}", found="infinity", remedy="Fetch it again.")
    if not np.isfinite(values).any():
        return
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    if least < low or most > high:
        raise CranpmError(
            expected=f"{low:g}..{high:g} in {what}",
            found=f"{least:g}..{most:g}",
            remedy="Check its unit and its fill value.",
        )
