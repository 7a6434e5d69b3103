"""The one reader of products: a folder of published runs, each checked once per version and process."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path

from cranpm.core.errors import CranpmError
from cranpm.core.files import SUMS, check_sums, read_sums
from cranpm.forecasting.publication import names
from cranpm.forecasting.publication.opening import REMEDY, open_run
from cranpm.forecasting.publication.run import AbsentError, DamagedError, Run

Stamp = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of change of every entry of a folder: no bytes are read for it."""


class Publication:
    """A folder that `cranpm forecast --out` fills: by start day, the version that is published now."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder).resolve()
        self._lock = threading.Lock()
        self._opened: dict[tuple[str, str], tuple[Stamp, Run | CranpmError]] = {}
        self._had_sums: set[tuple[str, str]] = set()

    def __reduce__(self) -> tuple[type["Publication"], tuple[Path]]:
        """Other processes check for themselves."""
        return Publication, (self.folder,)

    def days(self) -> list[date]:
        """Start days that have an entry, newest first."""
        try:
            found = [date.fromisoformat(name) for name in os.listdir(self.folder) if names.is_day(name)]
        except OSError:
            return []
        return sorted(found, reverse=True)

    def run(self, day: date | str) -> Run:
        """The run of a day that is published now, also if it is published again at this moment."""
        version = self._version(str(day))
        try:
            run = self._checked(str(day), version)
        except CranpmError:
            if self._version(str(day)) == version:
                raise
            return self.run(day)
        return run if self._version(str(day)) == version else self.run(day)

    def find(self, day: date | str, version: str) -> Run:
        """A run, if it is the one that is published now."""
        if self._version(str(day)) != version:
            raise AbsentError(
                expected=f"version {version} of {day}",
                found="another one: it was published again",
                remedy="Load the list of runs again.",
            )
        return self._checked(str(day), version)

    def runs(self, needed: str | None = None) -> tuple[list[Run], dict[date, CranpmError]]:
        """The runs that can be read (from the `needed` format), newest start day first; and the others, with why."""
        runs, left_out = [], {}
        for day in self.days():
            try:
                run = self.run(day)
                if needed == "tif":
                    run.raster(run.leads[0])
                runs.append(run)
            except CranpmError as error:
                left_out[day] = error
        return runs, left_out

    def newest(self) -> Run:
        """The run of the newest start day that can be read."""
        reasons = []
        for day in self.days():
            try:
                return self.run(day)
            except CranpmError as error:
                reasons.append(str(error))
        raise AbsentError(
            expected=f"forecasts in {self.folder}",
            found="; ".join(reasons) or "none",
            remedy="Make one with `cranpm forecast --out`.",
        )

    def identity(self, day: date) -> str | None:
        """A text that changes when the product of a day does; None where there is none. Nothing is checked."""
        try:
            folder = self._folder(str(day), self._version(str(day)))
        except AbsentError:
            return None
        return f"{folder} {_digest(_stamp(folder))}"

    def recheck(self, run: Run, pause: Callable[[int], object] = lambda size: None) -> None:
        """Compare the checksums of a run again, calling `pause` with the bytes read; withdraw it where one differs."""
        if not run.checked:
            return
        try:
            for name in read_sums(run.folder):
                check_sums(run.folder, [name])
                pause((run.folder / name).stat().st_size)
        except (CranpmError, OSError) as error:
            with suppress(AbsentError):
                if self._version(str(run.day)) == run.version:
                    self._withdraw(run, error)

    def _withdraw(self, run: Run, error: Exception) -> None:
        found = getattr(error, "found", None) or str(error)
        reason = DamagedError(
            expected=getattr(error, "expected", f"the files of {run.day}"), found=found, remedy=REMEDY
        )
        self._opened[str(run.day), run.version] = (_stamp(run.folder), reason)

    def _version(self, day: str) -> str:
        """The published version: what the link names; of a plain folder (a copy), a digest of its entries."""
        path = self.folder / day
        try:
            version = names.version_of(os.readlink(path), day)
        except OSError:
            version = _digest(_stamp(path)) if path.is_dir() else None
        if version is None:
            raise AbsentError(
                expected=f"a forecast from {day} in {self.folder}", found="none", remedy="Choose a published day."
            )
        return version

    def _folder(self, day: str, version: str) -> Path:
        path = self.folder / day
        return self.folder / names.hidden(day, version) if path.is_symlink() else path

    def _checked(self, day: str, version: str) -> Run:
        """From memory while the entries of the folder are the same, else opened with all checks."""
        folder = self._folder(day, version)
        stamp, key = _stamp(folder), (day, version)
        known = self._opened.get(key)
        if known is None or known[0] != stamp:
            with self._lock:
                known = self._opened.get(key)
                if known is None or known[0] != stamp:
                    known = self._opened[key] = (stamp, self._outcome(folder, day, version))
        if isinstance(known[1], CranpmError):
            raise known[1]
        return known[1]

    def _outcome(self, folder: Path, day: str, version: str) -> Run | CranpmError:
        """The run, or why it is refused; a version that had checksums is never read without them."""
        try:
            run = open_run(folder, day, version)
        except CranpmError as error:
            return error
        if run.checked:
            self._had_sums.add((day, version))
        elif (day, version) in self._had_sums:
            return DamagedError(expected=f"{SUMS} in {day}, as before", found="none", remedy=REMEDY)
        return run


def open_publication(folder: Path | str) -> Publication:
    """The published forecasts in a folder; refused where there is no such folder."""
    if not Path(folder).is_dir():
        raise CranpmError(
            expected=f"a folder of forecasts at {folder}", found="none", remedy="Make one with `cranpm forecast --out`."
        )
    return Publication(folder)


def find_product(path: Path) -> Run:
    """The run that a path means: a folder of runs (the newest), one of its days, or a NetCDF file of a run."""
    day = names.day_of_file(path)
    if day is not None and path.is_file():
        folder = path.parent.resolve()
        return open_run(folder, day, names.version_of(folder.name, day) or _digest(_stamp(folder)))
    if names.is_day(path.name) and (path.is_symlink() or path.is_dir()):
        return Publication(path.parent).run(path.name)
    return open_publication(path).newest()


def _stamp(folder: Path) -> Stamp:
    return tuple(sorted(_entries(folder)))


def _entries(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            state = entry.stat()
            yield entry.name, state.st_ino, state.st_size, state.st_mtime_ns


def _digest(stamp: Stamp) -> str:
    return hashlib.sha256(repr(stamp).encode()).hexdigest()[:8]
