"""The whole network: what it returns untrained, what its switches do, where and in which precision it runs."""

from dataclasses import replace

import jaxtyping
import pytest
import torch
from model_cases import TINY, Batch, batch, random_network
from paper_channels import NAMES
from pydantic import ValidationError
from torch import Tensor

from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Domain
from cranpm.network import CranPM, NetworkSettings, TileInputs, build, encoder, preset
from cranpm.network.bridge import FUSIONS
from cranpm.network.scaling import Scales, typical_scales

ABLATIONS = {
    **{f"fusion {name}": {"fusion": name} for name in FUSIONS},
    "no elevation bias": {"elevation_bias": False},
    "no wind": {"wind_scan": False, "wind_bias": False},
    "barrier": {"elevation_form": "barrier"},
    "scan as a bias": {"scan_form": "bias"},
    "departure": {"wind_form": "departure", "distance_bias": True},
    "transpose": {"upsampling": "transpose"},
    "no yesterday": {"yesterday": False},
    "no elevation channel": {"elevation_channel": False},
}


def with_switches(settings: NetworkSettings = TINY, **switches: object) -> NetworkSettings:
    return NetworkSettings.model_validate(settings.model_dump() | switches)


def run(network: CranPM, case: Batch) -> Tensor:
    with torch.inference_mode():
        return network(*case.inputs)


def same_bits(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.contiguous().view(torch.int32), b.contiguous().view(torch.int32))


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_untrained_is_persistence_bit_for_bit(ablation):
    network = build(with_switches(**ABLATIONS[ablation])).eval()
    for lead in network.settings.leads:
        case = replace(batch(), lead=torch.full((2,), lead))
        assert same_bits(run(network, case), case.fine[:, 0])
    with torch.autocast("cpu", torch.bfloat16):
        assert same_bits(run(network, case), case.fine[:, 0])


def test_without_delta_the_concentration_itself_is_forecast():
    case = batch()
    got = run(build(with_switches(delta=False)).eval(), case)
    assert torch.equal(got.isnan(), case.fine[:, 0].isnan())
    assert set(got[~got.isnan()].tolist()) == {15.0}
    trained = random_network(with_switches(delta=False))
    assert run(trained, case).nanmean() < 5 * case.fine[:, 0].nanmean()


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_gradients_reach_every_parameter_after_two_steps(ablation):
    torch.manual_seed(0)
    network = build(with_switches(**ABLATIONS[ablation]))
    case = batch(Domain("wide", 60, 0, 40, 20), tiles=3)
    land = ~case.fine[:, 0].isnan()
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        (network(*case.inputs) - case.fine[:, 0].flip(2))[land & land.flip(2)].square().mean().backward()
        optimiser.step()
    stuck = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert stuck == []


def test_at_first_only_the_head_learns():
    network = build(TINY)
    case = batch()
    network(*case.inputs).nansum().backward()
    learns = {name for name, p in network.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}
    assert learns == {"decoder.head.weight", "decoder.head.bias"}


def test_one_context_serves_all_tiles_and_leads():
    network, case = random_network(), batch(tiles=3)
    with torch.inference_mode():
        context = network.encode_day(case.day)
        for tile in range(3):
            for lead in network.settings.leads:
                one = (TileInputs(case.fine[tile : tile + 1], case.position[tile : tile + 1]), torch.tensor([lead]))
                fresh = network.encode_day(case.day)
                assert same_bits(network.forecast_tile(context, *one), network.forecast_tile(fresh, *one))
    assert context.tokens.shape == (1, 8 * 12, 48)
    assert [part.shape for part in context.memory] == [(1, 2, 96, 16)] * 4


def test_leads_differ():
    network, case = random_network(), batch(tiles=1)
    with torch.inference_mode():
        context = network.encode_day(case.day)
        one, two = (network.forecast_tile(context, case.tiles, torch.tensor([lead])) for lead in (1, 2))
    assert (one - two).abs().nan_to_num().max() > 1e-3


