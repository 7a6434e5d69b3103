"""Rows differ by what they name, runs survive kills, interventions change what they say and nothing else."""

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from command import run_cli
from paper_channels import INDEX
from sample_days import SETTINGS

from cranpm.archive.days_ahead import RunRecord
from cranpm.archive.store import SIMULATION, Archive
from cranpm.core.channels import LEVELS_HPA
from cranpm.core.cluster import Pool, open_pool
from cranpm.core.days import parse_days
from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Domain
from cranpm.experiments.intervene import INTERVENTIONS, Intervened, is_composition, is_wind, of_both_days
from cranpm.experiments.report import interventions_table, report, rows_table, spread, tables, worlds_table
from cranpm.experiments.results import RESULT, SUMS, Results, Row, read_results, write_results
from cranpm.experiments.run import Study, Task, do, keep, known_outcomes, outcomes_of, run_all, run_folder, work_on
from cranpm.experiments.spec import PLANS, Experiment, differences, jobs, load_experiment
from cranpm.experiments.worlds import make_worlds, scored_days, world_place
from cranpm.network.scaling import typical_scales
from cranpm.simulate import SimulationSettings
from cranpm.simulate.forecast import FORECAST_VERSION, MODELS
from cranpm.simulate.job import _producer, simulate_archive
from cranpm.training.inputs import Inputs
from cranpm.training.recipe import load_settings

TINY = """
title = "Two ways"
question = "Which is better?"
recipe = "tiny.toml"
reference = "whole"
budget = "whole"
set = ["optimiser.epochs=1", "scores.days=2"]
seeds = [0]
score_days = 4
score_tiles = 1
interventions = ["wind zero"]
worlds = []

[[rows]]
name = "whole"

[[rows]]
name = "no wind"
set = ["network.wind_scan=false", "network.wind_bias=false"]
"""


@pytest.mark.parametrize("name", sorted(path.stem for path in PLANS.glob("*.toml")))
def test_rows_differ_from_the_reference_by_what_they_name(name, month):
    experiment = load_experiment(name)
    found = jobs(experiment, month)
    assert len({job.run for job in found}) == len(found)
    base = {job.seed: job for job in found if job.row == experiment.reference}
    for job in found:
        named = {
            change.partition("=")[0]
            for row in experiment.rows
            if row.name in (job.row, experiment.reference)
            for change in row.set
        }
        changed = differences(job.settings, base[job.seed].settings)
        new_tables = {"baseline"} & {name.partition(".")[0] for name in named}  # a table that only this row has
        assert {key for key in changed if key not in named and key.partition(".")[0] not in new_tables} == set()
        assert job.settings.samples.seed == job.seed


@pytest.fixture(scope="module")
def straight(month, tmp_path_factory):
    """The experiment with its result, its runs done one after the other, each reading for itself."""
    folder = tmp_path_factory.mktemp("straight")
    (folder / "two.toml").write_text(TINY)
    experiment = load_experiment(str(folder / "two.toml"))
    study = Study(experiment, jobs(experiment, month), folder / "two")
    keep(study, {job.identity: do(Task(experiment, job), month, folder) for job in study.jobs})
    report(study.folder)
    return study


def moved(study, folder):
    """The same experiment with its result elsewhere."""
    return Study(study.experiment, study.jobs, folder / "two")


def same_sums(one, other):
    """Whether two folders hold the same runs with the same bits."""
    ours, theirs = (read_results(folder) for folder in (one, other))
    assert [(run.row, run.seed) for run in ours.result.runs] == [(run.row, run.seed) for run in theirs.result.runs]
    return all(
        np.array_equal(left[condition].sums[method], right[condition].sums[method])
        for left, right in zip(ours.scores, theirs.scores, strict=True)
        for condition in ours.result.conditions
        for method in ("network", "persistence", "damped")
    )


