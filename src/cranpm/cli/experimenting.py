"""The command that runs experiments."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cranpm.cli.console import Overrides, Quiet, err, out, progress_bar


def experiment(
    name: Annotated[str, typer.Argument(help="table3a, table3b, table3c, learning-curves, or a TOML file.")],
    archive: Annotated[str, typer.Option(help="Archive to learn from.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder of the experiment; a stopped one goes on there.")],
    print_jobs: Annotated[bool, typer.Option("--print-jobs", help="Print the command of each run and stop.")] = False,
    only: Annotated[str | None, typer.Option(metavar="ROW/SEED", help="Do this one run.")] = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Train every row of an experiment with every seed, judge it on test days, and write the table.

    All rows have the same days, batches and budget and differ by what the row names. What is done is never done again;
    a run that was stopped goes on. `--print-jobs` gives a list of commands to spread over machines.
    """
    from cranpm.errors import CranpmError
    from cranpm.experiments.report import matrix, table, write_runs
    from cranpm.experiments.run import command, do, is_done, run_all
    from cranpm.experiments.spec import jobs, load_experiment
    from cranpm.store import Archive

    wanted, opened, changes = load_experiment(name), Archive(archive), list(override or ())
    found = jobs(wanted, opened, changes)
    if print_jobs:
        for job in found:
            print(shlex.join(["cranpm", *command(name, job, opened, folder, changes)]))
        return
    if only:
        chosen = [job for job in found if job.name == only]
        if not chosen:
            raise CranpmError(expected="a run, ROW/SEED", found=only, remedy="See --print-jobs.")
        if not is_done(chosen[0], folder):
            do(chosen[0], wanted, opened, folder)
        return
    with progress_bar(wanted.title, len(found), quiet) as bar:
        run_all(name, wanted, opened, folder, changes, lambda done, total, _: bar.reach(done, total))
    with err.status("summing up"):
        write_runs(found, folder)
        made = [table(wanted, found, folder)]
        if wanted.interventions or wanted.worlds:
            made.append(matrix(wanted, found, folder))
        text = "\n".join(one.markdown() for one in made)
        (folder / "table.md").write_text(text)
    out.print(text, markup=False, highlight=False)
