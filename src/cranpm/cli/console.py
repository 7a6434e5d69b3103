"""What all commands share: the two consoles, options that recur, progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

out, err = Console(), Console(stderr=True)
app = typer.Typer(
    name="cranpm",
    help="Forecast daily PM2.5 at 1 km for a continent, days ahead.",
    epilog="Start here: cranpm simulate --domain alps --days 2021-01-01..2021-02-28 alps.archive",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
"""All commands. A command is a function that `@app.command()` registers, in a file of this folder or in a plugin."""
DATA, FORECASTS, VERIFICATION, NETWORKS = "Data", "Forecasts", "Verification and figures", "Networks and experiments"
"""Headings under which the help lists the commands."""


def printable(text: str) -> str:
    """Text from a file without characters that could command the terminal."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)


ArchivePath = Annotated[
    str, typer.Argument(metavar="ARCHIVE", help="The archive: a folder, or an s3://, gs:// or az:// URL.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar, only results and errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Number of local processes that share the work.")]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Use the workers of a dask scheduler: tcp://HOST:PORT."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one setting, for example simulation.seed=3. Can be repeated."
    ),
]


class Bar:
    """Call it once per step, or let it `reach` a number of steps."""

    def __init__(self, progress: Progress, task: TaskID):
        self._progress, self._task = progress, task

    def __call__(self, *_: object) -> None:
        self._progress.advance(self._task)

    def reach(self, done: int, total: int, what: str | None = None) -> None:
        self._progress.update(self._task, completed=done, total=total, description=what)


@contextmanager
def progress_bar(what: str, total: int, quiet: bool) -> Iterator[Bar]:
    """A bar with elapsed and remaining time on stderr."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=quiet, transient=True) as progress:
        yield Bar(progress, progress.add_task(what, total=total))
