"""From days, methods and an archive to scores: a record a day, on disk, so that any stop loses at most a day."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from cranpm.archive.day_data import Quality
from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.verification.day import Record, Setting, measure, places
from cranpm.verification.methods import Method

RECORDS = "days"
IDENTITY = "identity"
FORMAT = 1
"""Of records: to be raised when what they hold changes."""


@dataclass(frozen=True)
class Plan:
    """What is to be verified."""

    archive: Archive
    methods: list[Method]
    leads: tuple[int, ...]
    similarity: bool = True

    def check(self) -> None:
        names = [method.name for method in self.methods]
        if len(set(names)) != len(names) or not names:
            raise CranpmError(
                expected="methods with names of their own",
                found=", ".join(names) or "none",
                remedy="Name them: --forecasts ours=DIR --forecasts theirs=DIR.",
            )

    def identity(self, day: date) -> str:
        """Changes with anything that a record depends on."""
        made = {method.name: method.identity(day) for method in self.methods}
        known = (FORMAT, places(self.archive.domain.fine), self.archive.snapshot, self.leads, self.similarity)
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
    jobs: int = 1,
    on_day: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[date], dict[date, str]]:
    """Write the records of all days that have none yet; the days that count, and those left out with the reason.

    A day without a forecast of one method, or without its truth, is left out for all methods alike.
    """
    plan.check()
    kept, left_out = [], {}
    for day in days:
        reason = plan.lacks(day)
        if reason:
            left_out[day] = reason
        else:
            kept.append(day)
    if not kept:
        reasons = "; ".join(f"{day}: {reason}" for day, reason in list(left_out.items())[:3])
        raise CranpmError(expected="days to verify", found=reasons or "none", remedy="Choose days that all have.")
    folder = Path(folder)
    (folder / RECORDS).mkdir(parents=True, exist_ok=True)
    todo = [day for day in kept if not _done(folder, day, plan.identity(day))]
    on_day(len(kept) - len(todo), len(kept))
    for number, _ in enumerate(_each(plan, todo, folder, jobs), start=len(kept) - len(todo) + 1):
        on_day(number, len(kept))
    return kept, left_out


def _each(plan: Plan, days: Sequence[date], folder: Path, jobs: int) -> Iterable[None]:
    if not days:
        return
    if jobs == 1 or len(days) == 1:
        _begin(plan, folder)
        yield from map(_one, days)
        _shared.clear()
        return
    with ProcessPoolExecutor(jobs, get_context("forkserver"), _begin, (plan, folder)) as pool:
        yield from pool.map(_one, days)


_shared: dict[str, Any] = {}
"""What a process needs for every day."""


def _begin(plan: Plan, folder: Path) -> None:
    _shared.update(plan=plan, folder=folder, setting=Setting(plan.archive))


def _one(day: date) -> None:
    plan, folder = _shared["plan"], _shared["folder"]
    for method in plan.methods:
        method.check(day, plan.leads)
    record = measure(_shared["setting"], plan.methods, day, plan.leads, plan.similarity)
    target = folder / RECORDS / f"{day}.npz"
    passing = target.with_name(f".{day}.{os.getpid()}.npz")
    contents: dict[str, Any] = {IDENTITY: np.array(plan.identity(day)), **record.arrays()}
    np.savez(passing, **contents)
    os.replace(passing, target)


def _done(folder: Path, day: date, identity: str) -> bool:
    path = folder / RECORDS / f"{day}.npz"
    if not path.is_file():
        return False
    try:
        with np.load(path) as stored:
            return str(stored[IDENTITY]) == identity
    except (OSError, ValueError, KeyError, BadZipFile):
        return False  # damaged: made again


def load_records(folder: Path | str, days: Sequence[date]) -> list[Record]:
    """The records of days, in order."""
    found = []
    for day in days:
        with np.load(Path(folder) / RECORDS / f"{day}.npz") as stored:
            found.append(Record(**{name: stored[name] for name in stored.files if name != IDENTITY}))
    return found
