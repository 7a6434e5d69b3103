"""The command line: thin, every command a few lines around the library."""

import sys
from typing import Annotated

import typer

from cranpm import __version__
from cranpm.cli import (
    archive,
    benches,
    drawing,
    experimenting,
    forecasting,
    ingesting,
    network,
    reporting,
    serving,
    training,
    verifying,
)
from cranpm.cli.console import err, printable
from cranpm.core.errors import CranpmError

app = typer.Typer(
    name="cranpm",
    help="Forecast daily PM2.5 at 1 km for a continent, one to three days ahead.",
    epilog="Start here: cranpm simulate --domain alps --days 2021-01-01..2021-02-28 alps.archive",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(archive.simulate)
app.command()(ingesting.fetch)
app.command()(ingesting.validate)
app.command()(ingesting.ingest)
app.command()(ingesting.export)
app.command()(archive.info)
app.command("map")(archive.draw_map)
app.command()(forecasting.forecast)
app.command()(forecasting.point)
app.command()(reporting.report)
app.command()(serving.serve)
app.command()(verifying.verify)
app.command()(drawing.figure)
app.command()(drawing.animate)
app.command()(training.train)
app.command()(training.finetune)
app.command()(experimenting.experiment)
app.command()(experimenting.attention)
app.command()(training.doctor)
app.add_typer(network.model_app, name="model")
app.add_typer(network.weights_app, name="weights")
app.add_typer(benches.app, name="bench")


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


def main() -> None:
    """Run a command; a refusal is one clear message and exit code 1, bad usage is 2."""
    try:
        app()
    except CranpmError as error:
        if _debug["on"]:
            raise
        err.print("[bold red]refused[/]", highlight=False)
        for name in ("expected", "found", "remedy"):
            err.print(f"  {name:9}", printable(getattr(error, name)), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
