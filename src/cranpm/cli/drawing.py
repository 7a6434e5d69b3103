"""Commands that draw: figures from our products, and episodes as moving maps."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranpm.cli.console import VERIFICATION, Quiet, app, err, progress_bar

if TYPE_CHECKING:
    from cranpm.archive.store import Archive
    from cranpm.verification import CfForecasts, Product

Forecasts = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=DIR", help="A folder of forecasts, or NAME=FOLDER. Repeat the option for several."),
]
Region = Annotated[str | None, typer.Option(help='A name such as "Po Valley", or a box N,W,S,E.')]


@app.command(rich_help_panel=VERIFICATION)
def figure(
    path: Annotated[Path, typer.Option("--out", help="The .png, .svg or .pdf file to write; with --all, a folder.")],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="overview, maps, leads, regions, ablation, counterfactuals, transfer, target, reliability, spectra, "
            "or a figure of a plugin.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Draw every figure whose inputs are given.")] = False,
    archive: Annotated[str | None, typer.Option(help="The archive that holds the truth.")] = None,
    forecasts: Forecasts = None,
    verified: Annotated[Path | None, typer.Option(help="The folder that `cranpm verify` wrote.")] = None,
    experiments: Annotated[Path | None, typer.Option(help="The folder that `cranpm experiment` wrote.")] = None,
    day: Annotated[
        str | None, typer.Option(help="The day, YYYY-MM-DD. Where a forecast is drawn, its start day.")
    ] = None,
    lead: Annotated[
        int | None, typer.Option(min=1, help="The number of days ahead. The default is the first lead, or all.")
    ] = None,
    region: Region = None,
    dpi: Annotated[
        int, typer.Option(min=20, max=1200, help="Dots per inch of .png, and of maps in .svg and .pdf.")
    ] = 150,
    small: Annotated[
        bool, typer.Option("--small", help="Write PNG with 256 colours, which has a third of the size.")
    ] = False,
    methods: Annotated[
        str | None, typer.Option(help="The verified methods to draw, comma-separated. The default is all.")
    ] = None,
) -> None:
    """Draw a figure of the paper, or another, from an archive, forecasts, a verification or experiments.

    With `--all`, every figure is drawn whose inputs are given. For each of the others, the inputs that it needs are
    printed.
    """
    from cranpm.archive.store import Archive
    from cranpm.core.days import parse_day
    from cranpm.core.errors import CranpmError
    from cranpm.views.figures.catalogue import FIGURES, draw_all, draw_figure
    from cranpm.views.figures.inputs import FigureInputs

    if everything == (name is not None):
        raise CranpmError(
            expected=f"either --all or one figure: {', '.join(FIGURES)}",
            found="both" if everything else "neither",
            remedy="For example cranpm figure leads --verified FOLDER --out leads.png.",
        )
    opened = Archive(archive) if archive else None
    inputs = FigureInputs(
        archive=opened,
        forecasts=_products(forecasts, opened),
        verified=verified,
        experiments=experiments,
        day=parse_day(day) if day else None,
        lead=lead,
        region=region,
        methods=tuple(methods.split(",")) if methods else (),
    )
    if name is not None:
        with err.status(f"drawing {name}"):
            draw_figure(name, inputs, path, dpi, small)
        print(path)
        return
    outcomes = {}
    for drawn, outcome in draw_all(inputs, path, dpi, small):
        outcomes[drawn] = outcome
        print(f"{drawn:16} {outcome}")
    if any(outcome.startswith("refused") for outcome in outcomes.values()):
        raise typer.Exit(1)


@app.command(rich_help_panel=VERIFICATION)
def animate(
    archive: Annotated[str, typer.Option(help="The archive that holds the truth.")],
    days: Annotated[str, typer.Option(help="The days to show: FIRST..LAST, a day or a year.")],
    path: Annotated[Path, typer.Option("--out", help="The .gif file to write, or .mp4 where ffmpeg is installed.")],
    forecasts: Annotated[
        str | None, typer.Option(metavar="NAME=DIR", help="A folder of forecasts to show beside the truth.")
    ] = None,
    lead: Annotated[int, typer.Option(min=1, help="The number of days ahead of these forecasts.")] = 1,
    region: Region = None,
    quiet: Quiet = False,
) -> None:
    """Show an episode as a moving map: the truth, and beside it forecasts for the same days if they are given."""
    from cranpm.archive.store import Archive
    from cranpm.core.days import parse_days
    from cranpm.views.figures.animation import animate as write_frames
    from cranpm.views.figures.inputs import FigureInputs

    opened, span = Archive(archive), parse_days(days)
    inputs = FigureInputs(opened, _products([forecasts] if forecasts else None, opened), lead=lead, region=region)
    with progress_bar("animate", len(span), quiet) as bar:
        absent = write_frames(inputs, span, path, bar.reach)
    for name, gone in absent.items():
        print(f"nothing to show of {name} on {len(gone)} days: {', '.join(map(str, gone))}")
    print(f"{path}  ({len(span)} days, {path.stat().st_size / 1e6:.1f} MB)")


def _products(forecasts: list[str] | None, archive: "Archive | None") -> "tuple[Product | CfForecasts, ...]":
    """Folders of forecasts, NAME=FOLDER or FOLDER, on the archive's grid."""
    from cranpm.core.errors import CranpmError
    from cranpm.verification.methods import open_forecasts

    if forecasts and archive is None:
        raise CranpmError(expected="--archive with --forecasts", found="no archive", remedy="Add --archive.")
    named = [option.rpartition("=") for option in forecasts or ()]
    grid = archive.domain.fine if archive else None
    return tuple(open_forecasts(name or Path(place).name, place, grid) for name, _, place in named if grid)
