"""Folders of weights: what goes in comes out, what was changed is refused, and pickles stay shut."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from model_cases import TINY, batch, random_network
from paper_channels import NAMES
from pydantic import ValidationError
from released_cases import SMALL, checkpoint, released, their_tensors
from safetensors.torch import load_file, save_file

from cranpm.core.channels import PAPER_CHANNELS
from cranpm.core.errors import CranpmError
from cranpm.core.files import SUMS
from cranpm.core.grid import DOMAINS, Grid
from cranpm.core.machine import peak_memory
from cranpm.network import CranPM, build, preset
from cranpm.network.scaling import Scales
from cranpm.weights import Card, Weights, card_for, import_weights, load_weights, save_weights
from cranpm.weights.confine import confine

ALPS = DOMAINS["alps"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    network = random_network()
    card = card_for(network, domain="alps", data="archive ABC, 2021-01-01..2021-12-31", about="A network of noise.")
    save_weights(tmp_path / "weights", network, card)
    return tmp_path / "weights"


def test_a_folder_gives_back_the_same_network(folder):
    weights = load_weights(folder)
    case = batch()
    with torch.inference_mode():
        one, two = (network(*case.inputs) for network in (random_network(), weights.network))
    assert torch.equal(one.nan_to_num(), two.nan_to_num())
    assert (weights.card.domain, weights.card.leads) == ("alps", (1, 2, 3))
    assert [name for name, _ in weights.card.channels] == list(NAMES)
    assert not weights.network.training
    assert len(weights.sha256) == 64


def test_scales_travel_with_the_weights(tmp_path):
    scales = Scales(mean=tuple(range(35)), spread=(1 / 3,) * 35, pm25_mean=12.5, pm25_spread=9.75)
    network = CranPM(TINY, scales)
    save_weights(tmp_path / "w", network, card_for(network))
    loaded = load_weights(tmp_path / "w").network
    assert loaded.scales == scales
    assert torch.equal(loaded.coarse_spread, network.coarse_spread)


def test_the_card_can_be_read_by_people(folder):
    text = (folder / "README.md").read_text()
    for part in ("A network of noise.", "archive ABC", "T+1, T+2, T+3", "Apache-2.0", "| t2m | K | 284 | 10 |"):
        assert part in text
    assert json.loads((folder / "settings.json").read_text())["network"]["settings"]["fusion"] == "cross"


@pytest.mark.parametrize("name", ["model.safetensors", "settings.json", "README.md", SUMS])
def test_a_changed_byte_is_refused(folder, name):
    data = bytearray((folder / name).read_bytes())
    for place in (0, len(data) // 2, len(data) - 2):
        changed = bytearray(data)
        changed[place] ^= 1
        (folder / name).write_bytes(changed)
        with pytest.raises(CranpmError, match="with the checksum that SHA256SUMS states"):
            load_weights(folder)
    (folder / name).write_bytes(data)
    load_weights(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "README.md", SUMS])
def test_a_missing_file_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(CranpmError, match=f"expected {name} in .*found No such file"):
        load_weights(folder)


def test_an_empty_or_absent_folder_is_refused(tmp_path):
    with pytest.raises(CranpmError, match="found neither"):
        load_weights(tmp_path)
    with pytest.raises(CranpmError, match="found no such folder"):
        load_weights(tmp_path / "none")


def test_a_folder_is_never_replaced(folder):
    with pytest.raises(CranpmError, match="found one that exists"):
        save_weights(folder, random_network(), card_for(random_network()))
    assert [path.name for path in folder.parent.iterdir()] == ["weights"]


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CranpmError, match="found No space left on device"):
        save_weights(tmp_path / "w", random_network(), card_for(random_network()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["file/x", "file/x/y"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(CranpmError, match="expected a place to write"):
        save_weights(tmp_path / place, random_network(), card_for(random_network()))


def reseal(folder: Path) -> None:
    names = ["model.safetensors", "settings.json", "README.md"]
    sums = subprocess.run(["sha256sum", *names], cwd=folder, capture_output=True, check=True).stdout
    (folder / SUMS).write_bytes(sums)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("lead.weight"), "1 missing: lead.weight"),
        (lambda t: t.update(extra=torch.zeros(1)), "1 unknown: extra"),
        (lambda t: t.update({"lead.weight": torch.zeros(3, 31)}), r"lead.weight of shape \(3, 32\); found \(3, 31\)"),
        (
            lambda t: t.update({"lead.weight": torch.ones(3, 32).int()}),
            "floating-point numbers in lead.weight; found .*int32",
        ),
        (lambda t: t["lead.weight"].fill_(torch.nan), "finite numbers in lead.weight; found NaN"),
    ],
)
def test_tensors_must_fit_exactly(folder, change, message):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    reseal(folder)
    with pytest.raises(CranpmError, match=message):
        load_weights(folder)


def test_settings_of_another_version_are_refused(folder):
    settings = json.loads((folder / "settings.json").read_text()) | {"format": 2}
    (folder / "settings.json").write_text(json.dumps(settings))
    reseal(folder)
    with pytest.raises(CranpmError, match=r"settings\.json as this version writes it; found format: Input should be 1"):
        load_weights(folder)


def test_truncated_tensors_are_refused(folder):
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-10])
    reseal(folder)
    with pytest.raises(CranpmError, match="expected safetensors in"):
        load_weights(folder)


OTHER, CELSIUS = replace(PAPER_CHANNELS[0], name="w10"), replace(PAPER_CHANNELS[2], unit="degC")


def test_data_that_fit_are_accepted(folder):
    load_weights(folder).card.check(PAPER_CHANNELS, ALPS.coarse, ALPS.fine, (1, 3))
    usa = DOMAINS["usa_canada"]
    load_weights(folder).card.check(PAPER_CHANNELS, usa.coarse, usa.fine, (1, 2, 3))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"channels": (OTHER, *PAPER_CHANNELS[1:])}, "expected the channels u10, .* found only w10, v10, t2m"),
        ({"channels": PAPER_CHANNELS[:-2]}, "expected the channels cams_o3, cams_co, which"),
        ({"channels": (*PAPER_CHANNELS[:2], CELSIUS, *PAPER_CHANNELS[3:])}, "expected t2m in K, .* found t2m in degC"),
        ({"coarse": Grid(50, 4, 0.5, 16, 24)}, "a coarse grid of 0.25 degrees, .* found 0.5 degrees"),
        ({"fine": Grid(50.005, 4, 0.01, 512, 512)}, "fine cell edges on multiples of 0.01 degrees, .* found N 50.005"),
        ({"leads": (1, 7, 0, -5)}, r"leads among \(1, 2, 3\), .* found \[7, 0, -5\]"),
    ],
)
def test_data_that_do_not_fit_are_refused(folder, given, message):
    usual = {"channels": PAPER_CHANNELS, "coarse": ALPS.coarse, "fine": ALPS.fine, "leads": (1, 2, 3)}
    with pytest.raises(CranpmError, match=message):
        load_weights(folder).card.check(**(usual | given))


def test_the_order_of_channels_does_not_matter(folder):
    load_weights(folder).card.check((OTHER, *PAPER_CHANNELS[::-1]), ALPS.coarse, ALPS.fine, (1, 2, 3))


def test_weights_of_a_network_that_is_not_known_here_are_refused(folder):
    card = load_weights(folder).card.model_dump()
    known = "cran-pm, released, boosting, convlstm, simvp, earthformer, climax, topoflow"
    with pytest.raises(CranpmError, match=f"a network that is known here: {known}.*; found 'prophet'. Install the"):
        Card.model_validate(card | {"network": {"kind": "prophet", "settings": {}}})


def test_authors_weights_do_not_fit_our_channels(tmp_path):
    checkpoint(tmp_path / "theirs.ckpt")
    card = import_weights(tmp_path / "theirs.ckpt", tmp_path / "out").card
    with pytest.raises(CranpmError, match="expected the channels unnamed0, unnamed1,"):
        card.check(PAPER_CHANNELS, ALPS.coarse, ALPS.fine, (1,))


def test_a_checkpoint_becomes_a_folder(tmp_path):
    checkpoint(tmp_path / "theirs.ckpt")
    weights = import_weights(tmp_path / "theirs.ckpt", tmp_path / "out")
    assert isinstance(weights, Weights)
    assert weights.card.network.kind == "released"
    again = load_weights(tmp_path / "out").network
    for name, tensor in released().state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)


def test_an_authors_folder_becomes_a_sealed_folder(tmp_path):
    checkpoint(tmp_path / "theirs.ckpt")
    folder = tmp_path / "authors"
    folder.mkdir()
    save_file(their_tensors(released()), folder / "model.safetensors")
    sizes = SMALL.model_dump(exclude={"wind_bias", "coordinates"})
    (folder / "config.json").write_text(json.dumps({"model": sizes}))
    import_weights(folder, tmp_path / "out")
    assert (tmp_path / "out" / SUMS).is_file()


def test_a_checkpoint_is_refused_by_everything_else(tmp_path):
    checkpoint(tmp_path / "theirs.ckpt")
    with pytest.raises(CranpmError, match=r"is a pickle, which can run code.*cranpm weights import FILE --out DIR"):
        load_weights(tmp_path / "theirs.ckpt")


class Malicious:
    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}",)


def test_malicious_pickles_do_not_run(tmp_path):
    victim = tmp_path / "victim"
    checkpoint(tmp_path / "bad.ckpt", payload=Malicious(victim))
    (tmp_path / "plain.ckpt").write_bytes(pickle.dumps(Malicious(victim)))
    for name, wanted in (("bad.ckpt", "posix.system"), ("plain.ckpt", "more than tensors")):
        with pytest.raises(CranpmError, match=f"found a pickle that asks for {wanted}"):
            import_weights(tmp_path / name, tmp_path / "out")
    assert not victim.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_checkpoint_of_full_size(tmp_path):
    """1.15 GB with the optimiser's moments, as published."""
    network = build(preset("released"))
    state = {f"model.{name}": tensor for name, tensor in their_tensors(network).items()}
    moments = [torch.zeros_like(tensor) for tensor in state.values()]
    sizes = preset("released").model_dump(exclude={"wind_bias", "coordinates"})
    content = {
        "state_dict": state,
        "hyper_parameters": {"config": {"model": sizes}},
        "optimizer": [moments, moments[:]],
    }
    content["optimizer"][1] = [torch.ones_like(tensor) for tensor in state.values()]
    torch.save(content, tmp_path / "full.ckpt")
    assert (tmp_path / "full.ckpt").stat().st_size > 1.1e9
    weights = import_weights(tmp_path / "full.ckpt", tmp_path / "out")
    assert torch.equal(weights.network.decoder.head.weight, network.decoder.head.weight)
    assert weights.card.channels[3] == ("msl", "Pa")
    units = {channel.name: channel.unit for channel in PAPER_CHANNELS}
    assert all(units.get(name, unit) == unit for name, unit in weights.card.channels)
    assert dict(weights.card.channels)["cams_so2"] == "ug m-3"


