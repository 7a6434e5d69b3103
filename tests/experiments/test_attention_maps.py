"""What the attention shows is what the network does."""

from datetime import date

import numpy as np
import pytest
import torch
from command import run_cli
from model_cases import TINY, random_network

from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Grid
from cranpm.experiments.attention import VIEWS, Look, look, moved, strengths, tile_in, upwind_table, watched, windiest
from cranpm.network.bridge import CrossAttention
from cranpm.training.inputs import Inputs
from cranpm.weights import card_for, save_weights

SIZE = 128


@pytest.fixture
def network():
    return random_network(TINY.model_copy(update={"distance_bias": True}))


def test_the_weights_are_those_that_mix_the_values(network, archive):
    """softmax . values, passed through the layer's last map, is what the layer adds to its tokens."""
    inputs, window = Inputs(archive), (slice(0, SIZE), slice(0, SIZE))
    kept = []

    def keep(layer, arguments, result):
        kept.append((layer, arguments, result))

    layers = [module for module in network.modules() if isinstance(module, CrossAttention)]
    handles = [layer.register_forward_hook(keep) for layer in layers]
    tile = inputs.tile(archive.days[1], window)
    with torch.no_grad(), watched(network, "as learned") as found:
        context = network.encode_day(inputs.day(archive.days[1]))
        network.forecast_tile(context, tile, torch.tensor([1]))
    for handle in handles:
        handle.remove()
    assert len(found) == len(layers) > 0
    for weights, (layer, (tokens, _, value, _), result) in zip(found, kept, strict=True):
        with torch.no_grad():
            mixed = tokens + layer.out((weights @ value).transpose(1, 2).flatten(2))
            assert torch.allclose(mixed + layer.mlp(layer.norm_mlp(mixed)), result, atol=1e-4)


def test_a_look_sums_to_one_and_biases_turn_it(network, archive):
    inputs, window = Inputs(archive), (slice(0, SIZE), slice(0, SIZE))
    looks = {view: look(network, inputs, archive.days[1], window, view=view) for view in VIEWS}
    for seen in looks.values():
        assert seen.together.sum() == pytest.approx(1, abs=1e-5)
        assert seen.together.shape == seen.grid.shape
        assert seen.grid.south <= archive.domain.coarse.south  # the last patches are partly filled
    assert looks["as learned"].upwind_share() > looks["without wind bias"].upwind_share()
    assert not np.allclose(looks["without wind bias"].together, looks["without biases"].together)


def test_a_bias_moves_what_its_strength_says(network, archive):
    """Nothing where its strength is 0; at most all."""
    inputs, window = Inputs(archive), (slice(0, SIZE), slice(0, SIZE))

    def shares():
        return moved(network, inputs, archive.days[1], window)

    before = shares()
    assert {cause for cause, _ in before} == {"positions", "elevation", "distance", "wind"}
    assert all(0 < share < 1 for share in before.values())
    weak = [name for name in strengths(network) if name.startswith("fine") or name.endswith("layers.1.beta")]
    for name in weak:
        torch.nn.init.zeros_(network.get_parameter(name))
    after = shares()
    layers = {("elevation", "fine.blocks.0.attention"), ("wind", "bridge.cross.layers.1")}
    assert {place for place, share in after.items() if share == 0} == layers
    assert all(after[place] == before[place] for place in before if place[1].startswith("coarse"))


def test_upwind_is_where_the_wind_comes_from():
    tokens = Grid(50, 0, 1.0, 3, 3)
    west = np.zeros((1, 1, 3, 3))
    west[..., 1, 0], west[..., 1, 2] = 0.75, 0.25
    tile = Grid(49, 1, 0.01, 100, 100)  # the cell in the middle
    assert Look(date(2021, 1, 1), (5.0, 0.0), west, tokens, tile).upwind_share() == pytest.approx(0.75)
    assert Look(date(2021, 1, 1), (-5.0, 0.0), west, tokens, tile).upwind_share() == pytest.approx(0.25)


def test_tiles_stay_on_the_grid():
    grid = DOMAINS["alps"].fine
    assert tile_in((slice(300, 400), slice(500, 520)), grid, 128) == (slice(286, 414), slice(446, 574))
    assert tile_in((slice(0, 10), slice(1190, 1200)), grid, 128) == (slice(0, 128), slice(1072, 1200))


def test_days_of_west_and_east_wind(archive):
    inputs, window = Inputs(archive), (slice(0, SIZE), slice(0, SIZE))
    days = archive.days[1:]
    found = windiest(inputs, days, window)
    coarse = archive.domain.coarse
    tile = archive.domain.fine.window(*window)
    rows, cols = coarse.slices(tile.north, tile.west, tile.south, tile.east)
    along = {day: float(inputs.day(day).wind[0, 0, rows, cols].mean()) for day in days}
    west, east = max(along, key=along.get), min(along, key=along.get)
    expected = ({"westerly": west} if along[west] > 0 else {}) | ({"easterly": east} if along[east] < 0 else {})
    assert found == expected != {}


@pytest.mark.parametrize(("wind", "sign"), [("westerly", 1), ("easterly", -1)])
def test_a_wind_that_no_day_has_is_not_named(archive, monkeypatch, wind, sign):
    """The weakest west wind is no east wind."""
    days, window = archive.days[1:], (slice(0, SIZE), slice(0, SIZE))
    eastward = iter([sign * strength for strength in range(3, 3 + len(days))])
    monkeypatch.setattr("cranpm.experiments.attention.wind_over", lambda *_: (next(eastward), 0.0))
    found = windiest(Inputs(archive), days, window)
    assert found == {wind: days[-1]}
    seen = Look(days[-1], (sign * 6.0, 0.0), np.ones((1, 1, 3, 3)) / 9, Grid(50, 0, 1.0, 3, 3), Grid(49, 1, 0.01, 9, 9))
    rows = {row[0].partition(",")[0]: row[1:] for row in upwind_table({(wind, view): seen for view in VIEWS}).rows}
    other = "easterly" if wind == "westerly" else "westerly"
    assert rows[f"{other}: none of the days"] == ("", "", "")
    assert all(rows[wind])


def test_strengths_and_a_network_without_them(network, archive):
    assert {name.rpartition(".")[2] for name in strengths(network)} == {"alpha", "beta", "nearness"}
    other = random_network(TINY.model_copy(update={"fusion": "add"}))
    with pytest.raises(CranpmError, match="cross-attention"):
        look(other, Inputs(archive), archive.days[1], (slice(0, SIZE), slice(0, SIZE)))


def test_the_command(network, archive, tmp_path, monkeypatch, capsys):
    save_weights(tmp_path / "weights", network, card_for(network))
    days = f"{archive.days[1]}..{archive.days[-1]}"
    line = ["attention", "--archive", archive.location, "--weights", str(tmp_path / "weights"), "--days", days]
    box = archive.domain.fine
    region = f"{box.north},{box.west},{box.south},{box.east}"
    assert run_cli(monkeypatch, *line, "--out", str(tmp_path / "out"), "--region", region) == 0
    assert (tmp_path / "out" / "attention.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "upwind" in printed
    assert "| elevation | fine.blocks.0.attention | " in printed
    assert "beta" in (tmp_path / "out" / "attention.md").read_text()
    one = ["--days", str(archive.days[1]), "--out", str(tmp_path / "one"), "--region", region]
    assert run_cli(monkeypatch, *line, *one) == 0
    assert capsys.readouterr().out.count("erly: none of the days") == 1
    assert (tmp_path / "one" / "attention.png").read_bytes().startswith(b"\x89PNG")
