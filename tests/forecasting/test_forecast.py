"""A forecast is one field whatever the batch, refuses what it must not publish, and says what was replaced."""

import copy
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
import torch
import xarray
from command import run_cli
from model_cases import TINY
from paper_channels import INDEX
from sample_days import PRODUCER, SMALL, STATIONS, make_day

import cranpm
from cranpm.archive.day_data import Quality, Statics
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.baselines import Persistence
from cranpm.core.days import parse_leads
from cranpm.core.errors import CranpmError
from cranpm.core.regions import parse_region, regions
from cranpm.forecasting import checks
from cranpm.forecasting import engine as predict
from cranpm.forecasting.tiles import Mosaic, adaptive_plan, seam_excess
from cranpm.network import build
from cranpm.network.precision import DTYPES
from cranpm.training.inputs import Inputs
from cranpm.weights import Weights, card_for, find_weights, save_weights
from cranpm.weights.folder import SHIPPED


@pytest.fixture(scope="module")
def weights() -> Weights:
    """A random network that changes PM2.5 a little."""
    torch.manual_seed(0)
    network = build(TINY).eval()
    torch.nn.init.normal_(network.decoder.head.weight, std=0.3)
    return Weights(network, card_for(network), "0" * 64)


TOLERANCE_UGM3 = {"fp32": 1e-4, "bf16": 0.5}
"""How far the same forecast may differ between kernels: bf16 keeps 8 bits of changes of up to some tens of ug m-3."""
both_precisions = pytest.mark.parametrize("precision", TOLERANCE_UGM3)


def forecast(archive, weights, precision="fp32", **how):
    """In fp32 unless the test chooses: what the machine would choose is not the same everywhere."""
    return predict.predict(archive, archive.days[2], weights, precision=precision, **how)


def test_persistence_is_today_for_every_lead(archive):
    day = archive.days[1]
    for lead in (1, 3):
        assert np.array_equal(Persistence(archive).forecast(day, lead), archive.pm25(day), equal_nan=True)
    got = predict.predict(archive, day, None)
    assert np.array_equal(got.fields, np.stack([archive.pm25(day)] * 3), equal_nan=True)


def test_a_forecast_has_a_value_wherever_today_has_one(archive, weights):
    got = forecast(archive, weights)
    today = archive.pm25(archive.days[2])
    assert got.fields.shape == (3, *archive.domain.fine.shape)
    assert np.isnan(got.fields).any(axis=0).tolist() == np.isnan(today).tolist()
    assert np.nanmin(got.fields) >= 0
    assert np.nanmax(np.abs(got.of(1) - today)) > 1
    assert not np.array_equal(got.of(1), got.of(3), equal_nan=True)
    assert got.degraded == ()
    assert got.provenance["archive_snapshot"] == archive.snapshot
    assert got.valid(3) - got.day == timedelta(days=3)


@both_precisions
def test_batches_agree(archive, weights, precision):
    """Up to rounding: other batches are computed by other kernels."""
    one, many = (forecast(archive, weights, precision, batch=size, leads=(2,)).fields for size in (1, 7))
    assert np.nanmax(np.abs(one - many)) < TOLERANCE_UGM3[precision]
    again = forecast(archive, weights, precision, batch=7, leads=(2,)).fields
    assert np.array_equal(many, again, equal_nan=True)


def test_the_order_of_leads_and_their_company_do_not_matter(archive, weights):
    three = forecast(archive, weights)
    other = forecast(archive, weights, leads=(3, 1))
    assert other.leads == (1, 3)
    assert np.array_equal(three.of(3), other.of(3), equal_nan=True)
    assert np.array_equal(three.of(1), other.of(1), equal_nan=True)


def tile_alone(archive, weights, window, precision="fp32"):
    """What the network says of one tile, T+1."""
    inputs, day = Inputs(archive), archive.days[2]
    with torch.inference_mode(), torch.autocast("cpu", DTYPES[precision], enabled=precision != "fp32"):
        context = weights.network.encode_day(inputs.day(day))
        ahead = weights.network.forecast_tile(context, inputs.tile(day, window), torch.tensor([1]))
    return ahead[0].float().clamp(min=0).numpy()


