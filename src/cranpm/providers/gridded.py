"""Files of gridded variables, NetCDF or GRIB, one or many, as timelines by quantity and level."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np

from cranpm.core.channels import PAPER_CHANNELS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.provider import FileSummary, Reading, ReadQuery
from cranpm.providers.quantities import QUANTITY_OF, LevelKind
from cranpm.providers.readers import grib, netcdf
from cranpm.providers.readers.files import Piece, sniff
from cranpm.providers.readers.variable import Variable
from cranpm.providers.regrid import onto
from cranpm.providers.timeline import Timeline

READERS = {"netcdf": netcdf.variables, "grib": grib.variables}


@cache
def unpacked(piece: Piece) -> Path:
    """A path to read a piece from, for as long as the process lives; members of ZIPs are unpacked for that long."""
    return _unpacked.enter_context(piece.local())


_unpacked = ExitStack()


def variables(piece: Piece) -> list[Variable]:
    """All known quantities of a file; none if it is of another format."""
    path = unpacked(piece)
    reader = READERS.get(sniff(path))
    return reader(path, str(piece)) if reader else []


def summary(piece: Piece, provider: str, found: Sequence[Variable]) -> FileSummary:
    """What a file of some variables holds; what becomes a channel is named first."""
    labels = {label(variable, level) for variable in found for level in variable.levels}
    holds = sorted(labels, key=lambda name: (" " in name, name))
    days = [time.astype("datetime64[D]").item() for variable in found for time in variable.times]
    versions = sorted({str(version) for variable in found for version in variable.versions} - {""})
    made_up = [MADE_UP] if any(variable.institution == MADE_UP for variable in found) else []
    notes = (*(f"version {version}" for version in versions), *made_up)
    return FileSummary(piece, provider, tuple(holds), min(days), max(days), notes)


CHANNEL_OF = {(channel.quantity, channel.level_hpa): channel.name for channel in PAPER_CHANNELS if channel.level_hpa}


def label(variable: Variable, level: float) -> str:
    """As our channels are called; other levels in words, so that wind at 10 hPa is not taken for wind at 10 m."""
    name = variable.quantity.name
    if variable.kind == "pressure":
        return CHANNEL_OF.get((QUANTITY_OF.get(name, ""), round(level)), f"{name} at {level:g} hPa")
    return name if variable.kind == "surface" else f"{name} on model level {level:g}"


class Gridded:
    """Timelines of a set of files."""

    def __init__(self, pieces: Sequence[Piece]):
        self.variables = [variable for piece in pieces for variable in variables(piece)]
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


Maker = Callable[[str, Timeline], tuple[Array, Sequence[np.datetime64], str]]
"""From a channel and its times to its field of a day on the provider's grid, the times it is made of, and a note."""


def read_channels(
    timelines: Mapping[str, Timeline | None], make: Maker, day: date, provider: str, query: ReadQuery
) -> Reading:
    """A day of a provider, channel by channel, on our coarse grid; one that is missing is refused, or noted."""
    fields: dict[str, Array] = {}
    notes: list[str] = []
    versions: set[str] = set()
    for channel, timeline in timelines.items():
        if timeline is None:
            if not query.lenient:
                raise CranpmError(
                    expected=f"{channel} for {day} in the files of {provider}",
                    found="none",
                    remedy=f"cranpm fetch {provider} --days {day} ...; or ingest with --degrade to go without.",
                )
            notes.append(f"{channel} missing")
            continue
        values, times, note = make(channel, timeline)
        fields[channel] = onto(values, timeline.grid(), query.domain.coarse, timeline.some.what)
        versions |= timeline.versions(times)
        notes += [note] if note else []
    return Reading(fields, tuple(notes), {"versions": sorted(versions)})
