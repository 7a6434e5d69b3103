"""From folders of providers' files to an archive: what is in them, days made of them, one commit each, and a report."""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from dask.base import compute
from dask.delayed import delayed

from cranpm.archive import repository
from cranpm.archive.day_data import DayData, Quality, Statics, Stations
from cranpm.archive.layout import create_archive
from cranpm.archive.store import SIMULATION, Archive, ArchiveWriter
from cranpm.core.channels import COARSE_NAMES
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.core.geography import region_of
from cranpm.core.grid import Array, Domain
from cranpm.providers import sandbox
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.provider import Reading, Seen
from cranpm.providers.readers.files import UNFINISHED, Piece, sha256

LOOK_AT_ONCE = 700
BATCH_DAYS = 4
"""Days that are in memory at a time."""
GRIDDED = ("era5", "cams", "ghap")
STATIONS = ("eea", "openaq")
PROVIDERS, AS_FILES = "providers: ERA5, CAMS, GHAP, EEA", f"{SIMULATION}, written as providers' files"
"""What fills an archive; the second are files that we made ourselves."""
REACH = {"era5": (0, 1), "eea": (1, 1), "openaq": (1, 1)}
"""Days before and after that a day may need: rain ends at midnight of the next, stations have clocks of their own."""
LEAST_LAND = 0.5
"""Share of the land that a day of PM2.5 must cover."""
T = TypeVar("T")


@dataclass(frozen=True)
class Scan:
    """What folders hold, and what is of no use with the reason."""

    seen: list[Seen]
    refused: dict[str, str]

    def of(self, *sources: str) -> list[Seen]:
        return [one for one in self.seen if one.source in sources]

    def days(self, source: str) -> set[date]:
        """Days that a provider's files may hold."""
        return {
            one.first + timedelta(days=number)
            for one in self.of(source)
            if one.first and one.last
            for number in range((one.last - one.first).days + 1)
        }


@dataclass
class Report:
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

    def to_json(self) -> dict[str, Any]:
        return {
            "stored": [str(day) for day in self.stored],
            "unchanged": [str(day) for day in self.unchanged],
            "refused_days": {str(day): reason for day, reason in self.refused_days.items()},
            "degraded_days": {str(day): notes for day, notes in self.notes.items()},
            "refused_files": self.refused_files,
            "station_problems": sorted(self.station_problems),
            "kept_good": [str(day) for day in self.kept],
            "unknown_stations": sorted(self.unknown_stations),
        }


def files_in(places: Iterable[Path]) -> list[Path]:
    """All files below some folders, and files themselves; hidden and unfinished ones are left alone."""
    found: set[Path] = set()
    for place in places:
        if not place.exists():
            raise CranpmError(expected=f"a file or folder {place}", found="nothing there", remedy="Check the path.")
        found |= {place} if place.is_file() else {path for path in place.rglob("*") if path.is_file()}
    return sorted(path for path in found if not path.name.startswith(".") and path.suffix not in UNFINISHED)


def scan(places: Iterable[Path], jobs: int = 1) -> Scan:
    """Look at every file, in processes apart."""
    tasks = [delayed(sandbox.look)(some) for some in _parts(files_in(places), LOOK_AT_ONCE)]
    looks = compute(*tasks, scheduler="threads", num_workers=jobs)  # type: ignore[no-untyped-call]
    found = [one for look in looks for one in look]
    seen = [one for one in found if isinstance(one, Seen)]
    return Scan(seen, {str(one[0]): one[1] for one in found if not isinstance(one, Seen)})


