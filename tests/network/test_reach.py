"""The sea is left out, and nobody on land can tell: random coasts and networks against the full computation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import batch
from sample_days import SMALL
from torch import nn

from cranpm.network import build, preset
from cranpm.network.bridge import FUSIONS
from cranpm.network.decoder import Decoder, reads
from cranpm.network.reach import Chosen, around, cover, holds_land

TINY = preset("tiny")
SIDE = 128


def coast(seed: int, side: int = SIDE) -> torch.Tensor:
    """Land where a smooth random field is high: islands, bays, one pixel at the edge."""
    random = np.random.default_rng(seed)
    low = random.normal(size=(1, 1, random.integers(3, 9), random.integers(3, 9)))
    field = nn.functional.interpolate(torch.from_numpy(low).float(), (side, side), mode="bicubic")[0, 0]
    land = field > float(torch.quantile(field, float(random.uniform(0.3, 0.97))))
    land[-1, int(random.integers(side))] = True
    return land


def stirred(settings_, seed: int):
    """An untrained network whose every part matters."""
    torch.manual_seed(seed)
    network = build(settings_).eval()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.08) if parameter.ndim > 1 else nn.init.uniform_(parameter, -0.2, 0.6)
    return network


VARIANTS = [
    *({"fusion": name} for name in FUSIONS),
    {"upsampling": "transpose"},
    {"smooth_change": True, "distance_bias": True},
    {"wind_form": "departure", "distance_bias": True},
    {"delta": False, "local": True},
]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), variant=st.sampled_from(VARIANTS), tiles=st.integers(1, 3))
def test_forecasts_on_land_are_those_of_the_full_computation(seed, variant, tiles):
    fine = TINY.fine.model_copy(update={"shape": (SIDE, SIDE)})
    network = stirred(TINY.model_validate({**TINY.model_dump(), **variant, "fine": fine.model_dump()}), seed)
    case = batch(SMALL, days=1, tiles=tiles, side=SIDE)
    for number in range(tiles):
        sea = ~coast(seed + number)
        for channel in (0, 4):
            case.tiles.fine[number, channel, sea] = torch.nan
    with torch.inference_mode():
        context = network.encode_day(case.day)
        fast = network.forecast_tile(context, case.tiles, case.lead)
        network.skips_sea = False
        full = network.forecast_tile(context, case.tiles, case.lead)
    land = case.tiles.fine[:, 0].isfinite()
    assert torch.equal(fast.isfinite(), land)
    change = (full - case.tiles.fine[:, 0])[land].abs().max()
    assert (fast - full)[land].abs().max() <= 1e-5 * max(float(change), 1.0)


@pytest.mark.parametrize(("upsampling", "farthest"), [("pixel-shuffle", 4), ("transpose", 3)])
def test_a_decoder_reaches_as_far_as_it_says_and_no_farther(upsampling, farthest):
    """A token changes pixels of tokens up to `reach` away, and of none beyond; a stage reads what `reads` says."""
    torch.manual_seed(0)
    decoder = Decoder(8, (8, 8, 8, 8), upsampling).double()
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    tokens = torch.randn(1, 13, 13, 8, dtype=torch.float64)
    before = decoder(tokens)
    tokens[0, 6, 6] += 1
    moved = (decoder(tokens) != before)[0].unflatten(0, (13, 16)).unflatten(2, (13, 16)).any(3).any(1)
    distance = (moved.nonzero() - 6).abs().max()
    assert distance == farthest <= decoder.reach == 4
    assert reads((5, 8), 4, 13) == ((1, 12), (6, 20), (17, 35), (38, 66), (80, 128))
    assert reads((0, 13), 4, 13)[0] == (0, 13)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 20), cols=st.integers(1, 20), share=st.floats(0.02, 0.9))
def test_rectangles_hold_all_that_is_wanted_and_cost_no_more_than_one(seed, rows, cols, share):
    wanted = torch.from_numpy(np.random.default_rng(seed).random((rows, cols)) < share)
    wanted[0, 0] = True
    cost = Decoder(4, (4, 4, 4), "pixel-shuffle").cost((rows, cols))
    parts = cover(wanted, cost)
    held = torch.zeros_like(wanted)
    for (top, bottom), (left, right) in parts:
        assert not held[top:bottom, left:right].any()  # nothing twice
        held[top:bottom, left:right] = True
    assert held[wanted].all()
    whole = ((0, rows), (0, cols))
    assert sum(map(cost, parts)) <= cost(whole) + 1e-9


def test_tokens_are_chosen_by_tile():
    wanted = torch.zeros(2, 3, 4, dtype=torch.bool)
    wanted[0, 1, 2] = wanted[1, 0, 0] = wanted[1, 2, 3] = True
    chosen = Chosen.of(wanted)
    assert [sorted(set(row)) for row in chosen.index.tolist()] == [[6], [0, 11]]
    tokens = torch.arange(24.0).view(2, 12, 1)
    put = chosen.put(tokens, -chosen.take(tokens) - 1)
    assert torch.equal(put < 0, wanted.flatten(1)[:, :, None])
    assert torch.equal(around(wanted, 1)[0].nonzero().min(dim=0).values, torch.tensor([0, 1]))
    pm25 = torch.full((1, 5, 9), torch.nan)
    pm25[0, 4, 8] = 1
    assert holds_land(pm25, 4)[0].nonzero().tolist() == [[1, 2]]