@both_precisions
def test_where_one_tile_lies_alone_the_forecast_is_its_own(archive, weights, precision):
    plan = adaptive_plan(np.isfinite(archive.pm25(archive.days[2])), 128)
    got, mosaic = forecast(archive, weights, precision, leads=(1,)).fields[0], Mosaic(plan)
    atol = TOLERANCE_UGM3[precision]
    alone = 0
    for window in plan.windows()[:5]:
        only = mosaic.share(window) == 1
        alone += int(only.sum())
        expected = tile_alone(archive, weights, window, precision)[only]
        assert np.allclose(got[window][only], expected, rtol=0, atol=atol, equal_nan=True)
    assert alone > 100


@both_precisions
def test_a_region_holds_the_numbers_of_the_whole(archive, weights, precision):
    window = (slice(100, 260), slice(210, 300))
    whole, part = (forecast(archive, weights, precision, **how).fields for how in ({}, {"region": window}))
    assert np.allclose(part, whole[:, *window], rtol=0, atol=TOLERANCE_UGM3[precision], equal_nan=True)


def test_precisions_differ_by_no_more_than_the_rounding_of_bf16(archive, weights):
    one, other = (forecast(archive, weights, name, leads=(1,)).fields for name in TOLERANCE_UGM3)
    assert 0 < np.nanmax(np.abs(one - other)) < 4 * TOLERANCE_UGM3["bf16"]


def test_seams_do_not_show(archive):
    """A random network whose changes are smooth inside a tile: cut side by side, its tiles would show."""
    torch.manual_seed(0)
    network = build(TINY.model_copy(update={"smooth_change": True})).eval()
    torch.nn.init.normal_(network.smooth.values.weight, std=0.1)
    smooth = Weights(network, card_for(network), "")
    got = forecast(archive, smooth, leads=(1,))
    today, plan = archive.pm25(archive.days[2]), adaptive_plan(np.isfinite(archive.pm25(archive.days[2])), 128)
    cut = np.full(today.shape, np.nan, np.float32)
    for window in plan.windows():
        cut[window] = tile_alone(archive, smooth, window)
    assert seam_excess(got.of(1) - today, plan) == pytest.approx(1, abs=0.15)
    assert seam_excess(cut - today, plan) > 1.5


def test_a_region_is_cut_out(archive, weights):
    window = parse_region("46,8,44.5,10", archive.domain.fine)
    got = forecast(archive, weights, region=window, leads=(1,))
    assert got.grid.shape == got.fields.shape[1:] == (150, 200)
    assert (got.grid.north, got.grid.west) == (46, 8)
    for outside in ("10,10,5,20", "50,8,44.5,10"):
        with pytest.raises(CranpmError, match="a region inside"):
            parse_region(outside, archive.domain.fine)
    with pytest.raises(CranpmError, match=r"a region \(Po Valley"):
        parse_region("Atlantis", archive.domain.fine)
    assert set(regions()) >= {"Po Valley", "Silesia", "London"}


def refused(message: str):
    return pytest.raises(CranpmError, match=message)


def test_what_does_not_fit_is_refused_each_with_its_reason(archive, weights):
    with refused("expected 2031-01-01 in the archive"):
        predict.predict(archive, date(2031, 1, 1), weights)
    with refused(r"leads among \(1, 2, 3\)"):
        forecast(archive, weights, leads=(4,))
    names = (*weights.card.channels[:-1], ("cams_nh3", "ug m-3"))
    other = replace(weights, card=weights.card.model_copy(update={"channels": names}))
    with refused("expected the channels cams_nh3, which the weights were made for"):
        forecast(archive, other)
    grid = replace(weights, card=weights.card.model_copy(update={"coarse_step": 0.5}))
    with refused("a coarse grid of 0.5 degrees"):
        forecast(archive, grid)


def test_a_missing_yesterday_is_refused_or_labelled(archive, weights):
    first = archive.days[0]
    with refused(f"{first - timedelta(days=1)} is missing"):
        predict.predict(archive, first, weights)
    got = predict.predict(archive, first, weights, degrade=True)
    assert got.degraded == (f"{first - timedelta(days=1)} is missing: {first} is used instead",)
    assert predict.predict(archive, first, None).degraded == ()


