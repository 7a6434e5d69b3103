"""What was written with earlier names of settings and tensors is read, and written with the present ones."""

import json
import shutil

import torch
from safetensors.torch import load, save
from test_train import interrupted, settings

from cranpm.baselines.learned import learned_baseline
from cranpm.core.files import read_folder, write_folder
from cranpm.core.settings import validate
from cranpm.network import build
from cranpm.training import TrainSettings, train
from cranpm.training.checkpoints import MEAN, NETWORK, OPTIMISER, PLACE, RANDOM, states
from cranpm.weights import card_for, load_weights, save_weights
from cranpm.weights.folder import README, SETTINGS, TENSORS


def rewrite(folder, names, change):
    """A folder with checksums in which the content of files was changed."""
    files, _ = read_folder(folder, names)
    shutil.rmtree(folder)
    write_folder(folder, change(files))


def old_tensors(data: bytes) -> bytes:
    return save({name.replace("backbone.", "body.", 1): tensor for name, tensor in load(data).items()})


def old_settings(now: dict) -> dict:
    """A run's settings as version 0.1 wrote them."""
    optimiser = now["optimiser"] | {"memory": now["optimiser"]["beta2"]}
    old = now | {"optimiser": optimiser, "opponent": now["baseline"], "start": now["finetune"]}
    del optimiser["beta2"], old["baseline"], old["finetune"], old["network"]["kind"]
    return old


def test_settings_of_old_runs_are_read_and_written_anew():
    now = settings("optimiser.beta2=0.9", "baseline.kind=simvp", "baseline.size=small").to_json()
    old = old_settings(json.loads(json.dumps(now)))
    assert {"opponent", "start"} < old.keys()
    assert validate(TrainSettings, old).to_json() == now
    tuned = settings("start.weights=shipped", "start.part=head")
    assert tuned.to_json()["finetune"] == {"weights": "shipped", "part": "head", "rank": 8}
    assert "start" not in tuned.to_json()


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


def test_an_old_run_of_a_learned_baseline_goes_on(month, tmp_path):
    wanted = settings("baseline.kind=simvp", "optimiser.epochs=1", "machine.save_steps=1")
    train(wanted, month, tmp_path / "whole")
    interrupted(wanted, month, tmp_path / "cut")

    def change(files):
        place = json.loads(files[PLACE])
        renamed = {name: old_tensors(files[name]) for name in (NETWORK, OPTIMISER, MEAN)}
        return files | renamed | {PLACE: json.dumps(place | {"settings": old_settings(place["settings"])}).encode()}

    rewrite(states(tmp_path / "cut" / "state")[-1], (NETWORK, OPTIMISER, MEAN, RANDOM, PLACE), change)
    train(wanted, month, tmp_path / "cut", resume=True)
    one, other = ((tmp_path / run / "best" / TENSORS).read_bytes() for run in ("whole", "cut"))
    assert one == other
