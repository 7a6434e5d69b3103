"""The network that a run begins with: new, or weights to be tuned, wholly or in part."""

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from cranpm.core.errors import CranpmError
from cranpm.network import CranPM
from cranpm.network.attention import SelfAttention
from cranpm.network.bridge import CrossAttention
from cranpm.network.registry import Trainable, build
from cranpm.training.settings import StartSettings, TrainSettings
from cranpm.weights import Weights, load_weights


class LowRank(nn.Module):
    """Adds up x down, of low rank and 0 at first, to a matrix that itself stays as it is (LoRA, Hu et al. 2021)."""

    def __init__(self, matrix: Tensor, rank: int):
        super().__init__()
        out, into = matrix.shape
        self.down = nn.Parameter(torch.randn(rank, into) / math.sqrt(into))
        self.up = nn.Parameter(torch.zeros(out, rank))

    def forward(self, matrix: Tensor) -> Tensor:
        return matrix + self.up @ self.down


def starting_weights(settings: TrainSettings) -> Weights | None:
    """The weights to tune, refused where they do not fit the settings; None for a new network."""
    if settings.start is None:
        return None
    weights = load_weights(settings.start.weights)
    if paper_network(weights).settings != settings.network:
        raise CranpmError(
            expected="[network] as the weights have it",
            found="other settings",
            remedy="Leave [network] to `cranpm finetune`, which takes it from the weights.",
        )
    return weights


def paper_network(weights: Weights) -> CranPM:
    """CRAN-PM of its weights; those of other networks are refused."""
    if not isinstance(weights.network, CranPM):
        raise CranpmError(
            expected="weights of the paper's network",
            found=f"those of {weights.card.network.kind}",
            remedy="Name weights of CRAN-PM that `cranpm train` wrote; other networks can only forecast here.",
        )
    return weights.network


def tune(network: CranPM, start: StartSettings) -> None:
    """Leave only the wanted part open to change: everything, the decoder, or low-rank changes of the attentions."""
    if start.part == "all":
        return
    network.requires_grad_(False)
    if start.part == "head":
        for part in (network.decoder, getattr(network, "smooth", None)):
            if part is not None:
                part.requires_grad_(True)
        return
    for projection in projections(network):
        parametrize.register_parametrization(projection, "weight", LowRank(projection.weight, start.rank))


def projections(network: nn.Module) -> list[nn.Linear]:
    """The linear maps of every attention: queries, keys, values and what joins the heads."""
    attentions = (module for module in network.modules() if isinstance(module, SelfAttention | CrossAttention))
    return [part for attention in attentions for part in attention.children() if isinstance(part, nn.Linear)]


def merged(network: Trainable) -> Trainable:
    """A copy in which low-rank changes are part of the matrices: an ordinary network."""
    with torch.random.fork_rng(devices=[]):
        plain = cast(Trainable, build(network.settings, network.scales))
    modules = dict(network.named_modules())
    places = {name: name.rpartition(".") for name in plain.state_dict()}
    plain.load_state_dict({name: getattr(modules[place], own) for name, (place, _, own) in places.items()})
    return plain
