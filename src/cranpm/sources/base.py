"""What every provider has in common: which days a file holds, what it gives for them, and what must be fetched."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from cranpm.grid import Array, Domain
from cranpm.sources.files import Piece


@dataclass(frozen=True)
class Seen:
    """A file at a glance: whose it is, what it holds, for which days."""

    piece: Piece
    source: str
    holds: tuple[str, ...]
    first: date | None = None
    last: date | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """What a provider gives for one day, on our grids; by channel, or `pm25`, or `stations`."""

    fields: Mapping[str, Array]
    notes: tuple[str, ...] = ()
    """What is less than perfect: reasons to mark the day as degraded."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For the day's provenance."""


@dataclass(frozen=True)
class Request:
    """One thing to fetch."""

    source: str
    name: str
    """Of the file that it becomes."""
    ask: Mapping[str, Any]
    """Exactly what is sent: `url`, or `collection` and `request`."""
    gigabytes: float
    """An estimate."""
    licence: str = ""
    """The page on which its licence must be accepted first."""


DayReader = Callable[[date], Reading]


class Source(Protocol):
    """A provider."""

    name: str
    gives: tuple[str, ...]
    """Channels; or `pm25`, `stations`, `elevation`."""

    def look(self, piece: Piece) -> Seen | None:
        """What a file is, or None if it is not of this provider."""
        ...

    def open(self, pieces: Sequence[Piece], domain: Domain, lenient: bool) -> DayReader:
        """From a day to what the files give for it; a day that cannot be made is refused with the reason.

        `lenient`: some hours may be missing, and the reading says so."""
        ...

    def requests(self, days: Sequence[date], domain: Domain) -> list[Request]:
        """What to fetch for days."""
        ...
