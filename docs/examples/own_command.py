"""An own command: `cranpm dirtiest PRODUCTS` names the towns with the highest forecast of the newest run.

Put this module into a package whose entry points name it in the group `cranpm.plugins`.
"""

from typing import Annotated

import typer

import cranpm
from cranpm.cli.console import FORECASTS, app
from cranpm.forecasting.publication import points


@app.command(rich_help_panel=FORECASTS)
def dirtiest(
    products: Annotated[str, typer.Argument(help="Folder that `cranpm forecast --out` wrote.")],
    count: Annotated[int, typer.Option(min=1, help="How many towns to print.")] = 5,
) -> None:
    """Print the towns with the highest PM2.5 (ug m-3) on the first day of the newest forecast."""
    run = cranpm.open_publication(products).newest()
    towns = points.towns(run.grid)
    values = {town.name: points.point(run, town.lat, town.lon).forecast[0].pm25 for town in towns}
    known = {name: value for name, value in values.items() if value is not None}
    for name in sorted(known, key=lambda name: -known[name])[:count]:
        print(f"{name}: {known[name]:.1f}")
