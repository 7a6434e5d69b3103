"""Gradient boosting pixel by pixel: its trees are scikit-learn's, unfitted it is persistence, and it can do without."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from command import run_cli
from model_cases import batch
from sample_days import SMALL
from sklearn.ensemble import HistGradientBoostingRegressor

from cranpm.baselines.learned.boosting import BoostingSettings
from cranpm.baselines.learned.pixel_features import pixel_features
from cranpm.baselines.learned.trees import Trees, copy_trees, rounded_down
from cranpm.core.channels import CHANNELS, GROUPS, PAPER_CHANNELS
from cranpm.core.errors import CranpmError
from cranpm.core.interpolation import refine
from cranpm.experiments.results import Row
from cranpm.experiments.run import Task, do
from cranpm.experiments.spec import Experiment, jobs
from cranpm.forecasting.engine import predict
from cranpm.network import DayInputs, PixelSample, TileInputs, build
from cranpm.operate.doctor import run_checks
from cranpm.training import load_settings, train
from cranpm.training.finetune import tunable
from cranpm.training.fitting import FittingRun
from cranpm.training.inputs import Inputs
from cranpm.training.recipe import SHIPPED
from cranpm.weights import card_for, load_weights, save_weights

QUICK = ("baseline.kind=boosting", "baseline.trees=20", "baseline.samples=3000", "baseline.least_samples=20")
FEWER = ("baseline.trees=10",)
AHEAD = ("network.ahead=weather+composition", "samples.hidden_groups=0.4")
SUBSETS = [chosen for count in range(3) for chosen in combinations(GROUPS, count)]


def boosting(**given):
    return BoostingSettings(coarse_shape=SMALL.coarse.shape, tile_shape=(64, 64), **given)


def recipe(*changes):
    return load_settings(SHIPPED / "tiny.toml", [*QUICK, *changes])


def example(ahead=False):
    """Two random days of the small domain with PM2.5 at 25 km, and two tiles of each."""
    case = batch(SMALL, days=2, tiles=2, side=64)
    pm25 = 10 + 5 * torch.rand(2, 2, *SMALL.coarse.shape)
    pm25[:, :, :3] = torch.nan  # sea
    days = DayInputs(torch.cat([case.coarse, pm25], dim=1), case.wind, case.elevation, case.corner)
    if ahead:
        fields = case.coarse.unflatten(1, (2, 35)) + 1
        days = replace(days, ahead=fields, known=torch.ones(2, 2, 2), lead=torch.tensor([1, 3]))
    return days, case.tiles


@pytest.fixture(scope="module")
def fitted(month, tmp_path_factory):
    """The folder of a run that reads the days ahead."""
    folder = tmp_path_factory.mktemp("boosting") / "run"
    train(recipe(*AHEAD), month, folder)
    return folder


def test_trees_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    rows, new = random.normal(size=(2, 3001, 9)).astype(np.float32)
    for part in (rows, new):
        part[random.random(part.shape) < 0.2] = np.nan
        part[:, 8] = np.round(part[:, 8])  # ties at thresholds
    truth = np.nan_to_num(rows[:, 0] * rows[:, 1]) + 2 * np.isnan(rows[:, 2]) + np.nan_to_num(rows[:, 8])
    model = HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=12, max_depth=6, early_stopping=False)
    model.fit(rows, truth)
    trees = copy_trees(model, trees=32, nodes=23)  # two more than there are: they add nothing
    found = trees.sums(new, 6) + model._baseline_prediction.item()
    assert found == pytest.approx(model.predict(new), abs=1e-5)
    assert np.abs(found).max() > 1
    for count in (1, 2, 5):  # rows are read by fours
        assert np.array_equal(trees.sums(new[:count], 6), trees.sums(new, 6)[:count])


def test_thresholds_are_rounded_so_that_no_comparison_changes():
    random = np.random.default_rng(0)
    numbers = random.normal(size=500).astype(np.float32)
    exact = np.concatenate([numbers[:250], (numbers[:-1].astype(np.float64) + numbers[1:]) / 2, [np.inf, -np.inf]])
    exact[:100] += 1e-12
    rounded = rounded_down(exact)
    assert rounded.dtype == np.float32
    assert np.isfinite(rounded).all()
    assert np.array_equal(numbers[:, None] <= exact, numbers[:, None] <= rounded)


def test_coarse_fields_at_pixels_are_bilinear_and_missing_cells_leave_their_weight():
    random = np.random.default_rng(0)
    fields = random.normal(size=(2, *SMALL.coarse.shape)).astype(np.float32)
    fields[1, 5, 5] = np.nan
    fields[1, :3, :3] = np.nan
    grid = SMALL.fine.window(slice(30, 300), slice(30, 200))
    lat, lon = (axis.ravel() for axis in np.meshgrid(grid.lat, grid.lon, indexing="ij"))
    pixels = np.stack([lat, lat, lat, lon, lon]).astype(np.float32)
    found = pixel_features(fields, (float(SMALL.north), float(SMALL.west)), pixels)
    assert np.array_equal(found[:, :5], pixels.T)
    for channel in range(2):
        expected = refine(fields[channel], SMALL.coarse, grid).ravel()
        assert found[:, 5 + channel] == pytest.approx(expected, abs=2e-4, nan_ok=True)
    assert np.isnan(found[:, 6]).any()


def test_unfitted_it_is_persistence_bit_for_bit():
    for settings in (boosting(), boosting(ahead="weather+composition")):
        network = build(settings).eval()
        days, tiles = example(ahead=settings.ahead != "none")
        lead = torch.tensor([1, 1, 3, 3])
        forecast = network.forecast_tile(network.encode_day(days), tiles, lead)
        assert torch.equal(forecast.nan_to_num(-1), tiles.fine[:, 0].nan_to_num(-1))
        assert forecast.isnan().any()


def test_it_learns_a_planted_signal_of_each_lead_from_the_days_ahead():
    """The change is the target day's first channel times the lead; where that is hidden, it is not known."""
    network = build(boosting(ahead="weather", trees=60, learning_rate=0.2, least_samples=5, leads=(1, 3)))
    random = torch.Generator().manual_seed(0)

    def draw(number, known=1.0):
        case = batch(SMALL, tiles=1, side=16, seed=number)
        pm25 = 10 + torch.rand(1, 2, *SMALL.coarse.shape, generator=random)
        signal = 4 * torch.rand(1, generator=random) - 2
        ahead = torch.randn(1, 2, 30, *SMALL.coarse.shape, generator=random)
        ahead[:, 0, 0] = signal
        fine = case.fine[..., 6:, 6:].reshape(1, 5, 1, -1)[..., ::4]
        day = DayInputs(torch.cat([case.coarse, pm25], dim=1), case.wind, case.elevation, case.corner, ahead)
        return replace(day, known=torch.full((1, 2, 1), known)), TileInputs(fine, case.position), float(signal)

    samples = []
    for number in range(60):
        for lead in (1, 3):
            day, tile, signal = draw(number)
            day = replace(day, lead=torch.tensor([lead]))
            samples.append(PixelSample(day, tile, lead, tile.fine[0, 0, 0] + lead * signal))
    network.fit(samples, seed=0)
    for number in range(100, 105):
        day, tile, signal = draw(number)
        for lead in (1, 3):
            day = replace(day, lead=torch.tensor([lead]))
            forecast = network.forecast_tile(network.encode_day(day), tile, torch.tensor([lead]))
            change = (forecast - tile.fine[:, 0]).mean()
            assert float(change) == pytest.approx(lead * signal, abs=0.35 * lead)


