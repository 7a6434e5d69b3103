"""Commands about the network itself and its weights."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from cranpm.cli.console import NETWORKS, AsJson, Overrides, app, err, out, printable

if TYPE_CHECKING:
    from cranpm.network import ForecastSettings
    from cranpm.network.cost import Cost
    from cranpm.weights import Weights

model_app = typer.Typer(help="Look at the network.", no_args_is_help=True)
weights_app = typer.Typer(help="Import and inspect weights.", no_args_is_help=True)
app.add_typer(model_app, name="model", rich_help_panel=NETWORKS)
app.add_typer(weights_app, name="weights", rich_help_panel=NETWORKS)
Preset = Annotated[str, typer.Option(help="paper, small, tiny or released.")]


def chosen(preset: str, override: list[str] | None) -> "ForecastSettings":
    """Settings of a preset with single settings changed."""
    from cranpm.core.settings import load
    from cranpm.network import preset as find

    settings = find(preset)
    return load(type(settings), None, override or (), **settings.model_dump())


@model_app.command()
def summary(preset: Preset = "paper", override: Overrides = None, as_json: AsJson = False) -> None:
    """Parameters and operations of each part, and the memory that forecasting and training need.

    Any switch can be set, for example `--set fusion=add` or `--set fine.depth=3`.
    """
    from cranpm.network.cost import cost

    result = cost(chosen(preset, override))
    if as_json:
        totals = {f"{stage}_flops": result.flops(stage) for stage in ("day", "tile")}
        print(json.dumps(asdict(result) | totals, indent=1))
    else:
        _print_cost(preset, result)


def _print_cost(preset: str, result: "Cost") -> None:
    table = Table(title=f"network {preset}: {result.parameters / 1e6:,.2f} M parameters")
    for column in ("part", "in", "out", "parameters", "GFLOP"):
        table.add_column(column, justify="right" if column in ("parameters", "GFLOP") else "left", no_wrap=True)
    for stage, title in (("day", "once per day"), ("tile", "every tile and lead")):
        table.add_row(title, "", "", "", f"{result.flops(stage) / 1e9:,.2f}", style="bold")
        for part in result.parts:
            if part.stage == stage:
                shapes = ("×".join(map(str, shape)) for shape in (part.takes, part.gives))
                table.add_row(f"  {part.name}", *shapes, f"{part.parameters:,}", f"{part.flops / 1e9:,.2f}")
        table.add_section()
    out.print(table)
    memory = Table(title="memory of tensors in fp32, estimated", show_header=False)
    for name, size in (
        ("weights", result.weights_bytes),
        ("a day's context", result.context_bytes),
        ("forecast, one tile at a time", result.forecast_bytes),
        ("training, one day with one tile, AdamW", result.training_bytes),
    ):
        memory.add_row(name, f"{size / 1e6:,.0f} MB")
    out.print(memory)


@weights_app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The authors' .ckpt, or their published folder.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")],
) -> None:
    """Turn weights that the authors published into a safe folder.

    A checkpoint is a pickle, which can run code: it is opened in a process that can do nothing but compute (no
    network, no files, no other processes), and only tensors are taken from it. No other command opens one.
    """
    from cranpm.weights import import_weights

    with err.status(f"importing {source}"):
        weights = import_weights(source, folder)
    _print_weights(folder, weights)


@weights_app.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of weights.")], as_json: AsJson = False
) -> None:
    """Check every byte of a folder of weights and say what it holds."""
    from cranpm.weights import load_weights

    weights = load_weights(folder)
    if as_json:
        print(json.dumps({"sha256": weights.sha256} | weights.card.model_dump(mode="json"), indent=1))
    else:
        _print_weights(folder, weights)


def _print_weights(folder: Path, weights: "Weights") -> None:
    from cranpm.network.cost import size

    card = weights.card
    table = Table(show_header=False, title=Text(f"weights {folder}"))
    for name, value in (
        ("network", f"{card.network.kind}, {size(weights.network):,} parameters"),
        ("leads", ", ".join(f"T+{lead}" for lead in card.leads)),
        ("channels", ", ".join(name for name, _ in card.channels)),
        ("grids", f"coarse {card.coarse_step} degrees, fine {card.fine_step} degrees"),
        ("trained on", card.data or "not recorded"),
        ("trained where", card.domain or "not recorded"),
        ("days ahead", card.days_ahead),
        ("licence", card.licence),
        ("written by", card.software),
        ("sha256", weights.sha256),
    ):
        table.add_row(name, Text(printable(value), overflow="fold"))
    out.print(table)
