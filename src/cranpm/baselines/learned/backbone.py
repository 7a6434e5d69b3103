"""What the backbones of the learned baselines share: sizes, the interface, and from tokens back to cells."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated

from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional

Positive = Annotated[int, Field(gt=0, le=4096)]


class BackboneSettings(BaseModel):
    """Sizes of a backbone; each backbone says what they mean in detail."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    patch: Positive
    """Side of a token in coarse cells."""
    width: Positive
    depth: Positive
    heads: Positive = 4
    window: Positive = 7
    """Side of the groups of the wind scan, in tokens."""


class Backbone(nn.Module, ABC):
    """From the frames of two days to fields for every lead, as many as `outputs`; 0 before training."""

    def __init__(
        self, settings: BackboneSettings, channels: int, shape: tuple[int, int], leads: Sequence[int], outputs: int
    ):
        super().__init__()
        self.settings, self.leads, self.outputs = settings, tuple(leads), outputs

    @abstractmethod
    def forward(
        self,
        frames: Float[Tensor, "b t ch h w"],
        wind: Float[Tensor, "b 2 h w"],
        elevation_m: Float[Tensor, "b h w"],
    ) -> Float[Tensor, "b leads out h w"]: ...


class ToCells(nn.Module):
    """Tokens (b ch rows cols) back to cells: one number for each cell of a patch and each output; 0 at first."""

    def __init__(self, width: int, patch: int, outputs: int):
        super().__init__()
        self.patch = patch
        self.project = nn.Conv2d(width, outputs * patch**2, 1)
        nn.init.zeros_(self.project.weight)
        nn.init.zeros_(self.project.bias)  # type: ignore[arg-type]

    def forward(self, tokens: Float[Tensor, "b ch rows cols"], shape: tuple[int, int]) -> Float[Tensor, "b out h w"]:
        return functional.pixel_shuffle(self.project(tokens), self.patch)[..., : shape[0], : shape[1]]
