"""Training of whatever network the settings name: step by step, or fitted at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.network import FittedSettings, ForecastSettings
from cranpm.training.checkpoints import states
from cranpm.training.fitting import FittingRun
from cranpm.training.loop import TrainingRun
from cranpm.training.recipe import TrainSettings
from cranpm.training.tile_scores import TileScores
from cranpm.training.training_data import TrainingData

Report = Callable[[dict[str, float]], None]


class Run(Protocol):
    """A run as commands see it; its folder gets settings, weights with their cards, and scores on test days."""

    data: TrainingData

    @property
    def model(self) -> ForecastSettings:
        """The settings of the network, for the channels of the archive."""
        ...

    @property
    def steps(self) -> int:
        """Steps in all, whatever a step is."""
        ...

    @property
    def done(self) -> int:
        """Steps so far."""
        ...

    @property
    def epoch(self) -> int:
        """The present one, counted from 1."""
        ...

    @property
    def first_process(self) -> bool:
        """Whether this process is the one that prints and writes."""
        ...

    def train(self, on_step: Report, on_epoch: Report) -> TileScores:
        """Go on to the end; the scores of the best weights on test days."""
        ...


def begin_run(settings: TrainSettings, archive: Archive, folder: Path, resume: bool = False) -> Run:
    """A new run, or one that goes on; whatever is wrong with it is refused here.

    A run that was stopped before its first state begins anew when it is resumed.
    """
    fitted = isinstance(settings.model, FittedSettings)
    there = [name for name in ("state", "weights", "test.json") if (folder / name).exists()]
    if (there and not resume) or (fitted and "state" in there):
        other = "a run" if not resume else "a run of a network that is trained in steps"
        raise CranpmError(
            expected=f"a new folder {folder}",
            found=other,
            remedy="Add --resume to its own command, or name another folder.",
        )
    if fitted:
        return FittingRun(settings, archive, folder, resume)
    return TrainingRun(settings, archive, folder, resume and not (there and not states(folder / "state")))


def train(
    settings: TrainSettings,
    archive: Archive,
    folder: Path,
    resume: bool = False,
    on_step: Report = lambda _: None,
    on_epoch: Report = lambda _: None,
) -> TileScores:
    """Train a network and score its best weights on test days."""
    return begin_run(settings, archive, folder, resume).train(on_step, on_epoch)
