"""A run that fits a network at once on pixels of training days; it leaves what a training run leaves."""

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import torch

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Window
from cranpm.core.settings import validate
from cranpm.network import FittedNetwork, FittedSettings, ForecastNetwork, PixelSample, TileInputs, build
from cranpm.training.batches import draw_hidden, land_corners
from cranpm.training.inputs import Inputs
from cranpm.training.recipe import TrainSettings
from cranpm.training.records import EPOCHS, append_row
from cranpm.training.retention import TEST, check_disk, keep_weights, make_card, write_test
from cranpm.training.tile_scores import TileScores, fixed_tiles, score
from cranpm.training.training_data import gather
from cranpm.weights import load_weights

WINDOWS = 16
"""Tiles over land, of each start day, in which pixels are drawn: so that domains of any size are read in parts."""
SETTINGS = "settings.json"


class FittingRun:
    """From settings and an archive to weights, without steps: a run that was stopped begins again."""

    first_process = True
    epoch = 1

    def __init__(self, settings: TrainSettings, archive: Archive, folder: Path, resume: bool):
        self.settings, self.archive, self.folder = settings, archive, folder
        self._check_folder(resume)
        _check_alone(settings.model.kind)
        self.data = gather(archive, settings)
        model = settings.model.for_channels(self.data.channels)
        assert isinstance(model, FittedSettings)
        self.model = model
        network = build(model, self.data.scales)
        assert isinstance(network, FittedNetwork)
        self.network = network
        check_disk(folder, network, settings)
        read = {"cache_gb": settings.samples.cache_gb, "prognosis": settings.samples.prognosis}
        names = [channel.name for channel in self.data.channels]
        self.inputs = Inputs.of(model, archive, channels=names, **read)
        random = np.random.default_rng([settings.samples.seed, 3])
        count = min(len(self.data.train), -(-model.samples // model.samples_a_day))
        self.days = [self.data.train[index] for index in sorted(random.permutation(len(self.data.train))[:count])]
        """Training start days of which pixels are drawn."""
        self.done = 0
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SETTINGS).write_text(json.dumps(settings.to_json(), indent=1) + "\n")

    @property
    def steps(self) -> int:
        """Start days to draw pixels of."""
        return len(self.days)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to fit."""
        return (self.folder / TEST).is_file()

    def _check_folder(self, resume: bool) -> None:
        """Refuse a finished run that is not to be resumed, or one of other settings."""
        if not self.finished:
            return
        if not resume:
            raise CranpmError(
                expected=f"a new folder {self.folder}", found="a run", remedy="Add --resume, or name another folder."
            )
        before = validate(TrainSettings, json.loads((self.folder / SETTINGS).read_text())).to_json()
        if changed := [key for key, value in self.settings.to_json().items() if before.get(key) != value]:
            raise CranpmError(
                expected="the settings with which the run began",
                found=f"others under {', '.join(changed)}",
                remedy="Resume with the same settings, or name another folder.",
            )

    def train(
        self,
        on_step: Callable[[dict[str, float]], None] = lambda _: None,
        on_epoch: Callable[[dict[str, float]], None] = lambda _: None,
    ) -> TileScores:
        """Fit and keep the weights, unless that is done; returns their scores on test days."""
        if not self.finished:
            self.network.fit(self._samples(on_step), self.settings.samples.seed)
            self.network.eval()
            self._keep(on_epoch)
        best = load_weights(self.folder / "best").network
        scores = self._scores(self.data.test, best)
        write_test(self.folder, self.settings, scores)
        return scores

    def _samples(self, on_step: Callable[[dict[str, float]], None]) -> Iterator[PixelSample]:
        """Pixels of every chosen day and lead; which ones depends on seed and day alone."""
        corners, share = land_corners(self.archive.land(), self.model.tile_shape[0])
        started, seed = time.perf_counter(), self.settings.samples.seed
        for number, day in enumerate(self.days, start=1):
            random = np.random.default_rng([seed, 4, day.toordinal()])
            picks = corners[random.choice(len(corners), WINDOWS, p=share / share.sum())]
            yield from self._of_day(day, [self._window(corner) for corner in picks], random)
            self.done = number
            on_step({"step": number - 1, "samples_a_second": number * WINDOWS / (time.perf_counter() - started)})

    def _window(self, corner: Array) -> Window:
        row, col = (int(edge) for edge in corner)
        size = self.model.tile_shape[0]
        return slice(row, row + size), slice(col, col + size)

    def _of_day(self, day: date, windows: list[Window], random: np.random.Generator) -> Iterator[PixelSample]:
        """The same pixels for every lead; of each lead, other groups of the days ahead are hidden."""
        each = -(-self.model.samples_a_day // WINDOWS)
        tiles = [self.inputs.tile(day, window) for window in windows]
        chosen = []
        for tile in tiles:
            there = np.flatnonzero(np.isfinite(tile.fine[0, 0].numpy()))
            chosen.append(random.choice(there, min(each, len(there)), replace=False))
        fine = [tile.fine.flatten(2)[:, :, pixels] for tile, pixels in zip(tiles, chosen, strict=True)]
        pixels = TileInputs(torch.cat(fine, dim=2)[:, :, None], tiles[0].position)
        groups, share = self.model.days_ahead.groups, self.settings.samples.hidden_groups
        for lead in self.model.leads:
            later = [self.inputs.pm25(day + timedelta(days=lead), window) for window in windows]
            target = np.concatenate([field.ravel()[own] for field, own in zip(later, chosen, strict=True)])
            inputs = self.inputs.day(day, lead, draw_hidden(groups, share, random))
            yield PixelSample(inputs, pixels, lead, torch.from_numpy(target))

    def _keep(self, on_epoch: Callable[[dict[str, float]], None]) -> None:
        scores = self._scores(self.data.validation, self.network)
        row = {"epoch": 0.0, "step": float(self.steps), "mean_rmse": scores.mean_rmse(), **scores.row()}
        (self.folder / EPOCHS).unlink(missing_ok=True)  # of a run that was stopped right here
        append_row(self.folder / EPOCHS, row)
        card = make_card(self.network, self.archive, self.settings, self.data, scores, None)
        keep_weights(self.folder, self.network, card, 0, [0])
        on_epoch(row)

    def _scores(self, days: list[date], network: ForecastNetwork) -> TileScores:
        """Scores on a split's fixed tiles, those on which trained networks are scored."""
        chosen, leads = self.settings.scores, self.model.leads
        tiles = fixed_tiles(self.archive.land(), self.model.tile_shape[0], days, chosen.days, chosen.tiles)
        return score(network, self.inputs, tiles, leads, self.data.damped)


def _check_alone(kind: str) -> None:
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes > 1:
        raise CranpmError(
            expected=f"one process, for {kind}: it is fitted at once",
            found=f"{processes} processes",
            remedy="Start it without torchrun; it uses all processors by itself.",
        )
