"""Files of gridded variables, NetCDF or GRIB, one or many, as timelines by quantity and level."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, datetime
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from cranpm.core.channels import PAPER_CHANNELS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.provider import PROVIDERS, FileSummary, Reading, ReadQuery, RunSpan, models
from cranpm.providers.quantities import QUANTITY_OF, LevelKind
from cranpm.providers.readers import grib, netcdf
from cranpm.providers.readers.files import Piece, sniff
from cranpm.providers.readers.variable import Variable
from cranpm.providers.regrid import onto
from cranpm.providers.timeline import Timeline

REANALYSES = (0.75, 0.25)
"""Degrees between cells of EAC4 and ERA5, which come before analyses of other grids, as the European ensemble's."""
COPIED_BY_US = "copied by cranpm"
"""What files say that we copied out of a store of another format."""
FILES_KEPT = 8
"""Whose lists of fields are kept: every provider looks at a file before the next file comes."""
READERS = {"netcdf": netcdf.variables, "grib": grib.variables}


@cache
def unpacked(piece: Piece) -> Path:
    """A path to read a piece from, for as long as the process lives; members of ZIPs are unpacked for that long."""
    return _unpacked.enter_context(piece.local())


_unpacked = ExitStack()


def variables(piece: Piece) -> list[Variable]:
    """All known quantities of a file; none if it is of another format."""
    path = unpacked(piece)
    facts = path.stat()
    return _variables(path, str(piece), facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=FILES_KEPT)
def _variables(path: Path, label: str, changed: int, size: int) -> list[Variable]:
    """The same, once for all providers that look at a file as it is now."""
    reader = READERS.get(sniff(path))
    return reader(path, label) if reader else []


def summary(piece: Piece, provider: str, found: Sequence[Variable]) -> FileSummary:
    """What a file of some variables holds; what becomes a channel is named first."""
    labels = {label(variable, level) for variable in found for level in variable.levels}
    holds = sorted(labels, key=lambda name: (" " in name, name))
    days = [time.astype("datetime64[D]").item() for variable in found for time in _own_days(variable)]
    versions = sorted({str(version) for variable in found for version in variable.versions} - {""})
    made_up = [MADE_UP] if any(variable.institution == MADE_UP for variable in found) else []
    copied = sorted({variable.source for variable in found if COPIED_BY_US in variable.source})
    notes = (*(f"version {version}" for version in versions), *copied, *made_up)
    return FileSummary(piece, provider, tuple(holds), min(days), max(days), notes, _spans(found))


def _own_days(variable: Variable) -> Array:
    """Times that say which days a variable is for: of a forecast, the start of its run, which is its start day."""
    return variable.times if variable.start is None else np.array([variable.start])


def _spans(found: Sequence[Variable]) -> tuple[RunSpan, ...]:
    """The runs among some variables, in order, and how far each reaches."""
    hours: dict[np.datetime64, float] = {}
    for variable in found:
        if variable.start is not None:
            hours[variable.start] = max(hours.get(variable.start, 0.0), float(variable.leads.max()))
    return tuple(RunSpan(start.astype(datetime), last) for start, last in sorted(hours.items()))


CHANNEL_OF = {(channel.quantity, channel.level_hpa): channel.name for channel in PAPER_CHANNELS if channel.level_hpa}


def label(variable: Variable, level: float) -> str:
    """As our channels are called; other levels in words, so that wind at 10 hPa is not taken for wind at 10 m."""
    name = variable.quantity.name
    if variable.kind == "pressure":
        return CHANNEL_OF.get((QUANTITY_OF.get(name, ""), round(level)), f"{name} at {level:g} hPa")
    return name if variable.kind == "surface" else f"{name} on model level {level:g}"


class Gridded:
    """Timelines of variables that are all analyses, or all of one run of a model."""

    def __init__(self, found: Sequence[Variable]):
        self.variables = found
        self.model = found[0].model if found else ""
        self._known: dict[tuple[str, LevelKind, float], Timeline] = {}

    def timeline(self, name: str, kind: LevelKind = "surface", level: float = 0.0) -> Timeline | None:
        """None where no file has the quantity at that level."""
        key = (name, kind, level)
        if key not in self._known:
            found = [v for v in self.variables if v.quantity.name == name and v.kind == kind]
            self._known[key] = Timeline(label(found[0], level) if found else name, found, level)
        return self._known[key] if self._known[key].moments else None

    def lowest(self, name: str) -> Timeline | None:
        """A quantity near the ground: at the surface, or on the model level with the highest number."""
        levels = {level for v in self.variables if (v.quantity.name, v.kind) == (name, "model") for level in v.levels}
        return self.timeline(name) or (self.timeline(name, "model", max(levels)) if levels else None)


