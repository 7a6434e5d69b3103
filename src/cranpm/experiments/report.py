"""The tables of an experiment: means and spreads over seeds, and intervals of the difference to the reference."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cranpm.experiments.run import FACTUAL, load_result
from cranpm.experiments.spec import Experiment, Job
from cranpm.train.validate import METHODS, Scores
from cranpm.verify.bootstrap import Interval, draws_for, rmse_change
from cranpm.verify.table import SURE, Table, percent

Results = Mapping[str, Sequence[Mapping[str, Scores]]]
"""By row, by seed, by condition."""


def report(experiment: Experiment, found: list[Job], out: Path, folder: Path) -> list[Table]:
    """Write `runs.parquet` and `table.md`, and return the tables."""
    loaded = [(job, *load_result(job, out)) for job in found]
    lines = [
        facts | scores[FACTUAL].row() | {"settings": json.dumps(job.settings.to_json())}
        for job, scores, facts in loaded
    ]
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(lines), folder / "runs.parquet")
    results: dict[str, list[Mapping[str, Scores]]] = {}
    for job, scores, _ in loaded:
        results.setdefault(job.row, []).append(scores)
    made = [table(experiment, results)]
    if experiment.interventions:
        made.append(without(experiment, results))
    if experiment.worlds:
        made.append(elsewhere(experiment, results))
    (folder / "table.md").write_text("\n".join([f"*{experiment.question}*\n", *(one.markdown() for one in made)]))
    return made


def table(experiment: Experiment, results: Results) -> Table:
    """One row a row of the experiment."""
    reference = [part[FACTUAL] for part in results[experiment.reference]]
    leads = reference[0].leads
    header = ["", *(part for lead in leads for part in (f"T+{lead} RMSE", f"against {experiment.reference}"))]
    rows = []
    for row in experiment.rows:
        own = [part[FACTUAL] for part in results[row.name]]
        cells = [row.name]
        for lead in leads:
            change = _change(own, reference, lead) if row.name != experiment.reference else None
            cells += [_spread([scores.rmse(lead) for scores in own]), percent(change)]
        rows.append(tuple(cells))
    for name in METHODS[1:]:
        rows.append((name, *(part for lead in leads for part in (f"{reference[0].rmse(lead, name):.2f}", ""))))
    seeds = len(experiment.seeds)
    notes = (f"RMSE (ug m-3) of {seeds} seed{'s: mean ± standard deviation' if seeds > 1 else ''}.", SURE)
    return Table("table", experiment.title, tuple(header), rows, notes)


def without(experiment: Experiment, results: Results) -> Table:
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


def elsewhere(experiment: Experiment, results: Results) -> Table:
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


def _spread(values: list[float]) -> str:
    return f"{np.mean(values):.2f}" + (f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else "")


def _change(own: list[Scores], reference: list[Scores], lead: int) -> Interval:
    """Over the same days, all seeds together."""
    index = own[0].leads.index(lead)
    pair = [np.sum([scores.tally.moments[:, 0, index] for scores in side], axis=0) for side in (own, reference)]
    return rmse_change(np.stack(pair, axis=1), draws_for(own[0].days))
