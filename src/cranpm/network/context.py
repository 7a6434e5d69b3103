"""What is shared by every tile and lead of a day, and the refusals that all networks have in common."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cranpm.core.errors import CranpmError
from cranpm.network.interface import DayInputs, ForecastSettings

DAYS_READ = 2
"""Today and yesterday."""
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
    lead: Int[Tensor, " days"] | None = None
    """Days ahead that it is for; None where it serves every lead."""
    carried: Float[Tensor, "days 1 h w"] | None = None
    """On the coarse cells, the share of the change of PM2.5 (ug m-3) by the wind alone with which a forecast starts."""
    field: Float[Tensor, "days inputs h w"] | None = None
    """All that the coarse branch reads, normalised, where fine tokens read it too."""

    @property
    def days(self) -> int:
        return self.corner.shape[0]


def check_day(day: DayInputs, settings: ForecastSettings) -> None:
    """Refuse a day with another number of channels than the network was made for, or with missing values.

    PM2.5 at 25 km, where the network reads it, may be missing: at sea it is.
    """
    own = DAYS_READ * settings.channels
    wanted, found = own + DAYS_READ * settings.coarse_pm25, day.coarse.shape[1]
    if wanted != found:
        raise CranpmError(
            expected=f"{wanted} coarse channels, today's and then yesterday's",
            found=str(found),
            remedy="Give the channels that the weights were made for, of both days.",
        )
    check_finite(coarse=day.coarse[:, :own], wind=day.wind, elevation=day.elevation)


def check_finite(**fields: Tensor) -> None:
    """Refuse a day with missing values: nothing here may take them for calm air or level ground."""
    for name, field in fields.items():
        if not (field.is_meta or torch.compiler.is_compiling() or field.isfinite().all()):
            raise CranpmError(
                expected=f"finite numbers in {name}",
                found=f"{int((~field.isfinite()).sum())} missing or infinite",
                remedy="Complete the day, or fill the gaps where the product can be labelled for it.",
            )


def check_lead(context: Int[Tensor, " days"] | None, lead: Int[Tensor, " tiles"]) -> None:
    """Refuse tiles of another lead than the days ahead that were read are for."""
    if context is None or lead.is_meta or torch.compiler.is_compiling():
        return
    if not torch.equal(context.repeat_interleave(lead.shape[0] // context.shape[0]), lead):
        raise CranpmError(
            expected=f"tiles of the leads {context.tolist()} that the days were encoded for",
            found=str(lead.tolist()),
            remedy="Encode the day for each lead: the days ahead differ.",
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
