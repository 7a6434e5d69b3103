"""Weights as a folder that can be read, checked and shared: tensors, settings, a model card, checksums. No pickles."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from cranpm.core.errors import CranpmError
from cranpm.core.files import read_file, read_folder, write_folder
from cranpm.network import NETWORKS, ForecastNetwork, build
from cranpm.network.interface import current_names
from cranpm.weights import authors
from cranpm.weights.card import Card, unreadable
from cranpm.weights.readme import readme

SHIPPED = Path(__file__).parent / "shipped"
"""Weights for Europe, trained on simulated days."""
TENSORS, SETTINGS, README = "model.safetensors", "settings.json", "README.md"


@dataclass(frozen=True)
class Weights:
    """A network ready to forecast, what is known about it, and the checksum that names it in provenance."""

    network: ForecastNetwork
    card: Card
    sha256: str


def save_weights(folder: Path, network: ForecastNetwork, card: Card) -> None:
    """Write a folder of weights; it appears whole or not at all, and an existing one is never replaced."""
    tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    settings = json.dumps(card.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"
    files = {TENSORS: save(tensors), SETTINGS: settings.encode(), README: readme(card, network).encode()}
    write_folder(folder, files)


def load_weights(folder: Path | str) -> Weights:
    """Weights from a folder of ours, every byte checked, or from one that the authors published. Strict.

    `shipped` names those that come with the package.
    """
    folder = SHIPPED if str(folder) == "shipped" else Path(folder)
    if folder.is_file():
        raise CranpmError(
            expected="a folder of weights",
            found=f"the file {folder}",
            remedy="A checkpoint (.ckpt, .pt) is a pickle, which can run code: turn it into a folder with "
            "`cranpm weights import FILE --out DIR`.",
        )
    if (folder / SETTINGS).is_file():
        return _load_ours(folder)
    if (folder / authors.CONFIG).is_file():
        tensors = parse_tensors(read_file(folder, TENSORS), folder)
        return from_authors(tensors, authors.read_config(read_file(folder, authors.CONFIG)))
    raise CranpmError(
        expected=f"{SETTINGS} (or the authors' {authors.CONFIG}) in {folder}",
        found="neither" if folder.is_dir() else "no such folder",
        remedy="Name a folder that `cranpm train` or `cranpm weights import` wrote, or shipped.",
    )


def find_weights(name: str) -> Weights | None:
    """Weights by the name of their folder; None for `persistence`."""
    return None if name == "persistence" else load_weights(name)


def _load_ours(folder: Path) -> Weights:
    files, sha256 = read_folder(folder, (TENSORS, SETTINGS, README))
    try:
        card = Card.model_validate_json(files[SETTINGS])
    except ValidationError as error:
        raise unreadable(error) from None
    network = _network(card, parse_tensors(files[TENSORS], folder))
    return Weights(network, card, sha256)


def from_authors(tensors: Mapping[str, Tensor], config: Mapping[str, object]) -> Weights:
    """The released network with the authors' tensors; its checksum is of the tensors as they came."""
    card = authors.card(config)
    network = _network(card, authors.our_tensors(tensors))
    return Weights(network, card, hashlib.sha256(save(dict(tensors))).hexdigest())


def _network(card: Card, tensors: Mapping[str, Tensor]) -> ForecastNetwork:
    """A network with these tensors: exactly its names and shapes, floating-point, finite.

    Compared on the meta device first, so that false sizes in the settings cost no memory.
    """
    tensors = current_names(NETWORKS[card.network.kind].network, tensors)
    with torch.device("meta"):
        own = build(card.network.settings, card.scales).state_dict()
    for problem, names in (("missing", own.keys() - tensors.keys()), ("unknown", tensors.keys() - own.keys())):
        if names:
            shown = ", ".join(sorted(names)[:3])
            _misfit("exactly the network's tensors", f"{len(names)} {problem}: {shown}")
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            _misfit(f"{name} of shape {tuple(own[name].shape)}", str(tuple(tensor.shape)))
        if not tensor.is_floating_point():
            _misfit(f"floating-point numbers in {name}", str(tensor.dtype))
        if not tensor.isfinite().all():
            _misfit(f"finite numbers in {name}", "NaN or infinity")
    network = build(card.network.settings, card.scales)
    network.load_state_dict(tensors)
    return network.eval()


def _misfit(expected: str, found: str) -> None:
    raise CranpmError(expected=expected, found=found, remedy="These weights belong to another network.")


def parse_tensors(data: bytes, folder: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file."""
    try:
        return load(data)
    except SafetensorError as error:
        raise CranpmError(
            expected=f"safetensors in {folder / TENSORS}", found=str(error), remedy="Fetch or write it again."
        ) from None