def test_what_is_masked_does_not_count(fitted):
    network = load_weights(fitted / "best").network
    days, tiles = example(ahead=True)
    lead = torch.tensor([1, 1, 3, 3])

    def forecast(day):
        return network.forecast_tile(network.encode_day(day), tiles, lead).nan_to_num(-1)

    hidden = replace(days, known=torch.zeros(2, 2, 2))
    nothing = replace(hidden, ahead=torch.full_like(days.ahead, torch.nan))
    assert torch.equal(forecast(hidden), forecast(nothing))
    assert not torch.equal(forecast(days), forecast(hidden))
    weather_only = replace(days, known=torch.tensor([1.0, 0.0]).expand(2, 2, 2))
    spoiled = weather_only.ahead.clone()
    spoiled[:, :, 30:] = torch.nan
    assert torch.equal(forecast(weather_only), forecast(replace(weather_only, ahead=spoiled)))


@pytest.mark.parametrize("hidden", SUBSETS)
def test_it_does_without_any_group(fitted, month, hidden):
    network = load_weights(fitted / "best").network
    inputs, day = Inputs.of(network.settings, month), month.days[28]
    window = (slice(100, 164), slice(100, 164))
    tile = inputs.tile(day, window)
    for lead in (1, 3):
        context = network.encode_day(inputs.day(day, lead, hidden))
        forecast = network.forecast_tile(context, tile, torch.tensor([lead]))
        assert torch.equal(forecast.isfinite(), tile.fine[:, 0].isfinite())


