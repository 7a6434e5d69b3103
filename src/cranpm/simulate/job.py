"""Simulated days into an archive, one commit per day."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from cranpm.archive import repository
from cranpm.archive.layout import axis_index, create_archive
from cranpm.archive.store import SIMULATION, Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.channels import GROUPS, PAPER_CHANNELS, Channel, parse_channels
from cranpm.core.days import LONGEST_LEAD, DayRange, parse_days
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain, parse_domain
from cranpm.simulate import SIMULATOR_VERSION, SavedAir, SimulationSettings, World
from cranpm.simulate.realism import Sample, sample_archive, sample_world

OnDay = Callable[[date], None]
AHEAD = 5
"""Days ahead that a new archive holds forecasts of."""


class SimulationJob(BaseModel):
    """What `cranpm simulate` reads from a TOML file and the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    domain: Domain
    """A name, or a box: { north = 50, west = 4, south = 42, east = 16 }."""
    days: DayRange
    """A range 2021-01-01..2022-12-31, a day, or a year."""
    simulation: SimulationSettings = SimulationSettings()
    """The world; see `SimulationSettings`."""
    channels: tuple[str, ...] = ()
    """Channels to store in addition to the paper's 35, for example ["blh"], the height of the mixed layer."""

    ahead: int | None = Field(default=None, ge=0, le=LONGEST_LEAD)
    """Store forecasts of so many days ahead with every day, 0 for none. Without it, as many as the archive has, or 5
    where it is new."""

    @field_validator("domain", mode="before")
    @classmethod
    def _domain(cls, value: Any) -> Any:
        if isinstance(value, str):
            return parse_domain(value)
        return {"name": "box", **value} if isinstance(value, dict) else value

    @field_validator("days", mode="before")
    @classmethod
    def _days(cls, value: Any) -> Any:
        return parse_days(str(value)) if isinstance(value, str | int | date) else value

    @property
    def all_channels(self) -> tuple[Channel, ...] | None:
        """The paper's channels and the additional ones; None where none were added."""
        names = (channel.name for channel in PAPER_CHANNELS)
        return parse_channels((*names, *self.channels)) if self.channels else None


def simulate_archive(
    location: str,
    domain: Domain,
    days: DayRange | Sequence[date],
    settings: SimulationSettings,
    on_day: OnDay = lambda _: None,
    channels: Sequence[Channel] | None = None,
    ahead: int | None = None,
) -> int:
    """Simulate the days that the archive lacks, creating it where there is none; returns how many were added.

    `on_day` is called for every day asked for, also for those that were there. Without `channels`, those of the
    archive are simulated, or the paper's where it is new. Every day comes with forecasts of the `ahead` days after it;
    without a number, of as many as the archive has, or of `AHEAD` where it is new.

    An archive is one world: other settings, another domain, other channels or another number of days ahead are refused.
    """
    first, last = min(days), max(days)
    for end in (first, last):
        axis_index(end)
    archive = Archive(location) if repository.exists(location) else None
    producer = _producer(settings, archive.attributes["producer"] if archive else {"first_day": str(first)})
    if archive:
        _check_same_world(archive, domain, producer, channels)
    ahead = _check_ahead(archive, ahead)
    channels = archive.channels if archive else channels or PAPER_CHANNELS
    present = set(archive.days) if archive else set()
    wanted = [day for day in days if day not in present]
    for day in set(days) - set(wanted):
        on_day(day)
    if not wanted:
        return 0
    settings = settings.model_copy(update={"first_day": date.fromisoformat(producer["first_day"])})
    world = World(domain, settings, channels)
    world.check_start(wanted[0])
    restart = archive.restart() if archive else None
    if not archive:
        create_archive(location, domain, world.statics, world.stations, producer, channels)
    with ArchiveWriter(location) as writer:
        for data in world.days(wanted, SavedAir.of(*restart) if restart else None, ahead):
            writer.put(data)
            on_day(data.day)
    return len(wanted)


def sample(job: SimulationJob, location: str | None, on_day: OnDay = lambda _: None) -> Sample:
    """What the realism report looks at: the archive's days, or those of a world that is run and not stored."""
    if location is not None:
        return sample_archive(Archive(location), job.days, on_day)
    settings = job.simulation.model_copy(update={"first_day": job.simulation.first_day or job.days.first})
    return sample_world(World(job.domain, settings), job.days, on_day, AHEAD if job.ahead is None else job.ahead)


def days_ahead_in(archive: Archive) -> int:
    """How many days ahead a simulated archive holds forecasts of with each of its days; 0 where there are none."""
    newest = archive.days[-1:]
    return max((lead for day in newest for group in GROUPS for lead in archive.ahead.leads(day, group)), default=0)


def _check_ahead(archive: Archive | None, asked: int | None) -> int:
    """The number of days ahead to forecast: what was asked for, refused where the archive's days have another."""
    if archive is None or not archive.days:
        return AHEAD if asked is None else asked
    held = days_ahead_in(archive)
    if asked not in (None, held):
        raise CranpmError(
            expected=f"forecasts of {held} days ahead, as with the days that {archive.location} holds",
            found=f"{asked} days ahead asked for",
            remedy="Leave the number out to extend this archive, or choose another place.",
        )
    return held


def _producer(settings: SimulationSettings, known: Mapping[str, Any]) -> dict[str, Any]:
    """What fills the archive; a first day that was left open is the archive's, or the first one asked for."""
    producer = {"source": SIMULATION, "simulator": SIMULATOR_VERSION, **settings.model_dump(mode="json")}
    return producer | ({"first_day": known.get("first_day")} if settings.first_day is None else {})


def _check_same_world(
    archive: Archive, domain: Domain, producer: dict[str, object], channels: Sequence[Channel] | None
) -> None:
    found = dict(archive.attributes["producer"])
    if archive.domain != domain:
        raise CranpmError(
            expected=f"an archive of domain {domain.name} at {archive.location}",
            found=f"domain {archive.domain.name} (N {archive.domain.north}, W {archive.domain.west}, "
            f"S {archive.domain.south}, E {archive.domain.east})",
            remedy="Name that domain, or choose another place.",
        )
    different = sorted(key for key in found.keys() | producer.keys() if found.get(key) != producer.get(key))
    if different:
        raise CranpmError(
            expected="the settings that the archive was made with: "
            + ", ".join(f"{key}={found.get(key)}" for key in different),
            found=", ".join(f"{key}={producer.get(key)}" for key in different),
            remedy="Use the archive's settings, or choose another place.",
        )
    names = tuple(channel.name for channel in channels) if channels else archive.channel_names
    if names != archive.channel_names:
        raise CranpmError(
            expected=f"the {len(archive.channel_names)} channels that the archive was made with",
            found=f"{len(names)} channels: {', '.join(sorted({*names} ^ {*archive.channel_names})) or 'another order'}",
            remedy="Leave the channels out to extend this archive, or choose another place.",
        )
