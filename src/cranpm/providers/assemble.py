"""Days out of providers' files: who is asked for what, and what comes of it. Runs on any worker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from cranpm.archive.day_data import DayData, Quality
from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers import PROVIDERS, sandbox
from cranpm.providers.provider import PM25, STATIONS, Reading, ReadQuery, never_without, providers_of
from cranpm.providers.scan import Scan

LEAST_LAND = 0.5
"""Share of the land that a day of PM2.5 must cover."""
NUMBERS = "iuf"
"""Kinds of numpy's types that fields have."""
Files = Mapping[str, list[list[str]]]
"""Names and checksums of files, by provider."""
Readings = Mapping[str, Reading | str]
"""What providers give for a day, or why they do not."""


@dataclass(frozen=True)
class IngestJob:
    """What all tasks share."""

    archive: Archive
    scan: Scan
    degrade: bool


@dataclass(frozen=True)
class DayTask:
    """Some days to make, and the files behind each."""

    days: Sequence[date]
    files: Mapping[date, Files]


@dataclass
class MadeDay:
    """A day for the archive, or why there is none; and what there is to say of its stations."""

    day: date
    fields: DayData | None = None
    refusal: str = ""
    station_problems: set[str] = field(default_factory=set)
    unknown_stations: set[str] = field(default_factory=set)
    """That the archive was not made with."""


def make_days(task: DayTask, job: IngestJob) -> list[MadeDay]:
    """The days of a task; one that cannot be made does not spoil the others."""
    asked = {day: questions(job.scan, job.archive.channel_names, day) for day in task.days}
    readings = _read(job, asked)
    found = []
    for day in task.days:
        made = MadeDay(day)
        try:
            made.fields = _assemble(made, asked[day], readings[day], job, task.files[day])
        except CranpmError as error:
            made.refusal = str(error)
        found.append(made)
    return found


def questions(scan: Scan, channels: Sequence[str], day: date) -> dict[str, tuple[str, ...]]:
    """What is asked of each provider that has files for a day: every channel and PM2.5 of one, stations of all."""
    found: dict[str, list[str]] = {}
    for what in (*channels, PM25, STATIONS):
        there = [provider.name for provider in providers_of(what) if scan.touching(provider, [day])]
        for name in there if what == STATIONS else there[:1]:
            found.setdefault(name, []).append(what)
    return {name: tuple(whats) for name, whats in found.items()}


def _read(job: IngestJob, asked: Mapping[date, Mapping[str, tuple[str, ...]]]) -> dict[date, dict[str, Reading | str]]:
    """All readings of some days; a provider is opened once for all days on which it is asked the same."""
    groups: dict[tuple[str, tuple[str, ...]], list[date]] = {}
    for day, of_day in asked.items():
        for question in of_day.items():
            groups.setdefault(question, []).append(day)
    found: dict[date, dict[str, Reading | str]] = {day: {} for day in asked}
    for (name, whats), days in groups.items():
        pieces = [one.piece for one in job.scan.touching(PROVIDERS[name], days)]
        channels = [what for what in whats if what not in (PM25, STATIONS)]
        query = ReadQuery(days, job.archive.domain, channels, _lenient(name, job.degrade))
        for day, reading in sandbox.read_days(name, pieces, query).items():
            found[day][name] = reading
    return found


def _assemble(
    made: MadeDay, asked: Mapping[str, tuple[str, ...]], readings: Readings, job: IngestJob, files: Files
) -> DayData:
    """One day of all providers; refused where something is missing that may not be."""
    day, archive = made.day, job.archive
    fields, notes, facts = _gridded(day, asked, readings, job)
    coarse = np.full((len(archive.channel_names), *archive.domain.coarse.shape), np.nan, np.float32)
    for number, name in enumerate(archive.channel_names):
        if name in fields:
            coarse[number] = fields[name]
    stations, station_facts = _at_stations(made, readings, archive)
    before = archive.provenance(day).get("files", {}) if archive.quality(day) is not Quality.ABSENT else {}
    return DayData(
        day=day,
        coarse=coarse,
        pm25_ugm3=_on_land(fields[PM25], archive.land(), day),
        stations_ugm3=stations,
        provenance={"files": before | dict(files), **facts, **station_facts, "notes": notes},
        quality=Quality.DEGRADED if notes else Quality.GOOD,
    )


