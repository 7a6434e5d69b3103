"""Days from the times of one or several files: means over the hours of a day, sums of what fell during them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from cranpm.errors import CranpmError
from cranpm.grid import Array, Grid
from cranpm.sources.names import factor
from cranpm.sources.variable import Variable

LEAST_SHARE = 0.75
"""Of the hours of a day, where a policy lets days be incomplete."""


@dataclass(frozen=True)
class Moment:
    """One time of one variable at one level."""

    variable: Variable
    time: int
    level: int


class Timeline:
    """All times of one quantity at one level, over the files that hold it."""

    def __init__(self, name: str, variables: Iterable[Variable], level: float):
        self.name, self.moments = name, dict[np.datetime64, Moment]()
        self._twice: dict[np.datetime64, Moment] = {}
        for variable in variables:
            if level not in variable.levels:
                continue
            index = variable.levels.index(level)
            for number, time in enumerate(variable.times):
                self._add(time, Moment(variable, number, index))
        self._check_grids()

    def _add(self, time: np.datetime64, found: Moment) -> None:
        old = self.moments.get(time)
        if old is None or _better(found.variable, old.variable):
            self.moments[time] = found
        elif not _better(old.variable, found.variable):
            self._twice[time] = found

    def _check_grids(self) -> None:
        grids = {
            self._grid_of(moment.variable) for moment in self.moments.values() if len(moment.variable.place.lat) > 1
        }
        if len(grids) > 1:
            raise CranpmError(
                expected=f"{self.name} on one grid",
                found=" and ".join(str(grid) for grid in grids),
                remedy="Ingest files of one request at a time.",
            )

    @staticmethod
    def _grid_of(variable: Variable) -> tuple[float, ...]:
        place = variable.place
        return (float(place.lat[0]), float(place.lat[-1]), float(place.lon[0]), float(place.lon[-1]), len(place.lat))

    @property
    def some(self) -> Variable:
        """Any of its variables: they share a grid."""
        return next(iter(self.moments.values())).variable

    def grid(self) -> Grid:
        return self.some.place.grid(self.some.what)

    def days(self) -> set[date]:
        return {time.astype("datetime64[D]").item() for time in self.moments}

    def fields(self, times: Sequence[np.datetime64]) -> Array:
        """(time, row, column) in our unit; where two files have a time, they must say the same."""
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

    @staticmethod
    def _read(chosen: Sequence[Moment]) -> Array:
        """In one go from each file."""
        out: Array | None = None
        for variable in dict.fromkeys(moment.variable for moment in chosen):
            where = [number for number, moment in enumerate(chosen) if moment.variable is variable]
            indices = np.array([chosen[number].time for number in where])
            values = variable.read(indices, chosen[where[0]].level)
            values = values * np.float32(factor(variable.quantity, variable.unit, variable.what))
            check_range(values, variable)
            out = np.empty((len(chosen), *values.shape[1:]), np.float32) if out is None else out
            out[where] = values
        assert out is not None
        return out

    def wanted(self, day: date, step_hours: int, offset_hours: int = 0) -> list[np.datetime64]:
        """The times of a day in even steps; from `offset_hours` after midnight."""
        start = np.datetime64(day, "s") + np.timedelta64(offset_hours, "h")
        return [start + np.timedelta64(hour, "h") for hour in range(0, 24, step_hours)]

    def step(self, day: date) -> int:
        """Hours between the fields of a day as the files have them; 1 where that is not clear."""
        start = np.datetime64(day, "s")
        there = sorted(time for time in self.moments if start <= time < start + np.timedelta64(1, "D"))
        gaps = set(np.diff(there).astype("timedelta64[h]").astype(int)) if len(there) > 1 else set()
        return int(min(gaps)) if gaps and min(gaps) in (1, 2, 3, 6) else 1

    def present(self, day: date, step_hours: int, offset_hours: int, lenient: bool) -> tuple[list[np.datetime64], str]:
        """Those of the wanted times that there are, and a note where some are missing; too few are refused."""
        wanted = self.wanted(day, step_hours, offset_hours)
        there = [time for time in wanted if time in self.moments]
        if len(there) == len(wanted):
            return there, ""
        least = LEAST_SHARE * len(wanted) if lenient else len(wanted)
        if len(there) < least:
            first = day + timedelta(days=offset_hours // 24)
            raise CranpmError(
                expected=f"{len(wanted)} times of {self.name} for {day}"
                + (f", the last of them 00 UTC of {first + timedelta(days=1)}" if offset_hours else ""),
                found=f"{len(there)} ({', '.join(str(time)[11:16] for time in there[:6]) or 'none'}"
                + (", ...)" if len(there) > 6 else ")"),
                remedy="Fetch the missing hours, or ingest with --degrade to accept three quarters of them.",
            )
        return there, f"{self.name}: {len(there)} of {len(wanted)} times"


def _better(one: Variable, other: Variable) -> bool:
    """Final before preliminary data."""
    return one.version == "0001" and other.version == "0005"


def check_range(values: Array, variable: Variable) -> None:
    """Refuse what no such quantity can be: another unit, a fill value read as a number."""
    quantity = variable.quantity
    if np.isinf(values).any():
        raise CranpmError(expected=f"numbers in {variable.what}", found="infinity", remedy="Fetch it again.")
    if not np.isfinite(values).any():
        return
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low < quantity.low or high > quantity.high:
        raise CranpmError(
            expected=f"{quantity.low:g}..{quantity.high:g} in {variable.what}",
            found=f"{low:g}..{high:g}",
            remedy="Check its unit and its fill value.",
        )
