"""What a provider declares and does. Ingest, fetch, the doctor and the documentation read these declarations.

To add a provider, write one module with a subclass of `Provider` and add an instance to `PROVIDERS`
(docs/examples/own_provider.py). Of two providers the one that was added later is asked first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from cranpm.archive.day_data import Stations
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain
from cranpm.core.registry import Registry
from cranpm.providers.availability import Availability
from cranpm.providers.download import fetch_url
from cranpm.providers.readers.files import Piece
from cranpm.providers.request import Request

PM25, STATIONS, STATION_TABLE, ELEVATION = "pm25", "stations", "station_table", "elevation"
"""What is provided beside channels: PM2.5 on the fine grid, daily means at stations, the list of stations, relief."""
ONCE = {STATION_TABLE, ELEVATION}
"""What an archive needs when it is made, and no day of it."""
HOURS_A_DAY = 24
LEADS_AHEAD = 5
"""Days after a start day that forecasts are fetched and stored for, unless another number is given."""


@dataclass(frozen=True)
class RunSpan:
    """A run of a forecast model in a file: when it began (UTC), and how many hours it reaches."""

    reference: datetime
    hours: float


@dataclass(frozen=True)
class FileSummary:
    """A file at a glance: which provider's it is, what it holds, for which days; of forecasts, the start days."""

    piece: Piece
    provider: str
    holds: tuple[str, ...]
    first: date | None = None
    last: date | None = None
    notes: tuple[str, ...] = ()
    runs: tuple[RunSpan, ...] = ()


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
class FetchQuery:
    """What is to be fetched: for which days and where; by country (EEA) or location (OpenAQ), where files are so."""

    days: Sequence[date]
    domain: Domain
    countries: Sequence[str] = ()
    locations: Sequence[int] = ()
    channels: Sequence[str] = ()
    """Beyond those that the provider fetches anyway."""
    leads: int = LEADS_AHEAD
    """Of forecasts: how many days after the start day."""
    today: date | None = None
    """The day on which it is asked: days that a provider cannot have yet, or has no more, are refused."""

    @property
    def box(self) -> str:
        """For names of files: another domain is another file."""
        return "_".join(
            f"{edge:g}" for edge in (self.domain.north, self.domain.west, self.domain.south, self.domain.east)
        )


@dataclass(frozen=True)
class ReadQuery:
    """What is to be read out of files: days, on the grids of a domain."""

    days: Sequence[date]
    domain: Domain
    channels: Sequence[str]
    """The channels of the archive that this provider is asked for."""
    lenient: bool = False
    """Some hours or channels may be missing; the reading says so."""
    run: datetime | None = None
    """Days as the run that began then forecast them; None: analyses of days, or forecasts that began on the day."""


