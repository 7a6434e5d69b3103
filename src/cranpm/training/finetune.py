"""The network that a run begins with: new, or weights to be tuned, wholly or in part."""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from cranpm.core.errors import CranpmError
from cranpm.network import FittedNetwork, ForecastNetwork, build
from cranpm.network.attention import SelfAttention
from cranpm.network.bridge import CrossAttention
from cranpm.training.recipe import FinetuneSettings, TrainSettings
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
    if settings.finetune is None:
        return None
    weights = load_weights(settings.finetune.weights)
    if tunable(weights).settings != settings.network:
        raise CranpmError(
            expected="[network] as the weights have it",
            found="other settings",
            remedy="Leave [network] to `cranpm finetune`, which takes it from the weights.",
        )
    return weights


def tunable(weights: Weights) -> ForecastNetwork:
    """The network of weights that may be tuned; those of a network that is not trained here are refused."""
    if not weights.network.settings.trainable:
        raise CranpmError(
            expected="weights of a network that is trained here",
            found=f"those of {weights.card.network.kind}",
            remedy="Name weights that `cranpm train` wrote; this network can only forecast here.",
        )
    if isinstance(weights.network, FittedNetwork):
        raise CranpmError(
            expected="weights of a network that is trained step by step",
            found=f"those of {weights.card.network.kind}, which is fitted at once",
            remedy="Fit it on the new days: `cranpm train` with --model, or kind under [network].",
        )
    return weights.network


def tune(network: ForecastNetwork, settings: FinetuneSettings) -> None:
    """Leave only the wanted part open to change: everything, the head, or low-rank changes of the attentions."""
    if settings.part == "all":
        return
    found = network.head() if settings.part == "head" else projections(network)
    if not found:
        wanted = "a head" if settings.part == "head" else "attentions"
        raise CranpmError(
            expected=f"a network with {wanted}, for --part {settings.part}",
            found=f"{network.settings.kind}, which has none",
            remedy="Tune all of it: --part all.",
        )
    network.requires_grad_(False)
    for part in found:
        if isinstance(part, nn.Linear) and settings.part == "lora":
            parametrize.register_parametrization(part, "weight", LowRank(part.weight, settings.rank))
        else:
            part.requires_grad_(True)


def projections(network: nn.Module) -> list[nn.Module]:
    """The linear maps of every attention: queries, keys, values and what joins the heads."""
    attentions = (module for module in network.modules() if isinstance(module, SelfAttention | CrossAttention))
    return [part for attention in attentions for part in attention.children() if isinstance(part, nn.Linear)]


def merged(network: ForecastNetwork) -> ForecastNetwork:
    """A copy in which low-rank changes are part of the matrices: an ordinary network."""
    with torch.random.fork_rng(devices=[]):
        plain = build(network.settings, network.scales)
    modules = dict(network.named_modules())
    owners = {name: name.rpartition(".") for name in plain.state_dict()}
    plain.load_state_dict({name: getattr(modules[owner], own) for name, (owner, _, own) in owners.items()})
    return plain
