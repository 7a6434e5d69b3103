"""Whether the parts are put together rightly: what reaches each part, against values worked out by hand."""

import math
from dataclasses import replace

import pytest
import torch
from model_cases import TINY, Batch, batch, random_network
from test_network import run, with_switches
from torch import Tensor, nn

from cranpm.core.grid import Domain
from cranpm.network import CranPM, build, preset
from cranpm.network.bridge import LEAST
from cranpm.network.elevation_attention import elevation_bias
from cranpm.network.patches import sine_cosine
from cranpm.network.scaling import typical_scales
from cranpm.network.tile_geometry import TileGeometry, tile_geometry
from cranpm.network.token_geometry import token_centres

STEP_KM = 111.2


def seen(module: nn.Module, work: object) -> tuple[Tensor, ...]:
    """The arguments with which a module is called first while `work` runs."""
    calls: list[tuple[Tensor, ...]] = []
    handle = module.register_forward_pre_hook(lambda _, arguments: calls.append(arguments))
    with torch.inference_mode():
        work()
    handle.remove()
    return calls[0]


def wind_at(day: int, lat: float, lon: float) -> tuple[float, float]:
    """A wind that is linear in place and differs between days."""
    return 3 + 0.1 * (lat - 45) - 4 * day, 2 - 0.2 * (lon - 10) + day


def two_days() -> Batch:
    """Two days on different grids, two tiles each."""
    case = batch(Domain("box", 50, 4, 42, 16), days=2, tiles=2, side=32)
    corner = torch.tensor([[50.0, 4.0], [60.0, 20.0]])
    position = torch.tensor([[48.0, 6.0], [45.5, 12.0], [57.0, 22.0], [55.0, 28.5]])
    wind = torch.empty(2, 2, 32, 48)
    for day in range(2):
        for row in range(32):
            for col in range(48):
                lat, lon = corner[day].tolist()
                u, v = wind_at(day, lat - (row + 0.5) * 0.25, lon + (col + 0.5) * 0.25)
                wind[day, 0, row, col], wind[day, 1, row, col] = u, v
    return replace(case, corner=corner, position=position, wind=wind)


