"""Training: it learns, it goes on after an interruption with the same bits, two processes follow one."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from model_cases import batch, random_network

from cranpm import cli
from cranpm.archive.store import Archive
from cranpm.baselines.simple.damped import DampedPersistence, fit_damped
from cranpm.core.channels import PAPER_CHANNELS
from cranpm.core.days import DayRange, usable
from cranpm.core.errors import CranpmError
from cranpm.core.settings import load
from cranpm.network.scaling import fit_scales
from cranpm.training import TrainSettings, train
from cranpm.training.checkpoints import states
from cranpm.training.loss import LossSettings, loss_terms, weighted
from cranpm.training.optimiser import WeightMean, make_optimiser, rate
from cranpm.training.recipe import SHIPPED, OptimiserSettings
from cranpm.training.records import rows
from cranpm.training.tile_scores import TileScores, error_sums
from cranpm.training.training_data import gather
from cranpm.verification.tally import Tally
from cranpm.weights import load_weights

TOML = SHIPPED / "tiny.toml"


def settings(*overrides: str) -> TrainSettings:
    return load(TrainSettings, TOML, overrides)


def interrupted(wanted: TrainSettings, archive: Archive, run: Path) -> None:
    """A run that was stopped after its second step."""

    def stop(row: dict[str, float]) -> None:
        if row["step"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(wanted, archive, run, on_step=stop)


def fingerprint(run: Path) -> str:
    """Of the last state: weights, moments, mean, random numbers and place."""
    last = states(run / "state")[-1]
    return last.name + hashlib.sha256((last / "SHA256SUMS").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def straight(month, tmp_path_factory) -> Path:
    """A run without interruption."""
    run = tmp_path_factory.mktemp("run") / "straight"
    train(settings(), month, run)
    return run


def test_a_run_leaves_what_a_person_needs(straight, month):
    assert {path.name for path in straight.iterdir()} >= {
        *("settings.json", "metrics.csv", "steps.csv", "curves.png", "weights", "best", "last", "test.json"),
        "state",
        "tensorboard",
    }
    epochs, steps = rows(straight / "metrics.csv"), rows(straight / "steps.csv")
    assert [row["epoch"] for row in epochs] == [0, 1, 2]
    assert [row["step"] for row in steps] == list(range(12))
    assert {"loss", "pixel", "frequency", "station", "rate"} <= set(steps[0])
    for lead in (1, 2, 3):
        assert epochs[0][f"rmse_t{lead}"] > 0
        skill = 1 - epochs[0][f"rmse_t{lead}"] / epochs[0][f"rmse_damped_t{lead}"]
        assert epochs[0][f"skill_damped_t{lead}"] == pytest.approx(skill)
    best = min(epochs, key=lambda row: row["mean_rmse"])["epoch"]
    assert (straight / "best").resolve().name == f"epoch-{int(best):03d}"
    assert (straight / "last").resolve().name == f"epoch-{len(epochs) - 1:03d}"
    kept = {int(row["epoch"]) for row in sorted(epochs, key=lambda row: row["mean_rmse"])[:2]} | {2}
    assert {path.name for path in (straight / "weights").iterdir()} == {f"epoch-{epoch:03d}" for epoch in kept}
    card = load_weights(straight / "best").card
    assert month.snapshot in card.data
    assert "damped persistence" in card.about
    assert TrainSettings.model_validate(json.loads((straight / "settings.json").read_text())) == settings()


class InterruptionError(Exception):
    pass


@pytest.mark.parametrize("steps", [pytest.param(1, marks=pytest.mark.long), 3, pytest.param(6, marks=pytest.mark.long)])
def test_an_interrupted_run_goes_on_with_the_same_bits(month, straight, tmp_path, steps):
    """Also in the middle of an epoch, and between two states: what was lost is done again."""

    def stop(row: dict[str, float]) -> None:
        if row["step"] == steps:
            raise InterruptionError

    with pytest.raises(InterruptionError):
        train(settings(), month, tmp_path / "run", on_step=stop)
    run = tmp_path / "run"
    resume = (run / "state").exists()
    assert resume == (steps > 1)  # the first state is written after two steps
    train(settings(), month, run, resume=resume)
    assert fingerprint(run) == fingerprint(straight)
    without_speed = [
        [{k: v for k, v in row.items() if k != "samples_a_second"} for row in rows(r / "steps.csv")]
        for r in (run, straight)
    ]
    assert without_speed[0] == without_speed[1]
    assert (run / "test.json").read_text() == (straight / "test.json").read_text()


def command(month, run: Path, *more: str, processes: int = 1) -> list[str]:
    start = [sys.executable, "-m", "cranpm"]
    if processes > 1:
        start = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}", "--master-port=0"]
        start += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "-m", "cranpm"]
    return [*start, "train", str(TOML), "--archive", month.location, "--out", str(run), "-q", *more]


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def kill_after(line: list[str], run: Path, count: int) -> None:
    """Start a run and kill -9 it and its children as soon as it has written `count` states."""
    process = subprocess.Popen(
        line, env=ENVIRONMENT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        found = states(run / "state") if (run / "state").exists() else []
        if found and int(found[-1].name[5:]) >= count:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("count", [2, 5])
def test_kill_nine_and_resume(month, tmp_path, processes, count):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(command(month, whole, processes=processes), check=True, env=ENVIRONMENT)
    kill_after(command(month, cut, processes=processes), cut, count)
    assert not (cut / "test.json").exists()
    subprocess.run(command(month, cut, "--resume", processes=processes), check=True, env=ENVIRONMENT)
    assert fingerprint(cut) == fingerprint(whole)


@pytest.mark.long
def test_two_processes_follow_one(month, tmp_path):
    more = ("--set", "optimiser.epochs=5", "--set", "machine.workers=1")
    for processes in (1, 2):
        subprocess.run(
            command(month, tmp_path / str(processes), *more, processes=processes), check=True, env=ENVIRONMENT
        )
    one, two = ([row["loss"] for row in rows(tmp_path / n / "steps.csv")] for n in ("1", "2"))
    assert len(one) == len(two) == 20
    assert np.abs(np.array(one) / np.array(two) - 1).max() <= 1e-5


def test_one_batch_can_be_learned_by_heart():
    torch.manual_seed(0)
    network, case = random_network().train(), batch(side=64)
    target = case.fine[:, 0] + 10 * torch.sin(torch.linspace(0, 6, 64))
    optimiser = make_optimiser(network, OptimiserSettings(learning_rate=3e-3, weight_decay=0))
    stations = torch.full((2, 1, 3), torch.nan)
    losses = []
    for _ in range(150):
        terms = loss_terms(network(*case.inputs), target, stations, 20.0)
        loss = weighted(terms, LossSettings(), {name: term.number for name, term in terms.items()})["loss"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.02 * losses[0]


def test_only_matrices_and_kernels_decay():
    network = random_network()
    decayed, plain = (group["params"] for group in make_optimiser(network, OptimiserSettings()).param_groups)
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    assert len(decayed) + len(plain) == len(names)
    for name in ("coarse.blocks.0.attention.alpha", "bridge.cross.layers.0.beta", "lead.weight", "fine.norm.weight"):
        assert name in {names[id(parameter)] for parameter in plain}
    assert not [names[id(p)] for p in plain if p.ndim > 1 and not names[id(p)].endswith(("table", "lead.weight"))]
    assert not [names[id(p)] for p in decayed if names[id(p)].endswith(("bias", "table"))]


def test_the_rate_warms_up_and_falls_as_a_cosine():
    chosen = OptimiserSettings(learning_rate=1.0, least_rate=0.1, warmup_epochs=2, epochs=10)
    rates = [rate(step, 10, chosen) for step in range(100)]
    assert rates[0] == pytest.approx(0.05)
    assert max(rates) == rates[20] == pytest.approx(1.0)
    assert rates[60] == pytest.approx(0.55)
    assert rates[-1] == pytest.approx(0.1, abs=1e-3)
    assert rate(500, 10, chosen) == pytest.approx(0.1)


def test_the_mean_of_weights_follows_slowly():
    network = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(network.weight, 0)
    mean = WeightMean(network, 0.9)
    torch.nn.init.constant_(network.weight, 1)
    mean.update(1000)
    assert mean.tensors()["weight"].item() == pytest.approx(0.1)
    assert WeightMean(network, 0.0).tensors()["weight"].item() == 1


def test_scales_see_training_days_only(month):
    data = gather(month, settings())
    learned = [day for day in month.days if day in settings().splits.train]
    fields = np.stack([month.coarse(day) for day in learned]).astype(np.float64)
    assert len(learned) == 20
    assert data.scales.mean == pytest.approx(fields.mean(axis=(0, 2, 3)), rel=1e-5, abs=1e-9)
    assert data.scales.spread == pytest.approx(fields.std(axis=(0, 2, 3)), rel=1e-4)
    with pytest.raises(CranpmError, match="training days to fit scales on"):
        fit_scales([])
    fields[0, 0] = 3.0
    with pytest.raises(CranpmError, match=f"no variation in {PAPER_CHANNELS[0].name}"):
        fit_scales([fields[0]])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["splits.validation=2021-01-15..2021-01-27"], "train and validation days that do not overlap"),
        (
            ["splits.test=2031-01-01..2031-02-01"],
            "test days in the archive, of good quality: 2031-01-01..2031-02-01.*found none",
        ),
        (["splits.train=2021-01-01..2021-01-03"], "train days in the archive"),
        (["samples.days=40"], "at least 40 usable training days"),
        (["network.fine.shape=[1024,1024]"], "tiles no larger than the domain"),
        (["network.fine.shape=[64,128]"], "square tiles .*found 64 x 128"),
        (["baseline.kind=prophet"], "a network: cran-pm, released, boosting, convlstm"),
        (["baseline.kind=simvp", "network.delta=false"], "network.delta and network.yesterday, beside a learned"),
        (["optimiser.epoch=3"], "optimiser.epochs"),
        (["network.preset=huge"], "a preset: paper"),
        (["network.fine.depth=0"], "network.fine.depth"),
    ],
)
def test_bad_settings_are_refused_before_the_first_step(month, tmp_path, overrides, message):
    def never(_: dict[str, float]) -> None:
        raise AssertionError

    with pytest.raises(CranpmError, match=message):
        train(settings(*overrides), month, tmp_path / "run", on_step=never)


def test_a_run_is_not_overwritten_and_other_settings_do_not_resume(straight, month, tmp_path):
    with pytest.raises(CranpmError, match="found a run"):
        train(settings(), month, straight)
    with pytest.raises(CranpmError, match="the settings with which the run began; found others under optimiser"):
        train(settings("optimiser.learning_rate=1e-4"), month, straight, resume=True)
    with pytest.raises(CranpmError, match="expected a state in"):
        train(settings(), month, tmp_path / "nothing", resume=True)


def test_a_run_that_was_stopped_before_its_first_state_begins_anew(straight, month, tmp_path):
    """Weights of its first epoch may be there already."""
    run = tmp_path / "run"
    shutil.copytree(straight / "weights", run / "weights")
    (run / "state").mkdir()
    with pytest.raises(CranpmError, match=r"found a run\. Add --resume"):
        train(settings(), month, run)
    train(settings(), month, run, resume=True)
    assert fingerprint(run) == fingerprint(straight)


def test_a_damaged_state_is_refused(straight, month, tmp_path):
    shutil.copytree(straight, tmp_path / "copy", symlinks=True)
    victim = states(tmp_path / "copy" / "state")[-1] / "optimiser.safetensors"
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    with pytest.raises(CranpmError, match="was changed or damaged"):
        train(settings(), month, tmp_path / "copy", resume=True)


def test_a_loss_that_is_no_number_names_its_batch(month, tmp_path):
    with pytest.raises(
        CranpmError, match=r"expected a loss that is a number; found (nan|inf) at step \d+, in 2021-01-\d\d T\+"
    ):
        train(settings("optimiser.learning_rate=1e30", "optimiser.warmup_epochs=0"), month, tmp_path / "run")


def test_presets_can_be_changed_in_part():
    changed = settings("network.fusion=add", "network.fine.depth=1").network
    assert (changed.fusion, changed.fine.depth, changed.fine.width) == ("add", 1, 32)


def test_damped_persistence_is_fitted_by_least_squares(month):
    days = usable(month.days, DayRange(month.days[0], month.days[-1]))
    damped = fit_damped(month, days)
    assert 1 > damped.rho[1] > damped.rho[2] > damped.rho[3] - 0.05
    fields = np.stack([month.pm25(day) for day in days])
    always = np.isfinite(fields).all(axis=0)
    assert always.mean() > 0.2
    assert np.allclose(damped.mean_ugm3[always], fields[:, always].mean(axis=0), atol=1e-3)
    assert damped.cycle == (0, 0)  # a month says nothing about a year


def test_damped_persistence_lies_between_today_and_the_usual():
    damped = DampedPersistence(np.full((1, 1), 10.0), (0.5, 0.0), {1: 0.6})
    january = pytest.approx(10 * (1 + 0.5 * np.cos(2 * np.pi * 1 / 365.25)))
    assert damped.usual(date(2021, 1, 1))[0, 0] == january
    today = damped.usual(date(2021, 1, 1)) + 5
    later = damped.forecast(today, date(2021, 1, 1), 1)
    assert later[0, 0] == pytest.approx(damped.usual(date(2021, 1, 2))[0, 0] + 3)


def test_scores_of_parts_add_up():
    random = np.random.default_rng(0)
    errors = random.normal(0, 3, (2, 50))
    errors[0, :5] = np.nan
    truth = np.full(50, 20.0)
    sums = np.zeros((2, 3, 1, 3))
    for day, error in enumerate(errors):
        sums[day, 0, 0] += error_sums(truth + error, truth)
    scores = TileScores([date(2021, 1, 1), date(2021, 1, 2)], (1,), sums)
    assert scores.rmse(1) == pytest.approx(np.sqrt(np.nanmean(errors**2)))
    assert scores.mae(1) == pytest.approx(np.nanmean(np.abs(errors)))
    assert np.isnan(scores.rmse(1, "damped"))


def test_scores_of_tiles_are_those_of_verification():
    """Its sums take another course: squares of forecast and truth, by bins."""
    random = np.random.default_rng(1)
    truth = random.gamma(2, 8, (2, 64, 64)).astype(np.float32)
    forecast = (truth + random.normal(0, 3, truth.shape)).astype(np.float32)
    truth[0, :5], forecast[1, 7] = np.nan, np.nan
    sums = np.zeros((2, 3, 1, 3))
    sums[:, 0, 0] = [error_sums(*fields) for fields in zip(forecast, truth, strict=True)]
    scores = TileScores([date(2021, 1, 1), date(2021, 1, 2)], (1,), sums)
    tally = Tally.of(forecast[0], truth[0]) + Tally.of(forecast[1], truth[1])
    assert scores.rmse(1) == pytest.approx(float(tally.rmse), rel=1e-9)
    assert scores.mae(1) == pytest.approx(float(tally.mae), rel=1e-9)
    assert scores.totals(1)[0] == tally.weight


def test_the_command_prints_its_scores(month, tmp_path, monkeypatch, capsys):
    line = ["cranpm", *command(month, tmp_path / "run", "--set", "optimiser.epochs=1")[3:]]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    scores = json.loads((tmp_path / "run" / "test.json").read_text())
    for lead in (1, 2, 3):
        assert f"{scores[f'rmse_t{lead}']:.2f}" in printed
        assert f"{100 * scores[f'skill_damped_t{lead}']:.1f} %" in printed
