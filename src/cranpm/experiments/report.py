"""The table of an experiment: means and spreads over seeds, and intervals of the difference to the reference."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cranpm.experiments.evaluate import DailySums
from cranpm.experiments.run import FACTUAL, load_result
from cranpm.experiments.spec import Experiment, Job
from cranpm.verify.bootstrap import Interval, draws_for, rmse_change
from cranpm.verify.tables import SURE, Table, percent


def write_runs(found: list[Job], out: Path) -> None:
    """`runs.parquet`: a line for every run, with its figures and settings."""
    lines = []
    for job in found:
        results, facts = load_result(job, out)
        sums = results[FACTUAL]
        rmse = {f"rmse_t{lead}": float(value) for lead, value in zip(sums.leads, sums.rmse(), strict=True)}
        skill = {
            f"skill_damped_t{lead}": float(1 - own / other)
            for lead, own, other in zip(sums.leads, sums.rmse(), sums.rmse("damped"), strict=True)
        }
        lines.append({**facts, **rmse, **skill, "settings": json.dumps(job.settings.to_json())})
    pq.write_table(pa.Table.from_pylist(lines), out / "runs.parquet")


def table(experiment: Experiment, found: list[Job], out: Path) -> Table:
    """One row a row of the experiment."""
    results: dict[str, list[DailySums]] = {}
    for job in found:
        results.setdefault(job.row, []).append(load_result(job, out)[0][FACTUAL])
    leads = found[0].settings.model.leads
    header = ["", *(part for lead in leads for part in (f"T+{lead} RMSE", f"T+{lead} change against the reference"))]
    rows = []
    for row in experiment.rows:
        own = results[row.name]
        cells = [f"**{row.name}**" if row.name == experiment.reference else row.name]
        for index in range(len(leads)):
            values = np.array([sums.rmse()[index] for sums in own])
            spread = f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""
            change = _change(own, results[experiment.reference], index) if row.name != experiment.reference else None
            cells += [f"{values.mean():.2f}{spread}", percent(change)]
        rows.append(tuple(cells))
    for name in ("damped", "persistence"):
        cells = [name]
        for index in range(len(leads)):
            cells += [f"{results[experiment.reference][0].rmse(name)[index]:.2f}", ""]
        rows.append(tuple(cells))
    notes = (f"{len(experiment.seeds)} seeds: mean ± standard deviation of RMSE (ug m-3).", SURE)
    return Table("table", experiment.title, tuple(header), rows, notes)


def matrix(experiment: Experiment, found: list[Job], out: Path) -> Table:
    """Row x condition: what RMSE at the first lead becomes, and in other worlds what is left of the skill."""
    rows = []
    for row in experiment.rows:
        results = [load_result(job, out)[0] for job in found if job.row == row.name]
        cells = [row.name]
        for name in (*experiment.interventions, *experiment.worlds):
            own, factual = ([part[which] for part in results] for which in (name, FACTUAL))
            if name in experiment.worlds:
                here, there = (
                    np.mean([1 - s.rmse()[0] / s.rmse("persistence")[0] for s in side]) for side in (factual, own)
                )
                cells.append(f"skill {100 * there:+.1f} % ({100 * there / here:.0f} % of the factual)")
            else:
                cells.append(percent(_change(own, factual, 0)))
        rows.append(tuple(cells))
    title = f"{experiment.title}: change of RMSE at T+{found[0].settings.model.leads[0]} by what is taken away"
    notes = ("In other worlds: skill against persistence there, for networks trained on the factual world.", SURE)
    return Table("matrix", title, ("", *experiment.interventions, *experiment.worlds), rows, notes)


def _skill(sums: DailySums) -> float:
    """Against persistence, first lead."""
    return float(1 - sums.rmse()[0] / sums.rmse("persistence")[0])


def _change(own: list[DailySums], reference: list[DailySums], lead: int) -> Interval:
    """Over the same days, all seeds together."""
    pair = [np.sum([sums.moments[:, 0, lead] for sums in side], axis=0) for side in (own, reference)]
    return rmse_change(np.stack(pair, axis=1), draws_for(own[0].days))
