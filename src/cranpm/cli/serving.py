"""The command that shows forecasts in a browser."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from cranpm.cli.console import FORECASTS, app

MOST_CONNECTIONS = 512
CACHE_MB = "128"


@app.command(rich_help_panel=FORECASTS)
def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of forecasts, as `cranpm forecast --out`.")],
    archive: Annotated[
        str | None,
        typer.Option(help="Archive for history, stations, change and, where it has the valid day, the error."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    stale_after: Annotated[
        float, typer.Option(min=0, help="Hours after which the newest forecast is stale and /api/health fails.")
    ] = 36.0,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Another site that may read the API, as https://host; repeat for several.")
    ] = None,
) -> None:
    """Show a folder of forecasts as a web map with an API, read-only."""
    os.environ.setdefault("GDAL_CACHEMAX", CACHE_MB)  # read when GDAL first needs it
    import uvicorn

    from cranpm.views.serve import create_app
    from cranpm.views.serve.connections import PromptProtocol

    app = create_app(folder, archive, stale_after, tuple(allow_origin or ()))
    runs, left_out = app.state.service.publication.runs("tif")
    print(f"{len(runs)} forecasts in {folder}" + (f", the newest from {runs[0].day}" if runs else ""))
    for run in runs:
        if not run.checked:
            print(f"not checked: {run.day} was published without checksums")
    for day, error in left_out.items():
        print(f"left out: {day}: {error}")
    print(f"open http://{host}:{port}  (stop with Ctrl-C)")
    limits: dict[str, Any] = {"limit_concurrency": MOST_CONNECTIONS, "http": PromptProtocol}
    uvicorn.run(app, host=host, port=port, log_level="error", server_header=False, **limits)
