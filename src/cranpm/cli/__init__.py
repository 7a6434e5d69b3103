"""The command line: thin, every command a few lines around the library. Every file of this folder adds its own."""

import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated

import typer

from cranpm import __version__
from cranpm.cli.console import app, err, printable
from cranpm.core.errors import CranpmError
from cranpm.core.registry import load_plugins

for _file in iter_modules(__path__):
    import_module(f"cranpm.cli.{_file.name}")


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
        load_plugins()
        app()
    except CranpmError as error:
        if _debug["on"]:
            raise
        err.print("[bold red]refused[/]", highlight=False)
        for name in ("expected", "found", "remedy"):
            err.print(f"  {name:9}", printable(getattr(error, name)), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