class Provider:
    """One provider of files: what it declares, and how its files are fetched, recognised and read."""

    name: str
    """In commands and provenance."""
    title: str
    """For people."""
    provides: tuple[str, ...] = ()
    """Names of channels, `pm25`, `stations`, `station_table`, `elevation`."""
    role: Literal["analysis", "forecast"] = "analysis"
    """Days with a forecast where an analysis is expected are stored as degraded."""
    forecasts: tuple[str, ...] = ()
    """Groups of channels (`core.channels.GROUPS`) that its runs give for the days after their start day."""
    model: str = ""
    """Of forecasts: under which name its runs are recorded; two providers may have runs of the same model."""
    preference: int = 0
    """Of forecasts: of several models that have a run for a start day and a group, the one with the highest counts."""
    most: int = 0
    """Of forecasts: hours to which the run of 00 UTC goes."""
    has: Availability = Availability()
    """The days that it can have."""
    area: tuple[float, float, float, float] | None = None
    """North, west, south and east edges of what it covers, in degrees; None: the globe."""
    required: Literal["always", "good days", "no"] = "good days"
    """Which days need what it gives: all ("always"), or all that are not stored as degraded ("good days"), or none.

    A good day has all its channels: a day that lacks channels of a provider that declares "no" is stored as degraded,
    with a note, also without --degrade. Stations are no channels; a day without them is as good.
    """
    days_before: int = 0
    days_after: int = 0
    """How far beyond a day its files matter for the day."""
    replaces: str = ""
    """The provider whose channels it gives; its files are read by that one, beside that one's own."""
    whole_zip: bool = False
    """Whether all files with channels in a ZIP are of this provider if one of them is."""
    hosts: Mapping[str, str] = {}
    """Servers that must be reached, by name: for the doctor."""
    licence: str = ""
    """The page that states its licence."""
    needs_key: bool = False
    page: str = ""
    """The page of docs/sources about it."""

    @property
    def needs_days(self) -> bool:
        """Whether it gives anything by day."""
        return not set(self.provides) <= ONCE

    @property
    def gives_channels(self) -> bool:
        """Whether it gives any channel."""
        return not set(self.provides) <= {PM25, STATIONS, *ONCE}

    @property
    def days_ahead(self) -> int:
        """Whole days after its start day that a run of 00 UTC gives; 0 of analyses."""
        return max(self.most // HOURS_A_DAY - 1, 0)

    def covers(self, domain: Domain) -> bool:
        """Whether a domain lies within its area."""
        north, west, south, east = self.area or (90, -180, -90, 180)
        return south <= domain.south and domain.north <= north and west <= domain.west and domain.east <= east

    def recognise(self, piece: Piece) -> FileSummary | None:
        """What a file holds, or None if it is not of this provider."""
        return None

    def requests(self, query: FetchQuery) -> list[Request]:
        """What to fetch; nothing is asked of the network yet."""
        raise CranpmError(
            expected=f"files of {self.name} that can be fetched",
            found="a provider whose files cannot",
            remedy="Get its files in another way and ingest them.",
        )

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        """Fetch one of the requests and return its files; `wait` seconds pass before the second try of anything."""
        return fetch_url(request, target, wait)

    def open(self, pieces: Sequence[Piece], query: ReadQuery) -> DayReader:
        """A function from one of the days to what the files give for it; it refuses a day that cannot be made."""
        raise self._cannot("days")

    def read_elevation(self, pieces: Sequence[Piece], domain: Domain, land: Array | None) -> tuple[Array, Array]:
        """Mean height and its spread inside each fine pixel, in metres; 0 at sea."""
        raise self._cannot("elevation")

    def read_stations(self, pieces: Sequence[Piece], domain: Domain) -> Stations:
        """The stations inside a domain."""
        raise self._cannot("a list of stations")

    def _cannot(self, what: str) -> CranpmError:
        return CranpmError(
            expected=f"{what} of the provider {self.name}, which declares {', '.join(self.provides) or 'nothing'}",
            found="no method that reads it",
            remedy="Write the method of Provider that gives it, or leave it out of `provides`.",
        )


PROVIDERS: Registry[Provider] = Registry("provider")


def by_precedence() -> list[Provider]:
    """All providers, the one that was added last first: whoever adds a provider knows its files best."""
    return list(PROVIDERS.values())[::-1]


def providers_of(what: str) -> list[Provider]:
    """Who reads files that give something, analyses before forecasts."""
    found = [provider for provider in by_precedence() if what in provider.provides and not provider.replaces]
    return sorted(found, key=lambda provider: provider.role != "analysis")


def forecasters(group: str) -> list[Provider]:
    """Who forecasts a group of channels, the preferred model first."""
    found = [provider for provider in by_precedence() if group in provider.forecasts]
    return sorted(found, key=lambda provider: -provider.preference)


def models() -> list[str]:
    """Analyses, then the forecast models, the preferred first."""
    known = {provider.model: provider.preference for provider in PROVIDERS.values() if provider.model}
    return ["", *sorted(known, key=lambda model: -known[model])]


def family(provider: Provider) -> set[str]:
    """The names of a provider and of those that replace it: all whose files it reads."""
    return {provider.name} | {other.name for other in PROVIDERS.values() if other.replaces == provider.name}


def never_without() -> set[str]:
    """What no day is stored without."""
    return {what for provider in PROVIDERS.values() if provider.required == "always" for what in provider.provides}
