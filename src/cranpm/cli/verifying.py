"""The command that verifies forecasts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as Shown

from cranpm.cli.console import VERIFICATION, Cluster, Jobs, Quiet, app, err, out, progress_bar
from cranpm.core.errors import CranpmError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from cranpm.archive.store import Archive
    from cranpm.baselines import DampedPersistence
    from cranpm.verification import Method, Scores, TextTable

PRINTED = ("table1-1km", "table1-25km", "table2")


@app.command(rich_help_panel=VERIFICATION)
def verify(
    archive: Annotated[str, typer.Option(help="The archive that holds the truth.")],
    days: Annotated[str, typer.Option(help="The start days: a year, a day, or FIRST..LAST.")],
    folder: Annotated[
        Path, typer.Option("--out", help="Folder for scores and tables. A command that was stopped continues there.")
    ],
    forecasts: Annotated[
        list[str] | None,
        typer.Option(help="Folder of forecasts, or anybody's CF NetCDF, as PLACE or NAME=PLACE; repeat for several."),
    ] = None,
    baselines: Annotated[
        str, typer.Option(help="Simple baselines, comma-separated: persistence, damped, climatology, cams; or none.")
    ] = "persistence",
    fit_days: Annotated[
        str | None, typer.Option(help="The training days on which damped persistence and climatology are fitted.")
    ] = None,
    leads: Annotated[
        str | None,
        typer.Option(help="The days ahead, as 1,2,3. The default is all that every forecast has."),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Take every n-th start day only.")] = 1,
    reference: Annotated[str, typer.Option(help="The method that the others are compared with.")] = "persistence",
    paper: Annotated[bool, typer.Option("--paper", help="Show the numbers of the paper in more columns.")] = False,
    similarity: Annotated[
        bool, typer.Option("--ssim/--no-ssim", help="Compute structural similarity, which takes the most time.")
    ] = True,
    means: Annotated[
        bool, typer.Option("--means", help="Also compare the maps of the mean over the days at the first lead.")
    ] = False,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    quiet: Quiet = False,
) -> None:
    """Compare forecasts with the truth in an archive: tables 1 and 2 of the paper, and what agencies report.

    Writes scores.json, tables.md and a CSV file of every table. A day that one method lacks is left out for all
    methods. Statistics that plugins register are computed and printed too.
    """
    from cranpm.archive.store import Archive
    from cranpm.core.cluster import open_pool
    from cranpm.core.days import parse_days, parse_leads
    from cranpm.verification import (
        STATISTICS,
        Plan,
        all_tables,
        common_leads,
        mean_maps,
        means_table,
        open_forecasts,
        score,
        summarise,
        write,
        write_means,
    )

    opened = Archive(archive)
    wanted = list(parse_days(days))[::every]
    methods: list[Method] = []
    for given in forecasts or ():
        name, _, place = given.rpartition("=")
        methods.append(open_forecasts(name or Path(place).name, place, opened.domain.fine))
    ahead = parse_leads(leads) if leads else common_leads(methods, wanted)
    methods = [*_simple(opened, baselines, fit_days, wanted, ahead), *methods]
    _check_reference(reference, [method.name for method in methods])
    plan = Plan(opened, methods, ahead, tuple(name for name in STATISTICS if similarity or name != "ssim"))
    with progress_bar("verify", 1, quiet) as bar, open_pool(jobs, cluster) as pool:
        scores = score(plan, wanted, folder, pool, bar.reach)
    with err.status("summing up", spinner="dots"):
        summary = summarise(scores, reference)
        tables = all_tables(scores, summary, paper)
    if means:
        with progress_bar("mean maps", len(scores.days), quiet) as bar:
            maps = mean_maps(plan, scores.days, ahead[0], bar.reach)
        write_means(maps, folder / "means.nc")
        tables.append(means_table(maps))
    write(scores, summary, tables, folder)
    _print_result(scores, tables, folder)


def _check_reference(reference: str, names: list[str]) -> None:
    if reference not in names:
        raise CranpmError(
            expected=f"--reference among {', '.join(names)}", found=reference, remedy="Name one of the methods."
        )


def _print_result(scores: "Scores", tables: "Sequence[TextTable]", folder: Path) -> None:
    """The main tables, the days that were left out, and where all tables are."""
    for table in tables:
        if table.name in PRINTED:
            out.print(_shown(table))
    for day, reason in scores.left_out.items():
        print(f"left out: {day}: {reason}")
    print(f"{folder / 'tables.md'}  ({len(scores.days)} start days)")


def _simple(
    archive: "Archive", baselines: str, fit_days: str | None, verified: "Sequence[date]", leads: tuple[int, ...]
) -> "list[Method]":
    """The simple baselines; what is fitted must not use the days that are verified."""
    from cranpm.archive.day_data import Quality
    from cranpm.baselines import FITTED, fit_damped, simple
    from cranpm.core.days import check_leakage, parse_days, usable
    from cranpm.verification import Simple

    names = [] if baselines == "none" else baselines.split(",")
    fitted: DampedPersistence | None = None
    if fit_days and set(names) & set(FITTED):
        sound = [day for day in archive.days if archive.quality(day) is Quality.GOOD]
        learned = usable(sound, parse_days(fit_days), leads)
        if not learned:
            raise CranpmError(
                expected="days to fit on in the archive", found=f"none in {fit_days}", remedy="Give other --fit-days."
            )
        check_leakage(learned, verified, leads)
        with err.status("fitting climatology and damping", spinner="dots"):
            fitted = fit_damped(archive, learned, leads)
    return [Simple(name, simple(name, archive, fitted)) for name in names]


def _shown(table: "TextTable") -> Shown:
    """RMSE and its change alone, without intervals: what fits a terminal. The files have everything."""
    shown = Shown(title=table.title, caption="* certain at 95 %; intervals and all other figures are in the files")
    rmse, change = ([i for i, name in enumerate(table.header) if what in name] for what in (" RMSE", "change against"))
    pairs = list(zip([i for i in rmse if table.header[i].endswith("RMSE")], change, strict=True))
    shown.add_column(table.header[0])
    for first, _ in pairs:
        shown.add_column(table.header[first], justify="right")
    for row in table.rows:
        shown.add_row(row[0], *(f"{row[first]}  {row[second].split(' [')[0]:>9}" for first, second in pairs))
    return shown
