"""AdamW with the right groups, its schedule, and the running mean of weights."""

import math

import torch
from torch import Tensor, nn

from cranpm.training.recipe import OptimiserSettings

DECAYED = ("weight", "up", "down")
"""Names of matrices and kernels in their modules; all other parameters are positions, vectors or strengths."""


def make_optimiser(network: nn.Module, settings: OptimiserSettings) -> torch.optim.AdamW:
    """AdamW that decays matrices and kernels, never biases, norms, embeddings, positions, alpha and beta."""
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for module in network.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad:
                matrix = parameter.ndim >= 2 and name in DECAYED and not isinstance(module, nn.Embedding)
                (decayed if matrix else plain).append(parameter)
    groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, settings.beta2))


def rate(step: int, steps_an_epoch: float, settings: OptimiserSettings) -> float:
    """Learning rate of a step: linear warm-up, then a cosine down to the least."""
    warmup, total = settings.warmup_epochs * steps_an_epoch, settings.epochs * steps_an_epoch
    if step < warmup:
        return settings.learning_rate * (step + 1) / max(warmup, 1)
    share = min(1.0, (step - warmup) / max(total - warmup, 1))
    return settings.least_rate + 0.5 * (settings.learning_rate - settings.least_rate) * (1 + math.cos(math.pi * share))


class WeightMean:
    """A running mean of the weights; with decay 0 the weights themselves."""

    def __init__(self, network: nn.Module, decay: float):
        self.network, self.decay = network, decay
        self.mean = {name: value.detach().clone() for name, value in network.state_dict().items()} if decay else {}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step; young means forget faster."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, value in self.network.state_dict().items():
            if name in self.mean:
                self.mean[name].lerp_(value, 1 - decay)

    def tensors(self) -> dict[str, Tensor]:
        """What is scored and kept."""
        return dict(self.mean or self.network.state_dict())
