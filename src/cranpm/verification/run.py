"""From days, methods and an archive to sums: one file per day, so that any stop loses at most the days under way."""

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from cranpm.archive.day_data import Quality
from cranpm.archive.store import Archive
from cranpm.core.cluster import Pool
from cranpm.core.days import parse_leads
from cranpm.core.errors import CranpmError
from cranpm.core.files import whole_file
from cranpm.verification.day import DaySums, Geometry, measure, places
from cranpm.verification.methods import Method
from cranpm.verification.statistics import STATISTICS

DAYS = "days"
"""Folder of the days' sums."""
IDENTITY = "identity"
FORMAT = 2
"""Of the days' files: to be raised when what they hold changes."""
ALONE = Pool()
"""No workers: everything is done in this process."""


@dataclass(frozen=True)
class Plan:
    """What is to be verified."""

    archive: Archive
    methods: list[Method]
    leads: tuple[int, ...]
    statistics: tuple[str, ...] = field(default_factory=lambda: tuple(STATISTICS))
    """Those to compute, by name; errors are always among them."""

    def check(self) -> None:
        names = [method.name for method in self.methods]
        if len(set(names)) != len(names) or not names:
            raise CranpmError(
                expected="methods with different names",
                found=", ".join(names) or "none",
                remedy="Name them: --forecasts ours=DIR --forecasts theirs=DIR.",
            )
        if "errors" not in self.statistics:
            raise CranpmError(
                expected="errors among the statistics", found=", ".join(self.statistics), remedy="Add errors."
            )
        parse_leads(",".join(map(str, self.leads)) or "none")

    def identity(self, day: date) -> str:
        """Changes with anything that the sums of a day depend on."""
        made = {method.name: method.identity(day) for method in self.methods}
        sums = [[name, STATISTICS[name].version] for name in self.statistics]
        known = (FORMAT, places(self.archive.domain.fine), self.archive.snapshot, self.leads, sums)
        return json.dumps([*known, made])

    def lacks(self, day: date) -> str | None:
        """Why a day cannot be verified, or None."""
        held = set(self.archive.days)
        for lead in (0, *self.leads):
            needed = day + timedelta(days=lead)
            if needed not in held:
                return f"{needed} is not in the archive"
            if self.archive.quality(needed) is not Quality.GOOD:
                return f"{needed} is degraded in the archive"
        without = [method.name for method in self.methods if method.identity(day) is None]
        return f"no forecast by {', '.join(without)}" if without else None


def verify(
    plan: Plan,
    days: Iterable[date],
    folder: Path | str,
    pool: Pool = ALONE,
    on_day: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[date], dict[date, str]]:
    """Write the sums of all days that have none yet; the days that count, and those left out with the reason.

    A day without a forecast of one method, or without its truth, is left out for all methods alike.
    """
    plan.check()
    reasons = {day: plan.lacks(day) for day in days}
    kept = [day for day, reason in reasons.items() if reason is None]
    left_out = {day: reason for day, reason in reasons.items() if reason is not None}
    if not kept:
        first = "; ".join(f"{day}: {reason}" for day, reason in list(left_out.items())[:3])
        raise CranpmError(expected="days to verify", found=first or "none", remedy="Choose days that all have.")
    target = Path(folder) / DAYS
    target.mkdir(parents=True, exist_ok=True)
    identities = {day: plan.identity(day) for day in kept}
    todo = {day: known for day, known in identities.items() if not _done(target / f"{day}.npz", known)}
    finished = len(kept) - len(todo)
    on_day(finished, len(kept))
    for day, identity, sums in _measured(plan, todo, pool) if todo else ():
        _write(target / f"{day}.npz", identity, sums)
        finished += 1
        on_day(finished, len(kept))
    return kept, left_out


def _measured(plan: Plan, todo: dict[date, str], pool: Pool) -> Iterator[tuple[date, str, DaySums]]:
    """Days with the identity that their sums are of: a day that changed while it was measured is measured again."""
    shared = pool.share(plan)
    while todo:
        changed = {}
        for day, sums in pool.each(_measure, list(todo), shared):
            if (now := plan.identity(day)) == todo[day]:
                yield day, now, sums
            else:
                changed[day] = now
        todo = changed


def _measure(day: date, plan: Plan) -> DaySums:
    for method in plan.methods:
        method.check(day, plan.leads)
    geometry = _geometry(plan.archive.location, plan.archive.snapshot, plan.statistics)
    return measure(geometry, plan.methods, day, plan.leads)


@lru_cache(maxsize=1)
def _geometry(location: str, snapshot: str, statistics: tuple[str, ...]) -> Geometry:
    """Made once per process."""
    return Geometry(Archive(location, snapshot), statistics)


def _write(path: Path, identity: str, sums: DaySums) -> None:
    contents: dict[str, Any] = {IDENTITY: np.array(identity), **sums.arrays()}
    with whole_file(path) as beside:
        np.savez(beside, **contents)


def _done(path: Path, identity: str) -> bool:
    if not path.is_file():
        return False
    try:
        with np.load(path) as stored:
            contents = {name: stored[name] for name in stored.files}  # zip compares the checksum of what is read
            return str(contents[IDENTITY]) == identity
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, BadZipFile, struct.error):
        return False  # damaged: made again


def load_days(folder: Path | str, days: Sequence[date]) -> list[DaySums]:
    """The sums of days, in order."""
    found = []
    for day in days:
        with np.load(Path(folder) / DAYS / f"{day}.npz") as stored:
            found.append(DaySums.from_arrays({name: stored[name] for name in stored.files if name != IDENTITY}))
    return found
