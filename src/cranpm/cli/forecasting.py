"""Commands that forecast."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cranpm.cli.console import Quiet, out, progress_bar


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
    with progress_bar("forecast", len(ahead), quiet) as advance:
        results = forecasting.draw_forecast(Archive(archive), start, ahead, folder, advance)
    table = Table(title=f"persistence forecast from {start}")
    for column in ("lead", "valid on", "mean, µg m⁻³", "RMSE, µg m⁻³", "map"):
        table.add_column(column, justify="right", no_wrap=True)
    for result in results:
        error = "no truth" if result.rmse_ugm3 is None else f"{result.rmse_ugm3:.2f}"
        table.add_row(f"T+{result.lead}", str(result.valid), f"{result.mean_ugm3:.2f}", error, result.path.name)
    out.print(table)
    print(f"maps in {folder}")
