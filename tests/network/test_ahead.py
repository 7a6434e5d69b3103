"""The days ahead in networks: masks hide, forms fit, one encoding per lead, and the wind carries."""

from dataclasses import replace

import pytest
import torch
from model_cases import TINY, batch, random_network
from torch import nn

from cranpm.baselines.learned import learned_baseline
from cranpm.core.errors import CranpmError
from cranpm.core.grid import COARSE_STEP
from cranpm.network import DayInputs, build
from cranpm.network.carry import carried_change
from cranpm.network.cost import example
from cranpm.network.cranpm import CARRY_GAIN

AHEAD = TINY.model_copy(update={"ahead": "weather+composition"})
SLOTS = AHEAD.model_copy(update={"way": "slots", "leads": (1, 2, 3, 4, 5)})
CARRIED = AHEAD.model_copy(update={"carried": True})
LOCAL = AHEAD.model_copy(update={"local": True})
BASELINE = learned_baseline("simvp", shape=(32, 48), tile=128, ahead="weather+composition")

EVERY = pytest.mark.parametrize(
    "settings", [AHEAD, SLOTS, CARRIED, LOCAL, BASELINE], ids=["mean", "slots", "carried", "local", "simvp"]
)


def with_ahead(settings, days=2, tiles=2, lead=2, seed=0):
    """A case whose days know the days ahead, each for one lead."""
    case, form = batch(days=days, tiles=tiles, seed=seed), settings.days_ahead
    random = torch.Generator().manual_seed(seed + 1)
    scales = settings.scales
    mean, spread = (torch.tensor(part)[:, None, None] for part in (scales.ahead_mean, scales.ahead_spread))
    ahead = mean + spread * torch.randn(days, form.slots, form.channels, 32, 48, generator=random)
    coarse = case.coarse
    if settings.coarse_pm25:
        coarse = torch.cat([coarse, 30 * torch.rand(days, 2, 32, 48, generator=random)], dim=1)
    known = torch.ones(days, form.slots, len(form.groups))
    leads = torch.full((days,), lead)
    day = DayInputs(coarse, case.wind, case.elevation, case.corner, ahead, known, leads)
    return day, case.tiles, leads.repeat_interleave(tiles)


def trained(settings):
    if settings is BASELINE:
        torch.manual_seed(0)
        network = build(settings)
        nn.init.normal_(network.backbone.out.project.weight, std=0.1)
        return network.eval()
    return random_network(settings)


def run(network, day, tiles, lead):
    with torch.inference_mode():
        return network.forecast_tile(network.encode_day(day), tiles, lead)


@pytest.mark.parametrize(
    "settings", [AHEAD, SLOTS, CARRIED, LOCAL, BASELINE], ids=["mean", "slots", "carried", "local", "simvp"]
)
def test_what_is_masked_does_not_matter_and_what_is_not_does(settings):
    network = trained(settings)
    day, tiles, lead = with_ahead(settings)
    first = settings.days_ahead.sizes[0]
    whole = run(network, day, tiles, lead)
    for group, part in enumerate((slice(0, first), slice(first, None))):
        known, noise = day.known.clone(), day.ahead.clone()
        noise[:, :, part] = noise[:, :, part].flip(0)
        seen = run(network, replace(day, ahead=noise), tiles, lead)
        assert (seen - whole).abs().nan_to_num().max() > 1e-4
        known[:, :, group] = 0
        hidden = run(network, replace(day, known=known), tiles, lead)
        for numbers in (torch.nan, torch.inf, 7.0):
            noise[:, :, part] = numbers
            again = run(network, replace(day, ahead=noise, known=known), tiles, lead)
            assert torch.equal(again.nan_to_num(), hidden.nan_to_num())
            assert torch.equal(again.isnan(), tiles.fine[:, 0].isnan())
    none = torch.zeros_like(day.known)
    nothing = run(network, replace(day, known=none), tiles, lead)
    assert torch.equal(
        nothing.nan_to_num(),
        run(network, replace(day, ahead=day.ahead * torch.nan, known=none), tiles, lead).nan_to_num(),
    )


