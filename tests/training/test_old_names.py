"""What was written with earlier names of settings and tensors is read, and written with the present ones."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load, save
from test_train import TOML, interrupted, settings

from cranpm.baselines.learned import learned_baseline
from cranpm.core.errors import CranpmError
from cranpm.core.files import read_folder, write_folder
from cranpm.core.settings import load as load_toml
from cranpm.core.settings import validate
from cranpm.experiments.spec import run_identity
from cranpm.network import build
from cranpm.training import TrainSettings, train
from cranpm.training.checkpoints import FACTS, MEAN, NETWORK, OPTIMISER, PLACE, RANDOM, states
from cranpm.weights import card_for, load_weights, save_weights
from cranpm.weights.folder import README, SETTINGS, TENSORS

VERSION_0_1 = json.loads("""
{"network": {"channels": 35, "coarse": {"shape": [21, 21], "patch": 4, "width": 48, "heads": 3, "depth": 2,
"window": 4, "elevation_scale_m": 1000.0}, "fine": {"shape": [64, 64], "patch": 16, "width": 32, "heads": 2,
"depth": 2, "window": 4, "elevation_scale_m": 500.0}, "bridge_layers": 2, "decoder": [16, 16, 8, 8],
"leads": [1, 2, 3], "mlp_ratio": 4, "drop_path": 0.0, "dropout": 0.0, "fusion": "cross", "elevation_bias": true,
"elevation_form": "rise", "elevation_channel": true, "wind_scan": true, "scan_form": "order", "wind_bias": true,
"wind_form": "direction", "distance_bias": false, "upsampling": "pixel-shuffle", "delta": true,
"smooth_change": false, "yesterday": true}, "loss": {"frequency": 0.1, "station": 0.1}, "samples": {"days": 2,
"tiles": 2, "epoch_days": null, "hotspot_ratio": 0.5, "held_out_stations": 0.2, "seed": 0, "cache_gb": 2.0},
"optimiser": {"learning_rate": 0.002, "least_rate": 1e-06, "weight_decay": 0.05, "memory": 0.999,
"warmup_epochs": 0.5, "epochs": 1, "clip": 1.0, "accumulate": 2, "average": 0.9}, "machine": {"precision": "fp32",
"compile": false, "recompute": false, "workers": 0, "save_steps": 1}, "scores": {"days": 3, "tiles": 2, "keep": 2,
"patience": null}, "start": null, "opponent": {"kind": "simvp", "size": "small", "patch": null, "start": "coarse"},
"splits": {"train": "2021-01-01..2021-01-20", "validation": "2021-01-21..2021-01-27",
"test": "2021-01-28..2021-02-03"}}
""")
"""The settings of a run of tiny.toml with the opponent simvp as version 0.1 wrote them."""
SAME_RUN = ("baseline.kind=simvp", "optimiser.epochs=1", "machine.save_steps=1")


def rewrite(folder, names, change):
    """A folder with checksums in which the content of files was changed."""
    files, _ = read_folder(folder, names)
    shutil.rmtree(folder)
    write_folder(folder, change(files))


def old_tensors(data: bytes) -> bytes:
    return save({name.replace("backbone.", "body.", 1): tensor for name, tensor in load(data).items()})


def test_settings_of_old_runs_are_read_and_written_anew():
    now, old = settings(*SAME_RUN), validate(TrainSettings, VERSION_0_1)
    assert old == now
    assert old.to_json() == now.to_json()
    assert not {"opponent", "start"} & old.to_json().keys()
    assert run_identity(old, 1) == run_identity(now, 1)
    tuned = settings("start.weights=shipped", "start.part=head")
    assert tuned.to_json()["finetune"] == {"weights": "shipped", "part": "head", "rank": 8}


@pytest.mark.parametrize("spelt", ["baseline.size=small", "baseline.patch=2", "baseline.start=coarse"])
def test_equal_baselines_are_the_same_run(spelt):
    one, other = settings("baseline.kind=simvp"), settings("baseline.kind=simvp", spelt)
    assert one == other
    assert run_identity(one, 1) == run_identity(other, 1)
    assert one.model == other.model


@pytest.mark.parametrize("spelt", ["baseline.size=paper", "baseline.patch=3", "baseline.start=fine"])
def test_other_baselines_are_other_runs(spelt):
    one, other = settings("baseline.kind=simvp"), settings("baseline.kind=simvp", spelt)
    assert run_identity(one, 1) != run_identity(other, 1)
    assert one.model != other.model


def test_old_keys_win_over_a_file_with_new_ones_and_the_reverse(tmp_path):
    new, old = tmp_path / "new.toml", tmp_path / "old.toml"
    new.write_text(TOML.read_text().replace("[optimiser]", "[optimiser]\nbeta2 = 0.9"))
    old.write_text(TOML.read_text().replace("[optimiser]", "[optimiser]\nmemory = 0.9") + '[start]\nweights = "old"\n')
    assert load_toml(TrainSettings, new, ["optimiser.memory=0.95"]).optimiser.beta2 == 0.95
    assert load_toml(TrainSettings, old, ["optimiser.beta2=0.95"]).optimiser.beta2 == 0.95
    assert load_toml(TrainSettings, old).optimiser.beta2 == 0.9
    given = {"weights": "new", "part": "head", "rank": 2}
    assert load_toml(TrainSettings, old, ["start.rank=3"], finetune=given).finetune.model_dump() == given | {"rank": 3}
    assert settings("baseline.kind=simvp", "opponent.size=paper").baseline == {"kind": "simvp", "size": "paper"}


def test_an_old_name_beside_the_new_one_is_refused():
    both = VERSION_0_1 | {"baseline": {"kind": "convlstm"}}
    with pytest.raises(CranpmError, match="found opponent"):
        validate(TrainSettings, both)


def test_weights_of_an_old_learned_baseline_load(tmp_path):
    torch.manual_seed(0)
    network = build(learned_baseline("simvp", shape=(21, 21), tile=64))
    torch.nn.init.normal_(network.backbone.out.project.weight)
    save_weights(tmp_path / "w", network, card_for(network))

    def change(files):
        card = json.loads(files[SETTINGS])
        inner = card["network"]["settings"]
        inner["body"] = inner.pop("backbone")
        return files | {SETTINGS: json.dumps(card).encode(), TENSORS: old_tensors(files[TENSORS])}

    rewrite(tmp_path / "w", (TENSORS, SETTINGS, README), change)
    found = load_weights(tmp_path / "w").network
    assert found.settings == network.settings
    assert all(torch.equal(value, found.state_dict()[name]) for name, value in network.state_dict().items())


def old_state(files: dict[str, bytes], **more: object) -> dict[str, bytes]:
    """The files of a state as version 0.1 wrote them."""
    place = json.loads(files[PLACE])
    facts = {key: place["settings"][key] for key in FACTS}
    renamed = {name: old_tensors(files[name]) for name in (NETWORK, OPTIMISER, MEAN)}
    return files | renamed | {PLACE: json.dumps(place | {"settings": VERSION_0_1 | facts | more}).encode()}


def test_an_old_run_of_a_learned_baseline_goes_on(month, tmp_path):
    wanted = settings(*SAME_RUN)
    train(wanted, month, tmp_path / "whole")
    interrupted(wanted, month, tmp_path / "cut")
    last, names = states(tmp_path / "cut" / "state")[-1], (NETWORK, OPTIMISER, MEAN, RANDOM, PLACE)
    whole, _ = read_folder(last, names)
    rewrite(last, names, lambda files: old_state(files, novelty=1))
    with pytest.raises(CranpmError, match=r"one of the keys .*; found novelty"):
        train(wanted, month, tmp_path / "cut", resume=True)
    rewrite(last, names, lambda files: old_state(whole))
    train(wanted, month, tmp_path / "cut", resume=True)
    one, other = ((tmp_path / run / "best" / TENSORS).read_bytes() for run in ("whole", "cut"))
    assert one == other