def test_the_result_is_data(straight):
    """Everything that a table or a figure needs, typed; the table of sums has baselines once."""
    found = json.loads((straight.folder / RESULT).read_text())
    assert found["title"] == "Two ways"
    assert found["conditions"] == ["as it is", "wind zero"]
    assert [(run["row"], run["seed"]) for run in found["runs"]] == [("whole", 0), ("no wind", 0)]
    assert all(run["settings"]["optimiser"]["epochs"] == 1 for run in found["runs"])
    assert all(len(run["weights_sha256"]) == 64 and run["parameters"] > 1000 for run in found["runs"])
    lines = pq.read_table(straight.folder / SUMS).to_pylist()
    days = {line["day"] for line in lines}
    assert len(lines) == len(days) * len(found["leads"]) * 2 * (2 + 2)  # two conditions; two runs and two baselines
    assert {(line["row"], line["seed"]) for line in lines if line["method"] == "damped"} == {(None, None)}
    assert {line["row"] for line in lines if line["method"] == "network"} == {"whole", "no wind"}


def test_the_table_holds_what_the_runs_found(straight):
    text = (straight.folder / "table.md").read_text()
    results = read_results(straight.folder)
    for job in straight.jobs:
        assert f"| {job.row} | {results.of(job.row)[0].rmse(1):.2f} |" in text
    assert "wind zero" in text
    assert results.result.runs[0].archive_snapshot in text


def test_what_is_written_is_read_back_to_the_bit(straight, tmp_path):
    results = read_results(straight.folder)
    write_results(tmp_path, results)
    assert read_results(tmp_path).result == results.result
    assert same_sums(tmp_path, straight.folder)


def test_a_row_may_be_compared_with_another_than_the_reference(straight):
    held = read_results(straight.folder)
    rows = (Row(name="whole"), Row(name="no wind"), Row(name="same", against="no wind"))
    runs = (*held.result.runs, held.result.runs[1].model_copy(update={"row": "same"}))
    result = held.result.model_copy(update={"rows": rows, "runs": runs})
    cells = {row[0]: row for row in rows_table(Results(result, [*held.scores, held.scores[1]])).rows}
    assert cells["same"][2].startswith("+0.0 %")
    assert cells["same"][2].endswith("against no wind")
    assert "against" not in cells["no wind"][2]


def test_runs_share_a_process_and_nothing_else(straight, month, tmp_path):
    """One after the other in a process that keeps the days in memory: the bits of a run that reads for itself."""
    study = moved(straight, tmp_path)
    for job in reversed(study.jobs):
        keep(study, {job.identity: work_on([Task(study.experiment, job)], month, tmp_path)[0]})
    assert same_sums(study.folder, straight.folder)


def test_a_run_that_fails_is_told_with_its_remedy(month, tmp_path):
    (tmp_path / "two.toml").write_text(TINY)
    experiment = load_experiment(str(tmp_path / "two.toml"))
    study = Study(experiment, jobs(experiment, month, ["splits.train=2001-01-01..2001-02-01"]), tmp_path / "two")
    failed = r"the run (whole|no wind)/0 to end; found CranpmError: expected train days"
    with open_pool(2) as pool, pytest.raises(CranpmError, match=failed):
        run_all([study], month, tmp_path, pool)
    assert not (study.folder / RESULT).exists()


def test_what_has_a_result_is_not_done_again(straight, month, tmp_path, monkeypatch):
    """Not for the experiment itself, nor for another that shares the run under another name."""
    monkeypatch.setattr("cranpm.experiments.run.do", lambda *_: pytest.fail("done again"))
    before = (straight.folder / RESULT).read_bytes()
    seen = []
    rows = (Row(name="the same"), straight.experiment.rows[1])
    other = straight.experiment.model_copy(update={"rows": rows, "reference": "the same", "title": "Other"})
    study = Study(other, jobs(other, month), straight.folder.parent / "other")
    run_all([straight, study], month, tmp_path, Pool(), on_done=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 4)]
    assert (straight.folder / RESULT).read_bytes() == before
    assert [run.row for run in read_results(study.folder).result.runs] == ["the same", "no wind"]


