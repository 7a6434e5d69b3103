"""A training run: from settings and an archive to weights, able to go on after any interruption with the same bits."""

import json
import math
import os
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor
from torch.utils.data import DataLoader

from cranpm.archive.store import Archive
from cranpm.core.allocator import keep_freed_memory
from cranpm.core.errors import CranpmError
from cranpm.network import ForecastNetwork, build
from cranpm.network.encoder import Encoder
from cranpm.training.batches import Batches, BatchOrder, TileBatch
from cranpm.training.checkpoints import Progress, load_state, save_state, states
from cranpm.training.finetune import starting_weights, tune
from cranpm.training.inputs import Inputs
from cranpm.training.loss import loss_terms, weighted
from cranpm.training.optimiser import WeightMean, make_optimiser, rate
from cranpm.training.recipe import TrainSettings
from cranpm.training.records import EPOCHS, TrainingLog, rows
from cranpm.training.retention import check_disk, keep_weights, make_card, write_test
from cranpm.training.tile_scores import TileScores, fixed_tiles, score
from cranpm.training.training_data import gather
from cranpm.weights import load_weights

PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}
Report = Callable[[dict[str, float]], None]


def start_fabric(settings: TrainSettings) -> Fabric:
    """One process, or those that torchrun or SLURM started."""
    world, local = (int(os.environ.get(name, "1")) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    fabric = Fabric(
        accelerator="auto",
        devices=local,
        num_nodes=max(1, world // local),
        strategy="ddp" if world > 1 else "auto",
        precision=PRECISION[settings.machine.precision],  # type: ignore[arg-type]
    )
    fabric.launch()
    return fabric


class TrainingRun:
    """The state of a training run and the steps that change it."""

    def __init__(self, settings: TrainSettings, archive: Archive, folder: Path, resume: bool):
        self.settings, self.archive, self.folder = settings, archive, folder
        if not resume and states(folder / "state"):
            raise CranpmError(
                expected=f"a new folder {folder}", found="a run", remedy="Add --resume, or name another folder."
            )
        keep_freed_memory()
        self.fabric = start_fabric(settings)
        weights = starting_weights(settings)
        self.data = gather(archive, settings, weights.card if weights else None)
        names = [channel.name for channel in self.data.channels]
        self.model = settings.model.for_channels(self.data.channels)
        torch.manual_seed(settings.samples.seed)
        self.network = build(self.model, self.data.scales)
        if weights and settings.finetune:
            self.network.load_state_dict(weights.network.state_dict())
            tune(self.network, settings.finetune)
        if self.fabric.is_global_zero:
            check_disk(folder, self.network, settings)
        for part in self.network.modules():
            if isinstance(part, Encoder):
                part.recompute = settings.machine.recompute
        optimiser = make_optimiser(self.network, settings.optimiser)
        self.mean = WeightMean(self.network, settings.optimiser.average)
        self.progress = Progress()
        self.frozen = settings.to_json() | {
            "scales": self.data.scales.model_dump(mode="json"),
            "begun_from": weights.sha256 if weights else None,
            "processes": self.fabric.world_size,
        }
        torch.manual_seed(settings.samples.seed + 1 + self.fabric.global_rank)
        if resume:
            self.progress, random = load_state(folder / "state", self.network, optimiser, self.mean, self.frozen)
            torch.set_rng_state(random[f"rank{self.fabric.global_rank}"])
        module: Any = torch.compile(self.network) if settings.machine.compile else self.network
        self.module, self.optimiser = self.fabric.setup(module, optimiser)
        read = {"cache_gb": settings.samples.cache_gb, "prognosis": settings.samples.prognosis}
        self.inputs = Inputs.of(self.model, archive, channels=names, **read)
        self.batches = Batches(
            archive,
            self.data.train,
            self.model,
            settings.samples,
            self.fabric.global_rank,
            self.fabric.world_size,
            names,
        )
        self.steps_an_epoch = len(self.batches) / settings.optimiser.accumulate
        self.log: TrainingLog | None = None
        if self.fabric.is_global_zero:
            self.log = TrainingLog(folder, self.progress.step, self.progress.batch // len(self.batches))
            (folder / "settings.json").write_text(json.dumps(settings.to_json(), indent=1) + "\n")

    @property
    def steps(self) -> int:
        """Steps of the optimiser in all."""
        return self.settings.optimiser.epochs * math.ceil(self.steps_an_epoch)

    @property
    def done(self) -> int:
        """Steps of the optimiser so far."""
        return self.progress.step

    @property
    def epoch(self) -> int:
        """The present one, counted from 1."""
        return self.progress.batch // len(self.batches) + 1

    @property
    def first_process(self) -> bool:
        """Whether this process is the one that prints and writes."""
        return self.fabric.is_global_zero

    def loader(self) -> DataLoader[TileBatch]:
        """Batches from the present one to the end."""
        workers = self.settings.machine.workers
        return DataLoader(
            self.batches,
            batch_size=None,
            sampler=BatchOrder(len(self.batches), self.settings.optimiser.epochs, self.progress.batch),
            num_workers=workers,
            multiprocessing_context="forkserver" if workers else None,
            prefetch_factor=4 if workers else None,
            generator=torch.Generator(),  # its own, or starting a loader would move the network's random numbers
        )

    def losses(self, batch: TileBatch) -> dict[str, Tensor]:
        """The loss of a batch over all processes, and its terms; a loss that is not a number stops the run."""
        batch = batch.to(self.fabric.device)
        prediction = self.module(*batch.inputs)
        terms = loss_terms(prediction, batch.target, batch.stations, self.data.scales.pm25_spread)
        counts = torch.stack([term.number for term in terms.values()])
        if self.fabric.world_size > 1:
            counts = self.fabric.all_reduce(counts, reduce_op="sum")  # type: ignore[assignment]
        means = weighted(terms, self.settings.loss, dict(zip(terms, counts, strict=True)))
        if not means["loss"].isfinite():
            raise CranpmError(
                expected="a loss that is a number",
                found=f"{means['loss'].item()} at step {self.progress.step}, in {'; '.join(batch.names)}",
                remedy="Look at these tiles; lower optimiser.learning_rate if they are sound.",
            )
        return {name: value * self.fabric.world_size for name, value in means.items()}

    def step(self, batches: list[TileBatch]) -> dict[str, float]:
        """One step of the optimiser over one or more batches; the mean of their losses."""
        settings = self.settings.optimiser
        now = rate(self.progress.step, self.steps_an_epoch, settings)
        for group in self.optimiser.param_groups:
            group["lr"] = now
        sums: dict[str, float] = {}
        for index, batch in enumerate(batches):
            with self.fabric.no_backward_sync(self.module, enabled=index < len(batches) - 1):
                means = self.losses(batch)
                self.fabric.backward(means["loss"] / len(batches))
            for name, value in means.items():
                sums[name] = sums.get(name, 0.0) + float(value.detach()) / len(batches)
        norm = self.fabric.clip_gradients(self.module, self.optimiser, max_norm=settings.clip)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.mean.update(self.progress.step)
        self.progress.step += 1
        self.progress.batch += len(batches)
        if self.fabric.world_size > 1:
            both = self.fabric.all_reduce(torch.tensor(list(sums.values())), reduce_op="mean")
            sums = dict(zip(sums, both.tolist(), strict=True))  # type: ignore[union-attr]
        return {"step": self.progress.step - 1, **sums, "rate": now, "gradient": float(norm)}  # type: ignore[arg-type]

    def train(self, on_step: Report, on_epoch: Report) -> TileScores:
        """Go on to the last epoch, or until nothing improves; returns the scores of the best weights on test days."""
        accumulate = self.settings.optimiser.accumulate
        waiting: list[TileBatch] = []
        started, seen = time.perf_counter(), 0
        self.module.train()
        if not self._finished():
            for batch in self.loader():
                waiting.append(batch)
                at_end = (self.progress.batch + len(waiting)) % len(self.batches) == 0
                if len(waiting) < accumulate and not at_end:
                    continue
                seen += sum(len(one.lead) for one in waiting) * self.fabric.world_size
                row = self.step(waiting)
                waiting = []
                row["samples_a_second"] = seen / (time.perf_counter() - started)
                if self.log:
                    self.log.step(row)
                on_step(row)
                if at_end:
                    self._end_epoch(on_epoch)
                if at_end or self.progress.step % self.settings.machine.save_steps == 0:
                    self.save()
                if at_end and self._finished():
                    break
        return self._test()

    def _finished(self) -> bool:
        epoch = self.progress.batch // len(self.batches)
        patience = self.settings.scores.patience
        tired = patience is not None and self.progress.best_epoch >= 0 and epoch - self.progress.best_epoch > patience
        return epoch >= self.settings.optimiser.epochs or tired

    def save(self) -> None:
        """The state of this step, written by the first process."""
        random = {f"rank{self.fabric.global_rank}": torch.get_rng_state()}
        if self.fabric.world_size > 1:
            every = self.fabric.all_gather(torch.get_rng_state())
            random = {f"rank{rank}": every[rank].clone() for rank in range(self.fabric.world_size)}
        if self.fabric.is_global_zero:
            raw = self.optimiser.optimizer
            save_state(self.folder / "state", self.network, raw, self.mean, self.progress, random, self.frozen)
        self.fabric.barrier()

    def _scores(self, days: list[date], network: ForecastNetwork) -> TileScores:
        """Scores on a split's fixed tiles, shared out among the processes by day."""
        chosen = self.settings.scores
        size, leads = self.model.tile_shape[0], self.model.leads
        tiles = fixed_tiles(self.archive.land(), size, days, chosen.days, chosen.tiles)
        process = self.fabric.global_rank, self.fabric.world_size
        with self.fabric.autocast():
            scores = score(network, self.inputs, tiles, leads, self.data.damped, self.fabric.device, *process)
        if self.fabric.world_size > 1:
            total = self.fabric.all_reduce(torch.from_numpy(scores.sums), reduce_op="sum")
            scores.sums[...] = total.cpu().numpy()  # type: ignore[union-attr]
        return scores

    def _end_epoch(self, on_epoch: Report) -> None:
        kept = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.network.load_state_dict(self.mean.tensors())
        self.network.eval()
        scores = self._scores(self.data.validation, self.network)
        epoch = self.progress.batch // len(self.batches) - 1
        if self.progress.best is None or scores.mean_rmse() < self.progress.best:
            self.progress.best, self.progress.best_epoch = scores.mean_rmse(), epoch
        if self.fabric.is_global_zero and self.log:
            row = {"epoch": epoch, "step": self.progress.step, "mean_rmse": scores.mean_rmse(), **scores.row()}
            self.log.epoch(row)
            ranking = sorted(rows(self.folder / EPOCHS), key=lambda row: row["mean_rmse"])
            best = [int(row["epoch"]) for row in ranking[: self.settings.scores.keep]]
            card = make_card(self.network, self.archive, self.settings, self.data, scores, self.frozen["begun_from"])
            keep_weights(self.folder, self.network, card, epoch, best)
            on_epoch(row)
        self.network.load_state_dict(kept)
        self.network.train()

    def _test(self) -> TileScores:
        self.fabric.barrier()
        best = load_weights(self.folder / "best").network.to(self.fabric.device)
        scores = self._scores(self.data.test, best)
        if self.fabric.is_global_zero:
            write_test(self.folder, self.settings, scores)
        return scores
