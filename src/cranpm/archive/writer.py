"""The one process that may add days and forecasts to an archive."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from cranpm.archive import days_ahead, repository
from cranpm.archive.day_data import DayData
from cranpm.archive.days_ahead import DaysAhead
from cranpm.archive.layout import add_array, axis_index
from cranpm.archive.repository import Group
from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.core.packing import ARCHIVED


class ArchiveWriter:
    """The one process that may add days; use it as a context manager."""

    def __init__(self, location: str):
        self.location = str(location)
        self._lock = repository.lock(self.location)
        try:
            self._known = Archive(self.location)
            self._stations = len(self._known.stations)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def _check_open(self) -> None:
        if self._lock.closed:
            raise CranpmError(expected="an open writer", found="a closed one", remedy="Put days inside its with block.")

    def put_ahead(self, day: date, runs: Sequence[DaysAhead]) -> str:
        """Store forecasts made for a start day in one commit, whether or not the archive holds the day itself.

        What it held of their groups is replaced; storing the same again changes nothing.
        """
        self._check_open()
        days_ahead.check_runs(runs, day, self._known.domain, self._known.channels)
        if new := [run for run in runs if not self._known.ahead.same(day, run)]:
            facts = {run.group: f"{run.model} {run.reference}" for run in new}
            with repository.commit(self.location, f"{day} days ahead", facts) as root:
                days_ahead.write(root, day, new, self._known)
            self._known = Archive(self.location)
        return self._known.snapshot

    def put(self, data: DayData) -> str:
        """Store a day in one commit and return the snapshot; storing the same day again changes nothing."""
        self._check_open()
        data = replace(data, coarse=np.asarray(data.coarse, np.float32))
        data.check(self._known.domain, self._stations, self._known.channels)
        days_ahead.check_runs(data.ahead, data.day, self._known.domain, self._known.channels)
        index, provenance = axis_index(data.day), json.dumps(dict(data.provenance), sort_keys=True, default=str)
        if self._same(data, provenance):
            return self._known.snapshot
        new = [run for run in data.ahead if not self._known.ahead.same(data.day, run)]
        with repository.commit(self.location, f"{data.day}", json.loads(provenance)) as root:
            root["fine/pm25"][index] = ARCHIVED.pack(data.pm25_ugm3)
            root["coarse/fields"][index] = data.coarse
            root["stations/pm25"][index] = data.stations_ugm3
            root["provenance"][index] = provenance
            root["quality"][index] = int(data.quality)
            if data.restart and not self._restarts_later(data.day):
                _put_restart(root, index, data.restart)
            if new:
                days_ahead.write(root, data.day, new, self._known)
        self._known = Archive(self.location)
        return self._known.snapshot

    def _restarts_later(self, day: date) -> bool:
        """Whether the provider can already continue from a later day: a filled gap must not set it back."""
        known = self._known.restart()
        return known is not None and known[0] > day

    def _same(self, data: DayData, provenance: str) -> bool:
        """Whether exactly this day is stored already."""
        old, day = self._known, data.day
        if old.quality(day) is not data.quality or old.provenance(day) != json.loads(provenance):
            return False
        pairs = (
            (old.coarse(day), data.coarse),
            (old.stations_pm25(day), data.stations_ugm3),
            (old.packed_pm25(day), ARCHIVED.pack(data.pm25_ugm3)),
        )
        held = all(old.ahead.same(day, run) for run in data.ahead)
        return held and all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def _put_restart(root: Group, index: int, restart: Mapping[str, Array]) -> None:
    group = root.require_group("carry")
    group.attrs.update({"day": index, "names": sorted(restart)})
    for name, values in restart.items():
        if name not in group:
            add_array(group, name, values.shape, values.dtype, values.shape, ())
        group[name][...] = values
