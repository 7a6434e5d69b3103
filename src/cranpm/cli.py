"""The command line: thin, every command a few lines around the library."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from cranpm import __version__
from cranpm.errors import CranpmError

app = typer.Typer(
    name="cranpm",
    help="Forecast daily PM2.5 at 1 km for a continent, one to three days ahead.",
    epilog="Start here: cranpm simulate --domain alps --days 2021-01-01..2021-02-28 alps.archive",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
out, err = Console(), Console(stderr=True)

ArchivePath = Annotated[str, typer.Argument(metavar="ARCHIVE", help="Folder or s3://, gs://, az:// URL of an archive.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar; only results and errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _main(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    _debug["on"] = debug


_debug = {"on": False}


@contextmanager
def _progress(what: str, total: int, quiet: bool) -> Iterator[Any]:
    """A bar with elapsed and remaining time on stderr; call the value once a step."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=quiet, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda *_: progress.advance(task)


@app.command()
def simulate(
    archive: Annotated[
        str | None, typer.Argument(metavar="[ARCHIVE]", help="Where to store the days; not needed for --report.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="europe, alps, usa_canada, india, or a box N,W,S,E in degrees.")
    ] = None,
    days: Annotated[str | None, typer.Option(help="A range 2021-01-01..2022-12-31, a day, or a year.")] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML with domain, days and [simulation].")] = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="For example --set simulation.seed=3.")
    ] = None,
    world: Annotated[
        str | None, typer.Option(help="factual, reverse-wind, flat-relief or no-emissions:N,W,S,E.")
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Print how realistic the days are.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fill an archive with days of the embedded world: real coast, relief and towns, invented weather and air.

    Days that the archive already holds are left as they are, so a stopped run is finished by the same command, and
    a later range continues the same world. With `--report` the realism of the days is printed: from the archive, or,
    where none is named, from a run that is not stored.
    """
    from cranpm import fill, realism
    from cranpm.settings import load

    extra = [*(override or ()), *([f"simulation.world={world}"] if world else [])]
    job = load(fill.SimulationJob, settings, extra, domain=domain, days=days)
    if archive is None and not report:
        raise CranpmError(expected="an ARCHIVE or --report", found="neither", remedy="Name where to store the days.")
    if archive is not None:
        with _progress(f"simulate {job.domain.name}", len(job.days), quiet) as advance:
            added = fill.simulate_archive(archive, job.domain, job.days, job.simulation, advance)
        if not as_json:
            kept = len(job.days) - added
            print(f"{archive}: {added} days added" + (f", {kept} were there already" if kept else ""))
    if report:
        with _progress(f"sample {job.domain.name}", len(job.days), quiet) as advance:
            _print_report(realism.judge(fill.sample(job, archive, advance)), as_json)


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


@app.command()
def info(archive: ArchivePath, as_json: AsJson = False) -> None:
    """Say what an archive holds: where, when, from what source, how good, how large, which version."""
    from cranpm.store import Archive, describe

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


@app.command("map")
def draw_map(
    archive: ArchivePath,
    path: Annotated[Path, typer.Option("--out", help="PNG to write.")],
    day: Annotated[str | None, typer.Option(help="YYYY-MM-DD; not needed for elevation and land.")] = None,
    field: Annotated[str, typer.Option(help="pm25, wind, elevation, land, or a coarse channel such as t2m.")] = "pm25",
    stations: Annotated[bool, typer.Option(help="Draw the stations' readings as circles on pm25.")] = True,
) -> None:
    """Draw one field of an archive as a PNG map with coast, scale bar and units."""
    from cranpm.days import parse_day
    from cranpm.figures import draw_archive
    from cranpm.store import Archive

    draw_archive(Archive(archive), field, parse_day(day) if day else None, path, stations=stations)
    print(path)


@app.command()
def forecast(
    archive: Annotated[str, typer.Option(help="Archive that holds the start day.")],
    day: Annotated[str, typer.Option(help="Start day YYYY-MM-DD; its PM2.5 is the starting point.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the maps.")],
    leads: Annotated[str, typer.Option(help="Days ahead, comma-separated.")] = "1,2,3",
    quiet: Quiet = False,
) -> None:
    """Forecast PM2.5 at 1 km and draw a map for every lead. The method is persistence: tomorrow is like today.

    Where the archive also holds the days that were forecast, the error against them is printed.
    """
    from cranpm import forecast as forecasting
    from cranpm.days import parse_day
    from cranpm.store import Archive

    start, ahead = parse_day(day), forecasting.parse_leads(leads)
    with _progress("forecast", len(ahead), quiet) as advance:
        results = forecasting.draw_forecast(Archive(archive), start, ahead, folder, advance)
    table = Table(title=f"persistence forecast from {start}")
    for column in ("lead", "valid on", "mean, µg m⁻³", "RMSE, µg m⁻³", "map"):
        table.add_column(column, justify="right", no_wrap=True)
    for result in results:
        error = "no truth" if result.rmse_ugm3 is None else f"{result.rmse_ugm3:.2f}"
        table.add_row(f"T+{result.lead}", str(result.valid), f"{result.mean_ugm3:.2f}", error, result.path.name)
    out.print(table)
    print(f"maps in {folder}")


@app.command()
def bench(
    what: Annotated[str, typer.Argument(metavar="simulate|store", help="Which part to measure.")],
    domain: Annotated[str, typer.Option(help="Domain of the simulation benchmark.")] = "alps",
    days: Annotated[int, typer.Option(help="How many days to simulate.", min=3)] = 30,
    as_json: AsJson = False,
) -> None:
    """Measure speed on this machine, beside the machine's own copy bandwidth."""
    from cranpm import bench as benches

    with err.status(f"measuring {what}"):
        facts = benches.run(what, domain, days)
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    table = Table(show_header=False, title=f"bench {what}")
    for name, value in facts.items():
        table.add_row(name, f"{value:.3g}" if isinstance(value, float) else str(value))
    out.print(table)


def main() -> None:
    """Run a command; a refusal is one clear message and exit code 1, bad usage is 2."""
    try:
        app()
    except CranpmError as error:
        if _debug["on"]:
            raise
        err.print("[bold red]refused[/]", highlight=False)
        for name in ("expected", "found", "remedy"):
            err.print(f"  {name:9}", getattr(error, name), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
