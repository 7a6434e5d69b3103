"""Forecasts of the days ahead out of providers' files: which runs serve a start day, and what they give by lead.

A start day is served by the newest run that began on it or, where that is asked for, by the run of the next morning
(00 UTC). Of several models the preferred one serves. Runs on any worker.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from cranpm.archive.days_ahead import DaysAhead, RunRecord
from cranpm.archive.store import Archive
from cranpm.core.channels import GROUPS
from cranpm.core.days import DayRange, end_of
from cranpm.core.grid import Array
from cranpm.providers import PROVIDERS, sandbox
from cranpm.providers.download import source_note
from cranpm.providers.provider import LEADS_AHEAD, FileSummary, ReadQuery, forecasters
from cranpm.providers.scan import Scan, fingerprint

HALF_A_DAY = timedelta(hours=12)


@dataclass(frozen=True)
class AheadOptions:
    """Which forecasts are stored."""

    leads: int = LEADS_AHEAD
    """Days after the start day, at most."""
    next_morning: bool = False
    """Whether the run of 00 UTC of the next morning may serve a start day."""


FIVE_DAYS = AheadOptions()


@dataclass(frozen=True)
class Run:
    """A run that can serve a start day."""

    provider: str
    reference: datetime
    """When it began, UTC."""
    start: date
    """The start day that it serves."""
    group: str
    leads: tuple[int, ...]
    """Days ahead that it reaches."""

    @property
    def model(self) -> str:
        return PROVIDERS[self.provider].model

    @property
    def rank(self) -> tuple[int, datetime]:
        """Of two runs the one with the higher rank serves: the preferred model, then the newer run."""
        return PROVIDERS[self.provider].preference, self.reference

    def __str__(self) -> str:
        return f"{self.model} of {self.reference:%Y-%m-%d %H} UTC"


@dataclass(frozen=True)
class AheadTask:
    """Some days ahead of one run."""

    run: Run
    leads: tuple[int, ...]


@dataclass
class MadeAhead:
    """What a run gives: fields by lead, or why there are none."""

    fields: dict[int, Array] = field(default_factory=dict)
    refusals: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AheadJob:
    """What all tasks share."""

    archive: Archive
    scan: Scan


def runs_for(
    scan: Scan, options: AheadOptions, days: DayRange | None
) -> tuple[dict[tuple[date, str], list[Run]], list[str]]:
    """Runs by the start day and group that they can serve, best first; and of which runs nothing can be stored."""
    found: dict[tuple[date, str], list[Run]] = {}
    notes = []
    for group in GROUPS:
        for provider in forecasters(group):
            for reference, hours in _reaches(scan, provider.name).items():
                starts = [reference.date()]
                if options.next_morning and reference == end_of(reference.date() - timedelta(days=1)):
                    starts.append(reference.date() - timedelta(days=1))
                served = [_run(provider.name, reference, hours, start, group, options.leads) for start in starts]
                if not any(run.leads for run in served):
                    notes.append(f"{group} by {served[0]} reaches {hours:g} hours: no day ahead")
                for run in served:
                    if run.leads and (days is None or run.start in days):
                        found.setdefault((run.start, group), []).append(run)
    ranked = {key: sorted(runs, key=lambda run: run.rank, reverse=True) for key, runs in sorted(found.items())}
    return ranked, notes


def _reaches(scan: Scan, provider: str) -> dict[datetime, float]:
    """The runs among a provider's own files, and how many hours they reach."""
    found: dict[datetime, float] = {}
    for one in scan.files:
        for span in one.runs if one.provider == provider else ():
            found[span.reference] = max(found.get(span.reference, 0.0), span.hours)
    return dict(sorted(found.items()))


def _run(provider: str, reference: datetime, hours: float, start: date, group: str, most: int) -> Run:
    """A lead counts as reached if the run goes beyond noon of its day: what it lacks of it is then told."""
    end = reference + timedelta(hours=hours)
    reached = [lead for lead in range(1, most + 1) if end >= end_of(start + timedelta(days=lead - 1)) + HALF_A_DAY]
    return Run(provider, reference, start, group, tuple(reached))


