"""Forecasts of the days ahead into an archive: the best run of each start day and group, one commit per start day."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from cranpm.archive.days_ahead import DaysAhead, RunRecord
from cranpm.archive.store import Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.cluster import Pool
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.providers import ahead
from cranpm.providers.ahead import AheadJob, AheadOptions, AheadTask, MadeAhead, Run
from cranpm.providers.scan import Scan, in_parts

LEADS_PER_TASK = 3
"""A task finds its way through all files of a run first: few tasks, but two for the five days of one run."""
STARTS_AT_ONCE = 8
"""Start days whose forecasts are held in memory until they are committed."""
Key = tuple[date, str]
"""A start day and a group."""


@dataclass
class AheadReport:
    """What became of forecasts, by start day and group."""

    stored: dict[Key, str] = field(default_factory=dict)
    """Which run, and its leads."""
    unchanged: dict[Key, str] = field(default_factory=dict)
    kept: dict[Key, str] = field(default_factory=dict)
    """A better run, or more leads of the same one, were stored before."""
    partial: dict[Key, str] = field(default_factory=dict)
    """Why leads that a stored run reaches were left out."""
    refused: dict[Key, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Runs of which nothing can be stored."""

    def to_json(self) -> dict[str, Any]:
        """The report with start days as text."""
        parts = ("stored", "unchanged", "kept", "partial", "refused")
        named = {part: {f"{day} {group}": text for (day, group), text in getattr(self, part).items()} for part in parts}
        return {**named, "notes": self.notes}


def ingest_ahead(
    archive: Archive, writer: ArchiveWriter, found: Scan, days: DayRange | None, options: AheadOptions, pool: Pool
) -> AheadReport:
    """Store the best run of every start day and group; one that gives no whole day leaves its place to the next."""
    report = AheadReport()
    runs, report.notes = ahead.runs_for(found, options, days)
    job = pool.share(AheadJob(archive, found)) if runs else None
    for starts in in_parts(sorted({day for day, _ in runs}), STARTS_AT_ONCE):
        todo = {key: list(runs[key]) for key in runs if key[0] in starts}
        made: dict[Key, DaysAhead] = {}
        while chosen := {key: run for key in todo if (run := _next(archive, found, options, report, key, todo))}:
            for key, result in _make(chosen, job, pool).items():
                if _is_less(archive, report, key, chosen[key], result):
                    todo[key] = []
                    continue
                if result.fields:
                    made[key] = ahead.days_ahead(chosen[key], result, found, options)
                    del todo[key]
                _tell(report, key, chosen[key], result)
                _tell_lost(report, key, archive.ahead.run(*key), result)
        for start in starts:
            _store(writer, start, [one for (day, _), one in made.items() if day == start], report)
    return report


def _next(
    archive: Archive, found: Scan, options: AheadOptions, report: AheadReport, key: Key, todo: dict[Key, list[Run]]
) -> Run | None:
    """The next run to try for a start day and group; None where what is stored stays, or none is left."""
    if not todo[key]:
        return None
    run, old = todo[key].pop(0), archive.ahead.run(*key)
    if ahead.is_stored(old, run, ahead.provenance(run, found, options)):
        report.unchanged[key] = str(run)
    elif not ahead.is_better(old, run):
        report.kept[key] = f"{old} stays: {run} is no better"
    elif ahead.has_more(old, run, run.leads):
        report.kept[key] = _more_leads(old, run.leads)
    else:
        return run
    if key in report.refused:
        report.partial[key] = report.refused.pop(key)
    todo[key] = []
    return None


def _is_less(archive: Archive, report: AheadReport, key: Key, run: Run, made: MadeAhead) -> bool:
    """Whether more leads of the same model are stored than could be made, and stay."""
    old = archive.ahead.run(*key)
    if not made.fields or not ahead.has_more(old, run, made.fields):
        return False
    _tell(report, key, run, made)
    del report.stored[key]
    report.kept[key] = _more_leads(old, made.fields)
    return True


def _more_leads(old: RunRecord | None, leads: Iterable[int]) -> str:
    there = ", ".join(map(str, old.leads if old else ()))
    return f"{old} stays with leads {there}: these files and --leads give {', '.join(map(str, leads))}"


def _make(chosen: dict[Key, Run], job: AheadJob | None, pool: Pool) -> dict[Key, MadeAhead]:
    tasks = [AheadTask(run, tuple(some)) for run in chosen.values() for some in in_parts(run.leads, LEADS_PER_TASK)]
    parts: dict[Key, list[MadeAhead]] = {key: [] for key in chosen}
    for task, made in pool.each(ahead.make_ahead, tasks, job):
        parts[task.run.start, task.run.group].append(made)
    return {key: ahead.joined(some) for key, some in parts.items()}


def _tell(report: AheadReport, key: Key, run: Run, made: MadeAhead) -> None:
    """Which leads could not be made, and why; the first reason says it all."""
    why = next((f"lead {lead}: {made.refusals[lead]}" for lead in sorted(made.refusals)), "")
    if not made.fields:
        before = f"{report.refused[key]}; " if key in report.refused else ""
        report.refused[key] = f"{before}{run}: {why}"
        return
    skipped = report.refused.pop(key, "")
    report.stored[key] = f"{run}, leads {', '.join(map(str, made.fields))}"
    if why or skipped:
        report.partial[key] = "; ".join(text for text in (skipped, f"{run}: {why}" if why else "") if text)


def _tell_lost(report: AheadReport, key: Key, old: RunRecord | None, made: MadeAhead) -> None:
    """Which leads a preferred model takes the place of without having them."""
    lost = sorted(set(old.leads) - set(made.fields)) if old and key in report.stored else []
    if lost:
        before = f"{report.partial[key]}; " if key in report.partial else ""
        report.partial[key] = f"{before}leads {', '.join(map(str, lost))} of {old} are replaced by nothing"


def _store(writer: ArchiveWriter, start: date, runs: Sequence[DaysAhead], report: AheadReport) -> None:
    """One commit; if a run is refused, each alone, so that it does not spoil the other."""
    if not runs:
        return
    try:
        writer.put_ahead(start, runs)
    except CranpmError as error:
        if len(runs) > 1:
            for run in runs:
                _store(writer, start, [run], report)
            return
        report.stored.pop((start, runs[0].group), None)
        report.refused[start, runs[0].group] = str(error)
