"""Commands that train."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cranpm.cli.console import Overrides, Quiet, err, out


def train(
    settings: Annotated[Path, typer.Argument(metavar="SETTINGS.toml", help="What to train, on which days.")],
    archive: Annotated[str, typer.Option(help="Archive to learn from.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder of the run.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run's last state.")] = False,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Train a network, score it after every epoch and, at the end, on test days.

    A run that was stopped, by whatever, goes on with `--resume` as if nothing had happened, to the bit. Several
    processes: `torchrun --nproc-per-node 2 -m cranpm train ...`.
    """
    from cranpm.settings import load
    from cranpm.store import Archive
    from cranpm.train import TrainSettings
    from cranpm.train.loop import Run

    wanted = load(TrainSettings, settings, override or ())
    with err.status("fitting scales and damped persistence on training days", spinner="dots"):
        run = Run(wanted, Archive(archive), folder, resume)
    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("loss {task.fields[loss]:.3f} · {task.fields[speed]:.1f} tiles/s · {task.fields[skill]}"),
    )
    shown = not quiet and run.fabric.is_global_zero
    with Progress(*columns, console=err, disable=not shown, transient=True) as bar:
        task = bar.add_task(
            "train", total=run.steps, completed=run.place.step, epoch=1, loss=0.0, speed=0.0, skill="no score yet"
        )

        def on_step(row: dict[str, float]) -> None:
            epoch = run.place.batch // len(run.batches) + 1
            bar.update(task, completed=run.place.step, loss=row["loss"], speed=row["samples_a_second"], epoch=epoch)

        def on_epoch(row: dict[str, float]) -> None:
            text = ", ".join(f"T+{lead} {100 * row[f'skill_damped_t{lead}']:+.1f} %" for lead in wanted.network.leads)
            bar.update(task, skill=f"skill against damping {text}")

        scores = run.train(on_step, on_epoch)
    if run.fabric.is_global_zero:
        table = Table(title=f"PM2.5 on unseen days {wanted.splits.test}, µg m⁻³")
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
        out.print(table)
        print(f"weights in {folder / 'best'}")