def test_gaps_in_a_channel_are_refused_or_filled_and_named(tmp_path, weights):
    days = [date(2021, 1, 1), date(2021, 1, 2)]
    statics = Statics(*(np.ones(SMALL.fine.shape, kind) for kind in (np.float32, np.float32, bool)))
    create_archive(str(tmp_path / "a"), SMALL, statics, STATIONS, PRODUCER)
    holed = make_day(days[1])
    holed.coarse[INDEX["cams_o3"], 3, 4] = np.nan
    with ArchiveWriter(str(tmp_path / "a")) as writer:
        writer.put(make_day(days[0]))
        writer.put(replace(holed, quality=Quality.DEGRADED))
    archive = Archive(str(tmp_path / "a"))
    with refused("2021-01-02 is stored as degraded"):
        predict.predict(archive, days[1], weights)
    got = predict.predict(archive, days[1], weights, degrade=True)
    assert got.degraded[1] == "cams_o3 has gaps: the training mean is used instead"
    assert np.isfinite(got.fields[:, 40:]).all()


def test_a_spoiled_forecast_is_not_published(archive):
    today = archive.pm25(archive.days[2])
    sound = predict.predict(archive, archive.days[2], None)
    for change, message in (
        (
            lambda f: f.__setitem__((0, *np.argwhere(np.isfinite(today))[0]), np.nan),
            "a value at T.1 .*1 pixels without",
        ),
        (lambda f: f.__setitem__((1, *np.argwhere(np.isfinite(today))[0]), 2500), "PM2.5 at T.2 up to 2000"),
        (lambda f: f[2].__imul__(7), "a mean at T.3 of .* from today's"),
    ):
        fields = sound.fields.copy()
        change(fields)
        with refused(message):
            checks.check(replace(sound, fields=fields), today, {})


def test_a_mean_beyond_the_climatology_of_the_training_days_is_not_published(archive, weights):
    """Three times today's mean passes without a climatology, not with one of days that never rose by half."""
    day = archive.days[2]
    sound = predict.predict(archive, day, None)
    tripled = replace(sound, fields=3 * sound.fields)
    checks.check(tripled, archive.pm25(day), {})
    quiet = dict.fromkeys((1, 2, 3), (0.7, 1.4))
    with refused("a mean at T.1 of"):
        checks.check(tripled, archive.pm25(day), quiet)
    torrid = replace(weights, card=weights.card.model_copy(update={"changes": {1: (40.0, 50.0)}}))
    forecast(archive, torrid, leads=(1,))  # a climatology never forbids what is like today
    spoiled = replace(weights, card=weights.card.model_copy(update={"changes": quiet}))
    for runaway in (20, -20):
        ill = copy.deepcopy(spoiled.network)
        with torch.no_grad():
            ill.decoder.head.bias += runaway
        with refused("a mean at T.1 of"):
            forecast(archive, replace(spoiled, network=ill))


def test_weights_of_simulated_days_are_refused_on_real_ones(tmp_path, weights):
    days = [date(2021, 1, 1), date(2021, 1, 2)]
    statics = Statics(*(np.ones(SMALL.fine.shape, kind) for kind in (np.float32, np.float32, bool)))
    create_archive(str(tmp_path / "a"), SMALL, statics, STATIONS, PRODUCER)
    with ArchiveWriter(str(tmp_path / "a")) as writer:
        for day in days:
            writer.put(make_day(day))
    archive = Archive(str(tmp_path / "a"))
    simulated = replace(weights, card=weights.card.model_copy(update={"source": "simulation"}))
    with refused("trained on simulated days, the archive's come from test"):
        predict.predict(archive, days[1], simulated)
    labelled = predict.predict(archive, days[1], simulated, degrade=True)
    assert "simulated" in labelled.degraded[0]
    assert predict.predict(archive, days[1], weights).degraded == ()


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler (g++)")
def test_a_compiled_network_forecasts_the_same(archive, weights, tmp_path):
    """In separate processes: the shape checks of tests cannot be compiled."""
    save_weights(tmp_path / "w", weights.network, weights.card)
    day, fields = archive.days[2], []
    for extra in ([], ["--compile"]):
        line = ["forecast", "--archive", archive.location, "--day", str(day), "--weights", str(tmp_path / "w")]
        line += ["--leads", "1", "--format", "nc", "--out", str(tmp_path / f"out{len(extra)}"), "-q"]
        line += ["--precision", "fp32", *extra]
        subprocess.run([sys.executable, "-m", "cranpm", *line], check=True, capture_output=True)
        with xarray.open_dataset(tmp_path / f"out{len(extra)}" / str(day) / f"pm25_{day}.nc") as dataset:
            fields.append(dataset.pm2p5.values)
    assert np.nanmax(np.abs(fields[0] - fields[1])) < 0.11  # one step of the file


