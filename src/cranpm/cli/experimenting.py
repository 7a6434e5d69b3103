"""Commands that run experiments and open the attention."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cranpm.cli.console import NETWORKS, Cluster, Jobs, Overrides, Quiet, app, err, out, progress_bar
from cranpm.core.errors import CranpmError


@app.command(rich_help_panel=NETWORKS)
def experiment(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="table3a, table3b, table3c, priors, relief, counterfactuals, learning-curves, ahead, or TOML files.",
        ),
    ],
    archive: Annotated[str, typer.Option(help="The archive to learn from.")],
    folder: Annotated[
        Path, typer.Option("--out", help="Folder for results; a run that several experiments share is done once.")
    ],
    work: Annotated[
        Path | None, typer.Option(help="Folder for states, weights and simulated worlds. The default is --out.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Length of each run: 1min, 3min or whole.")] = None,
    print_jobs: Annotated[bool, typer.Option("--print-jobs", help="Print the command of each run and stop.")] = False,
    only: Annotated[str | None, typer.Option(metavar="ROW/SEED", help="Do this run and no other.")] = None,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Train every row of experiments with every seed, score it on test days, and write the tables.

    All rows have the same days, batches and budget and differ only by what the row names. A run whose result exists is
    not done again, and a run that was stopped is resumed. `--print-jobs` prints commands to spread over machines; when
    all of them have ended, the same command without it makes the tables.
    """
    from cranpm.archive.store import Archive
    from cranpm.core.cluster import open_pool
    from cranpm.experiments.report import report
    from cranpm.experiments.run import Study, command, known_outcomes, run_all
    from cranpm.experiments.spec import jobs as jobs_of
    from cranpm.experiments.spec import load_experiment
    from cranpm.experiments.worlds import make_worlds, scored_days

    opened, changes, place = Archive(archive), list(override or ()), (work or folder).absolute()
    wanted = {name: load_experiment(name, budget) for name in names}
    studies = [Study(one, jobs_of(one, opened, changes), folder / Path(name).stem) for name, one in wanted.items()]
    every = [job for study in studies for job in study.jobs]
    if only is not None and only not in [job.name for job in every]:
        raise CranpmError(expected="a run, ROW/SEED", found=only, remedy="See --print-jobs.")
    known = known_outcomes(folder)
    for study in studies if not only else ():  # one run of many finds the worlds that --print-jobs made
        if study.experiment.worlds and not all(job.identity in known for job in study.jobs):
            days = scored_days(study.experiment, opened, study.jobs[0].settings, study.jobs[0].leads)
            with progress_bar("worlds", len(days) * len(study.experiment.worlds), quiet) as bar:
                make_worlds(study.experiment, study.jobs, opened, days, place, bar)
    if print_jobs:
        options = [
            *(["--work", str(work)] if work else []),
            *(["--budget", budget] if budget else []),
            *(part for change in changes for part in ("--set", change)),
        ]
        for name, study in zip(wanted, studies, strict=True):
            for job in study.jobs:
                print(shlex.join(["cranpm", *command(name, job, opened, folder, options)]))
        return
    titles = ", ".join(one.title for one in wanted.values())
    with progress_bar(titles, len(every), quiet) as bar, open_pool(jobs, cluster) as pool:
        run_all(studies, opened, place, pool, only, lambda done, total: bar.reach(done, total, "runs"))
    if only:
        return
    for study in studies:
        for table in report(study.folder):
            out.print(table.markdown(), markup=False, highlight=False)
        print(f"tables in {study.folder / 'table.md'}")


@app.command(rich_help_panel=NETWORKS)
def attention(
    archive: Annotated[str, typer.Option(help="Archive of the days to look at.")],
    weights: Annotated[Path, typer.Option(help="Folder of CRAN-PM's weights, or shipped.")],
    days: Annotated[str, typer.Option(help="Range to find the windiest days in: FIRST..LAST, a year or a month.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for attention.png and attention.md.")],
    region: Annotated[str, typer.Option(help="The tile lies in its middle: a name, or N,W,S,E.")] = "Po Valley",
    lead: Annotated[int, typer.Option(help="Days ahead.")] = 1,
) -> None:
    """Show where a tile looks on the coarse grid under west and east wind, with and without the biases.

    Of the days, those with the strongest west and east wind over the tile are shown. Where no day has one of the two
    winds, the table says so.
    """
    from cranpm.archive.store import Archive
    from cranpm.core.days import parse_days
    from cranpm.core.regions import parse_region
    from cranpm.experiments import attention as opened
    from cranpm.training.inputs import Inputs
    from cranpm.views.figures.attention import draw_looks
    from cranpm.weights import load_weights

    loaded = load_weights(weights)
    network = opened.paper_network(loaded).eval()
    inputs = Inputs.of(network.settings, Archive(archive), channels=loaded.card.channel_names)
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
    draw_looks(looks, inputs.archive, folder / "attention.png")
    tables = (opened.upwind_table(looks), opened.moved_table(moved), opened.strength_table(network))
    text = "\n".join(one.markdown() for one in tables)
    (folder / "attention.md").write_text(text)
    out.print(text, markup=False, highlight=False)
    print(f"maps in {folder / 'attention.png'}")