def test_a_setting_that_is_new_leaves_a_run_its_identity(straight):
    """What is stored lacks every setting that has its default, as if those had come later."""
    held = read_results(straight.folder)
    assert "clip" not in held.result.runs[0].settings["optimiser"]
    assert set(outcomes_of(held)) == {job.identity for job in straight.jobs}
    unknown = held.result.runs[0].model_copy(update={"settings": {"colour": "blue"}})
    other = held.result.model_copy(update={"runs": (unknown, held.result.runs[1])})
    assert set(outcomes_of(Results(other, held.scores))) == {straight.jobs[1].identity}


def test_each_run_is_written_as_it_ends(straight, month, tmp_path, monkeypatch):
    """A stop loses the run under way and no other; tables want all of them."""
    study, whole = moved(straight, tmp_path), straight.jobs[0]
    run_all([study], month, run_folder(whole, straight.folder.parent).parents[1], Pool(), only="whole/0")
    assert [run.row for run in read_results(study.folder).result.runs] == ["whole"]
    with pytest.raises(CranpmError, match="every row of the experiment Two ways with every seed; found 1 runs"):
        report(study.folder)
    assert list(known_outcomes(tmp_path)) == [whole.identity]


def die_once(group, archive, work):
    """Does the runs of a group; the first worker of all dies when they have been trained, before it could say so."""
    outcomes = work_on(group, archive, work)
    try:
        (work / "died").touch(exist_ok=False)
    except FileExistsError:
        return outcomes
    os._exit(9)


def test_workers_one_of_which_is_killed_find_the_same(straight, month, tmp_path, monkeypatch):
    study = moved(straight, tmp_path)
    monkeypatch.setattr("cranpm.experiments.run.work_on", die_once)
    with open_pool(2) as pool:
        run_all([study], month, tmp_path, pool)
    assert (tmp_path / "died").exists()
    assert same_sums(study.folder, straight.folder)


def test_a_damaged_result_is_made_again(straight, month, tmp_path):
    study = moved(straight, tmp_path)
    study.folder.mkdir()
    (study.folder / RESULT).write_bytes((straight.folder / RESULT).read_bytes()[:100])
    assert known_outcomes(tmp_path) == {}
    run_all([study], month, straight.folder.parent, Pool())
    assert same_sums(study.folder, straight.folder)


def test_runs_on_simulated_days_are_known_by_their_world_not_their_snapshot(archive, tmp_path):
    again, moved = (str(tmp_path / name) for name in ("again", "moved"))
    box, first = archive.domain, archive.days[0]

    def name(one: Archive) -> str:
        return jobs(load_experiment("table3a"), one)[0].run

    simulate_archive(again, box, [first, archive.days[-1]], SETTINGS)
    assert name(Archive(again)) != name(archive)  # not the same days
    simulate_archive(again, box, archive.days, SETTINGS)
    assert Archive(again).snapshot != archive.snapshot
    assert name(Archive(again)) == name(archive)
    simulate_archive(moved, Domain(box.name, box.north + 1, box.west, box.south + 1, box.east), archive.days, SETTINGS)
    assert name(Archive(moved)) != name(archive)


RESULTS = Path(__file__).parents[2] / "docs" / "results" / "experiments"


ALPS = SimpleNamespace(
    source=SIMULATION,
    domain=DOMAINS["alps"],
    days=list(parse_days("2019-01-01..2026-12-31")),
    missing=[],
    attributes={"producer": _producer(SimulationSettings(), {"first_day": "2019-01-01"})},
)
"""The archive that `make experiments` simulates, as far as runs are named by it."""


def simulated_run(day, group):
    """A forecast run of the simulator, as far as runs of experiments are named by it."""
    facts = {"source": "simulation", "forecast_version": FORECAST_VERSION}
    return RunRecord(MODELS[group], datetime(day.year, day.month, day.day), (1, 2, 3, 4, 5), None, facts)