def test_files_that_are_no_checkpoints_are_refused(tmp_path):
    torch.save({"weights": torch.zeros(3)}, tmp_path / "other.ckpt")
    (tmp_path / "text.ckpt").write_text("not a checkpoint")
    for name in ("other.ckpt", "text.ckpt"):
        with pytest.raises(CranpmError, match="expected tensors, and settings under hyper_parameters"):
            import_weights(tmp_path / name, tmp_path / "out")
    with pytest.raises(CranpmError, match="found no such file"):
        import_weights(tmp_path / "none.ckpt", tmp_path / "out")


CONFINED = """
import os, signal, socket, sys
from cranpm.weights.confine import confine
from cranpm.weights.unpickle import warm_up
name, descriptor = sys.argv[1], os.open(sys.argv[1], os.O_RDWR)
warm_up()
confine(1000)
attempts = {
    "socket": lambda: socket.socket(),
    "read": lambda: open(name),
    "write": lambda: open(name + ".new", "w"),
    "delete": lambda: os.unlink(name),
    "rename": lambda: os.rename(name, name + ".moved"),
    "truncate": lambda: os.truncate(name, 0),
    "link": lambda: os.symlink(name, name + ".link"),
    "folder": lambda: os.mkdir(name + ".folder"),
    "fork": lambda: os.fork(),
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "signal": lambda: os.kill(os.getppid(), 0),
    "copy": lambda: os.dup(0),
    "memory": lambda: bytes(8 * 2**30),
    "long": lambda: os.lseek(descriptor, 2**31, os.SEEK_SET) and os.write(descriptor, b"x"),
}
for kind, attempt in attempts.items():
    try:
        attempt()
        os.write(1, (kind + " allowed\\n").encode())
    except (OSError, MemoryError) as error:
        os.write(1, (kind + " refused\\n").encode())
"""


