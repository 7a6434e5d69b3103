"""The tables of an experiment: means and spreads over seeds, and intervals of the difference to the reference."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cranpm import __version__
from cranpm.experiments.run import FACTUAL, load_result
from cranpm.experiments.spec import BUDGETS, Experiment, Job
from cranpm.training.tile_scores import METHODS, TileScores
from cranpm.verification.bootstrap import Interval, draws_for, rmse_change
from cranpm.verification.table import SURE, Table, percent

Results = Mapping[str, Sequence[Mapping[str, TileScores]]]
"""By row, by seed, by condition."""


def report(experiment: Experiment, found: list[Job], out: Path, name: str) -> list[Table]:
    """Write `runs.parquet`, `table.md` and a CSV of each table into a folder of the experiment; the tables."""
    loaded = [(job, *load_result(job, out)) for job in found]
    lines = [
        {"row": job.row, "seed": job.seed, "condition": condition}
        | facts
        | scores.row()
        | {"settings": json.dumps(job.settings.to_json())}
        for job, by_condition, facts in loaded
        for condition, scores in by_condition.items()
    ]
    results: dict[str, list[Mapping[str, TileScores]]] = {}
    for job, scores, _ in loaded:
        results.setdefault(job.row, []).append(scores)
    made = [rows_table(experiment, results)]
    if experiment.interventions:
        made.append(interventions_table(experiment, results))
    if experiment.worlds:
        made.append(worlds_table(experiment, results))
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(lines), folder / "runs.parquet")
    for one in made:
        (folder / f"{one.name}.csv").write_text(one.csv())
    circumstances = _circumstances(experiment, found, [facts for _, _, facts in loaded])
    start = f"# {experiment.title}\n\n*{experiment.question}*\n\n{circumstances}\n"
    (folder / "table.md").write_text("\n".join([start, *(one.markdown() for one in made)]))
    return made


def _circumstances(experiment: Experiment, found: list[Job], facts: Sequence[Mapping[str, Any]]) -> str:
    """What a reader needs to make it again."""
    snapshots = ", ".join(dict.fromkeys(str(one["archive_snapshot"]) for one in facts))
    settings, budget = found[0].settings, ", ".join(BUDGETS[experiment.budget]) or "all of it"
    return (
        f"Table made on {date.today()} by cranpm {__version__} on {os.cpu_count()} cores ({platform.machine()}), from "
        f"the archive snapshot {snapshots}; budget {experiment.budget} ({budget}) of {experiment.recipe}, "
        f"learned from {settings.splits.train}, judged on {experiment.score_days} days of {settings.splits.test}, "
        f"{experiment.score_tiles} tiles each, the same for all rows."
    )


def rows_table(experiment: Experiment, results: Results) -> Table:
    """One row a row of the experiment."""
    by_row = {name: [part[FACTUAL] for part in parts] for name, parts in results.items()}
    reference = by_row[experiment.reference]
    leads, titles = reference[0].leads, (f"against {experiment.reference}", "each seed")
    header = ("", *(part for lead in leads for part in (f"T+{lead} RMSE", *titles)))
    rows = []
    for row in experiment.rows:
        compared = by_row[row.against or experiment.reference] if row.name != experiment.reference else None
        cells = [_cells(by_row[row.name], compared, lead) for lead in leads]
        if row.against is not None:
            cells = [(rmse, f"{change} against {row.against}", alone) for rmse, change, alone in cells]
        rows.append((row.name, *(cell for of_lead in cells for cell in of_lead)))
    for name in METHODS[1:]:
        rows.append((name, *(cell for lead in leads for cell in (f"{reference[0].rmse(lead, name):.2f}", "", ""))))
    seeds = len(experiment.seeds)
    notes = (
        f"RMSE (ug m-3) of {seeds} seed{'s: mean ± standard deviation' if seeds > 1 else ''}.",
        "Each seed: change (%) against the reference of the same seed, which saw the same days.",
        SURE,
    )
    return Table("table", experiment.title, header, rows, notes)


def _cells(own: list[TileScores], reference: list[TileScores] | None, lead: int) -> tuple[str, str, str]:
    """RMSE, the change against the reference over all seeds, and that of each seed."""
    rmse = [scores.rmse(lead) for scores in own]
    if reference is None:
        return spread(rmse), "", ""
    alone = (100 * (mine / other.rmse(lead) - 1) for mine, other in zip(rmse, reference, strict=True))
    return spread(rmse), percent(_change(own, reference, lead)), ", ".join(f"{value:+.1f}" for value in alone)


def interventions_table(experiment: Experiment, results: Results) -> Table:
    """Row x intervention: how RMSE at the first lead changes."""
    lead = results[experiment.reference][0][FACTUAL].leads[0]
    rows = [
        (
            row.name,
            *(
                percent(
                    _change([part[name] for part in results[row.name]], [p[FACTUAL] for p in results[row.name]], lead)
                )
                for name in experiment.interventions
            ),
        )
        for row in experiment.rows
    ]
    title = f"Change of RMSE at T+{lead} when an input is taken away or made false"
    return Table("interventions", title, ("", *experiment.interventions), rows, (SURE,))


def worlds_table(experiment: Experiment, results: Results) -> Table:
    """Row x world: skill against persistence there, and what share of the factual skill that is."""
    lead = results[experiment.reference][0][FACTUAL].leads[0]

    def skill(row: str, world: str) -> float:
        return float(np.mean([part[world].skill(lead, "persistence") for part in results[row]]))

    rows = []
    for row in experiment.rows:
        here = skill(row.name, FACTUAL)
        there = [skill(row.name, world) for world in experiment.worlds]
        shares = [f" ({100 * value / here:.0f} %)" if here > 0 else "" for value in there]
        cells = [f"{100 * value:+.1f} %{share}" for value, share in zip(there, shares, strict=True)]
        rows.append((row.name, f"{100 * here:+.1f} %", *cells))
    title = f"Skill against persistence at T+{lead} in other worlds, of networks that know the factual one"
    notes = ("In brackets: as a share of the factual skill, where that is above 0.",)
    return Table("worlds", title, ("", "factual", *experiment.worlds), rows, notes)


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{np.mean(values):.2f}" + (f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else "")


def _change(own: list[TileScores], reference: list[TileScores], lead: int) -> Interval:
    """Over the same days, all seeds together."""
    index = own[0].leads.index(lead)
    pair = [np.sum([scores.tally.moments[:, 0, index] for scores in side], axis=0) for side in (own, reference)]
    return rmse_change(np.stack(pair, axis=1), draws_for(own[0].days))
