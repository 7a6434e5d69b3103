"""Commands that run experiments and open the attention."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cranpm.cli.console import Overrides, Quiet, err, out, progress_bar
from cranpm.core.errors import CranpmError


def experiment(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="table3a, table3b, table3c, priors, counterfactuals, learning-curves, or TOML files.",
        ),
    ],
    archive: Annotated[str, typer.Option(help="Archive to learn from.")],
    folder: Annotated[
        Path, typer.Option("--out", help="Folder of experiments: runs that they have in common are made once.")
    ],
    budget: Annotated[str | None, typer.Option(help="Length of each run: 1min, 3min or whole.")] = None,
    print_jobs: Annotated[bool, typer.Option("--print-jobs", help="Print the command of each run and stop.")] = False,
    only: Annotated[str | None, typer.Option(metavar="ROW/SEED", help="Do this one run.")] = None,
    at_once: Annotated[
        int, typer.Option("--jobs", min=1, help="Runs at a time, which share the cores: small networks gain by it.")
    ] = 1,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Train every row of experiments with every seed, judge it on test days, and write the tables.

    All rows have the same days, batches and budget and differ by what the row names. What is done is never done again;
    a run that was stopped goes on. `--print-jobs` gives a list of commands to spread over machines; when all of them
    have ended, the same command without it makes the tables.
    """
    from cranpm.archive.store import Archive
    from cranpm.experiments.report import report
    from cranpm.experiments.run import Task, command, judged_days, make_worlds, result_file, run_all
    from cranpm.experiments.spec import jobs, load_experiment

    opened, changes = Archive(archive), list(override or ())
    wanted = {name: load_experiment(name, budget) for name in names}
    found = {name: jobs(one, opened, changes) for name, one in wanted.items()}
    tasks = [Task(wanted[name], job) for name in names for job in found[name] if only in (None, job.name)]
    if not tasks:
        raise CranpmError(expected="a run, ROW/SEED", found=str(only), remedy="See --print-jobs.")
    for name, one in wanted.items() if not only else ():  # one run of many finds the worlds that --print-jobs made
        if one.worlds and not all(result_file(job, folder).is_file() for job in found[name]):
            days = judged_days(one, opened, found[name][0].settings)
            with progress_bar("worlds", len(days) * len(one.worlds), quiet) as bar:
                make_worlds(one, opened, days, folder, bar)
    if print_jobs:
        options = [
            *(["--budget", budget] if budget else []),
            *(part for change in changes for part in ("--set", change)),
        ]
        for name in names:
            for job in found[name]:
                print(shlex.join(["cranpm", *command(name, job, opened, folder, options)]))
        return
    with progress_bar(", ".join(one.title for one in wanted.values()), len(tasks), quiet) as bar:
        run_all(tasks, opened, folder, at_once, lambda number: bar.reach(number, len(tasks), "runs"))
    if only:
        return
    for name, one in wanted.items():
        for table in report(one, found[name], folder, Path(name).stem):
            out.print(table.markdown(), markup=False, highlight=False)
        print(f"tables in {folder / Path(name).stem / 'table.md'}")


def attention(
    archive: Annotated[str, typer.Option(help="Archive of the days to look at.")],
    weights: Annotated[Path, typer.Option(help="Folder of CRAN-PM's weights, or shipped.")],
    days: Annotated[str, typer.Option(help="Range to find the windiest days in: FIRST..LAST, a year or a month.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for attention.png and attention.md.")],
    region: Annotated[str, typer.Option(help="The tile lies in its middle: a name, or N,W,S,E.")] = "Po Valley",
    lead: Annotated[int, typer.Option(help="Days ahead.")] = 1,
) -> None:
    """Show where a tile looks on the coarse grid under west and east wind, with and without the biases."""
    from cranpm.archive.store import Archive
    from cranpm.core.days import parse_days
    from cranpm.core.regions import parse_region
    from cranpm.experiments import attention as opened
    from cranpm.training.inputs import Inputs
    from cranpm.weights import load_weights

    loaded = load_weights(weights)
    network = opened.paper_network(loaded).eval()
    inputs = Inputs(Archive(archive), channels=loaded.card.channel_names)
    grid = inputs.archive.domain.fine
    tile = opened.tile_in(parse_region(region, grid), grid, network.settings.tile_shape[0])
    with err.status("looking"):
        chosen = opened.windiest(inputs, [day for day in inputs.archive.days[1:] if day in parse_days(days)], tile)
        looks = {
            (wind, view): opened.look(network, inputs, day, tile, lead, view)
            for wind, day in chosen.items()
            for view in opened.VIEWS
        }
        moved = [opened.moved(network, inputs, day, tile, lead) for day in chosen.values()]
    folder.mkdir(parents=True, exist_ok=True)
    opened.draw_looks(looks, inputs, folder / "attention.png")
    tables = (opened.upwind_table(looks), opened.moved_table(moved), opened.strength_table(network))
    text = "\n".join(one.markdown() for one in tables)
    (folder / "attention.md").write_text(text)
    out.print(text, markup=False, highlight=False)
    print(f"maps in {folder / 'attention.png'}")
