"""The learned baselines: sizes of the paper's table 1, the interface of our network, and that they learn."""

from typing import get_args

import numpy as np
import pytest
import torch
from model_cases import batch
from paper_channels import INDEX
from sample_days import SMALL
from scipy.ndimage import gaussian_filter

from cranpm.baselines import FITTED, SIMPLE, fit_damped, simple
from cranpm.baselines.learned.learned_baseline import (
    BaselineName,
    LearnedBaseline,
    LearnedBaselineSettings,
    learned_baseline,
    unblurred,
)
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Grid, coarsen
from cranpm.core.interpolation import refine
from cranpm.forecasting.engine import predict
from cranpm.network.registry import build
from cranpm.network.scaling import typical_scales
from cranpm.training import load_settings, train
from cranpm.training.inputs import Inputs
from cranpm.training.optimiser import make_optimiser
from cranpm.training.recipe import SHIPPED, OptimiserSettings
from cranpm.weights import Weights, card_for, load_weights, save_weights

NAMES = get_args(BaselineName)
PAPER_MILLIONS = {"convlstm": 8.2, "simvp": 4.9, "earthformer": 61, "climax": 57, "topoflow": 61}


def settings(name: str, **given: object) -> LearnedBaselineSettings:
    return learned_baseline(name, shape=SMALL.coarse.shape, tile=64, **given)


