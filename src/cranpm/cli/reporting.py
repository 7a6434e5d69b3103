"""The command that writes a report."""

from pathlib import Path
from typing import Annotated

import typer

from cranpm.cli.console import FORECASTS, app, err


@app.command(rich_help_panel=FORECASTS)
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `cranpm forecast` or `cranpm verify` wrote: OUT, or OUT/DAY.")
    ],
    path: Annotated[Path | None, typer.Option("--out", help="HTML file. Default: DIR.html beside the folder.")] = None,
    archive: Annotated[
        str | None,
        typer.Option(help="Archive with the valid days, for the errors of a forecast; not for verifications."),
    ] = None,
) -> None:
    """Write one HTML file about a forecast or a verification: it needs no network and prints well."""
    from cranpm.archive.store import Archive
    from cranpm.views.report import write_report

    target = path or Path(f"{folder.absolute()}.html")
    with err.status("writing the report"):
        write_report(folder, target, Archive(archive) if archive else None)
    print(f"{target}  ({target.stat().st_size / 1e6:.1f} MB)")
