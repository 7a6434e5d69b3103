"""From folders of providers' files to an archive: what is in them, days made of them, one commit each, and a report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.archive import repository
from cranpm.archive.day_data import Quality, Statics, Stations
from cranpm.archive.layout import create_archive
from cranpm.archive.store import SIMULATION, Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.channels import PAPER_CHANNELS, parse_channels
from cranpm.core.cluster import Pool
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.core.geography import find_region
from cranpm.core.grid import Domain
from cranpm.providers import PROVIDERS, sandbox
from cranpm.providers.ahead import FIVE_DAYS, AheadOptions, runs_for
from cranpm.providers.assemble import DayTask, Files, IngestJob, MadeDay, make_days
from cranpm.providers.ingest_ahead import AheadReport, ingest_ahead
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.provider import ELEVATION, PM25, STATION_TABLE, Provider, by_precedence, never_without
from cranpm.providers.provider import providers_of as givers
from cranpm.providers.readers.files import Piece
from cranpm.providers.relief import check_heights
from cranpm.providers.scan import Scan, fingerprint, in_parts, scan

DAYS_PER_TASK, TASKS_PER_WORKER = 2, 2
"""A task has few days, and a worker few tasks: what is made and not yet committed is held in memory."""
AS_FILES = f"{SIMULATION}, written as providers' files"
"""What fills an archive whose files we made ourselves."""
LABELS = {PM25: "PM2.5 at 1 km", ELEVATION: "rasters of elevation", STATION_TABLE: "metadata of stations"}


@dataclass
class IngestReport:
    """What became of every file and day."""

    refused_files: dict[str, str] = field(default_factory=dict)
    stored: list[date] = field(default_factory=list)
    unchanged: list[date] = field(default_factory=list)
    refused_days: dict[date, str] = field(default_factory=dict)
    notes: dict[date, list[str]] = field(default_factory=dict)
    """Of days that were stored as degraded."""
    station_problems: set[str] = field(default_factory=set)
    """Why measurements of stations were not used."""
    kept: list[date] = field(default_factory=list)
    """Good days that would have become degraded."""
    unknown_stations: set[str] = field(default_factory=set)
    """That the archive was not made with."""
    unchecked: list[str] = field(default_factory=list)
    """What could not be compared with anything."""
    ahead: AheadReport = field(default_factory=AheadReport)
    """Of forecasts of the days ahead."""

    def to_json(self) -> dict[str, Any]:
        """The report with days as text and everything in order."""
        return {
            "stored": [str(day) for day in self.stored],
            "unchanged": [str(day) for day in self.unchanged],
            "refused_days": {str(day): reason for day, reason in self.refused_days.items()},
            "degraded_days": {str(day): notes for day, notes in self.notes.items()},
            "refused_files": self.refused_files,
            "station_problems": sorted(self.station_problems),
            "kept_good": [str(day) for day in self.kept],
            "unknown_stations": sorted(self.unknown_stations),
            "unchecked": self.unchecked,
            "ahead": self.ahead.to_json(),
        }


def ingest(
    places: Sequence[Path],
    location: str,
    domain: Domain | None = None,
    days: DayRange | None = None,
    *,
    channels: Sequence[str] = (),
    degrade: bool = False,
    ahead: AheadOptions = FIVE_DAYS,
    pool: Pool | None = None,
    on_day: Callable[[date, int], None] = lambda day, total: None,
) -> IngestReport:
    """Make the days that the files give and the archive lacks; a new archive needs a domain, relief and stations.

    `channels` are stored in a new archive beside the 35 of the paper.
    `degrade` stores days that lack hours, channels or levels, marked as degraded; PM2.5 itself is never done without.
    Forecasts of the days ahead are stored for start days of `days`, whether or not there is anything else of them.
    Workers of the pool (here, without one) read files and make days; this process alone commits them, in order.
    """
    pool = pool or Pool()
    found = scan(places, pool)
    report = IngestReport(refused_files=dict(found.refused))
    archive = _archive(location, domain, channels, found, report)
    starts = {start for start, _ in runs_for(found, ahead, days)[0]}
    files = {day: _files(found, day) for day in _candidates(found, days, starts, report)}
    report.unchanged = [day for day, behind in files.items() if _unchanged(archive, behind, day)]
    todo = [day for day in files if day not in report.unchanged]
    tasks = [DayTask(some, {day: files[day] for day in some}) for some in in_parts(todo, DAYS_PER_TASK)]
    job = pool.share(IngestJob(archive, found, degrade))
    with ArchiveWriter(location) as writer:
        for some_tasks in in_parts(tasks, TASKS_PER_WORKER * pool.workers):
            done = sorted(pool.each(make_days, some_tasks, job), key=lambda pair: pair[0].days[0])
            for made in (made for _, of_task in done for made in of_task):
                _store(made, archive, writer, report)
                on_day(made.day, len(todo))
        report.ahead = ingest_ahead(archive, writer, found, days, ahead, pool)
    return report


def _store(made: MadeDay, archive: Archive, writer: ArchiveWriter, report: IngestReport) -> None:
    """Commit a day, unless it was refused or would replace a good one by a degraded one."""
    day, fields = made.day, made.fields
    report.station_problems |= made.station_problems
    report.unknown_stations |= made.unknown_stations
    if fields is None:
        report.refused_days[day] = made.refusal
    elif fields.quality is Quality.DEGRADED and archive.quality(day) is Quality.GOOD:
        report.kept.append(day)
    else:
        try:
            writer.put(fields)
        except CranpmError as error:
            report.refused_days[day] = str(error)
            return
        report.stored.append(day)
        if fields.quality is Quality.DEGRADED:
            report.notes[day] = fields.provenance["notes"]


def _archive(
    location: str, domain: Domain | None, channels: Sequence[str], found: Scan, report: IngestReport
) -> Archive:
    """The archive to add to, laid out first if there is none."""
    source = _source(found)
    if not repository.exists(location):
        if domain is None:
            raise CranpmError(
                expected=f"a domain for the new archive {location}",
                found="none",
                remedy="Add --domain europe, or N,W,S,E.",
            )
        listed = parse_channels([*(channel.name for channel in PAPER_CHANNELS), *channels])
        statics, stations = _statics(found, domain, report), _stations(found, domain)
        create_archive(location, domain, statics, stations, {"source": source}, listed)
    archive = Archive(location)
    if source != archive.source and any(one.startswith(SIMULATION) for one in (source, archive.source)):
        raise CranpmError(
            expected=f"an archive of {source}",
            found=f"one of {archive.source}",
            remedy="Choose another place: what is real and what is simulated are never mixed.",
        )
    if domain is not None and archive.domain != domain:
        raise CranpmError(
            expected=f"the archive's domain, {archive.domain}", found=str(domain), remedy="Leave --domain out."
        )
    if missing := [name for name in channels if name not in archive.channel_names]:
        raise CranpmError(
            expected=f"the channel {missing[0]} in the archive, which was made without it",
            found=", ".join(archive.channel_names),
            remedy="Leave --channel out, or make a new archive: its channels are chosen when it is made.",
        )
    return archive


def _source(found: Scan) -> str:
    """What fills a new archive: the titles of the providers whose files were found."""
    if any(MADE_UP in one.notes for one in found.files):
        return AS_FILES
    names = {one.provider for one in found.files}
    return f"providers: {', '.join(provider.title for name, provider in PROVIDERS.items() if name in names)}"


def _once(found: Scan, what: str) -> tuple[Provider, list[Piece]]:
    """The provider whose files give something that an archive needs once, and these files."""
    for provider in givers(what):
        pieces = [one.piece for one in found.of(provider) if one.first is None]
        if pieces:
            return provider, pieces
    able = " or ".join(f"{provider.title} (cranpm fetch {provider.name})" for provider in givers(what))
    raise CranpmError(
        expected=f"{LABELS[what]} for the new archive", found="none among the files", remedy=f"Add files of {able}."
    )


def _statics(found: Scan, domain: Domain, report: IngestReport) -> Statics:
    """Relief, and the packaged coast; where the package has none, land is what is not at 0 m."""
    provider, rasters = _once(found, ELEVATION)
    region = find_region(domain.fine)
    land = None if region is None else region.land(domain.fine)
    mean, spread = sandbox.read_elevation(provider.name, rasters, domain, land)
    note = check_heights(mean, spread, domain.fine, land)
    report.unchecked += [f"elevation: {note}"] if note else []
    land = np.asarray(mean != 0) if land is None else land
    return Statics(mean, spread, land)


def _stations(found: Scan, domain: Domain) -> Stations:
    provider, tables = _once(found, STATION_TABLE)
    return sandbox.read_stations(provider.name, tables, domain)


def _candidates(found: Scan, days: DayRange | None, starts: set[date], report: IngestReport) -> list[date]:
    """Days with all that no day is stored without; of those that were asked for and lack it, the report says so.

    A day for which there is a forecast of the days ahead need not have anything else.
    """
    needed = {what: {day for one in givers(what) for day in found.days(one)} for what in sorted(never_without())}
    for day in days or ():
        lacking = [what for what, held in needed.items() if day not in held]
        if lacking and day not in starts:
            titles = ", ".join(provider.title for provider in givers(lacking[0]))
            report.refused_days[day] = f"no {LABELS.get(lacking[0], lacking[0])} ({titles}) among the files"
    whole = set.intersection(*needed.values())
    held = {day for day in whole if days is None or day in days}
    today = datetime.now(UTC).date()
    for day in sorted(day for day in held if day > today):
        report.refused_days[day] = "in the future: left aside"
        held.discard(day)
    return sorted(held)


def _files(found: Scan, day: date) -> Files:
    """The files behind a day, by provider; only of providers that are among the files."""
    behind: dict[str, list[list[str]]] = {}
    for provider in by_precedence():
        for one in found.touching(provider, [day]) if provider.needs_days and not provider.replaces else ():
            behind.setdefault(one.provider, []).append([one.piece.name, fingerprint(one.piece)])
    return {name: sorted(files) for name, files in behind.items()}


def _unchanged(archive: Archive, files: Files, day: date) -> bool:
    """Whether the day was made of these files before; a provider that is not among them now does not count."""
    if archive.quality(day) is Quality.ABSENT:
        return False
    before = archive.provenance(day).get("files", {})
    return all(before.get(name) == of_provider for name, of_provider in files.items())