def test_it_beats_persistence_on_days_it_learned_from(month, tmp_path):
    every_day = ("baseline.samples=4000", "samples.hidden_groups=0", "scores.days=16")
    settings = recipe(*AHEAD, "baseline.trees=60", *every_day)
    run = FittingRun(settings, month, tmp_path, resume=False)
    run.train()
    scores = run._scores(run.data.train, load_weights(tmp_path / "best").network)
    for lead in (1, 2, 3):
        assert scores.skill(lead, "persistence") > 0.1


def test_a_run_leaves_what_others_leave_and_resuming_changes_nothing(fitted, month):
    left = {"settings.json", "metrics.csv", "weights", "best", "last", "test.json"}
    assert {path.name for path in fitted.iterdir()} == left
    assert (fitted / "best").resolve() == (fitted / "weights" / "epoch-000").resolve()
    weights = load_weights(fitted / "best")
    assert "boosting" in (fitted / "best" / "README.md").read_text()
    assert "skill" in weights.card.about
    assert set(weights.card.ahead) == set(GROUPS)
    before = {path: path.read_bytes() for path in fitted.rglob("*") if path.is_file()}
    train(recipe(*AHEAD), month, fitted, resume=True)
    assert {path: path.read_bytes() for path in fitted.rglob("*") if path.is_file()} == before
    with pytest.raises(CranpmError, match=r"a new folder .*; found a run"):
        train(recipe(*AHEAD), month, fitted)
    with pytest.raises(CranpmError, match="the settings with which the run began; found others under baseline"):
        train(recipe(*AHEAD, "baseline.trees=21"), month, fitted, resume=True)


def test_an_unfinished_run_begins_again_and_gives_the_same_weights(fitted, month, tmp_path):
    def stop(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe(*AHEAD), month, tmp_path / "run", on_step=stop)
    train(recipe(*AHEAD), month, tmp_path / "run", resume=True)
    assert load_weights(tmp_path / "run/best").sha256 == load_weights(fitted / "best").sha256


def test_weights_are_read_back_and_damaged_trees_are_refused(fitted, tmp_path):
    weights = load_weights(fitted / "best")
    assert weights.card.network.settings.yesterday == (0, 1, 2, 4)
    save_weights(tmp_path / "copy", weights.network, weights.card)
    copy = load_weights(tmp_path / "copy").network
    for name, tensor in weights.network.state_dict().items():
        assert torch.equal(tensor, copy.state_dict()[name])
    copy.left[0, 3, 0] = 1e6
    days, tiles = example(ahead=True)
    with pytest.raises(CranpmError, match=r"trees whose left is in 0\.\.60; found \d\.\.1000000"):
        copy.forecast_tile(copy.encode_day(days), tiles, torch.tensor([1, 1, 3, 3]))
    zeros = np.zeros((1, 3), np.int32)
    with pytest.raises(CranpmError, match=r"trees whose feature is in 0\.\.1"):
        Trees(zeros + 2, zeros, zeros, zeros, zeros, zeros).check(features=2)


