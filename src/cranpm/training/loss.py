"""What training minimises (paper, Sec. 3.7): land pixels, frequencies and stations, in normalised units.

Every term is a sum and a count, so that tiles on several processes add up to what one process would have.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, NonNegativeFloat
from torch import Tensor

from cranpm.core.errors import CranpmError


class LossSettings(BaseModel):
    """Weights of the terms beside the pixels, whose weight is 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    frequency: NonNegativeFloat = 0.1
    station: NonNegativeFloat = 0.1


class Term(NamedTuple):
    """A sum of squared errors and how many they are."""

    total: Float[Tensor, ""]
    number: Float[Tensor, ""]


def loss_terms(
    prediction: Float[Tensor, "tiles h w"],
    target: Float[Tensor, "tiles h w"],
    stations: Float[Tensor, "tiles s 3"],
    spread_ugm3: float,
) -> dict[str, Term]:
    """The three terms of PM2.5 fields in ug m-3; `stations` are (row, column, PM2.5), NaN where there is none.

    A pixel counts where it has a target: a prediction that is not a number there makes the loss not a number.
    """
    valid = target.isfinite()
    error = torch.where(valid, prediction - target, 0.0).float() / spread_ugm3
    return {
        "pixel": Term(error.square().sum(), valid.sum().float()),
        "frequency": focal_frequency(error),
        "station": station_error(prediction.float(), stations, spread_ugm3),
    }


def focal_frequency(error: Float[Tensor, "tiles h w"]) -> Term:
    """Focal frequency loss (Jiang et al. 2021): |F|^2 of the error, weighted by |F| over its largest value in the tile.

    The transform is orthonormal, in fp32, and linear: a pixel without a target has no error and adds no frequency.
    No gradient passes through the weights.
    """
    with torch.autocast(error.device.type, enabled=False):
        power = torch.view_as_real(torch.fft.fft2(error.float(), norm="ortho")).square().sum(dim=3)
        size = power.detach().sqrt()
        largest = size.amax(dim=(1, 2), keepdim=True)
        weight = torch.where(largest > 0, size / largest, 0.0)
        return Term((weight * power).mean(dim=(1, 2)).sum(), power.new_tensor(float(len(power))))


def station_error(
    prediction: Float[Tensor, "tiles h w"], stations: Float[Tensor, "tiles s 3"], spread_ugm3: float
) -> Term:
    """Squared errors at stations; a station without a value, or with sea on all four sides, does not count."""
    sampled = bilinear(prediction, stations[..., 0], stations[..., 1])
    valid = sampled.isfinite() & stations[..., 2].isfinite()
    error = torch.where(valid, sampled - stations[..., 2], 0.0) / spread_ugm3
    return Term(error.square().sum(), valid.sum().float())


def bilinear(
    field: Float[Tensor, "tiles h w"], row: Float[Tensor, "tiles s"], col: Float[Tensor, "tiles s"]
) -> Float[Tensor, "tiles s"]:
    """Values between pixel centres; missing neighbours leave their weight to the others, NaN where all are missing."""
    height, width = field.shape[1:]
    row, col = (torch.nan_to_num(place).clamp(0, size - 1) for place, size in ((row, height), (col, width)))
    north, west = (place.floor().clamp(max=max(size - 2, 0)) for place, size in ((row, height), (col, width)))
    flat, total, weight = field.flatten(1), torch.zeros_like(row), torch.zeros_like(row)
    for down in (0, 1):
        for right in (0, 1):
            place = (north + down).clamp(max=height - 1) * width + (west + right).clamp(max=width - 1)
            value = flat.gather(1, place.long())
            share = (1 - (row - north - down).abs()) * (1 - (col - west - right).abs()) * value.isfinite()
            total = total + share * torch.where(value.isfinite(), value, 0.0)
            weight = weight + share
    return torch.where(weight > 1e-6, total / weight.clamp(min=1e-6), torch.nan)


def weighted(terms: Mapping[str, Term], settings: LossSettings, counts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The mean of each term over `counts`, and their weighted sum as `loss`; without stations, no station term."""
    if counts["pixel"] == 0:
        raise CranpmError(
            expected="at least one land pixel with a target in a batch",
            found="none",
            remedy="Draw tiles over land, on days that have PM2.5.",
        )
    means = {name: term.total / counts[name].clamp(min=1) for name, term in terms.items()}
    loss = means["pixel"] + settings.frequency * means["frequency"] + settings.station * means["station"]
    return {"loss": loss, **means}
