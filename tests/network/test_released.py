"""The authors' network: their reference case to 1e-5, their parameter counts, the proof that its scan does nothing."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from model_cases import batch
from pydantic import ValidationError
from released_cases import SMALL, released, their_tensors
from safetensors.torch import load_file, save_file
from torch import Tensor

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain
from cranpm.network import DayInputs, Released, ReleasedSettings, TileInputs, build, preset
from cranpm.network.cost import size
from cranpm.network.released import degrees_aligned
from cranpm.network.released_settings import CHANNELS, SCALES
from cranpm.network.token_geometry import token_centres
from cranpm.weights import load_weights

PARITY = Path(os.environ.get("CRANPM_SHARED", Path(__file__).parents[3] / "shared")) / "parity"
reference = pytest.mark.skipif(
    not (PARITY / "case.safetensors").is_file(),
    reason=f"the authors' reference case is not at {PARITY}; set CRANPM_SHARED to where it is",
)


@pytest.fixture(scope="module")
def published() -> Released:
    network = load_weights(PARITY).network
    assert isinstance(network, Released)
    return network


@pytest.fixture(scope="module")
def case() -> dict[str, Tensor]:
    return load_file(PARITY / "case.safetensors")


def tokens_of(network: Released, case: dict[str, Tensor]) -> Tensor:
    """Coarse tokens of each sample at its own lead."""
    with torch.inference_mode():
        of_all_leads = network.coarse_tokens(case["coarse"], case["coarse_elevation"]).unflatten(0, (-1, 4))
    return torch.stack([tokens[int(lead) - 1] for tokens, lead in zip(of_all_leads, case["lead"], strict=True)])


@reference
def test_tokens_match_the_reference(published, case):
    assert (tokens_of(published, case) - case["coarse_tokens"]).abs().max() <= 1e-5
    with torch.inference_mode():
        raw = published.fine.patches(case["fine"]).flatten(1, 2)
        fine = published.fine(raw, case["fine_elevation"], 500.0, 0.0)
    assert (fine - case["fine_tokens"]).abs().max() <= 1e-5


@reference
@pytest.mark.parametrize("expected", ["output_no_wind", "output_with_wind"])
def test_outputs_match_the_reference(published, case, expected):
    there = token_centres(torch.tensor([[72.0, -25.0]] * 2), 7, 14, 2.0)
    align = degrees_aligned(case["tile_centre_lat_lon"], there, case["wind_u_v"])
    with torch.inference_mode():
        memory = published.bridge.prepare(tokens_of(published, case))
        change = published.change(
            case["fine"], case["fine_elevation"], memory, align if expected == "output_with_wind" else None
        )
    assert (case["fine"][:, 0] + change - case[expected][:, 0]).abs().max() <= 1e-5
    assert (case["output_no_wind"] - case["output_with_wind"]).abs().max() > 1e-3  # the two cases differ


@reference
def test_physical_units_lead_to_the_same_forecast(published, case):
    """Through the public face: metres, degrees, ug m-3, a wind field and the tile's position."""
    pm25 = (15.0, 20.0)
    fine = case["fine"].clone()
    fine[:, 1] = case["fine_elevation"]
    for channel, (mean, spread) in enumerate((pm25, (300.0, 500.0), (30.0, 42.0), (-25.0, 70.0), pm25)):
        fine[:, channel] = fine[:, channel] * spread + mean
    wind = case["wind_u_v"][:, :, None, None].expand(-1, -1, 56, 112)
    position = case["tile_centre_lat_lon"] + torch.tensor([0.64, -0.64])
    with torch.inference_mode():
        relief, corner = case["coarse_elevation"] * 500 + 300, torch.tensor([[72.0, -25.0]] * 2)
        context = published.encode_day(DayInputs(case["coarse"], wind, relief, corner))
        got = published.forecast_tile(context, TileInputs(fine, position), case["lead"].long())
        normal = (fine - published.fine_mean) / published.fine_spread
        memory = published.bridge.prepare(tokens_of(published, case))
        there = token_centres(torch.tensor([[72.0, -25.0]] * 2), 7, 14, 2.0)
        align = degrees_aligned(case["tile_centre_lat_lon"], there, case["wind_u_v"])
        expected = fine[:, 0] + 20 * published.change(normal, normal[:, 1], memory, align)
    assert (got - expected).abs().max() < 1e-3


def test_parameters_as_published():
    with torch.device("meta"):
        network = build(preset("released"))
    coarse = size(network.coarse) + size(network.lead)
    assert (coarse, size(network.fine)) == (60_725_761, 20_104_705)
    assert (size(network.bridge), size(network.decoder)) == (6_700_560, 8_361_313)
    assert size(network) == 95_892_339
    assert len(network.state_dict()) == 256


def days() -> DayInputs:
    torch.manual_seed(1)
    coarse = torch.randn(1, 14, 60, 116)
    wind, relief = 5 * torch.randn(1, 2, 60, 116), 2000 * torch.rand(1, 60, 116)
    return DayInputs(coarse, wind, relief, torch.tensor([[72.5, -25.5]]))


def test_its_wind_scan_is_provably_a_no_op():
    """Reordering its tokens, with their positions and elevation, and undoing it after the last block: nothing."""
    network = released()
    torch.manual_seed(2)
    raw, bias = torch.randn(1, 98, 48), torch.randn(1, 4, 98, 98)
    order = torch.randperm(98)

    def blocks(tokens: Tensor, bias: Tensor) -> Tensor:
        first, *others = network.coarse.blocks
        tokens = first(tokens + 0, bias)
        for block in others:
            tokens = block(tokens)
        return network.coarse.norm(tokens)

    with torch.inference_mode():
        tokens = network.coarse.norm_patches(raw) + network.coarse.positions
        plain = blocks(tokens, bias)
        scanned = blocks(tokens[:, order], bias[:, :, order][..., order])[:, order.argsort()]
    assert (plain - scanned).abs().max() < 1e-5