FOUR_YEARS = SimpleNamespace(
    **vars(ALPS) | {"days": list(parse_days("2019-01-01..2022-12-31")), "ahead": SimpleNamespace(run=simulated_run)}
)
"""The one for the days ahead."""


@pytest.mark.parametrize("name", sorted(path.stem for path in PLANS.glob("*.toml")))
def test_every_table_in_the_repository_is_made_again_from_the_data(name):
    results = read_results(RESULTS / name)
    made = tables(results)
    text = (RESULTS / name / "table.md").read_text()
    of_interventions = len(results.result.leads) * bool(results.result.interventions)
    assert text.count("### ") == len(made) == 1 + of_interventions + bool(results.result.worlds)
    for table in made:
        assert table.markdown() in text
        assert table.csv() == (RESULTS / name / f"{table.name}.csv").read_text()


@pytest.mark.parametrize("name", sorted(path.stem for path in PLANS.glob("*.toml")))
def test_no_run_in_the_repository_is_done_again(name):
    """Its settings, read as they are understood now, are those of the experiment."""
    archive = FOUR_YEARS if name == "ahead" else ALPS
    wanted = {job.identity for job in jobs(load_experiment(name), archive)}
    assert wanted == set(outcomes_of(read_results(RESULTS / name)))


def test_results_in_the_repository_are_small():
    assert sum(path.stat().st_size for path in RESULTS.rglob("*")) < 2e6
    assert not list(RESULTS.rglob("*.npz"))


def test_a_test_touches_its_days_and_their_neighbours(straight, month):
    settings = straight.jobs[0].settings
    experiment = load_experiment("table3a").model_copy(update={"score_days": 1})
    first = scored_days(experiment, month, settings)
    assert len(first) == 5
    assert all(day in settings.splits.test for day in first)
    elsewhere = load_settings(Path("tiny.toml"), ["splits.test=2001"])
    with pytest.raises(CranpmError, match=r"test days in the archive: 2001-01-01\.\.2001-12-31"):
        scored_days(experiment, month, elsewhere)


def test_means_and_spreads_over_seeds():
    assert spread([1.0, 2.0, 3.0]) == "2.00 ± 1.00"
    assert spread([1.5]) == "1.50"


@pytest.mark.long
def test_an_experiment_goes_on_after_a_kill_and_gives_the_same_table(straight, month, tmp_path, monkeypatch, capsys):
    line = ["experiment", str(straight.folder.parent / "two.toml"), "--archive", month.location, "--out"]
    started = subprocess.Popen(
        [sys.executable, "-m", "cranpm", *line, str(tmp_path / "killed"), "-q"], start_new_session=True
    )
    while not list((tmp_path / "killed").glob("runs/*/steps.csv")):
        time.sleep(0.2)
        assert started.poll() is None
    subprocess.run(["pkill", "-9", "-s", str(started.pid)], check=True)
    started.wait()
    assert run_cli(monkeypatch, *line, str(tmp_path / "killed"), "-q", "--jobs", "2") == 0
    tables = [(folder / "two" / "table.md").read_text() for folder in (tmp_path / "killed", straight.folder.parent)]
    assert tables[0] == tables[1]


def test_jobs_are_printed_for_other_machines(straight, month, tmp_path, monkeypatch, capsys):
    line = ["experiment", str(straight.folder.parent / "two.toml"), "--archive", month.location, "--out", str(tmp_path)]
    assert run_cli(monkeypatch, *line, "--print-jobs") == 0
    printed = [shlex.split(command) for command in capsys.readouterr().out.splitlines()]
    assert [command[-1] for command in printed] == ["whole/0", "no wind/0"]
    assert run_cli(monkeypatch, *line, "--only", "nobody/0") == 1


