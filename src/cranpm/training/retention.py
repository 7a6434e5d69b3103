"""The weights that a run keeps: the best epochs and the last, each a folder with its card, and enough disk for them."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from torch import nn

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.files import point_to
from cranpm.network import FittedSettings, ForecastNetwork
from cranpm.training.checkpoints import KEPT
from cranpm.training.days_ahead import models_of
from cranpm.training.finetune import merged
from cranpm.training.recipe import TrainSettings
from cranpm.training.tile_scores import TileScores
from cranpm.training.training_data import TrainingData
from cranpm.weights import Card, card_for, load_weights, save_weights

BYTES = 4
MOMENTS = 2
LOGS_GB = 0.1
TEST = "test.json"
"""Scores on test days; it is there when a run has ended."""


def disk_need_gb(network: nn.Module, settings: TrainSettings) -> float:
    """GB that a run may take: its states and the one being written, the best weights, the last, the next, the logs."""
    size = sum(tensor.numel() for tensor in network.state_dict().values())
    learned = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    state = size * (2 if settings.optimiser.average else 1) + MOMENTS * learned
    return BYTES * (state * (KEPT + 1) + size * (settings.scores.keep + 2)) / 1e9 + LOGS_GB


def free_disk_gb(folder: Path) -> float:
    """GB free where `folder` is or will be."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free / 1e9


def check_disk(folder: Path, network: nn.Module, settings: TrainSettings) -> None:
    """Refuse a disk on which the run would end half-way; what a resumed run has written already counts as room."""
    written = sum(path.stat().st_size for path in folder.rglob("*.safetensors") if path.is_file()) / 1e9
    need, free = disk_need_gb(network, settings), free_disk_gb(folder) + written
    if free < need:
        raise CranpmError(
            expected=f"{need:.2f} GB free for the run in {folder}",
            found=f"{free:.2f} GB",
            remedy="Make room, name a folder on another disk, or lower scores.keep.",
        )


def keep_weights(folder: Path, network: ForecastNetwork, card: Card, epoch: int, best: Sequence[int]) -> None:
    """Write an epoch's weights, let `best` and `last` name theirs, drop what is neither last nor among the best."""
    names = [f"epoch-{number:03d}" for number in best]
    target = folder / "weights" / f"epoch-{epoch:03d}"
    shutil.rmtree(target, ignore_errors=True)  # left by a run that was interrupted right here
    save_weights(target, merged(network), card)
    for name, pointed in (("best", names[0]), ("last", target.name)):
        point_to(folder / name, str(Path("weights") / pointed))
    for old in target.parent.glob("epoch-*"):
        if old.name not in (*names, target.name):
            shutil.rmtree(old, ignore_errors=True)


def write_test(folder: Path, settings: TrainSettings, scores: TileScores) -> None:
    """Write the scores of the best weights on test days."""
    text = json.dumps({"days": str(settings.splits.test), **scores.row()}, indent=1)
    (folder / TEST).write_text(text + "\n")


def make_card(
    network: ForecastNetwork,
    archive: Archive,
    settings: TrainSettings,
    data: TrainingData,
    scores: TileScores,
    begun_from: str | None,
) -> Card:
    """What the weights' model card says of a run; `begun_from` is the checksum of the weights that were tuned."""
    lines = [
        f"T+{lead}: RMSE {scores.rmse(lead):.2f} ug m-3, skill "
        f"{100 * scores.skill(lead, 'persistence'):.1f} % relative to persistence, "
        f"{100 * scores.skill(lead, 'damped'):.1f} % relative to damped persistence, on validation days."
        for lead in scores.leads
    ]
    if settings.finetune:
        lines.append(f"Tuned ({settings.finetune.part}) from the weights {begun_from}.")
    return card_for(
        network,
        data.channels,
        domain=str(archive.domain),
        data=f"archive snapshot {archive.snapshot}, days {settings.splits.train}",
        source=archive.source,
        stations_in_loss=_stations_in_loss(archive, settings),
        changes=dict(data.damped.changes),
        ahead=_models_ahead(network, archive, settings, data) or None,
        about="\n".join(lines),
    )


def _models_ahead(
    network: ForecastNetwork, archive: Archive, settings: TrainSettings, data: TrainingData
) -> dict[str, tuple[str, ...]]:
    """The models whose forecasts were learned from; of tuned weights, also what they had read before."""
    before = load_weights(settings.finetune.weights).card.ahead if settings.finetune else {}
    return models_of(archive, network.settings.days_ahead, data.train, settings.samples.prognosis, before)


def _stations_in_loss(archive: Archive, settings: TrainSettings) -> dict[str, float] | str | None:
    """What the card says; of weights that were tuned, what they had seen before counts too."""
    before = load_weights(settings.finetune.weights).card.stations_in_loss if settings.finetune else None
    if settings.loss.station == 0 or isinstance(settings.model, FittedSettings):
        return before
    share, seed = settings.samples.held_out_stations, settings.samples.seed
    now = {"stations": len(archive.stations), "held_out": share, "seed": seed}
    return now if before in (None, now) else "unknown"