class Origins:
    """Variables of files by where they are from: analyses of each resolution, and each run of each model, apart."""

    def __init__(self, pieces: Sequence[Piece], domain: Domain):
        found: dict[tuple[str, np.datetime64 | None, float], list[Variable]] = {}
        for variable in (variable for piece in pieces for variable in variables(piece)):
            near = replace(variable, file_grid=variable.file_grid.cut(domain))
            step = 0.0 if variable.start is not None else near.file_grid.step
            found.setdefault((variable.model, variable.start, step), []).append(near)
        order = {model: number for number, model in enumerate(models())}
        keys = sorted(found, key=lambda key: (order.get(key[0], len(order)), key[0], key[2] not in REANALYSES, key[2]))
        self._parts = {key: Gridded(found[key]) for key in keys}

    def of(self, day: date, run: datetime | None) -> list[Gridded]:
        """What a day may be made of, best first: one run's fields; or, without one, analyses, then runs of that day.

        A day that is no forecast is never made of a run that began on an earlier day.
        """
        if run is not None:
            return [part for (_, start, _), part in self._parts.items() if start == np.datetime64(run, "s")]
        own = [part for (_, start, _), part in self._parts.items() if start == np.datetime64(day, "s")]
        return [part for (_, start, _), part in self._parts.items() if start is None] + own


Finder = Callable[[Gridded, str], Timeline | None]
"""The times of a channel among variables."""
Maker = Callable[[Gridded, Timeline, str, date], tuple[Array, Sequence[np.datetime64], str]]
"""From a channel and its times to its field of a day on the provider's grid, the times it is made of, and a note."""


def read_channels(origins: Origins, find: Finder, make: Maker, day: date, provider: str, query: ReadQuery) -> Reading:
    """A day of a provider, channel by channel, on our coarse grid; one that is missing is refused, or noted."""
    fields: dict[str, Array] = {}
    notes: list[str] = []
    versions: set[str] = set()
    models: set[str] = set()
    grids: set[str] = set()
    parts = _whole_first(origins.of(day, query.run), find, day, query)
    for channel in query.channels:
        there = [(part, timeline) for part in parts if (timeline := find(part, channel)) is not None]
        if not there:
            if not query.lenient:
                raise _missing(channel, day, provider, query)
            notes.append(f"{channel} missing")
            continue
        part, timeline = next((one for one in there if one[1].is_whole(day)), there[0])
        values, times, note = make(part, timeline, channel, day)
        fields[channel] = onto(values, timeline.grid(), query.domain.coarse, timeline.some.what)
        versions |= timeline.versions(times)
        models |= {part.model} - {""}
        grids.add(f"{timeline.some.file_grid.step:g} degrees")
        notes += [note] if note else []
    facts = {"versions": sorted(versions), "models": sorted(models), "grids": sorted(grids)}
    return Reading(fields, tuple(notes), facts)


def _whole_first(parts: Sequence[Gridded], find: Finder, day: date, query: ReadQuery) -> list[Gridded]:
    """Runs that have all of a day come before those that do not, so that no day is mixed of two without need."""

    def is_whole(part: Gridded) -> bool:
        return all((found := find(part, channel)) is not None and found.is_whole(day) for channel in query.channels)

    return sorted(parts, key=lambda part: bool(part.model) and not is_whole(part))


def _missing(channel: str, day: date, provider: str, query: ReadQuery) -> CranpmError:
    if query.run is not None:
        able = [one.name for one in PROVIDERS.values() if one.forecasts and channel in one.provides]
        other = f"; {', '.join(able)} can have it" if able else ", or use an archive without it"
        return CranpmError(
            expected=f"{channel} for {day} in the run of {query.run:%Y-%m-%d %H} UTC",
            found="none",
            remedy=f"Fetch all its fields: a group of channels is stored whole or not at all{other}.",
        )
    return CranpmError(
        expected=f"{channel} for {day} in the files of {provider}",
        found="none",
        remedy=f"cranpm fetch {provider} --days {day} ...; or ingest with --degrade to go without.",
    )
