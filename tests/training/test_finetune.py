"""Tuning changes what it should and nothing else; what would stop a run is refused before it begins."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from command import run_cli
from model_cases import batch, random_network
from released_cases import PLAIN, released
from test_train import interrupted, settings

from cranpm.archive.store import Archive
from cranpm.baselines.learned import learned_baseline
from cranpm.core.errors import CranpmError
from cranpm.network import build
from cranpm.training import retention, train
from cranpm.training.finetune import LowRank, merged, projections, starting_weights, tunable, tune
from cranpm.training.recipe import SHIPPED, FinetuneSettings, load_settings
from cranpm.weights import Card, Weights, card_for, load_weights, save_weights


@pytest.fixture(scope="module")
def weights(tmp_path_factory, month):
    """Weights of a random network for the month's grid."""
    folder = tmp_path_factory.mktemp("weights") / "random"
    network = random_network(settings().network)
    save_weights(folder, network, card_for(network))
    return folder


def start(weights, part: str) -> list[str]:
    return [f"finetune.weights={weights}", f"finetune.part={part}", "finetune.rank=2", "optimiser.epochs=1"]


def test_all_of_a_network_is_tuned(weights, month, tmp_path):
    train(settings(*start(weights, "all")), month, tmp_path / "run")
    before, after = load_weights(weights).network, load_weights(tmp_path / "run/best").network
    assert after.scales == before.scales
    same = [name for name, value in after.state_dict().items() if value.equal(before.state_dict()[name])]
    assert not [name for name in same if name.endswith("weight")]


def test_a_run_may_begin_with_the_weights_of_the_package():
    shipped = load_weights("shipped")
    network = shipped.network.settings.model_dump(mode="json")
    found = starting_weights(load_settings(Path("small-europe.toml"), network=network, finetune={"weights": "shipped"}))
    assert found.sha256 == shipped.sha256


def test_only_the_decoder_is_tuned(weights, month, tmp_path):
    train(settings(*start(weights, "head")), month, tmp_path / "run")
    before, after = (load_weights(path).network.state_dict() for path in (weights, tmp_path / "run/best"))
    changed = {name.split(".")[0] for name in after if not after[name].equal(before[name])}
    assert changed == {"decoder"}


def test_low_rank_changes_reach_the_projections_alone(weights, month, tmp_path):
    """What is written is an ordinary network; its matrices differ from the first ones by matrices of rank 2."""
    train(settings(*start(weights, "lora")), month, tmp_path / "run")
    before, after = (load_weights(path) for path in (weights, tmp_path / "run/best"))
    assert weights.name not in after.card.about
    assert f"Tuned (lora) from the weights {before.sha256}" in after.card.about
    ids = {id(part.weight) for part in projections(after.network)}
    names = {name for name, value in after.network.named_parameters() if id(value) in ids}
    old, new = before.network.state_dict(), after.network.state_dict()
    assert {name for name in new if not new[name].equal(old[name])} == names
    for name in names:
        assert torch.linalg.matrix_rank(new[name] - old[name], rtol=1e-3) <= 2


def test_merged_equals_unmerged():
    network, case = random_network(), batch(side=64)
    tune(network, FinetuneSettings(weights="", part="lora", rank=3))
    for module in network.modules():
        if isinstance(module, LowRank):
            torch.nn.init.normal_(module.up, std=0.1)
    plain = random_network()
    with torch.inference_mode():
        one = network(*case.inputs)
        other = merged(network)(*case.inputs)
        first = plain(*case.inputs)
    assert (one - other).nan_to_num().abs().max() <= 1e-5 * one.nan_to_num().abs().max()
    assert (one - first).nan_to_num().abs().max() > 0.01
    assert merged(network).state_dict().keys() == plain.state_dict().keys()


def test_tuning_goes_on_after_an_interruption(weights, month, tmp_path):
    wanted = settings(*start(weights, "lora"), "machine.save_steps=1")
    train(wanted, month, tmp_path / "whole")
    interrupted(wanted, month, tmp_path / "cut")
    train(wanted, month, tmp_path / "cut", resume=True)
    sums = [(tmp_path / run / "best" / "model.safetensors").read_bytes() for run in ("whole", "cut")]
    assert sums[0] == sums[1]