def test_one_slot_of_a_group_can_be_masked_alone():
    network = trained(SLOTS)
    day, tiles, lead = with_ahead(SLOTS)
    known, other = day.known.clone(), day.ahead.clone()
    known[:, 3:] = 0
    other[:, 3:] = torch.nan
    one, two = (run(network, replace(day, ahead=fields, known=known), tiles, lead) for fields in (day.ahead, other))
    assert torch.equal(one.nan_to_num(), two.nan_to_num())


@pytest.mark.parametrize("settings", [AHEAD, SLOTS, LOCAL], ids=["mean", "slots", "local"])
def test_untrained_it_is_persistence(settings):
    day, tiles, lead = with_ahead(settings)
    forecast = run(build(settings).eval(), day, tiles, lead)
    assert torch.equal(forecast.nan_to_num(), tiles.fine[:, 0].nan_to_num())


def test_untrained_and_carried_it_is_what_the_wind_brings():
    day, tiles, lead = with_ahead(CARRIED, days=1, tiles=1)
    network = build(CARRIED).eval()
    calm = run(network, replace(day, wind=torch.zeros_like(day.wind)), tiles, lead)
    assert torch.allclose(calm.nan_to_num(), tiles.fine[:, 0].nan_to_num(), atol=1e-4)
    moved = run(network, day, tiles, lead) - calm
    assert moved.abs().nan_to_num().max() > 0.5
    with torch.no_grad():  # each lead has its own share, and another where the weather ahead is unknown
        network.carry[1, CARRIED.leads.index(int(lead[0]))] = -0.5 / CARRY_GAIN
    assert torch.allclose(run(network, day, tiles, lead) - calm, moved / 2, atol=1e-4, equal_nan=True)
    unknown = replace(day, known=torch.zeros_like(day.known))
    assert torch.allclose(run(network, unknown, tiles, lead) - calm, moved, atol=1e-4, equal_nan=True)


def test_days_of_several_leads_in_one_batch_equal_each_alone():
    network = trained(CARRIED)
    parts = [with_ahead(CARRIED, days=1, tiles=2, lead=lead, seed=lead) for lead in (1, 3)]
    together = run(
        network,
        DayInputs.join([day for day, _, _ in parts]),
        type(parts[0][1]).join([tiles for _, tiles, _ in parts]),
        torch.cat([lead for _, _, lead in parts]),
    )
    alone = torch.cat([run(network, *part) for part in parts])
    assert torch.allclose(together.nan_to_num(), alone.nan_to_num(), atol=1e-4)


def test_tiles_of_another_lead_than_the_day_was_encoded_for_are_refused():
    for settings in (AHEAD, BASELINE):
        day, tiles, lead = with_ahead(settings)
        with pytest.raises(CranpmError, match=r"leads \[2, 2\] that the days were encoded for; found \[1, 1, 1, 1\]"):
            run(trained(settings), day, tiles, lead - 1)


def test_inputs_of_another_form_are_refused():
    day, tiles, lead = with_ahead(AHEAD)
    network = trained(AHEAD)
    for wrong, found in (
        (replace(day, ahead=None), "none"),
        (replace(day, ahead=day.ahead[:, :1], known=day.known[:, :1]), "1 x 35, masks 1 x 2"),
        (replace(day, known=day.known[:, :, :1]), "2 x 35, masks 2 x 1"),
    ):
        with pytest.raises(CranpmError, match=f"2 slots x 35 channels.*found {found}"):
            run(network, wrong, tiles, lead)
    with pytest.raises(CranpmError, match="a lead, to follow the air back"):
        run(trained(CARRIED), replace(with_ahead(CARRIED)[0], lead=None), tiles, lead)


