"""Rows differ by what they name, runs survive kills, interventions change what they say and nothing else."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from command import run_cli
from conftest import SETTINGS
from paper_channels import INDEX

from cranpm.archive.store import SIMULATION, Archive, ArchiveInMemory
from cranpm.core.channels import LEVELS_HPA
from cranpm.core.days import parse_days
from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Domain
from cranpm.experiments.intervene import INTERVENTIONS, Intervened, is_composition, is_wind, of_both_days
from cranpm.experiments.report import report, rows_table, spread
from cranpm.experiments.run import (
    FACTUAL,
    Task,
    do,
    judged_days,
    load_result,
    make_worlds,
    run_all,
    work,
    world_place,
)
from cranpm.experiments.spec import PLANS, Experiment, Row, differences, jobs, load_experiment
from cranpm.network.scaling import typical_scales
from cranpm.simulate import SimulationSettings
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
    """The experiment, its runs and their folder."""
    folder = tmp_path_factory.mktemp("straight")
    (folder / "two.toml").write_text(TINY)
    experiment = load_experiment(str(folder / "two.toml"))
    found = jobs(experiment, month)
    for job in found:
        do(job, experiment, month, folder)
    report(experiment, found, folder, "two")
    return folder, found


def test_the_table_holds_what_the_runs_found(straight):
    folder, found = straight
    text = (folder / "two" / "table.md").read_text()
    runs = pq.read_table(folder / "two" / "runs.parquet").to_pylist()
    assert [(run["row"], run["seed"]) for run in runs if run["condition"] == FACTUAL] == [("whole", 0), ("no wind", 0)]
    assert len(runs) == 4
    assert all(json.loads(run["settings"])["optimiser"]["epochs"] == 1 for run in runs)
    for job in found:
        assert f"| {job.row} | {load_result(job, folder)[0][FACTUAL].rmse(1):.2f} |" in text
    assert "wind zero" in text
    assert runs[0]["archive_snapshot"] in text


def test_a_row_may_be_held_against_another_than_the_reference(straight):
    folder, found = straight
    results = {job.row: [load_result(job, folder)[0]] for job in found}
    results["same"] = results["no wind"]
    experiment = Experiment(
        title="",
        question="",
        rows=(Row(name="whole"), Row(name="no wind"), Row(name="same", against="no wind")),
        reference="whole",
        seeds=(0,),
    )
    cells = {row[0]: row for row in rows_table(experiment, results).rows}
    assert cells["same"][2].startswith("+0.0 %")
    assert cells["same"][2].endswith("against no wind")
    assert "against" not in cells["no wind"][2]


def test_runs_share_a_process_and_nothing_else(straight, month, tmp_path):
    """One after the other in a process that keeps the days in memory: the bits of a run that reads for itself."""
    folder, found = straight
    experiment = load_experiment(str(folder / "two.toml"))
    kept = ArchiveInMemory(month.location, month.snapshot)
    for job in reversed(found):
        work([Task(experiment, job)], kept, tmp_path)
    for job in found:
        ours, theirs = (load_result(job, one)[0][FACTUAL].tally.moments for one in (tmp_path, folder))
        assert np.array_equal(ours, theirs)


def test_a_run_that_fails_is_told_with_its_remedy(month, tmp_path):
    (tmp_path / "two.toml").write_text(TINY)
    experiment = load_experiment(str(tmp_path / "two.toml"))
    settled = jobs(experiment, month, ["splits.train=2001-01-01..2001-02-01"])
    tasks = [Task(experiment, job) for job in settled]
    with pytest.raises(CranpmError, match=r"the run (whole|no wind)/0 to end; found CranpmError: expected train days"):
        run_all(tasks, month, tmp_path, at_once=2)
    assert not list(tmp_path.glob("runs/*/tested-*"))


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


@pytest.mark.parametrize("name", sorted(path.parent.name for path in RESULTS.glob("*/table.md")))
def test_a_table_in_the_repository_is_what_its_runs_say(name):
    """And a setting that is new leaves them their names: they are not trained again."""
    experiment = load_experiment(name)
    results = {row.name: [] for row in experiment.rows}
    for job in jobs(experiment, ALPS):
        results[job.row].append(load_result(job, RESULTS)[0])
    assert rows_table(experiment, results).markdown() in (RESULTS / name / "table.md").read_text()


def test_a_test_touches_its_days_and_their_neighbours(straight, month):
    settings = straight[1][0].settings
    experiment = load_experiment("table3a").model_copy(update={"score_days": 1})
    first = judged_days(experiment, month, settings)
    assert len(first) == 5
    assert all(day in settings.splits.test for day in first)
    elsewhere = load_settings(Path("tiny.toml"), ["splits.test=2001"])
    with pytest.raises(CranpmError, match=r"test days in the archive: 2001-01-01\.\.2001-12-31"):
        judged_days(experiment, month, elsewhere)


def test_means_and_spreads_over_seeds():
    assert spread([1.0, 2.0, 3.0]) == "2.00 ± 1.00"
    assert spread([1.5]) == "1.50"


@pytest.mark.long
def test_an_experiment_goes_on_after_a_kill_and_gives_the_same_table(straight, month, tmp_path, monkeypatch, capsys):
    line = ["experiment", str(straight[0] / "two.toml"), "--archive", month.location, "--out"]
    started = subprocess.Popen(
        [sys.executable, "-m", "cranpm", *line, str(tmp_path / "killed"), "-q"], start_new_session=True
    )
    while not list((tmp_path / "killed").glob("runs/*/steps.csv")):
        time.sleep(0.2)
        assert started.poll() is None
    subprocess.run(["pkill", "-9", "-s", str(started.pid)], check=True)
    started.wait()
    assert run_cli(monkeypatch, *line, str(tmp_path / "killed"), "-q", "--jobs", "2") == 0
    tables = [(folder / "two" / "table.md").read_text() for folder in (tmp_path / "killed", straight[0])]
    assert tables[0] == tables[1]


def test_jobs_are_printed_for_other_machines(straight, month, tmp_path, monkeypatch, capsys):
    line = ["experiment", str(straight[0] / "two.toml"), "--archive", month.location, "--out", str(tmp_path)]
    assert run_cli(monkeypatch, *line, "--print-jobs") == 0
    printed = [shlex.split(command) for command in capsys.readouterr().out.splitlines()]
    assert [command[-1] for command in printed] == ["whole/0", "no wind/0"]
    assert run_cli(monkeypatch, *line, "--only", "nobody/0") == 1


def test_refusals(tmp_path):
    with pytest.raises(CranpmError, match="a TOML file or an experiment"):
        load_experiment("table9")
    with pytest.raises(ValueError, match="names of their own"):
        Experiment(title="", question="", rows=(Row(name="a"), Row(name="a")), reference="a")
    with pytest.raises(ValueError, match="a budget is one of"):
        Experiment(title="", question="", rows=(Row(name="a"),), reference="a", budget="7min")
    with pytest.raises(ValueError, match="no intervention rain zero"):
        Experiment(title="", question="", rows=(Row(name="a"),), reference="a", interventions=("rain zero",))
    with pytest.raises(ValueError, match="no row b"):
        Experiment(title="", question="", rows=(Row(name="a", against="b"),), reference="a")


def test_rows_of_several_experiments_share_a_run(month):
    """Table 3b ends where table 3c begins, and what it is judged by does not change the weights."""
    of = {name: jobs(load_experiment(name), month) for name in ("table3a", "table3b", "table3c", "learning-curves")}
    run = {name: {job.name: job.run for job in found} for name, found in of.items()}
    assert run["table3b"]["D + stations and yesterday/1"] == run["table3c"]["whole/1"]
    assert run["table3a"]["cross/0"] == run["learning-curves"]["6 years/0"] == run["table3c"]["whole/0"]
    other = load_experiment("table3a").model_copy(update={"score_days": 7})
    job, same = jobs(other, month)[0], of["table3a"][0]
    assert job.run == same.run
    assert job.test != same.test


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
    make_worlds(experiment, month, month.days[:2], tmp_path)
    world = Archive(str(world_place("flat-relief", tmp_path)))
    assert world.days == month.days[:2]
    assert float(world.elevation().max()) == 0
    assert world.attributes["producer"]["seed"] == month.attributes["producer"]["seed"]
    assert not np.array_equal(world.pm25(month.days[1]), month.pm25(month.days[1]), equal_nan=True)


def test_figures_read_the_condition_that_runs_write():
    from cranpm.views.figures import trials

    assert trials.FACTUAL == FACTUAL