def naive_gamma(case: Batch) -> Tensor:
    """gamma[tile, i, j] for 2 x 2 fine tokens of 0.16 degrees and 8 x 12 coarse tokens of 1 degree."""
    gamma = torch.empty(4, 4, 96)
    for tile in range(4):
        day = tile // 2
        north, west = case.position[tile].tolist()
        grid_north, grid_west = case.corner[day].tolist()
        for i in range(4):
            lat, lon = north - (i // 2 + 0.5) * 0.16, west + (i % 2 + 0.5) * 0.16
            u, v = wind_at(day, lat, lon)
            for j in range(96):
                lat_j, lon_j = grid_north - (j // 12 + 0.5), grid_west + (j % 12 + 0.5)
                east = (lon - lon_j) * math.cos(math.radians(lat)) * STEP_KM
                there = (lat - lat_j) * STEP_KM
                gamma[tile, i, j] = (east * u + there * v) / math.hypot(east, there) / math.hypot(u, v)
    return gamma


def meeting_of(case: Batch) -> TileGeometry:
    network = random_network()
    with torch.inference_mode():
        return tile_geometry(network.encode_day(case.day), case.position, case.lead, (2, 2), TINY)


def test_upwind_of_every_fine_token_against_every_coarse_token():
    case = two_days()
    assert (meeting_of(case).by_tile.upwind - naive_gamma(case)).abs().max() < 1e-4


def test_the_bridge_adds_beta_times_gamma(monkeypatch):
    case, network, biases = two_days(), random_network(), []
    beta = torch.tensor([1.5, -0.5])
    for layer in network.bridge.cross.layers:
        nn.init.constant_(layer.beta, 0)
        layer.beta.data += beta
    plain = torch.nn.functional.scaled_dot_product_attention

    def spy(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> Tensor:
        if key.shape[2] == 96 and query.shape[2] == 8:  # two tiles of four tokens query a day's 96
            biases.append(attn_mask)
        return plain(query, key, value, attn_mask=attn_mask)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    run(network, case)
    expected = beta[:, None, None] * naive_gamma(case).view(2, 1, 8, 96)
    assert len(biases) == 2
    for bias in biases:
        assert (bias - expected).abs().max() < 2e-4


def test_coarse_tokens_look_upwind_too():
    """Where coarse queries fine, the fine token that lies upwind of the coarse one gets +1."""
    case = two_days()
    for fusion in ("coarse-queries-fine", "bidirectional"):
        network = random_network(with_switches(fusion=fusion))
        layers = network.bridge.cross if fusion == "coarse-queries-fine" else network.bridge.up[0]
        _, _, pairs = seen(layers, lambda network=network: network(*case.inputs))
        assert (pairs.upwind + naive_gamma(case).transpose(1, 2)).abs().max() < 1e-4
    _, _, pairs = seen(network.bridge.down[0], lambda: network(*case.inputs))
    assert (pairs.upwind - naive_gamma(case)).abs().max() < 1e-4


def naive_distance(case: Batch) -> Tensor:
    """Distance [tile, i, j] in 1000 km, as `naive_gamma` counts tokens."""
    distance = torch.empty(4, 4, 96)
    for tile in range(4):
        north, west = case.position[tile].tolist()
        grid_north, grid_west = case.corner[tile // 2].tolist()
        for i in range(4):
            lat, lon = north - (i // 2 + 0.5) * 0.16, west + (i % 2 + 0.5) * 0.16
            for j in range(96):
                lat_j, lon_j = grid_north - (j // 12 + 0.5), grid_west + (j % 12 + 0.5)
                east = (lon - lon_j) * math.cos(math.radians(lat)) * STEP_KM
                distance[tile, i, j] = math.hypot(east, (lat - lat_j) * STEP_KM) / 1000
    return distance


@pytest.mark.parametrize("wind", [True, False])
def test_the_distance_bias_falls_with_distance(wind):
    """Also without the wind's; either sign of a head's nearness means near."""
    case, network = two_days(), random_network(with_switches(distance_bias=True, wind_bias=wind))
    layer = network.bridge.cross.layers[1]
    assert layer.nearness.tolist() == pytest.approx([2, 64])
    nn.init.constant_(layer.nearness, -3)
    *_, pairs = seen(network.bridge.cross, lambda: network(*case.inputs))
    expected = -3 * naive_distance(case).view(2, 1, 8, 96)
    if wind:
        expected = expected + layer.beta[:, None, None] * naive_gamma(case).view(2, 1, 8, 96)
    with torch.no_grad():
        assert (layer.bias(pairs, torch.float32) - expected).abs().max() < 2e-4
    there = random_network(with_switches(distance_bias=True, fusion="coarse-queries-fine"))
    *_, pairs = seen(there.bridge.cross, lambda: there(*case.inputs))
    assert (pairs.distance - naive_distance(case).transpose(1, 2)).abs().max() < 1e-4


@pytest.mark.parametrize("delta", [True, False])
def test_a_smooth_change_shifts_and_scales_today(delta):
    """With 0.5 and -0.2 everywhere, half a spread is added and a fifth of today's excess over the mean is lost."""
    case = two_days()
    network = random_network(with_switches(smooth_change=True, delta=delta))
    nn.init.zeros_(network.decoder.head.weight)
    network.smooth.values.bias.data[:] = torch.tensor([0.5, -0.2])
    got = run(network, case)
    today = case.fine[:, 0]
    expected = (today if delta else 15.0) + 10 - 0.2 * (today - 15)
    assert torch.allclose(got, expected, atol=1e-4, equal_nan=True)
    assert got.isnan().equal(today.isnan())
    torch.where(today.isnan(), 0.0, network(*case.inputs)).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in network.smooth.parameters())


def test_in_one_sequence_only_fine_to_coarse_pairs_know_the_wind():
    case, network = two_days(), random_network(with_switches(fusion="concat"))
    tokens, bias = seen(network.bridge.blocks[0], lambda: network(*case.inputs))
    assert tokens.shape == (4, 4 + 96, 32)
    assert (bias[:, 1, :4, 4:] - naive_gamma(case)).abs().max() < 1e-4
    assert bias[:, :, :, :4].abs().max() == bias[:, :, 4:].abs().max() == 0


def test_coarse_tokens_are_read_where_the_fine_ones_lie():
    """A field of coarse tokens that holds its own place is read exactly, by day and by tile."""
    case = two_days()
    geometry = meeting_of(case)
    lat = 0.5 + torch.arange(8.0)[:, None].expand(8, 12)
    lon = 0.5 + torch.arange(12.0).expand(8, 12)
    tokens = torch.stack([case.corner[:, :1] - lat.flatten(), case.corner[:, 1:] + lon.flatten()], dim=2)
    assert torch.allclose(geometry.aligned(tokens), geometry.centres, atol=1e-4)
    assert torch.allclose(geometry.aligned(geometry.of_tiles(tokens)), geometry.centres, atol=1e-4)
    assert geometry.centres[2, 3].tolist() == pytest.approx([57 - 0.24, 22 + 0.24])


def test_fields_are_normalised_by_their_scales():
    case, network = batch(), random_network()
    scales = typical_scales()
    case.fine[:, :, 0, 0] = torch.tensor([35.0, 1500.0, 45.0, 90.0, 5.0])
    case.fine[:, :, 0, 1] = torch.tensor([torch.nan, 0.0, -90.0, -180.0, torch.nan])
    (fine,) = seen(network.fine.patches, lambda: network(*case.inputs))
    assert fine[0, :, 0, 0].tolist() == pytest.approx([1, 1.5, 0.5, 0.5, -0.5])
    assert fine[0, :, 0, 1].tolist() == pytest.approx([0, 0, -1, -1, 0])
    (coarse,) = seen(network.coarse.patches, lambda: network(*case.inputs))
    for channel in (0, 3, 34, 35, 69):
        expected = (case.coarse[:, channel] - scales.mean[channel % 35]) / scales.spread[channel % 35]
        assert torch.allclose(coarse[:, channel], expected, atol=1e-5)


def test_the_elevation_block_sees_patch_means_in_metres():
    case, network = batch(), random_network(with_switches(wind_scan=False))
    _, fine, *_ = seen(network.fine.blocks[0], lambda: network(*case.inputs))
    assert fine[1, 2, 3] == pytest.approx(float(case.fine[1, 1, 32:48, 48:64].mean()), rel=1e-4)
    _, coarse, *_ = seen(network.coarse.blocks[0], lambda: network(*case.inputs))
    assert coarse[0, 2, 3] == pytest.approx(float(case.elevation[0, 8:12, 12:16].mean()), rel=1e-4)


def test_the_elevation_bias_reaches_the_attention():
    case, network = batch(), random_network(with_switches(wind_scan=False))
    block = network.coarse.blocks[0].attention
    nn.init.constant_(block.alpha, 2.5)
    _, bias = seen(block.attention, lambda: network(*case.inputs))
    height = torch.nn.functional.avg_pool2d(case.elevation, 4).flatten(1)
    with torch.no_grad():
        expected = block.relative(8, 12) + elevation_bias(height, 1000.0, torch.tensor(2.5))[:, None]
    assert torch.allclose(bias, expected, atol=1e-5)
    assert elevation_bias(height, 1000.0, torch.tensor(2.5)).min() < -0.5  # of the size the paper means


def test_tokens_carry_positions_and_the_lead():
    case, network = batch(), random_network()
    tokens, *_ = seen(network.fine.blocks[0], lambda: network(*case.inputs))
    (field,) = seen(network.fine.patches, lambda: network(*case.inputs))
    with torch.no_grad():
        expected = network.fine.patches(field) + sine_cosine(8, 8, 32)
        expected += network.lead(case.lead - 1)[:, None, None]
    assert torch.allclose(tokens, expected, atol=1e-5)


@pytest.mark.parametrize(("wind", "first"), [((0.0, 6.0), "south"), ((0.0, -6.0), "north"), ((6.0, 0.0), "west")])
def test_the_scan_puts_upwind_tokens_first(wind, first):
    """Elevation that tells row and column: after the scan each 4 x 4 group begins with its upwind row or column."""
    case = batch()
    case.wind[:, 0], case.wind[:, 1] = wind
    rows, cols = torch.arange(32.0)[:, None] // 4, torch.arange(48.0) // 4
    case = replace(case, elevation=(100 * rows + cols)[None])
    network = random_network()
    tokens, height, *_ = seen(network.coarse.blocks[0], lambda: network(*case.inputs))
    group = height[0, 4:8, 8:12]  # the second group from the north, the third from the west
    row, col = torch.meshgrid(torch.arange(4, 8), torch.arange(8, 12), indexing="ij")
    whole = (100 * row + col).float()
    upwind = {"south": whole[3], "north": whole[0], "west": whole[:, 0]}[first]
    assert sorted(group[0].tolist()) == sorted(upwind.tolist())
    plain = random_network(with_switches(wind_scan=False))
    unscanned, *_ = seen(plain.coarse.blocks[0], lambda: plain(*case.inputs))
    place = (height[0] // 100).long(), (height[0] % 100).long()
    assert torch.equal(tokens[0], unscanned[0][place])  # each token moved with its elevation


def test_every_other_window_is_shifted_and_later_blocks_are_dropped_more():
    with torch.device("meta"):
        network = build(preset("paper"))
    assert [block.attention.shift for block in network.coarse.blocks[1:]] == [0, 3, 0, 3, 0, 3, 0]
    assert [block.attention.shift for block in network.fine.blocks[1:]] == [0, 4, 0, 4, 0]
    for branch in (network.coarse, network.fine):
        shares = [block.drop.share for block in branch.blocks]
        assert shares == pytest.approx([0.1 * index / (len(shares) - 1) for index in range(len(shares))])
        assert branch.dropout.p == 0.1


def test_dropout_acts_in_training_only():
    case = batch()
    network = random_network(with_switches(dropout=0.5))
    assert torch.equal(run(network, case).nan_to_num(), run(network, case).nan_to_num())
    network.train()
    assert not torch.equal(run(network, case).nan_to_num(), run(network, case).nan_to_num())


def test_training_after_inference_in_one_process():
    network: CranPM = build(TINY)
    case = batch()
    with torch.inference_mode():
        network(*case.inputs)
    with torch.device("meta"):
        build(TINY)
    network(*case.inputs).nansum().backward()
    assert network.decoder.head.weight.grad is not None


def test_computing_blocks_again_changes_no_gradient():
    case = batch()
    gradients = []
    for again in (False, True):
        network = random_network()
        network.coarse.recompute = network.fine.recompute = again
        network(*case.inputs).nansum().backward()
        gradients.append([parameter.grad for parameter in network.parameters()])
    for one, two in zip(*gradients, strict=True):
        assert torch.allclose(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lead", [1, 2])
def test_departure_looks_where_the_air_sets_out(lead):
    """2 m/s from the west are 173 km a day: a head of reach 1 looks that far west, one of reach 0 looks here."""
    case = batch()
    case.wind[:, 0], case.wind[:, 1] = 2.0, 0.0
    settings = with_switches(wind_form="departure", distance_bias=True)
    network = random_network(settings)
    layer = network.bridge.cross.layers[0]
    assert layer.reach.tolist() == [0, 1]
    assert network.bridge.cross.layers[1].reach.tolist() == [1, 0]
    context = network.encode_day(case.day)
    tile = torch.tensor([[45.5, 11.0]])
    geometry = tile_geometry(context, tile, torch.tensor([lead]), (1, 1), settings)
    here, there = geometry.centres[0, 0], token_centres(context.corner, *context.grid, 1.0)[0]
    bias = layer.bias(geometry.by_day, torch.float32)[0, :, 0]
    km_east = (there[:, 1] - here[1]) * math.cos(math.radians(float(here[0]))) * 111.2
    km_north = (there[:, 0] - here[0]) * 111.2
    for head, west in ((0, 0.0), (1, 172.8 * lead)):
        distance = torch.hypot(torch.hypot(km_east + west, km_north) / 1000, torch.tensor(LEAST))
        assert torch.allclose(bias[head], -layer.nearness[head] * distance, rtol=1e-3, atol=1e-3)
    calm = layer.bias(geometry.by_day.without_wind(), torch.float32)[0, :, 0]
    assert torch.equal(calm[0], bias[0])
    assert calm[1].argmax() == bias[0].argmax()