@pytest.mark.parametrize("fusion", FUSIONS)
def test_days_and_tiles_do_not_mix(fusion):
    """Two days with two tiles each equal four runs of one day and one tile."""
    network, case = random_network(with_switches(fusion=fusion)), batch(days=2, tiles=2)
    together = run(network, case)
    for tile in range(4):
        day = slice(tile // 2, tile // 2 + 1)
        alone = Batch(*(part[day] for part in case.inputs[:4]), *(part[tile : tile + 1] for part in case.inputs[4:]))
        assert torch.allclose(run(network, alone)[0], together[tile], atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_fusion_but_none_reads_the_coarse_fields(fusion):
    network, case = random_network(with_switches(fusion=fusion)), batch()
    other = replace(case, coarse=case.coarse.flip(2))
    assert same_bits(run(network, case), run(network, other)) == (fusion == "none")


def test_yesterday_can_be_left_out_of_both_branches():
    case = batch()
    other = replace(case, coarse=case.coarse.clone(), fine=case.fine.clone())
    other.coarse[:, len(NAMES) :] *= 1.1
    other.fine[:, 4] += 5
    for yesterday in (True, False):
        network = random_network(with_switches(yesterday=yesterday))
        assert same_bits(run(network, case), run(network, other)) == (not yesterday)


@pytest.mark.parametrize(("scan", "bias"), [(True, False), (False, True), (False, False)])
def test_wind_matters_through_the_scan_and_through_the_bias(scan, bias):
    """Of a randomly initialised network; relative positions of a trained size, so that their order counts."""
    case = batch(Domain("wide", 60, 0, 40, 20))
    other = replace(case, wind=-case.wind + 3)
    network = random_network(with_switches(wind_scan=scan, wind_bias=bias))
    for name, parameter in network.named_parameters():
        if "table" in name or "project" in name or "value" in name or "out.weight" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    with torch.inference_mode():
        tokens = [network.encode_day(one.day).tokens for one in (case, other)]
    difference = (run(network, case) - run(network, other)).abs().nan_to_num().max()
    assert torch.equal(*tokens) == (not scan)
    assert (difference > 1e-2) if scan or bias else (difference == 0)


def test_wind_matters_through_the_scan_as_a_bias():
    case = batch(Domain("wide", 60, 0, 40, 20))
    network = random_network(with_switches(scan_form="bias", wind_bias=False))
    with torch.inference_mode():
        one, two = (network.encode_day(replace(case.day, wind=w)).tokens for w in (case.wind, -case.wind))
        assert (one - two).abs().max() > 1e-3
        network.coarse.blocks[0].attention.beta.zero_()
        one, two = (network.encode_day(replace(case.day, wind=w)).tokens for w in (case.wind, -case.wind))
        assert torch.equal(one, two)


def test_departure_needs_distances():
    with pytest.raises(ValidationError, match="needs distance_bias"):
        with_switches(wind_form="departure")
    with pytest.raises(ValidationError, match="needs distance_bias"):
        with_switches(wind_form="departure", distance_bias=True, fusion="bidirectional")


def test_the_scan_changes_the_tokens_as_initialised():
    case = batch(Domain("wide", 60, 0, 40, 20))
    with torch.inference_mode():
        one, two = (random_network().encode_day(replace(case.day, wind=w)).tokens for w in (case.wind, -case.wind))
    assert (one - two).abs().max() > 1e-2  # a thousand times what rounding does


def test_coarse_relief_matters_only_through_the_elevation_bias():
    case = batch()
    flat = replace(case, elevation=torch.zeros_like(case.elevation))
    assert not same_bits(run(random_network(), case), run(random_network(), flat))
    without = random_network(with_switches(elevation_bias=False))
    assert same_bits(run(without, case), run(without, flat))
    assert not [name for name, _ in without.named_parameters() if "alpha" in name]


def test_fine_relief_matters_through_its_channel_and_through_the_bias():
    case = batch()
    other = replace(case, fine=case.fine.clone())
    other.fine[:, 1] = case.fine[:, 1].flip(2) + 100
    for channel, bias in ((True, True), (True, False), (False, True), (False, False)):
        network = random_network(with_switches(elevation_channel=channel, elevation_bias=bias))
        assert same_bits(run(network, case), run(network, other)) == (not channel and not bias)


EUROPE = NetworkSettings.model_validate(
    TINY.model_dump() | {"coarse": preset("paper").coarse.model_dump() | {"width": 16, "heads": 2, "depth": 2}}
)


@pytest.mark.parametrize("name", DOMAINS)
def test_europes_weights_run_on_every_domain(name):
    """18 x 35 tokens in America, 16 x 16 in India, 4 x 6 in the Alps: none are whole 7 x 7 windows."""
    case = batch(DOMAINS[name])
    got = run(random_network(EUROPE), case)
    assert torch.equal(got.isnan(), case.fine[:, 0].isnan())


@pytest.mark.parametrize("box", [(50, 4, 42, 16), (50, 4, 43.25, 15.75)])
def test_padding_never_matters(box, monkeypatch):
    case = batch(Domain("odd", *box))
    assert case.coarse.shape[3] % 56  # whole windows would need no padding
    calm = run(random_network(EUROPE), case)
    monkeypatch.setattr(encoder, "pad", noisy_pad)
    assert same_bits(run(random_network(EUROPE), case), calm)


def noisy_pad(x: Tensor, multiple: int) -> Tensor:
    south, east = (-side % multiple for side in x.shape[-2:])
    return torch.nn.functional.pad(x, (0, east, 0, south), value=1e3)


@pytest.mark.parametrize("shape", [(512, 512), (64, 64), (32, 48), (100, 130), (16, 16)])
def test_tiles_of_any_size(shape):
    case = batch(tiles=1, side=512)
    case = replace(case, fine=case.fine[:, :, -shape[0] :, -shape[1] :])
    got = run(random_network(), case)
    assert got.shape == (1, *shape)
    assert got.isfinite().sum() == case.fine[:, 0].isfinite().sum() > 0


def test_half_precision_stays_close():
    """bf16 keeps 8 bits: the change, of size 20 ug m-3 here, is met to 3 % of its spread."""
    network, case = random_network(), batch()
    exact = run(network, case) - case.fine[:, 0]
    with torch.autocast("cpu", torch.bfloat16):
        half = run(network, case) - case.fine[:, 0]
    assert half.dtype == torch.float32
    spread = exact[~exact.isnan()].std()
    assert (half - exact).abs().nan_to_num().max() < 0.1 * spread
    assert (half - exact)[~exact.isnan()].square().mean().sqrt() < 0.03 * spread


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("elevation", "wind", "pm25"), [(8000.0, 60.0, 2000.0), (-400.0, -60.0, 2000.0), (0.0, 0.0, 0.0)]
)
def test_extremes_stay_finite(precision, elevation, wind, pm25):
    case = batch()
    case.fine[:, [0, 4]] = pm25
    case.fine[:, 1, :64] = elevation
    case.elevation[:, :16] = elevation
    case.wind[...] = wind
    case.coarse[:, :2] = wind
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        assert run(random_network(), case).isfinite().all()


def test_a_missing_elevation_spoils_the_tile_visibly():
    case = batch(tiles=1)
    case.fine[0, 1, 100, 100] = torch.nan
    assert run(random_network(), case).isnan().all()


@pytest.mark.parametrize("name", ["coarse", "wind", "elevation"])
def test_a_day_with_missing_values_is_refused(name):
    """Neither calm air nor level ground may stand in for what is not known."""
    case = batch()
    getattr(case, name)[..., 3, 4] = torch.nan
    with pytest.raises(CranpmError, match=f"expected finite numbers in {name}; found [0-9]+ missing"):
        run(random_network(), case)


def test_the_last_patch_of_a_cut_tile_is_continued_not_sunk():
    """A tile that is the same everywhere is forecast the same everywhere, also where a patch is cut."""
    case = batch(tiles=1)
    case.fine[:] = torch.tensor([20.0, 800.0, 45.0, 9.0, 20.0])[:, None, None]
    cut = replace(case, fine=case.fine[..., :113])
    whole = replace(case, fine=case.fine[..., :128])
    network = random_network()
    (one, two) = (network.fine.patches(network._normalise_fine(tile.fine)) for tile in (cut, whole))
    assert torch.allclose(one, two, atol=1e-6)


@pytest.mark.parametrize("lead", [-5, 0, 4, 7])
def test_an_unknown_lead_is_refused(lead):
    case = replace(batch(), lead=torch.tensor([1, lead]))
    with pytest.raises(CranpmError, match=r"expected leads among \(1, 2, 3\); found \[1, " + str(lead)):
        run(random_network(), case)


def test_wrong_channels_and_uneven_tiles_are_refused():
    network, case = random_network(), batch(days=2, tiles=2)
    with pytest.raises(CranpmError, match="expected 70 coarse channels, today's and then yesterday's; found 35"):
        run(network, replace(case, coarse=case.coarse[:, :35]))
    uneven = replace(case, fine=case.fine[:3], position=case.position[:3], lead=case.lead[:3])
    with pytest.raises(CranpmError, match="equally many tiles for each of 2 days; found 3 tiles"):
        run(network, uneven)


def test_shapes_in_signatures_are_checked():
    case = batch()
    with pytest.raises(jaxtyping.TypeCheckError):
        run(random_network(), replace(case, wind=case.wind[:, :1]))


def test_settings_refuse_what_cannot_be_built():
    with pytest.raises(ValidationError, match="width 50 must be a multiple of 4 and of its 3 heads"):
        with_switches(coarse=TINY.coarse.model_dump() | {"width": 50})
    with pytest.raises(ValidationError, match="3 doublings do not turn a token into 16 pixels"):
        with_switches(decoder=(8, 8, 8))
    with pytest.raises(ValidationError, match="must name each lead once"):
        with_switches(leads=(1, 1))
    with pytest.raises(CranpmError, match="expected a preset: paper, small, tiny, released; found 'huge'"):
        preset("huge")


def test_scales_must_fit_the_channels():
    with pytest.raises(CranpmError, match="expected scales of 35 channels; found scales of 2"):
        CranPM(TINY, Scales(mean=(0, 0), spread=(1, 1)))
    with pytest.raises(ValidationError, match="every spread must be above 0"):
        Scales(mean=(0,), spread=(0,))
    with pytest.raises(ValidationError, match="1 means but 2 spreads"):
        Scales(mean=(0,), spread=(1, 1))


def test_another_number_of_channels_has_scales_of_0_and_1():
    network = build(TINY.with_channels(36))
    assert network.settings.channels == 36
    assert network.scales == Scales(mean=(0,) * 36, spread=(1,) * 36)
    assert build(TINY).scales == typical_scales()
    released = preset("released")
    assert released.with_channels(35) == released
    with pytest.raises(CranpmError, match="expected 35 channels per day, for released; found 36"):
        released.with_channels(36)


def test_typical_scales_bring_channels_to_the_size_of_one(archive):
    scales = typical_scales()
    fields = torch.tensor(archive.coarse(archive.days[0]))
    normal = (fields - torch.tensor(scales.mean)[:, None, None]) / torch.tensor(scales.spread)[:, None, None]
    assert normal.mean(dim=(1, 2)).abs().max() < 5
    assert normal.std(dim=(1, 2)).max() < 5