def arguments(days: int = 2, tiles: int = 2) -> tuple[torch.Tensor, ...]:
    """Random days and tiles of the small domain, with PM2.5 at 25 km."""
    case = batch(SMALL, days=days, tiles=tiles, side=64)
    pm25 = 10 + 5 * torch.rand(days, 2, *SMALL.coarse.shape)
    pm25[:, :, :3] = torch.nan  # sea
    return torch.cat([case.coarse, pm25], dim=1), case.wind, case.elevation, case.corner, *case.inputs[4:]


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_those_of_the_paper(name):
    with torch.device("meta"):
        network = build(learned_baseline(name, "paper"), typical_scales())
    millions = sum(parameter.numel() for parameter in network.parameters()) / 1e6
    assert millions == pytest.approx(PAPER_MILLIONS[name], rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_untrained_it_forecasts_today_at_25_km(name):
    """Its change is 0: what is left is today's coarse field, refined; missing where the tile is."""
    torch.manual_seed(0)
    network = build(settings(name)).eval()
    coarse, wind, elevation, corner, fine, position, lead = arguments()
    with torch.inference_mode():
        forecast = network(coarse, wind, elevation, corner, fine, position, lead)
    assert forecast.shape == fine[:, 0].shape
    tile = Grid(float(position[0, 0]), float(position[0, 1]), 0.01, 64, 64)
    today = coarse[:1, 70:71]
    expected = refine(unblurred(today, today.isfinite())[0, 0].numpy(), SMALL.coarse, tile)
    expected[fine[0, 0].isnan().numpy()] = np.nan
    assert np.isfinite(expected).any()
    assert forecast[0].numpy() == pytest.approx(expected, abs=2e-3, nan_ok=True)


@pytest.mark.parametrize("start", ["fine", "mean"])
def test_a_change_can_be_added_to_something_else(start):
    network = build(settings("convlstm", start=start)).eval()
    *day, fine, position, lead = arguments()
    with torch.inference_mode():
        forecast = network(*day, fine, position, lead)
    expected = fine[:, 0] if start == "fine" else torch.where(fine[:, 0].isnan(), torch.nan, 15.0)
    assert torch.allclose(forecast, expected, equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
def test_it_overfits_one_batch_and_every_part_learns(name):
    """In a few dozen steps the error falls below a third of the untrained network's; no parameter is left out."""
    torch.manual_seed(0)
    network = build(settings(name))
    case = arguments(days=2, tiles=3)
    lead = torch.tensor([1, 2, 3, 3, 1, 2])
    with torch.no_grad():
        untrained = network(*case[:-1], lead)
    smooth = torch.linspace(-4, 4, 64)
    target = untrained + smooth[:, None] + lead[:, None, None].float()
    optimiser = torch.optim.Adam(network.parameters(), 3e-3)
    first = None
    for step in range(60):
        error = (network(*case[:-1], lead) - target).nan_to_num().square().mean()
        first = first or float(error.detach())
        optimiser.zero_grad()
        error.backward()
        if step == 1:
            silent = [key for key, p in network.named_parameters() if p.grad is None or not p.grad.any()]
            assert silent == []
        optimiser.step()
    assert float(error.detach()) < first / 3


@pytest.mark.parametrize("name", NAMES)
def test_leads_differ_and_weather_counts(name):
    torch.manual_seed(0)
    network = build(settings(name, smooth_change=True)).eval()
    torch.nn.init.normal_(network.backbone.out.project.weight, std=0.5)
    *day, fine, position, lead = arguments()
    with torch.inference_mode():
        one = network(*day, fine, position, torch.full_like(lead, 1))
        three = network(*day, fine, position, torch.full_like(lead, 3))
        day[0] = day[0].clone()
        day[0][:, INDEX["t2m"]] += 5
        warmer = network(*day, fine, position, torch.full_like(lead, 1))
    assert (one - three).nan_to_num().abs().max() > 0.01
    assert (one - warmer).nan_to_num().abs().max() > 0.001


def test_refining_keeps_the_means_of_cells():
    """Over each cell the mean of the refined field is the cell's value, up to a twentieth of what refining blurs."""
    random = np.random.default_rng(0)
    coarse, fine = Grid(50, 4, 0.25, 12, 16), Grid(50, 4, 0.01, 300, 400)
    field = gaussian_filter(random.normal(15, 20, coarse.shape), 1)
    sharp = unblurred(torch.from_numpy(field)[None, None].float(), torch.ones(1, 1, *coarse.shape))[0, 0].numpy()

    def lost(values):
        return np.abs(coarsen(refine(values, coarse, fine), fine, coarse) - field)[1:-1, 1:-1].mean()

    assert lost(sharp) < 0.05 * lost(field)
    holed = torch.from_numpy(field)[None, None].float()
    holed[..., :4, :4] = torch.nan
    assert torch.equal(unblurred(holed, holed.isfinite()).isnan(), holed.isnan())


def test_backbones_see_yesterday_first_and_where_they_are(archive):
    """Channels, PM2.5, elevation, mask, latitude and longitude of yesterday and then of today."""

    class Watching(torch.nn.Module):
        def forward(self, frames, wind, elevation_m):
            self.frames = frames
            return torch.zeros(len(frames), 3, 1, *frames.shape[3:])

    day = archive.days[2]
    network = LearnedBaseline(settings("convlstm"), typical_scales())
    network.backbone = Watching()
    network.encode_day(Inputs(archive, coarse_pm25=True).day(day))
    scales, frames = typical_scales(), network.backbone.frames[0].numpy()
    for index, when in ((0, archive.days[1]), (1, day)):
        t2m = archive.coarse(when)[INDEX["t2m"]]
        k = INDEX["t2m"]
        assert frames[index, k] == pytest.approx((t2m - scales.mean[k]) / scales.spread[k], abs=1e-3)
        pm25 = coarsen(archive.pm25(when), archive.domain.fine, archive.domain.coarse)
        assert frames[index, 35] == pytest.approx(np.nan_to_num((pm25 - 15) / 20), abs=1e-4)
        assert frames[index, 38, 3, 0] == pytest.approx(archive.domain.coarse.lat[3] / 90)
        assert frames[index, 39, 0, 5] == pytest.approx(archive.domain.coarse.lon[5] / 180)


@pytest.mark.parametrize("name", NAMES)
def test_europe_fits_in_memory(name):
    """No backbone compares more than 6000 tokens with each other on the grid of Europe."""
    for size in ("small", "paper"):
        wanted = learned_baseline(name, size)
        tokens = np.prod([-(-side // wanted.backbone.patch) for side in wanted.shape])
        assert tokens <= 6000 or name not in ("climax", "topoflow")


@pytest.mark.parametrize("name", NAMES)
def test_matrices_decay_and_nothing_else(name):
    network = build(settings(name))
    groups = make_optimiser(network, OptimiserSettings()).param_groups
    decayed = {id(parameter) for parameter in groups[0]["params"]}
    assert sum(len(group["params"]) for group in groups) == len(list(network.parameters()))
    for module in network.modules():
        for own, parameter in module.named_parameters(recurse=False):
            matrix = isinstance(module, torch.nn.Linear | torch.nn.Conv2d) and own == "weight"
            assert (id(parameter) in decayed) == matrix, own


def test_inputs_bring_pm25_at_25_km(archive):
    day = archive.days[2]
    found, plain = Inputs(archive, coarse_pm25=True).day(day), Inputs(archive).day(day)
    coarse = found.coarse
    assert torch.equal(coarse[:, :70], plain.coarse)
    assert torch.equal(found.wind, plain.wind)
    field, lat = archive.pm25(day), archive.domain.fine.row_area_km2
    block, weight = field[25:50, 50:75], np.broadcast_to(lat[25:50, None], (25, 25))
    assert float(coarse[0, 70, 1, 2]) == pytest.approx(np.average(block, weights=weight), rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_trained_saved_and_forecasts_as_ours_does(name, month, tmp_path):
    wanted = load_settings(SHIPPED / "tiny.toml", [f"baseline.kind={name}", "optimiser.epochs=1"])
    scores = train(wanted, month, tmp_path / "run")
    assert np.isfinite(scores.mean_rmse())
    weights = load_weights(tmp_path / "run" / "best")
    assert weights.card.network.kind == name
    day = month.days[5]
    forecast = predict(month, day, weights)
    assert forecast.provenance["resolution"] == "25 km"
    assert np.array_equal(np.isfinite(forecast.of(1)), np.isfinite(month.pm25(day)))


def test_weights_of_another_kind_are_refused(tmp_path):
    network = build(settings("simvp"))
    card = card_for(network)
    with pytest.raises(ValueError, match="climax"):
        card.network.model_validate({"kind": "climax", "settings": card.network.settings.model_dump()})
    save_weights(tmp_path / "w", network, card)
    assert isinstance(load_weights(tmp_path / "w"), Weights)
    with pytest.raises(CranpmError, match="one of convlstm, simvp"):
        learned_baseline("prophet")


def test_simple_baselines_are_what_they_say(month):
    days = month.days[1:20]
    fitted = fit_damped(month, days)
    day = month.days[22]
    today = month.pm25(day)
    fields = {name: simple(name, month, fitted).forecast(day, 2) for name in SIMPLE}
    assert np.array_equal(fields["persistence"], today, equal_nan=True)
    usual = np.where(np.isfinite(today), fitted.mean_ugm3, np.nan)
    assert np.allclose(fields["climatology"], usual, equal_nan=True, atol=1e-4)
    anomaly = today - fitted.mean_ugm3
    assert np.allclose(
        fields["damped"], np.maximum(fitted.mean_ugm3 + fitted.rho[2] * anomaly, 0), equal_nan=True, atol=1e-3
    )
    row, col = 30, 40  # beside the centre of a coarse cell
    cams = month.ahead.fields(day, 2, "composition")[0]
    assert fields["cams"][row, col] == pytest.approx(refine(cams, month.domain.coarse, month.domain.fine)[row, col])
    window = (slice(100, 140), slice(50, 90))
    for name in SIMPLE:
        part = simple(name, month, fitted).forecast(day, 2, window)
        assert np.allclose(part, fields[name][window], equal_nan=True, atol=1e-4)
    for name in (*FITTED, "oracle"):
        with pytest.raises(CranpmError, match="a baseline: persistence"):
            simple(name, month)
