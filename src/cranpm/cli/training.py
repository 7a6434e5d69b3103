"""Commands that train, tune, and look before a long run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cranpm.cli.console import NETWORKS, Overrides, Quiet, app, err, out

if TYPE_CHECKING:
    from cranpm.training import TrainSettings

SettingsFile = Annotated[
    Path, typer.Argument(metavar="SETTINGS.toml", help="A file, or the name of shipped settings, as alps.toml.")
]
LearnFrom = Annotated[str, typer.Option("--archive", help="Archive to learn from.")]
RunFolder = Annotated[Path, typer.Option("--out", help="Folder of the run.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the run's last state.")]


@app.command(rich_help_panel=NETWORKS)
def train(
    settings: SettingsFile,
    archive: LearnFrom,
    folder: RunFolder,
    model: Annotated[
        str | None,
        typer.Option(
            help="Train another network on the same grid, tiles and leads: convlstm, simvp, earthformer, climax, "
            "topoflow (small ones), boosting (trees, pixel by pixel), or one of a plugin."
        ),
    ] = None,
    resume: Resume = False,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Train a network, score it after every epoch and, at the end, on test days.

    A run that was stopped is resumed with `--resume` and gives the same result to the bit. Several
    processes: `torchrun --nproc-per-node 2 -m cranpm train ...`.
    """
    from cranpm.training import load_settings

    changes = [*([f"baseline.kind={model}"] if model else []), *(override or ())]
    _run(load_settings(settings, changes), archive, folder, resume, quiet)


@app.command(rich_help_panel=NETWORKS)
def finetune(
    weights: Annotated[Path, typer.Argument(metavar="WEIGHTS", help="Folder of weights to begin with, or shipped.")],
    settings: SettingsFile,
    archive: LearnFrom,
    folder: RunFolder,
    part: Annotated[
        str,
        typer.Option(
            help="What may change: all; head (the decoder of CRAN-PM); lora (low-rank changes of the attentions)."
        ),
    ] = "all",
    rank: Annotated[int, typer.Option(min=1, help="Rank of the changes, for lora.")] = 8,
    resume: Resume = False,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Train on from given weights, with their network and scales; `[network]` of the settings is not used.

    What is written are ordinary weights: low-rank changes are merged into the matrices.
    """
    from cranpm.training import load_settings
    from cranpm.training.finetune import tunable
    from cranpm.weights import load_weights

    network = tunable(load_weights(weights)).settings.model_dump(mode="json")
    chosen = {"weights": str(weights), "part": part, "rank": rank}
    _run(load_settings(settings, override or (), network=network, finetune=chosen), archive, folder, resume, quiet)


@app.command(rich_help_panel=NETWORKS)
def doctor(
    settings: Annotated[
        Path | None, typer.Argument(metavar="SETTINGS.toml", help="Settings of the run to look at.")
    ] = None,
    archive: Annotated[str | None, typer.Option("--archive", help="Archive that the run would learn from.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder that the run would write.")] = Path(),
    sources: Annotated[bool, typer.Option("--sources", help="Look at keys and providers of data, too.")] = False,
    override: Overrides = None,
) -> None:
    """Check this machine and, with settings and an archive, a run: memory, disk and time before it begins.

    Takes a few steps of the run in a temporary folder. The exit code is 1 where memory or disk do not suffice.
    """
    from cranpm.archive.store import Archive
    from cranpm.core.errors import CranpmError
    from cranpm.operate.doctor import machine_checks, run_checks, source_checks
    from cranpm.training import load_settings

    if (settings is None) != (archive is None):
        raise CranpmError(
            expected="settings and --archive together", found="one of the two", remedy="Give both, or none of them."
        )
    checks = machine_checks(folder) + (source_checks() if sources else [])
    if settings and archive:
        wanted = load_settings(settings, override or ())
        with err.status("taking a few steps of the run", spinner="dots"):
            checks += run_checks(wanted, Archive(archive), folder)
    table = Table(show_header=False)
    signs = {"good": "[green]good[/]", "note": "[yellow]note[/]", "bad": "[bold red]bad[/]"}
    for check in checks:
        table.add_row(signs[check.verdict], check.name, check.found, check.remedy)
    out.print(table)
    if any(check.verdict == "bad" for check in checks):
        raise typer.Exit(1)


def _run(wanted: "TrainSettings", archive: str, folder: Path, resume: bool, quiet: bool) -> None:
    """Train with a progress bar and print the scores on test days."""
    from cranpm.archive.store import Archive
    from cranpm.training.training_runs import begin_run

    with err.status("checking days, fitting scales and damped persistence on training days", spinner="dots"):
        run = begin_run(wanted, Archive(archive), folder, resume)
    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]} · {task.fields[speed]:.1f} tiles/s · {task.fields[skill]}"),
    )
    shown = not quiet and run.first_process
    with Progress(*columns, console=err, disable=not shown, transient=True) as bar:
        task = bar.add_task(
            "train", total=run.steps, completed=run.done, epoch=1, loss="", speed=0.0, skill="no score yet"
        )

        def on_step(row: dict[str, float]) -> None:
            named = ("loss", "pixel", "frequency", "station")  # what is fitted at once has no loss of a step
            terms = " ".join(f"{name} {row[name]:.3f}" for name in named if name in row)
            bar.update(task, completed=run.done, loss=terms, speed=row["samples_a_second"], epoch=run.epoch)

        def on_epoch(row: dict[str, float]) -> None:
            text = ", ".join(f"T+{lead} {100 * row[f'skill_damped_t{lead}']:+.1f} %" for lead in run.model.leads)
            bar.update(task, skill=f"skill relative to damping {text}")

        scores = run.train(on_step, on_epoch)
    if run.first_process:
        out.print(_score_table(scores, f"PM2.5 on unseen days {wanted.splits.test}, µg m⁻³"))
        print(f"weights in {folder / 'best'}")


def _score_table(scores: Any, title: str) -> Table:
    table = Table(title=title)
    for column in ("", "network\nRMSE", "\nMAE", "persistence\nRMSE", "\nskill", "damped\nRMSE", "\nskill"):
        table.add_column(column, justify="right", no_wrap=True)
    for lead in scores.leads:
        table.add_row(
            f"T+{lead}",
            f"{scores.rmse(lead):.2f}",
            f"{scores.mae(lead):.2f}",
            *(
                cell
                for reference in ("persistence", "damped")
                for cell in (f"{scores.rmse(lead, reference):.2f}", f"{100 * scores.skill(lead, reference):.1f} %")
            ),
        )
    return table