def test_refusals(tmp_path):
    with pytest.raises(CranpmError, match="a TOML file or an experiment"):
        load_experiment("table9")
    with pytest.raises(ValueError, match="different names"):
        Experiment(title="", question="", rows=(Row(name="a"), Row(name="a")), reference="a")
    with pytest.raises(ValueError, match="a budget is one of"):
        Experiment(title="", question="", rows=(Row(name="a"),), reference="a", budget="7min")
    with pytest.raises(ValueError, match="no intervention rain zero"):
        Experiment(title="", question="", rows=(Row(name="a"),), reference="a", interventions=("rain zero",))
    with pytest.raises(ValueError, match="no row b"):
        Experiment(title="", question="", rows=(Row(name="a", against="b"),), reference="a")


def test_rows_of_several_experiments_share_a_run(month):
    """Table 3b ends where table 3c begins, and what it is scored on does not change the weights."""
    of = {name: jobs(load_experiment(name), month) for name in ("table3a", "table3b", "table3c", "learning-curves")}
    run = {name: {job.name: job.run for job in found} for name, found in of.items()}
    assert run["table3b"]["D + stations and yesterday/1"] == run["table3c"]["whole/1"]
    assert run["table3a"]["cross/0"] == run["learning-curves"]["6 years/0"] == run["table3c"]["whole/0"]
    other = load_experiment("table3a").model_copy(update={"score_days": 7})
    job, same = jobs(other, month)[0], of["table3a"][0]
    assert job.run == same.run
    assert job.scoring != same.scoring


def test_a_budget_is_for_all_rows(month):
    short, long = (jobs(load_experiment("table3a", budget), month) for budget in ("1min", None))
    assert {job.settings.optimiser.epochs for job in short} == {1}
    assert {job.settings.optimiser.epochs for job in long} == {3}