def _gridded(
    day: date, asked: Mapping[str, tuple[str, ...]], readings: Readings, job: IngestJob
) -> tuple[dict[str, Array], list[str], dict[str, Any]]:
    """Fields by channel and PM2.5, notes on what is less than perfect, and facts for the provenance."""
    fields: dict[str, Array] = {}
    notes: list[str] = []
    facts: dict[str, Any] = {}
    for name, whats in _by_provider(asked, job.archive.channel_names).items():
        reading = readings.get(name, f"no files of {name} for {day}")
        if isinstance(reading, str):
            _refuse_unless_lenient(name, whats, day, reading, job.degrade)
            notes.append(f"{name}: {reading}")
            continue
        notes += reading.notes
        if PROVIDERS[name].role == "forecast":
            notes.append(f"{name}: a forecast instead of an analysis")
        facts |= {name: dict(reading.facts)} if reading.facts else {}
        for what in whats:
            grid = job.archive.domain.fine if what == PM25 else job.archive.domain.coarse
            _check_field(reading, name, what, grid.shape, day)
            if what in reading.fields:
                fields[what] = reading.fields[what]
    return fields, notes, facts


def _by_provider(asked: Mapping[str, tuple[str, ...]], channels: Sequence[str]) -> dict[str, list[str]]:
    """All that a day consists of by who gives it; of what nobody has files of, by who could give it.

    Among several who could, one whose absence matters goes first.
    """
    giver = {what: name for name, whats in asked.items() for what in whats if what != STATIONS}
    found: dict[str, list[str]] = {}
    for what in (*channels, PM25):
        able = [one.name for one in sorted(providers_of(what), key=lambda one: one.required == "no")]
        found.setdefault(giver.get(what) or next(iter(able), f"a provider of {what}"), []).append(what)
    return found


def _lenient(name: str, degrade: bool) -> bool:
    """Whether a day may lack what a provider gives, and is stored as degraded then."""
    return degrade or (name in PROVIDERS and PROVIDERS[name].required == "no")


def _refuse_unless_lenient(name: str, whats: Sequence[str], day: date, reason: str, degrade: bool) -> None:
    always = never_without() & set(whats)
    if always or not _lenient(name, degrade):
        remedy = "Add its file." if always else "Add them, or ingest with --degrade to go without."
        raise CranpmError(expected=f"{name} for {day}", found=reason, remedy=remedy)


def _check_field(reading: Reading, name: str, what: str, shape: tuple[int, int], day: date) -> None:
    found = reading.fields.get(what)
    if found is None and reading.notes and what != PM25:
        return  # it says so itself, and the day is degraded
    if found is None or found.shape != shape or found.dtype.kind not in NUMBERS:
        raise CranpmError(
            expected=f"numbers for {what} in {shape[0]} rows and {shape[1]} columns from {name} for {day}",
            found="none" if found is None else f"shape {found.shape} of {found.dtype}",
            remedy="Correct the provider's `open`.",
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


def _at_stations(made: MadeDay, readings: Readings, archive: Archive) -> tuple[Array, dict[str, Any]]:
    """One value per station, NaN where there is none, and facts. Without files of stations, what was there stays."""
    day, facts = made.day, dict[str, Any]()
    names = [provider.name for provider in providers_of(STATIONS) if provider.name in readings]
    if archive.quality(day) is not Quality.ABSENT and not names:
        return archive.stations_pm25(day), facts
    index = {str(station): number for number, station in enumerate(archive.stations.ids)}
    values = np.full(len(index), np.nan)
    for name in names:
        reading = readings[name]
        reason = reading if isinstance(reading, str) else _fault_of_stations(reading)
        if isinstance(reading, str) or reason:
            made.station_problems.add(f"{name} on {day}: {reason}")
            continue
        made.station_problems |= set(reading.notes)
        facts[name] = dict(reading.facts)
        for station, value in zip(reading.fields["station_ids"], reading.fields[STATIONS], strict=True):
            if str(station) in index:
                values[index[str(station)]] = value
            else:
                made.unknown_stations.add(str(station))
    return values, facts


def _fault_of_stations(reading: Reading) -> str:
    """Why a reading does not give one value per station; empty if it does."""
    ids, values = (reading.fields.get(what) for what in ("station_ids", STATIONS))
    if ids is None or values is None:
        return f"expected `station_ids` and `{STATIONS}`; found {', '.join(reading.fields) or 'nothing'}"
    if ids.ndim != 1 or values.shape != ids.shape or values.dtype.kind not in NUMBERS:
        return f"expected one number per station; found shapes {ids.shape} and {values.shape} of {values.dtype}"
    return ""
