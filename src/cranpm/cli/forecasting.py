"""Commands that forecast and read forecasts."""

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from cranpm.cli.console import AsJson, Quiet, err, out, progress_bar

if TYPE_CHECKING:
    from cranpm.archive.store import Archive
    from cranpm.core.grid import Array, Window
    from cranpm.forecasting.engine import Forecast


def forecast(
    archive: Annotated[str, typer.Option(help="Archive that holds the start day and the day before.")],
    day: Annotated[str, typer.Option(help="Start day YYYY-MM-DD, or a range FIRST..LAST.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the products; one of each day.")],
    weights: Annotated[
        str,
        typer.Option(
            help="Folder of weights; `shipped`: those of the package, for simulated Europe; `persistence`: like today."
        ),
    ] = "shipped",
    leads: Annotated[str, typer.Option(help="Days ahead, comma-separated.")] = "1,2,3",
    every: Annotated[int, typer.Option(min=1, help="Of a range, every n-th start day.")] = 1,
    region: Annotated[str | None, typer.Option(help='Only a part: "Po Valley", ..., or a box N,W,S,E.')] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="nc, zarr, tif, png; repeat for several. Default nc, tif, png.")
    ] = None,
    degrade: Annotated[
        bool, typer.Option("--degrade", help="Let something stand in for missing inputs, and label the product.")
    ] = False,
    precision: Annotated[str | None, typer.Option(help="fp32 or bf16. Default: bf16 where the machine has it.")] = None,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the network first, for many days.")] = False,
    quiet: Quiet = False,
) -> None:
    """Forecast PM2.5 at 1 km and publish NetCDF, GeoTIFF and maps, checked and all at once.

    Where the archive also holds the days that were forecast, the errors against them are printed beside persistence.
    Several days can be shared among processes: `torchrun --nproc-per-node 2 -m cranpm forecast ...`.
    """
    from cranpm.archive.store import Archive
    from cranpm.core.days import parse_days, parse_leads
    from cranpm.core.grid import EVERYWHERE
    from cranpm.core.regions import parse_region
    from cranpm.forecasting.engine import predict
    from cranpm.forecasting.publication.writer import check_formats, publish
    from cranpm.network.precision import parse_precision
    from cranpm.weights import find_weights

    wanted = tuple(formats or ("nc", "tif", "png"))
    check_formats(wanted)
    ahead, opened, chosen = parse_leads(leads), Archive(archive), find_weights(weights)
    window = parse_region(region, opened.domain.fine) if region else EVERYWHERE
    rank, processes = (int(os.environ.get(name, value)) for name, value in (("RANK", "0"), ("WORLD_SIZE", "1")))
    for start in list(parse_days(day))[::every][rank::processes]:
        began = time.perf_counter()
        with progress_bar(f"forecast {start}", 1, quiet) as bar:
            result = predict(
                *(opened, start, chosen, ahead, window),
                degrade=degrade,
                precision=parse_precision(precision) if precision else None,
                compiled=compiled,
                on_tile=bar.reach,
            )
        computed = time.perf_counter() - began
        with err.status("writing") as status:
            product = publish(result, opened, folder, wanted, lambda name: status.update(f"writing {name}"))
        took = time.perf_counter() - began - computed
        out.print(_score_table(result, opened, window))
        for fault in result.degraded:
            print(f"degraded: {fault}")
        print(f"{product}  (forecast {computed:.1f} s, files {took:.1f} s)")


def _score_table(result: "Forecast", archive: "Archive", window: "Window") -> Table:
    """Mean of each lead and, where the archive knows better, errors against it and against persistence; by area."""
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


def point(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="NetCDF file of a forecast.")],
    lat: Annotated[float, typer.Option(help="Degrees north.")],
    lon: Annotated[float, typer.Option(help="Degrees east.")],
    as_json: AsJson = False,
) -> None:
    """The forecast for the pixel that holds a point."""
    from cranpm.forecasting.publication.writer import point as read

    rows: list[dict[str, Any]] = read(path, lat, lon)
    if as_json:
        print(json.dumps([row | {"pm2p5": row["pm2p5"] if np.isfinite(row["pm2p5"]) else None} for row in rows]))
        return
    table = Table(title=f"pixel at {rows[0]['lat']:.3f} N, {rows[0]['lon']:.3f} E")
    for column in ("lead", "valid on", "PM2.5, µg m⁻³", "quality"):
        table.add_column(column, justify="right")
    for row in rows:
        value = f"{row['pm2p5']:.1f}" if np.isfinite(row["pm2p5"]) else "none: sea or missing"
        table.add_row(f"T+{row['lead']}", row["valid"], value, row["quality"])
    out.print(table)
