"""Commands around the archive of days."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cranpm.cli.console import DATA, ArchivePath, AsJson, Overrides, Quiet, app, out, progress_bar
from cranpm.cli.ingesting import export_files
from cranpm.core.days import LEADS, LONGEST_LEAD
from cranpm.core.errors import CranpmError


@app.command(rich_help_panel=DATA)
def simulate(
    archive: Annotated[
        str | None,
        typer.Argument(metavar="[ARCHIVE]", help="Folder or URL of the archive to fill; --report needs none."),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(help="The area to simulate: europe, alps, usa_canada, india, or a box N,W,S,E in degrees."),
    ] = None,
    days: Annotated[
        str | None, typer.Option(help="The days to simulate: a range 2021-01-01..2022-12-31, one day, or a year.")
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Simulate only the days that forecasts from every n-th day need: day before, day, and leads."
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(help="Read the settings from this TOML file: domain, days, channels, ahead and [simulation]."),
    ] = None,
    override: Overrides = None,
    world: Annotated[
        str | None,
        typer.Option(help="Which world to simulate: factual, reverse-wind, flat-relief or no-emissions:N,W,S,E."),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(help="Store this channel in addition to the 35 of the paper, for example blh. Can be repeated."),
    ] = None,
    leads: Annotated[
        str, typer.Option(help="Days ahead that --every and --report count with, for example 1,2,3,4.")
    ] = ",".join(map(str, LEADS)),
    ahead: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=LONGEST_LEAD,
            help="Store forecasts of so many days ahead with every day, 0 for none. The default is the archive's"
            " number, or 5 for a new archive.",
        ),
    ] = None,
    native: Annotated[
        Path | None,
        typer.Option(help="Write the days in the providers' formats to this folder, too, as `cranpm export` does."),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Print how realistic the days are.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fill an archive with days of the built-in synthetic world.

    Its coast, relief and towns are real; its weather and air are invented.

    Days that the archive already holds are kept, so the same command finishes a stopped run, and a later range
    continues the same world. Every day comes with forecasts of the weather and the composition of the days after it.

    With `--report`, the realism of the days is printed. It is measured on the archive's days,
    or, where no archive is named, on a run that is not stored.
    """
    from cranpm.core.days import needed, parse_leads
    from cranpm.core.settings import load
    from cranpm.simulate import realism
    from cranpm.simulate.job import SimulationJob, sample, simulate_archive

    counted = parse_leads(leads)
    extra = [*(override or ()), *([f"simulation.world={world}"] if world else [])]
    job = load(SimulationJob, settings, extra, domain=domain, days=days, channels=channel, ahead=ahead)
    _check_options(archive, every, native, report)
    if archive is not None:
        wanted = needed(job.days, every, counted) if every else list(job.days)
        with progress_bar(f"simulate {job.domain.name}", len(wanted), quiet) as advance:
            added = simulate_archive(archive, job.domain, wanted, job.simulation, advance, job.all_channels, job.ahead)
        if not as_json:
            kept = len(wanted) - added
            print(f"{archive}: {added} days added" + (f", {kept} were there already" if kept else ""))
        if native is not None:
            export_files(archive, native, wanted, as_json)
    if report:
        with progress_bar(f"sample {job.domain.name}", len(job.days), quiet) as advance:
            _print_report(realism.judge(sample(job, archive, advance), counted), as_json)


def _check_options(archive: str | None, every: int | None, native: Path | None, report: bool) -> None:
    """Refuse options of `simulate` that do not go together."""
    if archive is None and native is not None:
        raise CranpmError(expected="an ARCHIVE with --native", found="none", remedy="Name where to store the days.")
    if every is not None and native is not None:
        raise CranpmError(
            expected="--native without --every",
            found="both: providers' files need days without gaps",
            remedy="Leave --every out, or export a range later: cranpm export ARCHIVE --days FIRST..LAST --to DIR.",
        )
    if archive is None and not report:
        raise CranpmError(expected="an ARCHIVE or --report", found="neither", remedy="Name where to store the days.")


def _print_report(checks: list[Any], as_json: bool) -> None:
    if as_json:
        rows = [{"name": c.name, "value": c.value, "low": c.low, "high": c.high, "holds": c.holds} for c in checks]
        print(json.dumps(rows, indent=1, allow_nan=False))
        return
    table = Table(title="Realism")
    for column in ("figure", "value", "wanted", ""):
        table.add_column(column, justify="left" if column in ("figure", "") else "right")
    for check in checks:
        wanted = "" if check.low is check.high is None else f"{_bound(check.low)} .. {_bound(check.high)}"
        table.add_row(check.name, f"{check.value:.2f}", wanted, "ok" if check.holds else "[bold red]outside[/]")
    out.print(table)


def _bound(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


@app.command(rich_help_panel=DATA)
def info(archive: ArchivePath, as_json: AsJson = False) -> None:
    """Print what an archive holds: area, days, gaps, channels, stations, source, quality, version and size."""
    from cranpm.archive.store import Archive, describe

    facts = describe(Archive(archive))
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    table = Table(show_header=False, title=Text(f"archive {archive}"))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), Text(_readable(value)))
    out.print(table)


def _readable(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_readable(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@app.command("map", rich_help_panel=DATA)
def draw_map(
    archive: ArchivePath,
    path: Annotated[Path, typer.Option("--out", help="The PNG file to write.")],
    day: Annotated[str | None, typer.Option(help="The day as YYYY-MM-DD; elevation and land need none.")] = None,
    field: Annotated[
        str, typer.Option(help="What to draw: pm25, wind, elevation, land, or a coarse channel such as t2m.")
    ] = "pm25",
    stations: Annotated[bool, typer.Option(help="Draw the stations' values as circles on the map of pm25.")] = True,
) -> None:
    """Draw one field of an archive as a PNG map with coast, scale bar and units."""
    from cranpm.archive.store import Archive
    from cranpm.core.days import parse_day
    from cranpm.views.figures import draw_archive

    draw_archive(Archive(archive), field, parse_day(day) if day else None, path, stations=stations)
    print(path)