@pytest.mark.parametrize("wind_bias", [True, False])
def test_its_wind_enters_through_the_bias_alone(wind_bias):
    network = released(wind_bias=wind_bias)
    day = days()
    case = batch(Domain("box", 72, -20, 60, -5), tiles=2)
    with torch.inference_mode():
        contexts = [network.encode_day(replace(day, wind=wind)) for wind in (day.wind, -day.wind + 2)]
        one, two = (network.forecast_tile(context, case.tiles, case.lead) for context in contexts)
    assert torch.equal(contexts[0].tokens, contexts[1].tokens)
    assert torch.equal(one.nan_to_num(), two.nan_to_num()) == (not wind_bias)


def test_the_coarse_grid_is_cropped_to_its_centre():
    network = released()
    day = days()
    cut = (part[..., 2:58, 2:114] for part in (day.coarse, day.wind, day.elevation))
    with torch.inference_mode():
        whole = network.encode_day(day)
        centre = network.encode_day(DayInputs(*cut, day.corner + torch.tensor([-0.5, 0.5])))
    assert torch.equal(whole.tokens, centre.tokens)
    assert torch.equal(whole.corner, centre.corner)


def test_it_refuses_other_sizes_and_leads():
    network = released()
    day = days()
    with pytest.raises(CranpmError, match="at least 56 x 112 cells; found 40 x 116"):
        network.encode_day(DayInputs(day.coarse[:, :, :40], day.wind[:, :, :40], day.elevation[:, :40], day.corner))
    with pytest.raises(CranpmError, match="expected 14 coarse channels"):
        network.encode_day(replace(day, coarse=day.coarse[:, :7]))
    case = batch(tiles=1, side=96)
    context = network.encode_day(day)
    with pytest.raises(CranpmError, match=r"tiles of \(128, 128\) pixels; found \(96, 96\)"):
        network.forecast_tile(context, case.tiles, case.lead)
    case = batch(tiles=1)
    with pytest.raises(CranpmError, match=r"leads among \(1, 2, 3, 4\); found \[5\]"):
        network.forecast_tile(context, case.tiles, torch.tensor([5]))


def test_missing_fields_are_not_patched_over():
    network = released()
    day = days()
    with pytest.raises(CranpmError, match="finite numbers in wind"):
        network.encode_day(replace(day, wind=day.wind * torch.nan))
    case = batch(Domain("box", 72, -20, 60, -5), tiles=1)
    case.fine[0, 1, 100, 100] = torch.nan
    with torch.inference_mode():
        assert network.forecast_tile(network.encode_day(day), case.tiles, case.lead).isnan().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"global_num_heads": 5}, "global width 48 must be a multiple of 4 and of its 5 heads"),
        ({"global_img_size": (57, 112)}, "must be whole patches of 8"),
        ({"era5_channels": 15}, "15 channels cannot be those of two days"),
        ({"local_patch_size": 8}, "Input should be 16"),
        ({"local_embed_dim": 400000}, "less than or equal to 16384"),
    ],
)
def test_sizes_that_cannot_be_built_are_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        ReleasedSettings.model_validate(SMALL.model_dump() | change)


def test_its_channels_have_scales():
    assert len(CHANNELS) == len(SCALES.mean) == len(SCALES.spread) == 35
    by_name = dict(zip(CHANNELS, zip(SCALES.mean, SCALES.spread, strict=True), strict=True))
    assert by_name["msl"] == (101325, 1500)
    assert by_name["t500"] == (260, 30)
    assert by_name["u1000"] == (0, 15)
    assert by_name["v850"] == (0, 10)
    assert by_name["z500"] == (50000, 40000)
    assert by_name["cams_pm10"] == (14.0, 13.7)


def test_latitude_and_longitude_have_two_scalings():
    case = torch.tensor([0.0, 0.0, 51.0, 10.0, 0.0])[:, None, None]
    domain, globe = (released(coordinates=name) for name in ("domain", "globe"))
    assert ((case - domain.fine_mean) / domain.fine_spread).flatten()[2:4].tolist() == pytest.approx([0.5, 0.5])
    assert ((case - globe.fine_mean) / globe.fine_spread).flatten()[2:4].tolist() == pytest.approx([51 / 90, 10 / 180])


def test_a_published_folder_loads_strictly(tmp_path):
    network = released()
    theirs = their_tensors(network)
    theirs["local_branch.patch_embed.weight"] = theirs["local_branch.patch_embed.weight"].view(32, 5, 16, 16)
    sizes = SMALL.model_dump(exclude={"kind", "wind_bias", "coordinates"})
    published = sizes | {"decoder_depth": 4}  # their network never reads it
    (tmp_path / "config.json").write_text(json.dumps({"model": published}))
    save_file(theirs, tmp_path / "model.safetensors")
    loaded = load_weights(tmp_path).network
    for name, tensor in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)
    theirs["surprise"] = theirs.pop("prediction_head.final.bias")
    save_file(theirs, tmp_path / "model.safetensors")
    with pytest.raises(CranpmError, match=r"found 1 missing: decoder\.head\.bias"):
        load_weights(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model": sizes | {"surprise": 1}}))
    with pytest.raises(CranpmError, match="surprise: Extra inputs are not permitted"):
        load_weights(tmp_path)
