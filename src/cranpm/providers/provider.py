"""What every provider has in common: what a file is, what files give for a day, and what must be fetched."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from cranpm.core.grid import Array, Domain
from cranpm.providers.readers.files import Piece


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
    """What a provider gives for one day, on our grids: by channel, or `pm25`, or `station_ids` and `stations`."""

    fields: Mapping[str, Array]
    notes: tuple[str, ...] = ()
    """What is less than perfect."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For the day's provenance."""


DayReader = Callable[[date], Reading]


@dataclass(frozen=True)
class Wanted:
    """What is to be fetched: for which days and where; by country (EEA) or location (OpenAQ), where files are so."""

    days: Sequence[date]
    domain: Domain
    countries: Sequence[str] = ()
    locations: Sequence[int] = ()

    @property
    def box(self) -> str:
        """For names of files: another domain is another file."""
        return "_".join(
            f"{edge:g}" for edge in (self.domain.north, self.domain.west, self.domain.south, self.domain.east)
        )


@dataclass(frozen=True)
class Request:
    """One thing to fetch, and how: `kind` says which of the ways in `fetch` knows what to do with `ask`."""

    source: str
    name: str
    """Of the file that it becomes, or of the folder."""
    kind: str
    ask: Mapping[str, Any]
    gigabytes: float
    """An estimate."""
    licence: str = ""
    """The page on which its licence must be accepted first."""


class Source(Protocol):
    """A provider whose files can be read."""

    name: str

    def look(self, piece: Piece) -> Seen | None:
        """What a file is, or None if it is not of this provider."""
        ...

    def requests(self, wanted: Wanted) -> list[Request]:
        """What to fetch."""
        ...


class Daily(Source, Protocol):
    """A provider of days."""

    def open(self, pieces: Sequence[Piece], days: Sequence[date], domain: Domain, lenient: bool) -> DayReader:
        """From one of the days to what the files give for it; a day that cannot be made is refused with the reason.

        `lenient`: some hours may be missing, and the reading says so."""
        ...
