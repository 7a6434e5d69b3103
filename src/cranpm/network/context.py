"""What is shared by every tile and lead of a day, and the refusals that all networks have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cranpm.core.errors import CranpmError
from cranpm.network.scaling import Scales

Memory = tuple[Tensor, ...]
"""What the bridge keeps of a day's tokens: in cross-attention, the keys and values of its layers."""


@dataclass(frozen=True)
class DayContext:
    """What the coarse branch knows of one or more days: serves every tile and every lead."""

    tokens: Float[Tensor, "contexts n width"]
    memory: Memory
    wind: Float[Tensor, "days 2 h w"]
    """m/s on the coarse cells."""
    corner: Float[Tensor, "days 2"]
    """Latitude and longitude of the coarse grid's north-west edge."""
    grid: tuple[int, int]
    """Rows and columns of the tokens."""

    @property
    def days(self) -> int:
        return self.corner.shape[0]


class TwoSteps(nn.Module, ABC):
    """A network that encodes a day once and then forecasts its tiles; training takes both steps at once."""

    coarse_mean: Tensor
    coarse_spread: Tensor

    def __init__(self, channels: int, scales: Scales):
        super().__init__()
        scales.check(channels)
        self.scales = scales
        for name, values in (("mean", scales.mean), ("spread", scales.spread)):
            self.register_buffer(f"coarse_{name}", torch.tensor(values)[:, None, None], persistent=False)

    @abstractmethod
    def encode_day(self, coarse: Tensor, wind: Tensor, elevation: Tensor, corner: Tensor) -> Any:
        """What serves every tile and lead of the days."""

    @abstractmethod
    def forecast_tile(self, context: Any, fine: Tensor, position: Tensor, lead: Tensor) -> Tensor:
        """PM2.5 (ug m-3) of tiles, ordered by day, equally many a day."""

    def forward(
        self,
        coarse: Float[Tensor, "days ch ch_h ch_w"],
        wind: Float[Tensor, "days 2 ch_h ch_w"],
        elevation: Float[Tensor, "days ch_h ch_w"],
        corner: Float[Tensor, "days 2"],
        fine: Float[Tensor, "tiles 5 h w"],
        position: Float[Tensor, "tiles 2"],
        lead: Int[Tensor, " tiles"],
    ) -> Float[Tensor, "tiles h w"]:
        """Both steps at once, for training."""
        return self.forecast_tile(self.encode_day(coarse, wind, elevation, corner), fine, position, lead)


def check_channels(wanted: int, found: int) -> None:
    """Refuse a day with another number of channels than the network was made for."""
    if wanted != found:
        raise CranpmError(
            expected=f"{wanted} coarse channels, today's and then yesterday's",
            found=str(found),
            remedy="Give the channels that the weights were made for, of both days.",
        )


def check_finite(**fields: Tensor) -> None:
    """Refuse a day with missing values: nothing here may take them for calm air or level ground."""
    for name, field in fields.items():
        if not (field.is_meta or torch.compiler.is_compiling() or field.isfinite().all()):
            raise CranpmError(
                expected=f"finite numbers in {name}",
                found=f"{int((~field.isfinite()).sum())} missing or infinite",
                remedy="Complete the day, or fill the gaps where the product can be labelled for it.",
            )


def check_tiles(days: int, tiles: int) -> None:
    """Refuse tiles that cannot be shared out evenly among the days."""
    if tiles % days:
        raise CranpmError(
            expected=f"equally many tiles for each of {days} days",
            found=f"{tiles} tiles",
            remedy="Order the tiles by day, as many for one day as for another.",
        )


def lead_index(lead: Int[Tensor, " tiles"], known: Sequence[int]) -> Int[Tensor, " tiles"]:
    """Place of each lead among those the network knows; others are refused."""
    hit = lead[:, None] == torch.tensor(known, device=lead.device)
    found = hit.any(dim=1)
    if not (lead.is_meta or torch.compiler.is_compiling() or found.all()):
        raise CranpmError(
            expected=f"leads among {tuple(known)}",
            found=str(lead.tolist()),
            remedy="Ask for leads that the network was made for.",
        )
    return torch.where(found, hit.int().argmax(dim=1), len(known))  # beyond the table: an error even when compiled
