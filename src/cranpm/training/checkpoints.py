"""Where a run stands, on disk: weights, moments, random numbers and how far the data were read. Safe formats only."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from cranpm.core.errors import CranpmError
from cranpm.core.files import read_folder, write_folder
from cranpm.core.settings import validate
from cranpm.network import ForecastNetwork
from cranpm.network.interface import current_names
from cranpm.network.scaling import Scales
from cranpm.training.optimiser import WeightMean
from cranpm.training.recipe import TrainSettings

NETWORK, OPTIMISER, MEAN, RANDOM, PLACE = (
    "network.safetensors",
    "optimiser.safetensors",
    "mean.safetensors",
    "random.safetensors",
    "place.json",
)
KEPT = 2
FACTS = frozenset({"scales", "begun_from", "processes"})
"""What a state holds beside the settings of its run."""


@dataclass
class Progress:
    """How far a run is; `batch` counts over all epochs."""

    step: int = 0
    batch: int = 0
    best: float | None = None
    best_epoch: int = -1


def optimiser_tensors(network: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Moments and step counts under the names of their parameters."""
    return {
        f"{name}/{key}": torch.as_tensor(value)
        for name, parameter in network.named_parameters()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def save_state(
    folder: Path,
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    mean: WeightMean,
    progress: Progress,
    random: dict[str, Tensor],
    settings: dict[str, Any],
) -> None:
    """Write the state of a step; the newest two are kept."""
    files = {
        NETWORK: _packed(network.state_dict()),
        OPTIMISER: _packed(optimiser_tensors(network, optimiser)),
        MEAN: _packed(mean.mean),
        RANDOM: _packed(random),
        PLACE: json.dumps({"place": vars(progress), "settings": settings}).encode(),
    }
    target = folder / f"step-{progress.step:08d}"
    if not target.exists():
        write_folder(target, files)
    for old in states(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def _packed(tensors: Mapping[str, Tensor]) -> bytes:
    return save({name: tensor.contiguous() for name, tensor in tensors.items()})


def _laid_out(tensor: Tensor, like: Tensor) -> Tensor:
    """The same numbers in the memory layout of `like`: another layout is computed by other kernels, to other bits."""
    return torch.empty_like(like).copy_(tensor) if tensor.shape == like.shape else tensor


def states(folder: Path) -> list[Path]:
    """Complete states of a run, oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.is_dir())


def _current(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run as this version writes them."""
    facts = {key: value for key, value in stored.items() if key in FACTS}
    facts["scales"] = Scales.model_validate(facts["scales"]).model_dump(mode="json")
    own = {key: value for key, value in stored.items() if key not in FACTS}
    return validate(TrainSettings, own).to_json() | facts


def load_state(
    folder: Path,
    network: ForecastNetwork,
    optimiser: torch.optim.Optimizer,
    mean: WeightMean,
    settings: dict[str, Any],
) -> tuple[Progress, dict[str, Tensor]]:
    """Put the newest state into network, optimiser and mean; returns the progress and the random numbers."""
    if not (found := states(folder)):
        raise CranpmError(
            expected=f"a state in {folder}", found="none", remedy="Start without --resume, or name the right run."
        )
    files, _ = read_folder(found[-1], (NETWORK, OPTIMISER, MEAN, RANDOM, PLACE))
    content = json.loads(files[PLACE])
    before = _current(content["settings"])
    if before != settings:
        changed = [key for key in settings if before.get(key) != settings[key]]
        raise CranpmError(
            expected="the settings with which the run began",
            found=f"others under {', '.join(changed) or 'unknown keys'}",
            remedy="Resume with the same settings, or begin a new run (cranpm finetune starts from its weights).",
        )
    tensors, moments, means = (current_names(type(network), load(files[name])) for name in (NETWORK, OPTIMISER, MEAN))
    network.load_state_dict(tensors)
    for name, parameter in network.named_parameters():
        keys = [key for key in moments if key.rpartition("/")[0] == name]
        if keys:
            optimiser.state[parameter] = {key.rpartition("/")[2]: _laid_out(moments[key], parameter) for key in keys}
    own = network.state_dict()
    mean.mean = {name: _laid_out(tensor, own[name]) for name, tensor in means.items()}
    return Progress(**content["place"]), load(files[RANDOM])