def test_weights_of_another_network_are_refused(weights, month, tmp_path):
    with pytest.raises(CranpmError, match=r"\[network\] as the weights have it; found other settings"):
        train(settings(*start(weights, "all"), "network.fusion=add"), month, tmp_path / "run")


@pytest.mark.parametrize(("part", "lacks"), [("head", "a head"), ("lora", "attentions")])
def test_a_part_that_the_network_lacks_is_refused(part, lacks):
    network = build(learned_baseline("convlstm", shape=(21, 21), tile=64))
    with pytest.raises(CranpmError, match=f"a network with {lacks}, for --part {part}; found convlstm, which has none"):
        tune(network, FinetuneSettings(weights="", part=part))
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_the_authors_network_is_not_trained():
    network = released()
    channels = tuple((f"unnamed{index}", "1") for index in range(7))
    card = Card(
        network={"kind": "released", "settings": network.settings}, scales=PLAIN, channels=channels, leads=(1, 2, 3, 4)
    )
    with pytest.raises(CranpmError, match="a network that is trained here; found those of released"):
        tunable(Weights(network, card, ""))
    with pytest.raises(CranpmError, match="released forecasts with the weights of its authors and is not trained here"):
        load_settings(SHIPPED / "paper.toml", ["network.preset=released"])


def test_the_command_takes_the_network_from_the_weights(weights, month, tmp_path, monkeypatch, capsys):
    line = ["finetune", str(weights), "tiny.toml", "--archive", month.location, "--out", str(tmp_path / "run"), "-q"]
    assert run_cli(monkeypatch, *line, "--part", "head", "--set", "optimiser.epochs=1") == 0
    assert "T+3" in capsys.readouterr().out
    kept = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert kept["finetune"] == {"weights": str(weights), "part": "head", "rank": 8}


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.name)
def test_shipped_settings_are_sound(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings(path.relative_to(SHIPPED)) == load_settings(path)


def test_shipped_settings_hold_what_the_paper_says():
    paper = load_settings(SHIPPED / "paper.toml")
    assert paper.samples.days * paper.samples.tiles * paper.optimiser.accumulate == 128
    assert (paper.optimiser.learning_rate, paper.optimiser.weight_decay, paper.optimiser.epochs) == (5e-5, 0.05, 30)
    assert {path.name for path in SHIPPED.glob("*.toml")} == {
        *("paper.toml", "small-europe.toml", "alps.toml", "trials.toml", "tiny.toml")
    }


def test_a_domain_of_another_shape_is_refused(month, tmp_path):
    with pytest.raises(CranpmError, match=r"a domain of 32 x 48 coarse cells .*found box of 21 x 21"):
        train(settings("network.coarse.shape=[32, 48]"), month, tmp_path / "run")


def test_an_archive_without_stations_is_refused_unless_their_loss_is_off(month, tmp_path, monkeypatch):
    monkeypatch.setattr(type(month.stations), "__len__", lambda _: 0)
    with pytest.raises(CranpmError, match=r"stations in the archive, for loss.station = 0.1; found none"):
        train(settings(), month, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_day_without_any_pm25_is_named(month, tmp_path, monkeypatch):
    empty, read = month.days[12], Archive.pm25

    def pm25(self, day, *window):
        field = read(self, day, *window)
        return np.full_like(field, np.nan) if day == empty else field

    monkeypatch.setattr(Archive, "pm25", pm25)
    with pytest.raises(CranpmError, match=f"expected PM2.5 on {empty}; found no value anywhere"):
        train(settings(), month, tmp_path / "run")


def test_a_disk_that_is_too_small_is_refused(month, tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "free_disk_gb", lambda _: 0.05)
    with pytest.raises(CranpmError, match=r"expected 0.12 GB free for the run in .*; found 0.05 GB"):
        train(settings(), month, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_never_takes_more_disk_than_it_asked_for(weights, month, tmp_path):
    run, wanted = tmp_path / "run", settings("scores.keep=1")
    train(wanted, month, run)
    size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file() and not path.is_symlink())
    network = load_weights(run / "best").network
    assert size / 1e9 <= retention.disk_need_gb(network, wanted)
    assert retention.disk_need_gb(network, settings("scores.keep=9")) > retention.disk_need_gb(network, wanted)