def test_interventions_change_what_they_say(archive):
    day, scales = archive.days[2], typical_scales()
    window = (slice(64, 128), slice(64, 128))
    plain = Inputs(archive)
    both = of_both_days(archive.channels, is_wind)
    winds, composition = both[: len(both) // 2], of_both_days(archive.channels, is_composition)
    names = [*archive.channel_names, *archive.channel_names]
    assert {names[index] for index in both} == {"u10", "v10", *(f"{a}{b}" for a in "uv" for b in LEVELS_HPA)}
    assert {names[index] for index in composition} == {name for name in names if name.startswith("cams_")}
    as_it_is = plain.day(day)
    coarse, wind, relief = as_it_is.coarse, as_it_is.wind, as_it_is.elevation
    tile = plain.tile(day, window).fine[0]
    others = [index for index in range(70) if index not in both]
    for name in INTERVENTIONS:
        changed = Intervened(archive, scales, name)
        intervened = changed.day(day)
        fields, moved, ground = intervened.coarse, intervened.wind, intervened.elevation
        fine = changed.tile(day, window).fine[0]
        if name == "wind reversed in scan and bias alone":
            assert torch.equal(fields, coarse)
            assert torch.equal(moved, -wind)
            continue
        assert torch.equal(moved, fields[:, [INDEX["u10"], INDEX["v10"]]])
        if name.startswith("wind"):
            assert torch.equal(fields[:, others], coarse[:, others])
            assert not torch.equal(fields[:, both], coarse[:, both])
            assert torch.equal(ground, relief)
        if name == "wind reversed":
            assert torch.equal(moved, -wind)
        if name.startswith("elevation"):
            assert torch.equal(fields, coarse)
            assert not torch.equal(ground, relief)
            assert not torch.equal(fine[1], tile[1])
        if name == "elevation shuffled":
            assert torch.equal(fine[1].flatten().sort().values, tile[1].flatten().sort().values)
        if name == "CAMS at its mean":
            assert float(fields[0, composition[0]].std()) == 0
            assert torch.equal(fields[:, winds], coarse[:, winds])
        if name == "yesterday at its mean":
            assert fine[4].isnan().all()
            assert torch.equal(fields[:, :35], coarse[:, :35])
            assert float(fields[0, 40].std()) == 0
    assert torch.equal(plain.day(day).coarse, coarse)
    assert Intervened(archive, scales, "wind of another day").another_day(day) != day


def test_other_worlds_have_the_same_days_and_another_truth(month, tmp_path):
    experiment = load_experiment("counterfactuals").model_copy(update={"worlds": ("flat-relief",)})
    every = jobs(experiment, month)
    make_worlds(experiment, every, month, month.days[:2], tmp_path)
    world = Archive(str(world_place("flat-relief", tmp_path)))
    assert world.days == month.days[:2]
    assert float(world.elevation().max()) == 0
    assert world.attributes["producer"]["seed"] == month.attributes["producer"]["seed"]
    assert not np.array_equal(world.pm25(month.days[1]), month.pm25(month.days[1]), equal_nan=True)
    assert not world.ahead.leads(month.days[1], "weather")
    reading = jobs(experiment, month, ["network.ahead=weather"])
    with pytest.raises(CranpmError, match=r"forecasts of the days ahead in the world .*; found none.*--work"):
        make_worlds(experiment, reading, month, month.days[:2], tmp_path)
    make_worlds(experiment, reading, month, month.days[:1], tmp_path / "other")
    other = Archive(str(world_place("flat-relief", tmp_path / "other")))
    assert other.ahead.leads(month.days[0], "weather") == month.ahead.leads(month.days[0], "weather")


def test_a_row_without_the_first_lead_leaves_its_cells_empty(straight):
    """In tables of one lead; the other rows have theirs."""
    results = read_results(straight.folder)
    scores = [{**of_run, "a world": of_run["as it is"]} for of_run in results.scores]
    scores[1] = {name: replace(one, leads=tuple(lead + 5 for lead in one.leads)) for name, one in scores[1].items()}
    result = results.result.model_copy(update={"worlds": ("a world",)})
    changed = Results(result, scores)
    lead = result.leads[0]
    (_, full), (_, empty) = interventions_table(changed, lead).rows
    assert "%" in full
    assert empty == ""
    (_, *full), (_, *empty) = worlds_table(changed).rows
    assert all("%" in cell for cell in full)
    assert empty == ["", ""]


def test_rows_with_other_leads_are_tested_on_the_same_days(month, tmp_path):
    plan = tmp_path / "leads.toml"
    plan.write_text(
        TINY.replace('reference = "whole"', 'reference = "whole"').split("[[rows]]")[0]
        + '[[rows]]\nname = "whole"\n\n[[rows]]\nname = "further"\nset = ["network.leads=[1,2,3,4]"]\n'
    )
    experiment = load_experiment(str(plan))
    every = jobs(experiment, month)
    assert {job.leads for job in every} == {(1, 2, 3, 4)}
    study = Study(experiment, every, tmp_path / "out" / "leads")
    run_all([study], month, tmp_path / "work", Pool())
    results = read_results(study.folder)
    (whole,), (further,) = results.of("whole"), results.of("further")
    assert whole.days == further.days
    assert (whole.leads, further.leads) == ((1, 2, 3), (1, 2, 3, 4))
    header, first, second, *baselines = [tables(results)[0].header, *tables(results)[0].rows]
    assert header[-3] == "T+4 RMSE"
    assert first[-3:] == ("", "", "")
    assert float(second[-3]) > 0
    assert all(float(row[-3]) > 0 for row in baselines)
    assert set(outcomes_of(results)) == {job.identity for job in every}
    alone = Results(results.result.model_copy(update={"runs": results.result.runs[1:]}), results.scores[1:])
    assert set(outcomes_of(alone)) == {every[1].identity}  # also before the other row has ended
    others = jobs(experiment.model_copy(update={"rows": experiment.rows[:1]}), month)
    assert others[0].run == every[0].run
    assert others[0].scoring != every[0].scoring