def _parts(items: list[T], size: int) -> Iterator[list[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def ingest(
    places: Sequence[Path],
    location: str,
    domain: Domain | None = None,
    days: DayRange | None = None,
    *,
    degrade: bool = False,
    jobs: int = 1,
    on_day: Callable[[date, int], None] = lambda day, total: None,
) -> Report:
    """Make the days that the files give and the archive lacks; a new archive needs a domain, relief and stations.

    `degrade` stores days that lack hours, channels or levels, marked as degraded; PM2.5 itself is never done without.
    """
    found = scan(places, jobs)
    report = Report(refused_files=dict(found.refused))
    archive = _archive(location, domain, found)
    wanted = _candidates(found, days, report)
    report.unchanged = [day for day in wanted if _unchanged(archive, found, day)]
    todo = [day for day in wanted if day not in report.unchanged]
    with ArchiveWriter(location) as writer:
        for some in _parts(todo, BATCH_DAYS):
            readings = _read(found, some, archive.domain, degrade, jobs)
            for day in some:
                try:
                    fields = _day(day, readings[day], archive, found, degrade, report)
                    if fields.quality is Quality.DEGRADED and archive.quality(day) is Quality.GOOD:
                        report.kept.append(day)
                    else:
                        writer.put(fields)
                        report.stored.append(day)
                        if fields.quality is Quality.DEGRADED:
                            report.notes[day] = fields.provenance["notes"]
                except CranpmError as error:
                    report.refused_days[day] = str(error)
                on_day(day, len(todo))
    return report


def _archive(location: str, domain: Domain | None, found: Scan) -> Archive:
    """The archive to add to, laid out first if there is none."""
    source = AS_FILES if any(MADE_UP in one.notes for one in found.seen) else PROVIDERS
    if not repository.exists(location):
        if domain is None:
            raise CranpmError(
                expected=f"a domain for the new archive {location}",
                found="none",
                remedy="Add --domain europe, or N,W,S,E.",
            )
        land = region_of(domain.fine).land(domain.fine)
        statics, stations = _statics(found, domain, land), _stations(found, domain)
        create_archive(location, domain, statics, stations, {"source": source})
    archive = Archive(location)
    if archive.source != source:
        raise CranpmError(
            expected=f"an archive of {source}",
            found=f"one of {archive.source}",
            remedy="Choose another place: what is real and what is simulated are never mixed.",
        )
    if domain is not None and archive.domain != domain:
        raise CranpmError(
            expected=f"the archive's domain, {archive.domain}", found=str(domain), remedy="Leave --domain out."
        )
    return archive


def _statics(found: Scan, domain: Domain, land: Array) -> Statics:
    rasters = [one.piece for one in found.of("elevation")]
    if not rasters:
        raise CranpmError(
            expected="rasters of elevation for the new archive",
            found="none among the files",
            remedy="cranpm fetch elevation --domain ..., or any GeoTIFF of heights.",
        )
    mean, spread = sandbox.read_elevation(rasters, domain, land)
    return Statics(mean, spread, land)


def _stations(found: Scan, domain: Domain) -> Stations:
    metadata = [one.piece for one in found.of("eea") if one.first is None]
    if not metadata:
        raise CranpmError(
            expected="metadata of stations for the new archive",
            found="none among the files",
            remedy="cranpm fetch eea, or EEA's DataExtract.csv.",
        )
    return sandbox.read_stations(metadata, domain)


def _candidates(found: Scan, days: DayRange | None, report: Report) -> list[date]:
    """Days with PM2.5 at 1 km; of those that were asked for and have none, the report says so."""
    held = found.days("ghap")
    if days is not None:
        for day in days:
            if day not in held:
                report.refused_days[day] = "no PM2.5 at 1 km (GHAP) among the files"
        held = {day for day in held if day in days}
    today = datetime.now(UTC).date()
    for day in sorted(day for day in held if day > today):
        report.refused_days[day] = "in the future: left aside"
        held.discard(day)
    return sorted(held)


def _touching(found: Scan, source: str, days: Sequence[date]) -> list[Seen]:
    """Files of a provider that matter for days; `REACH` says how far beyond them."""
    before, after = (timedelta(days=number) for number in REACH.get(source, (0, 0)))
    low, high = min(days) - before, max(days) + after
    return [one for one in found.of(source) if one.first and one.last and one.first <= high and one.last >= low]


def _files(found: Scan, day: date) -> dict[str, list[list[str]]]:
    """The files behind a day, by provider; only of providers that are among the files."""
    behind = {source: _touching(found, source, [day]) for source in (*GRIDDED, *STATIONS)}
    return {
        source: sorted([one.piece.name, fingerprint(one.piece)] for one in of_source)
        for source, of_source in behind.items()
        if of_source
    }


@cache
def fingerprint(piece: Piece) -> str:
    """sha256 of a file; of a member of a ZIP, the checksum and size in its directory, which unpacking verifies."""
    if not piece.member:
        return sha256(piece.path)
    with zipfile.ZipFile(piece.path) as archive:
        member = archive.getinfo(piece.member)
    return f"crc32 {member.CRC:08x}, {member.file_size} bytes"


def _unchanged(archive: Archive, found: Scan, day: date) -> bool:
    """Whether the day was made of these files before; a provider that is not among them now does not count."""
    if archive.quality(day) is Quality.ABSENT:
        return False
    before = archive.provenance(day).get("files", {})
    return all(before.get(source) == files for source, files in _files(found, day).items())


def _read(
    found: Scan, days: list[date], domain: Domain, degrade: bool, jobs: int
) -> dict[date, dict[str, Reading | str]]:
    """All providers' readings of some days; `jobs` processes at a time."""
    tasks = {}
    for source in (*GRIDDED, *STATIONS):
        pieces = [one.piece for one in _touching(found, source, days)]
        if pieces:
            tasks[source] = delayed(sandbox.read_days)(source, pieces, days, domain, degrade)
    (done,) = compute(tasks, scheduler="threads", num_workers=jobs)  # type: ignore[no-untyped-call]
    return {day: {source: of_source[day] for source, of_source in done.items()} for day in days}


def _day(
    day: date, readings: Mapping[str, Reading | str], archive: Archive, found: Scan, degrade: bool, report: Report
) -> DayData:
    """One day of all providers; refused where one is missing that may not be."""
    notes: list[str] = []
    good: dict[str, Reading] = {}
    for source in GRIDDED:
        reading = readings.get(source, f"no files of {source} for {day}")
        if isinstance(reading, Reading):
            good[source] = reading
            notes += reading.notes
        elif not degrade or source == "ghap":
            remedy = "Add them, or ingest with --degrade to go without." if source != "ghap" else "Add its file."
            raise CranpmError(expected=f"{source} for {day}", found=reading, remedy=remedy)
        else:
            notes.append(f"{source}: {reading}")
    coarse = np.full((len(COARSE_NAMES), *archive.domain.coarse.shape), np.nan, np.float32)
    for source in ("era5", "cams"):
        for name, values in (good[source].fields if source in good else {}).items():
            coarse[COARSE_NAMES.index(name)] = values
    stations, told = _at_stations(day, readings, archive, report)
    facts = {source: dict(reading.facts) for source, reading in good.items() if reading.facts} | told
    before = archive.provenance(day).get("files", {}) if archive.quality(day) is not Quality.ABSENT else {}
    return DayData(
        day=day,
        coarse=coarse,
        pm25_ugm3=_on_land(good["ghap"].fields["pm25"], archive.land(), day),
        stations_ugm3=stations,
        provenance={"files": before | _files(found, day), **facts, "notes": notes},
        quality=Quality.DEGRADED if notes else Quality.GOOD,
    )


def _on_land(pm25_ugm3: Array, land: Array, day: date) -> Array:
    """NaN at sea; a day that lacks much of the land is refused."""
    share = np.isfinite(pm25_ugm3[land]).mean()
    if share < LEAST_LAND:
        raise CranpmError(
            expected=f"PM2.5 on at least {LEAST_LAND:.0%} of the land on {day}",
            found=f"{share:.1%}",
            remedy="Check that the file covers the domain.",
        )
    return np.where(land, pm25_ugm3, np.nan)


def _at_stations(
    day: date, readings: Mapping[str, Reading | str], archive: Archive, report: Report
) -> tuple[Array, dict[str, Any]]:
    """One value a station, NaN where there is none, and facts. Without any files of stations, what was there stays."""
    stations = archive.stations
    told: dict[str, Any] = {}
    values = np.full(len(stations), np.nan)
    if archive.quality(day) is not Quality.ABSENT and not any(source in readings for source in STATIONS):
        return archive.stations_pm25(day), told
    index = {str(name): number for number, name in enumerate(stations.ids)}
    for source in STATIONS:
        reading = readings.get(source)
        if isinstance(reading, str):
            report.station_problems.add(f"{source} on {day}: {reading}")
        elif reading is not None:
            report.station_problems |= set(reading.notes)
            told[source] = dict(reading.facts)
            for name, value in zip(reading.fields["station_ids"], reading.fields["stations"], strict=True):
                if str(name) in index:
                    values[index[str(name)]] = value
                else:
                    report.unknown_stations.add(str(name))
    return values, told