def test_what_it_reads_of_yesterday_is_taken_from_the_channels():
    blh = CHANNELS["blh"]
    settings = boosting().for_channels((blh, *PAPER_CHANNELS[:7]))
    assert settings.yesterday == (0, 1, 2, 3, 5)
    assert settings.channels == 8
    assert settings.features == 5 + 2 + 8 + 5
    with pytest.raises(CranpmError, match=r"yesterday's channels among 0\.\.34 \(baseline\.yesterday\); found 40"):
        build(boosting(yesterday=(40,)))


def test_channels_of_yesterday_that_were_named_stay():
    named = recipe("baseline.yesterday=[0,1,2,4]").model.for_channels((*PAPER_CHANNELS, CHANNELS["blh"]))
    taken = recipe().model.for_channels((*PAPER_CHANNELS, CHANNELS["blh"]))
    assert (named.yesterday, taken.yesterday) == ((0, 1, 2, 4), (0, 1, 2, 4, 35))
    assert boosting().features == boosting(yesterday=(0, 1, 2, 4)).features


def test_it_is_fitted_where_a_group_is_never_known(month, tmp_path):
    """A slot beyond the lead, and a lead beyond the forecasts: columns without one number."""
    train(recipe(*AHEAD, "network.way=slots", "network.leads=[1,2]"), month, tmp_path / "run")
    weights = load_weights(tmp_path / "run" / "best")
    forecast = predict(month, month.days[28], weights)
    assert np.isfinite(forecast.of(1)).any()
    assert not np.array_equal(forecast.of(1), month.pm25(month.days[28]), equal_nan=True)


def test_refusals(month, tmp_path, monkeypatch):
    network = build(boosting())
    save_weights(tmp_path / "w", network, card_for(network))
    with pytest.raises(CranpmError, match="trained step by step; found those of boosting, which is fitted at once"):
        tunable(load_weights(tmp_path / "w"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(CranpmError, match="one process, for boosting: it is fitted at once; found 2 processes"):
        train(recipe(), month, tmp_path / "run")


def test_doctor_tells_what_fitting_costs(month, tmp_path):
    found = {check.name: check.found for check in run_checks(recipe(*AHEAD), month, tmp_path)}
    assert found["the run"] == "3000 pixels of 15 start days for each of 3 leads"
    assert "fitted at once" in found["network"]


def test_it_is_a_row_of_an_experiment(month, tmp_path):
    boosted, lower = (Row(name=name, set=(*QUICK, *more)) for name, more in (("boosting", ()), ("few", FEWER)))
    given = {"recipe": "tiny.toml", "seeds": (0,), "budget": "whole", "score_days": 3, "score_tiles": 1}
    experiment = Experiment(title="", question="", rows=(boosted, lower), reference="boosting", **given)
    done = [do(Task(experiment, job), month, tmp_path) for job in jobs(experiment, month)]
    once_more = do(Task(experiment, jobs(experiment, month)[0]), month, tmp_path)
    assert done[0].run == once_more.run
    assert done[0].run.parameters == 3 * (2 * 20 * 61 + 1)
    assert done[1].run.parameters == 3 * (2 * 10 * 61 + 1)


def test_the_commands_train_and_forecast(month, tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    changes = [part for change in (*QUICK[1:], *AHEAD) for part in ("--set", change)]
    line = ["train", "tiny.toml", "--model", "boosting", "--archive", month.location, "--out", str(run), *changes, "-q"]
    assert run_cli(monkeypatch, *line) == 0
    assert "weights in" in capsys.readouterr().out
    assert json.loads((run / "best" / "settings.json").read_text())["network"]["kind"] == "boosting"
    day = month.days[28]
    products = ["--weights", str(run / "best"), "--format", "nc", "--out", str(tmp_path / "products"), "-q"]
    assert run_cli(monkeypatch, "forecast", "--archive", month.location, "--day", str(day), *products) == 0
    forecast = predict(month, day, load_weights(run / "best"))
    assert forecast.provenance["method"] == "boosting"
    assert forecast.provenance["resolution"] == "1 km"
    assert np.array_equal(np.isfinite(forecast.of(2)), np.isfinite(month.pm25(day)))
    assert not np.array_equal(forecast.of(1), month.pm25(day), equal_nan=True)