def test_the_shipped_weights_are_for_simulated_europe(archive):
    """Small enough to ship, sealed, honest about what they are; and the default."""
    found = find_weights("shipped")
    assert sum(parameter.numel() for parameter in found.network.parameters()) <= 6e6
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) <= 12e6
    assert found.card.source == "simulation"
    assert "Not for real decisions" in found.card.about
    assert "europe" in found.card.domain
    assert set(found.card.changes) == {1, 2, 3}
    with refused("trained on europe 72,-25,30,45, the archive is box 48,7,42.75,12.25"):
        cranpm.forecast(archive, archive.days[2], leads=(1,))
    elsewhere = cranpm.forecast(archive, archive.days[2], leads=(1,), degrade=True)
    assert found.sha256 in elsewhere.attrs["provenance"]
    assert "trained on europe" in elsewhere.attrs["degraded"]


def test_leads_are_parsed():
    assert parse_leads("3,1") == (3, 1)
    for text in ("0", "-5", "1,1", "one", "", "3650000", "1,367"):
        with refused("leads in days"):
            parse_leads(text)


def test_from_python(archive, weights):
    dataset = cranpm.forecast(archive.location, str(archive.days[2]), weights, leads=(1, 2))
    assert dataset.pm2p5.shape == (2, *archive.domain.fine.shape)
    assert dataset.forecast_period.values.tolist() == [1, 2]
    same = cranpm.forecast(archive, archive.days[2], "persistence")
    assert np.nanmax(np.abs(same.pm2p5[0].values - archive.pm25(archive.days[2]))) < 0.051


def test_the_command_publishes_and_a_point_reads_it(archive, tmp_path, monkeypatch, capsys):
    day = archive.days[1]
    line = ["forecast", "--archive", archive.location, "--day", str(day), "--out", str(tmp_path), "-q"]
    assert run_cli(monkeypatch, *line, "--weights", "persistence") == 0
    printed = capsys.readouterr().out
    error = archive.pm25(day) - archive.pm25(day + timedelta(days=1))
    area = np.broadcast_to(archive.domain.fine.row_area_km2[:, None], error.shape)[np.isfinite(error)]
    assert f"{np.sqrt((area * error[np.isfinite(error)] ** 2).sum() / area.sum()):.2f}" in printed
    names = {path.name for path in (tmp_path / str(day)).iterdir()}
    assert names == {
        "SHA256SUMS",
        f"pm25_{day}.nc",
        *(f"pm25_{day}_T+{lead}.{kind}" for lead in (1, 2, 3) for kind in ("tif", "png")),
    }
    file = str(tmp_path / str(day) / f"pm25_{day}.nc")
    assert run_cli(monkeypatch, "point", file, "--lat", "45.46", "--lon", "9.19") == 0
    row, col = (round(float(place)) for place in archive.domain.fine.row_col(45.46, 9.19))
    assert f"{archive.pm25(day)[row, col]:.1f}" in capsys.readouterr().out
    assert run_cli(monkeypatch, "point", file, "--lat", "60", "--lon", "9") == 1
    assert "a point inside" in capsys.readouterr().err


@pytest.mark.parametrize("leads", [[], [0], [-5], [1, 1], [31], [3650000], [1.5]])
def test_leads_that_nobody_forecasts_are_refused(archive, leads):
    with pytest.raises(CranpmError, match=r"leads in days from 1 to 30, each once"):
        cranpm.forecast(archive, archive.days[2], "persistence", leads=leads)