def files_of(scan: Scan, run: Run) -> list[FileSummary]:
    """The files that hold a run."""
    return [
        one
        for one in scan.files
        if one.provider == run.provider and any(span.reference == run.reference for span in one.runs)
    ]


def make_ahead(task: AheadTask, job: AheadJob) -> MadeAhead:
    """The channels of a group on the days ahead; a day that lacks one is not made."""
    run, archive = task.run, job.archive
    names = [channel.name for channel in archive.ahead.channels(run.group)]
    days = {run.start + timedelta(days=lead): lead for lead in task.leads}
    pieces = [one.piece for one in files_of(job.scan, run)]
    query = ReadQuery(list(days), archive.domain, names, run=run.reference)
    made = MadeAhead()
    for day, reading in sandbox.read_days(run.provider, pieces, query).items():
        if isinstance(reading, str):
            made.refusals[days[day]] = reading
        elif missing := [name for name in names if name not in reading.fields]:
            made.refusals[days[day]] = f"no {missing[0]}"
        else:
            made.fields[days[day]] = np.stack([reading.fields[name] for name in names]).astype(np.float32)
    return made


def joined(parts: Sequence[MadeAhead]) -> MadeAhead:
    """What the tasks of a run made, up to the last lead before the first that could not be made."""
    fields = {lead: values for part in parts for lead, values in part.fields.items()}
    refusals = {lead: reason for part in parts for lead, reason in part.refusals.items()}
    first = min(refusals, default=max(fields, default=0) + 1)
    return MadeAhead({lead: fields[lead] for lead in sorted(fields) if lead < first}, refusals)


def days_ahead(run: Run, made: MadeAhead, scan: Scan, options: AheadOptions) -> DaysAhead:
    """What is stored, with its provenance."""
    return DaysAhead(run.group, run.model, run.reference, made.fields, provenance(run, scan, options))


def provenance(run: Run, scan: Scan, options: AheadOptions) -> dict[str, Any]:
    """Which files a run is from, and what was asked of them."""
    files = files_of(scan, run)
    notes = sorted({note for one in files for note in one.notes})
    served = sorted({mirror for one in files for mirror in _mirrors(one)})
    return {
        "provider": run.provider,
        "source": PROVIDERS[run.provider].title,
        "files": sorted([one.piece.name, fingerprint(one.piece)] for one in files),
        "leads_asked": options.leads,
        **({"notes": notes} if notes else {}),
        **({"mirrors": served} if served else {}),
    }


def _mirrors(one: FileSummary) -> list[str]:
    """None where the note is damaged: the file itself is as good."""
    note = source_note(one.piece.path)
    try:
        return [str(mirror) for mirror in json.loads(note.read_text())["mirrors"]] if note.is_file() else []
    except (ValueError, KeyError, TypeError, OSError):
        return []


def is_stored(old: RunRecord | None, run: Run, facts: Mapping[str, Any]) -> bool:
    """Whether exactly these files of the run were stored before."""
    if old is None or (old.model, old.reference) != (run.model, run.reference):
        return False
    return bool(json.loads(json.dumps(dict(old.provenance))) == json.loads(json.dumps(dict(facts))))


def has_more(old: RunRecord | None, run: Run, leads: Collection[int]) -> bool:
    """Whether more leads of the same model are stored than these: a newer run that is cut short does not replace it."""
    return old is not None and old.model == run.model and len(old.leads) > len(leads)


def is_better(old: RunRecord | None, run: Run) -> bool:
    """Whether a run may take the place of what is stored: not for a worse model, nor for an older run."""
    if old is None:
        return True
    preferences = {provider.model: provider.preference for provider in PROVIDERS.values() if provider.model}
    return run.rank >= (preferences.get(old.model, -1), old.reference)
