"""Commands that forecast and read forecasts."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.table import Table

from cranpm.cli.console import FORECASTS, AsJson, Quiet, app, out, progress_bar
from cranpm.core.errors import CranpmError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from cranpm.archive.store import Archive
    from cranpm.core.grid import Array, Window
    from cranpm.forecasting.forecast import Forecast
    from cranpm.forecasting.hindcast import Job


@app.command(rich_help_panel=FORECASTS)
def forecast(
    archive: Annotated[str, typer.Option(help="Archive that holds the start day and the day before.")],
    day: Annotated[str, typer.Option(help="Start day YYYY-MM-DD, or a range FIRST..LAST.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the products, one per start day.")],
    weights: Annotated[
        str,
        typer.Option(
            help="Folder of weights; `shipped`: those of the package, for simulated Europe; `persistence`: like today."
        ),
    ] = "shipped",
    leads: Annotated[
        str | None, typer.Option(help="Days ahead, comma-separated. Default: all that the weights were trained for.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Of a range, every n-th start day.")] = 1,
    region: Annotated[str | None, typer.Option(help='Only a part: "Po Valley", ..., or a box N,W,S,E.')] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="nc, zarr, tif, png; repeat for several. Default nc, tif, png.")
    ] = None,
    degrade: Annotated[
        bool, typer.Option("--degrade", help="Replace missing inputs, and label the product as degraded.")
    ] = False,
    perfect: Annotated[
        bool,
        typer.Option(
            "--perfect-prognosis",
            help="For research, with --degrade: weights that read the days ahead read their analyses, not forecasts.",
        ),
    ] = False,
    precision: Annotated[str | None, typer.Option(help="fp32 or bf16. Default: bf16 where the machine has it.")] = None,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the network first, for many days.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the start days of a range.")] = 1,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a dask scheduler, tcp://HOST:PORT, whose workers share the days.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Forecast PM2.5 at 1 km and publish NetCDF, GeoTIFF and maps, checked and all at once.

    Where the archive also holds the days that were forecast, the errors are printed beside those of persistence.
    Of a range, days that were published before from the same archive and weights are kept.
    """
    from cranpm.archive.store import Archive
    from cranpm.core.cluster import open_pool
    from cranpm.core.days import parse_days, parse_leads
    from cranpm.core.grid import EVERYWHERE
    from cranpm.core.regions import parse_region
    from cranpm.forecasting.engine import default_leads
    from cranpm.forecasting.hindcast import Job
    from cranpm.forecasting.publication import check_formats
    from cranpm.network.precision import best_precision, parse_precision
    from cranpm.views.figures import product_maps  # noqa: F401  registers the format png
    from cranpm.weights import find_weights

    _refuse_torchrun()
    wanted, days = tuple(formats or ("nc", "tif", "png")), list(parse_days(day))[::every]
    check_formats(wanted)
    opened, chosen = Archive(archive), find_weights(weights)
    job = Job(
        archive=opened,
        weights=weights,
        weights_sha256=chosen.sha256 if chosen else None,
        folder=folder.absolute(),
        leads=parse_leads(leads) if leads else default_leads(chosen),
        formats=wanted,
        region=parse_region(region, opened.domain.fine) if region else EVERYWHERE,
        degrade=degrade,
        prognosis="perfect" if perfect else "forecast",
        precision=parse_precision(precision) if precision else best_precision(),
        compiled=compiled,
        keep=len(days) > 1,
    )
    with open_pool(min(jobs, len(days)), cluster) as pool, progress_bar("forecast", len(days), quiet) as bar:
        alone = len(days) == 1 and pool.client is None
        work: Callable[..., Printed] = partial(_one_day, on_tile=bar.reach) if alone else _one_day
        for _, printed in pool.each(work, days, job):
            printed.show()
            bar()