def test_a_local_token_reads_the_weather_at_its_own_place_and_no_other():
    network = trained(LOCAL)
    day, tiles, _ = with_ahead(LOCAL, days=1, tiles=1)
    north = float(day.corner[0, 0] - tiles.position[0, 0]) / COARSE_STEP
    there = slice(max(int(north) - 2, 0), int(north + 1.28 / COARSE_STEP) + 3)
    near, far = day.ahead.clone(), day.ahead + 5
    near[:, :, :, there] += 5
    far[:, :, :, there] = day.ahead[:, :, :, there]

    def local(fields):
        with torch.inference_mode():
            context = network.encode_day(replace(day, ahead=fields))
            return network._local(context.field, context.corner, tiles)

    assert local(day.ahead).shape == (1, 8, 8, 32)
    assert torch.equal(local(day.ahead), local(far))
    assert not torch.allclose(local(day.ahead), local(near))


def test_settings_that_contradict_each_other_are_refused():
    for changes, words in (
        ({"ahead": "weather", "fusion": "none"}, "reads nothing coarse"),
        ({"carried": True}, "it needs ahead"),
    ):
        with pytest.raises(ValueError, match=words):
            type(TINY).model_validate(TINY.model_dump() | changes)


def test_gradients_reach_every_parameter():
    torch.manual_seed(0)
    settings = CARRIED.model_copy(update={"local": True})
    network = build(settings)
    day, tiles, lead = with_ahead(settings)
    land = ~tiles.fine[:, 0].isnan()
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        forecast = network.forecast_tile(network.encode_day(day), tiles, lead)
        (forecast - tiles.fine[:, 0].flip(2))[land & land.flip(2)].square().mean().backward()
        optimiser.step()
    assert [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().max() > 0] == []


@pytest.mark.parametrize(
    "settings", [AHEAD, SLOTS, CARRIED, LOCAL, BASELINE], ids=["mean", "slots", "carried", "local", "simvp"]
)
def test_examples_for_counting_costs_fit(settings):
    network = trained(settings)
    assert run(network, *example(network, 2, "cpu")).shape == (2, 128, 128)


def puff(row, col, rows=40, cols=60):
    y, x = torch.arange(rows)[:, None], torch.arange(cols)[None]
    return torch.exp(-((y - row) ** 2 + (x - col) ** 2) / 18.0)[None, None] * 50


@pytest.mark.parametrize(("u", "v"), [(5.0, 0.0), (0.0, 4.0), (-3.0, -3.0)])
@pytest.mark.parametrize("lead", [1, 2])
def test_a_puff_arrives_where_constant_wind_takes_it(u, v, lead):
    u, v = u / lead, v / lead  # it stays on the grid
    pm25, corner = puff(20, 30), torch.tensor([[50.0, 5.0]])
    wind = torch.tensor([u, v])[None, :, None, None].expand(1, 2, 40, 60)
    later = pm25 + carried_change(pm25, wind, corner, torch.tensor([lead]), 3)
    peak = later[0, 0].argmax()
    row, col = int(peak // 60), int(peak % 60)
    degrees = 86400 * lead / 111195
    latitude = 50 - 20.5 * COARSE_STEP
    down, right = -v * degrees / COARSE_STEP, u * degrees / COARSE_STEP / torch.cos(torch.tensor(latitude).deg2rad())
    assert abs(row - 20 - down) < 1.5
    assert abs(col - 30 - float(right)) < 1.5
    assert later.max() > 45


def test_air_from_the_sea_brings_no_change_and_missing_cells_stay_out_of_it():
    pm25, corner = puff(20, 30) + 10, torch.tensor([[50.0, 5.0]])
    pm25[:, :, :, :25] = torch.nan
    wind = torch.tensor([6.0, 0.0])[None, :, None, None].expand(1, 2, 40, 60)
    change = carried_change(pm25, wind, corner, torch.tensor([1]), 3)
    assert change.isfinite().all()
    assert (change[:, :, :, :25] == 0).all()
    assert (change[:, :, :, 26] == 0).all()
    calm = carried_change(pm25, torch.zeros_like(wind), corner, torch.tensor([3]), 3)
    assert calm.abs().max() < 1e-4
