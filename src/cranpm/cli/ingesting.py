"""Commands from providers' files to an archive."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cranpm.cli.console import DATA, ArchivePath, AsJson, Cluster, Quiet, app, err, out, printable, progress_bar
from cranpm.core.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from cranpm.providers.ingest import IngestReport
    from cranpm.providers.ingest_ahead import AheadReport

Places = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders or files, in any order.")]


@app.command(rich_help_panel=DATA)
def validate(places: Places, as_json: AsJson = False) -> None:
    """Print whose each file is and what it holds, without ingesting it. The exit code is 1 if one is of no use."""
    from cranpm.providers.scan import scan

    with err.status("looking", spinner="dots"):
        found = scan(places)
    if as_json:
        seen = [
            {
                "file": str(one.piece),
                "provider": one.provider,
                "holds": one.holds,
                "first": str(one.first) if one.first else None,
                "last": str(one.last) if one.last else None,
                "notes": one.notes,
            }
            for one in found.files
        ]
        print(json.dumps({"files": seen, "refused": found.refused}, indent=1))
    else:
        table = Table(title="files")
        for column in ("file", "provider", "holds", "days"):
            table.add_column(column, overflow="fold")
        for one in found.files:
            days = f"{one.first}..{one.last}" if one.first else ""
            holds = ", ".join(one.holds[:12]) + (", ..." if len(one.holds) > 12 else "")
            table.add_row(printable(one.piece.name), one.provider, printable("; ".join([holds, *one.notes])), days)
        out.print(table)
        for name, reason in found.refused.items():
            print(f"refused: {printable(name)}: {printable(reason)}")
    if found.refused:
        raise typer.Exit(1)


@app.command(rich_help_panel=DATA)
def ingest(
    places: Places,
    archive: Annotated[str, typer.Option(help="Archive to fill; it is created if there is none.")],
    domain: Annotated[str | None, typer.Option(help="For a new archive: europe, alps, ... or N,W,S,E.")] = None,
    days: Annotated[str | None, typer.Option(help="Ingest only these days: a day, a year or FIRST..LAST.")] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(help="For a new archive: store this channel beside the 35 of the paper, as blh. Can be repeated."),
    ] = None,
    degrade: Annotated[
        bool, typer.Option("--degrade", help="Store days that lack hours, levels or channels, marked as degraded.")
    ] = False,
    leads: Annotated[
        int, typer.Option(min=1, max=30, help="Days after each start day for which forecasts are stored, at most.")
    ] = 5,
    next_morning: Annotated[
        bool,
        typer.Option(
            "--next-morning",
            help="Let the forecast that began at 00 UTC of the next morning serve a start day. "
            "Without it the newest one that began on the start day does.",
        ),
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Local processes. Default: one per core.")] = None,
    cluster: Cluster = None,
    report_file: Annotated[Path | None, typer.Option("--report", help="Write the report as JSON, too.")] = None,
    quiet: Quiet = False,
) -> None:
    """Make days of providers' files and store them in an archive; a new archive also needs elevation and stations.

    Files of forecast models are stored, too: the weather and the composition of the days after each start day, from one
    run each. A later run replaces an earlier one. Days that were made of the same files are left as they are. A day
    appears whole or not at all, and a good day is never replaced by a degraded one. The exit code is 1 if a file, a
    day, a forecast or measurements of stations were refused.
    """
    from cranpm.core.cluster import open_pool
    from cranpm.core.days import parse_days
    from cranpm.core.grid import parse_domain
    from cranpm.providers.ahead import AheadOptions
    from cranpm.providers.ingest import ingest as fill

    with open_pool(jobs or os.cpu_count() or 1, cluster) as pool, progress_bar("ingest", 1, quiet) as bar:
        done: list[object] = []

        def on_day(day: object, total: int) -> None:
            done.append(day)
            bar.reach(len(done), total, f"ingest {day}")

        report = fill(
            places,
            archive,
            parse_domain(domain) if domain else None,
            parse_days(days) if days else None,
            channels=channel or (),
            degrade=degrade,
            ahead=AheadOptions(leads, next_morning),
            pool=pool,
            on_day=on_day,
        )
    if report_file:
        write_whole(report_file, json.dumps(report.to_json(), indent=1) + "\n")
    _print_report(report)
    if report.refused_files or report.refused_days or report.station_problems or report.ahead.refused:
        raise typer.Exit(1)


def _print_report(report: "IngestReport") -> None:
    """What became of files and days, one line each."""
    for name, reason in report.refused_files.items():
        print(f"refused file: {printable(name)}: {printable(reason)}")
    for day, reason in sorted(report.refused_days.items()):
        print(f"refused day: {day}: {printable(reason)}")
    for day, notes in sorted(report.notes.items()):
        print(f"degraded: {day}: {'; '.join(map(printable, notes))}")
    for problem in sorted(report.station_problems):
        print(f"stations: {printable(problem)}")
    for note in report.unchecked:
        print(f"not checked: {printable(note)}")
    if report.kept:
        print(f"{len(report.kept)} good days were kept: these files would have degraded them")
    if report.unknown_stations:
        print(f"{len(report.unknown_stations)} stations are not in the archive and were left out")
    _print_ahead(report.ahead)
    print(f"{len(report.stored)} days stored, {len(report.unchanged)} unchanged, {len(report.refused_days)} refused")


def _print_ahead(report: "AheadReport") -> None:
    """What became of forecasts of the days ahead; of those that were stored, one line each."""
    named = {"refused": "refused forecast", "stored": "forecast", "partial": "fewer leads", "kept": "forecast kept"}
    for part, word in named.items():
        for (day, group), text in sorted(getattr(report, part).items()):
            print(f"{word}: {day} {group}: {printable(text)}")
    for note in report.notes:
        print(f"no forecast: {printable(note)}")
    if report.stored or report.unchanged or report.refused:
        counts = (len(report.stored), len(report.unchanged), len(report.refused))
        print("{} forecasts of days ahead stored, {} unchanged, {} refused".format(*counts))


@app.command(rich_help_panel=DATA)
def fetch(
    provider: Annotated[str, typer.Argument(help="A provider, as era5 or ghap; any other word prints the list.")],
    domain: Annotated[str, typer.Option(help="europe, alps, ... or N,W,S,E.")],
    folder: Annotated[Path, typer.Option("--to", help="Folder for the files.")],
    days: Annotated[str | None, typer.Option(help="A day, a year or FIRST..LAST; elevation needs none.")] = None,
    country: Annotated[list[str] | None, typer.Option(help="Of EEA's stations, as IT; repeat for several.")] = None,
    location: Annotated[list[int] | None, typer.Option(help="Of OpenAQ, by number; repeat for several.")] = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="Fetch this channel too, as blh; repeat for several.")
    ] = None,
    leads: Annotated[
        int, typer.Option(min=1, max=30, help="Of forecasts: days after the start day, as far as the model goes.")
    ] = 5,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the exact requests and their size, and stop.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Download a provider's files; finished files are kept, interrupted downloads resume.

    Days that the provider cannot have are refused, and the source that has them is named.
    """
    from datetime import UTC, datetime

    from cranpm.core.days import parse_days
    from cranpm.core.errors import CranpmError
    from cranpm.core.grid import parse_domain
    from cranpm.providers import PROVIDERS
    from cranpm.providers.fetch import doubts, plan
    from cranpm.providers.fetch import fetch as get
    from cranpm.providers.provider import FetchQuery
    from cranpm.providers.request import Request

    if days is None and PROVIDERS[provider].needs_days:
        raise CranpmError(expected=f"days for {provider}", found="none", remedy="Add --days 2022-01-01..2022-01-31.")
    span = list(parse_days(days)) if days else []
    today = datetime.now(UTC).date()
    query = FetchQuery(span, parse_domain(domain), country or (), location or (), channel or (), leads, today)
    wanted = plan(provider, query)
    for doubt in doubts(provider, query):
        print(f"warning: {doubt}")
    if dry_run:
        for request in wanted:
            print(json.dumps({"file": request.name, **request.ask}))
        print(f"{len(wanted)} files, about {sum(request.gigabytes for request in wanted):.2g} GB")
        for licence in sorted({request.licence for request in wanted if request.licence}):
            print(f"accept once: {licence}")
        return
    with progress_bar(f"fetch {provider}", len(wanted), quiet) as bar:

        def on_file(number: int, request: Request, state: str) -> None:
            bar.reach(number, len(wanted), f"{request.name} {state}")

        found = get(wanted, folder, on_file=on_file)
    print(f"{len(found)} files in {folder}")


@app.command(rich_help_panel=DATA)
def export(
    archive: ArchivePath,
    folder: Annotated[Path, typer.Option("--to", help="Folder for the files.")],
    days: Annotated[str | None, typer.Option(help="A day, a year or FIRST..LAST. Default: all days.")] = None,
) -> None:
    """Write days of a simulated archive as the providers would send them, to try ingestion without their servers.

    Forecasts of the days ahead, where the archive holds some, are written as they lie on the providers' servers: `ifs`,
    `hres.zarr` and `cams-europe`.
    """
    from cranpm.core.days import parse_days

    export_files(archive, folder, list(parse_days(days)) if days else None)


def export_files(archive: str, folder: Path, days: "Sequence[date] | None" = None, quiet: bool = False) -> None:
    """Write days of an archive, all by default, in the providers' formats, and print what was written."""
    from cranpm.archive.store import Archive
    from cranpm.providers.export import write_provider_files

    opened = Archive(archive)
    wanted = opened.days if days is None else days
    forecasts = write_provider_files(opened, wanted, folder)
    if quiet:
        return
    print(f"files of {len(wanted)} days in {folder}")
    for name, count in forecasts.items():
        print(f"forecasts from {count} start days in {folder / name}")