@dataclass(frozen=True)
class Printed:
    """What is printed of a start day; workers send it back."""

    table: Table | None
    lines: tuple[str, ...]

    def show(self) -> None:
        if self.table is not None:
            out.print(self.table)
        for line in self.lines:
            print(line)


def _one_day(day: "date", job: "Job", on_tile: "Callable[[int, int], None]" = lambda done, total: None) -> Printed:
    """Forecast and publish one start day; what to print of it."""
    from cranpm.forecasting.hindcast import forecast_day
    from cranpm.views.figures import product_maps  # noqa: F401  registers the format png, also in a worker

    done = forecast_day(day, job, on_tile)
    if done.forecast is None:
        return Printed(None, (f"{done.path}  (kept: published before from the same archive and weights)",))
    faults = [f"degraded: {fault}" for fault in done.forecast.degraded]
    end = f"{done.path}  (forecast {done.computed_s:.1f} s, files {done.written_s:.1f} s)"
    return Printed(_score_table(done.forecast, job.archive, job.region), (*faults, end))


def _score_table(result: "Forecast", archive: "Archive", window: "Window") -> Table:
    """Mean of each lead and, where the archive has the valid day, the errors of forecast and persistence; by area."""
    from cranpm.verification.tally import Tally

    known, area = set(archive.days), result.grid.row_area_km2[:, None]
    table = Table(title=f"{result.provenance['method']} forecast from {result.day}, µg m⁻³")
    for column in ("lead", "valid on", "mean", "RMSE", "persistence", "skill"):
        table.add_column(column, justify="right", no_wrap=True)
    today = archive.pm25(result.day, window)
    for lead in result.leads:
        valid, cells = result.valid(lead), ["no truth", "", ""]
        if valid in known:
            truth = archive.pm25(valid, window)
            own, reference = (float(Tally.of(field, truth, area).rmse) for field in (result.of(lead), today))
            cells = [f"{own:.2f}", f"{reference:.2f}", f"{100 * (1 - own / reference):+.1f} %" if reference else ""]
        table.add_row(f"T+{lead}", str(valid), f"{_mean(result.of(lead), area):.2f}", *cells)
    return table


def _mean(field: "Array", area: "Array") -> float:
    return float(np.nansum(field * area) / (np.isfinite(field) * area).sum())


def _refuse_torchrun() -> None:
    """Processes that torchrun started would all make the same forecasts."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise CranpmError(
            expected="one process",
            found=f"{os.environ['WORLD_SIZE']} of torchrun or SLURM, which would all make the same forecasts",
            remedy="Share the days of a range with --jobs N or --cluster tcp://HOST:PORT instead.",
        )


@app.command(rich_help_panel=FORECASTS)
def point(
    path: Annotated[
        Path, typer.Argument(metavar="PRODUCT", help="NetCDF file of a forecast, OUT/DAY, or OUT for the newest.")
    ],
    lat: Annotated[float, typer.Option(help="Degrees north, -90 to 90.")],
    lon: Annotated[float, typer.Option(help="Degrees east, -180 to 180.")],
    as_json: AsJson = False,
) -> None:
    """Print the forecast for the pixel that holds a point."""
    from cranpm.core.grid import check_point
    from cranpm.forecasting.publication import find_product, points

    check_point(lat, lon)
    answer = points.point(find_product(path), lat, lon)
    if as_json:
        print(answer.model_dump_json())
        return
    table = Table(title=f"pixel at {answer.lat:.3f} N, {answer.lon:.3f} E")
    for column in ("lead", "valid on", "PM2.5, µg m⁻³", "index"):
        table.add_column(column, justify="right")
    for row in answer.forecast:
        value = "none: sea or missing" if row.pm25 is None else f"{row.pm25:.1f}"
        table.add_row(f"T+{row.lead}", str(row.valid), value, row.index or "")
    out.print(table)
    print(f"quality: {answer.quality}" + ("" if answer.checked else "; published without checksums, not checked"))