def test_the_unpickling_process_can_do_nothing_but_compute(tmp_path):
    (tmp_path / "file").write_text("x")
    command = [sys.executable, "-c", CONFINED, str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    outcomes = dict(line.split() for line in done.stdout.splitlines())
    assert len(outcomes) == 14, done.stderr
    assert set(outcomes.values()) == {"refused"}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "x"


def test_an_unknown_processor_cannot_confine(tmp_path, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "sparc")
    with pytest.raises(OSError, match="confinement is known for x86_64 and aarch64, not for sparc"):
        confine(0)


def test_a_card_cannot_contradict_its_network():
    card = card_for(random_network()).model_dump(mode="json")
    for change, message in (
        ({"leads": [1, 2, 3, 4]}, "leads and channels must be those of the network"),
        ({"channels": card["channels"][1:]}, "leads and channels must be those of the network"),
        ({"coarse_step": 0.5}, "this version knows grids of 0.25 and 0.01 degrees"),
        ({"scales": {"mean": [0], "spread": [1]}}, "scales must be those of the network's channels"),
        ({"scales": {"mean": [float("nan")] * 35, "spread": [1] * 35}}, "should be a finite number"),
    ):
        with pytest.raises(ValidationError, match=message):
            Card.model_validate(card | change)


def test_a_configuration_that_lies_about_sizes_costs_no_memory(tmp_path):
    sizes = SMALL.model_dump(exclude={"wind_bias", "coordinates"}) | {
        "local_embed_dim": 16384,
        "global_embed_dim": 16384,
    }
    save_file(their_tensors(released()), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model": sizes}))
    before = peak_memory()
    with pytest.raises(CranpmError, match="belong to another network"):
        load_weights(tmp_path)
    assert peak_memory() < before + 0.5
    (tmp_path / "config.json").write_text("[" * 200_000)
    with pytest.raises(CranpmError, match=r"expected JSON in config\.json"):
        load_weights(tmp_path)


def test_nothing_else_opens_pickles():
    sources = Path(__file__).parents[2] / "src"
    openers = {
        path.name
        for path in sources.rglob("*.py")
        if any(word in path.read_text() for word in ("torch.load", "import pickle", "allow_pickle=True", "joblib"))
    }
    assert openers == {"unpickle.py"}


def test_copies_are_as_good(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    assert load_weights(tmp_path / "copy").sha256 == load_weights(folder).sha256
