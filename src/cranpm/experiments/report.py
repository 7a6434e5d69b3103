"""The tables of an experiment: means and spreads over seeds, and intervals of the difference to the reference."""

from pathlib import Path

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.experiments.results import AS_IT_IS, NETWORK, ErrorSums, ExperimentResult, Results, read_results
from cranpm.experiments.spec import BUDGETS
from cranpm.verification.bootstrap import Interval, resamples_for, rmse_change
from cranpm.verification.table import SURE, TextTable, percent


def report(folder: Path) -> list[TextTable]:
    """Write `table.md` and a CSV of each table beside an experiment's result; returns the tables."""
    results = read_results(folder)
    made = tables(results)
    for one in made:
        (folder / f"{one.name}.csv").write_text(one.csv())
    start = f"# {results.result.title}\n\n*{results.result.question}*\n\n{circumstances(results.result)}\n"
    (folder / "table.md").write_text("\n".join([start, *(one.markdown() for one in made)]))
    return made


def tables(results: Results) -> list[TextTable]:
    """All tables of an experiment, from its data alone."""
    if not results.result.complete:
        raise CranpmError(
            expected=f"every row of the experiment {results.result.title} with every seed",
            found=f"{len(results.result.runs)} runs",
            remedy="Give the command again without --only: it does the runs that are missing.",
        )
    made = [rows_table(results)]
    if results.result.interventions:
        made += [interventions_table(results, lead) for lead in results.result.leads]
    if results.result.worlds:
        made.append(worlds_table(results))
    return made


def circumstances(result: ExperimentResult) -> str:
    """What a reader needs to make it again."""
    snapshots = ", ".join(dict.fromkeys(run.archive_snapshot for run in result.runs))
    splits, budget = result.runs[0].settings["splits"], ", ".join(BUDGETS[result.budget]) or "all of it"
    made = result.circumstances
    return (
        f"Table made on {made.date} by {made.software} on {made.processor}, from the archive snapshot {snapshots}; "
        f"budget {result.budget} ({budget}) of {result.recipe}, learned from {splits['train']}, scored on "
        f"{result.score_days} days of {splits['test']}, {result.score_tiles} tiles each, the same for all rows."
    )


def rows_table(results: Results) -> TextTable:
    """One line per row of the experiment."""
    result, reference = results.result, results.of(results.result.reference)
    leads, titles = result.leads, (f"against {result.reference}", "each seed")
    header = ("", *(part for lead in leads for part in (f"T+{lead} RMSE", *titles)))
    rows = []
    for row in result.rows:
        compared = results.of(row.against or result.reference) if row.name != result.reference else None
        cells = [_cells(results.of(row.name), compared, lead) for lead in leads]
        if row.against is not None:
            cells = [(rmse, f"{change} against {row.against}", alone) for rmse, change, alone in cells]
        rows.append((row.name, *(cell for of_lead in cells for cell in of_lead)))
    baselines = {lead: reference[0] if lead in reference[0].leads else results.first_with(lead) for lead in leads}
    for name in [name for name in reference[0].sums if name != NETWORK]:
        rows.append((name, *(cell for lead in leads for cell in (f"{baselines[lead].rmse(lead, name):.2f}", "", ""))))
    seeds = len(result.seeds)
    notes = (
        f"RMSE (ug m-3) of {seeds} seed{'s: mean ± standard deviation' if seeds > 1 else ''}.",
        "Each seed: change (%) against the reference of the same seed, which saw the same days.",
        SURE,
    )
    return TextTable("table", result.title, header, rows, notes)


def _cells(own: list[ErrorSums], reference: list[ErrorSums] | None, lead: int) -> tuple[str, str, str]:
    """RMSE, the change against the reference over all seeds, and that of each seed; nothing at a lead it has not."""
    if lead not in own[0].leads:
        return "", "", ""
    rmse = [scores.rmse(lead) for scores in own]
    if reference is None or lead not in reference[0].leads:
        return spread(rmse), "", ""
    alone = (100 * (mine / other.rmse(lead) - 1) for mine, other in zip(rmse, reference, strict=True))
    return spread(rmse), percent(_change(own, reference, lead)), ", ".join(f"{value:+.1f}" for value in alone)


def interventions_table(results: Results, lead: int) -> TextTable:
    """Row x intervention: how RMSE at a lead changes; empty for rows without that lead."""
    result = results.result

    def cell(row: str, name: str) -> str:
        own = results.of(row)
        return percent(_change(results.of(row, name), own, lead)) if lead in own[0].leads else ""

    rows = [(row.name, *(cell(row.name, name) for name in result.interventions)) for row in result.rows]
    title = f"Change of RMSE at T+{lead} when an input is taken away or made false"
    name = "interventions" if len(result.leads) == 1 else f"interventions-t{lead}"
    return TextTable(name, title, ("", *result.interventions), rows, (SURE,))


def worlds_table(results: Results) -> TextTable:
    """Row x world: skill relative to persistence there, and what share of the factual skill that is."""
    result, lead = results.result, results.result.leads[0]

    def skill(row: str, world: str) -> float:
        """NaN for a row without that lead."""
        scores = [one for one in results.of(row, world) if lead in one.leads]
        return float(np.mean([one.skill(lead, "persistence") for one in scores])) if scores else float("nan")

    rows = []
    for row in result.rows:
        here = skill(row.name, AS_IT_IS)
        there = [skill(row.name, world) for world in result.worlds]
        shares = [f" ({100 * value / here:.0f} %)" if here > 0 else "" for value in there]
        cells = [f"{100 * value:+.1f} %{share}" for value, share in zip((here, *there), ("", *shares), strict=True)]
        rows.append((row.name, *(cells if np.isfinite(here) else [""] * len(cells))))
    title = f"Skill against persistence at T+{lead} in other worlds, of networks that know the factual one"
    notes = ("In brackets: as a share of the factual skill, where that is above 0.",)
    return TextTable("worlds", title, ("", "factual", *result.worlds), rows, notes)


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{np.mean(values):.2f}" + (f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else "")


def _change(own: list[ErrorSums], reference: list[ErrorSums], lead: int) -> Interval:
    """Over the same days, all seeds together."""
    if any(one.days != reference[0].days for one in (*own, *reference)):
        raise CranpmError(
            expected="rows that were tested on the same days",
            found="other days in one of them",
            remedy="Remove the experiment's folder of results and give the command again: weights are kept in --work.",
        )
    pair = [np.sum([scores.daily(lead)[:, :2] for scores in side], axis=0) for side in (own, reference)]
    return rmse_change(np.stack(pair, axis=1), resamples_for(own[0].days))
