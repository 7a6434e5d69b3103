"""PM2.5 carried by the wind: one semi-Lagrangian step from the start day to the target day, at 25 km.

u is eastward, v northward, in m/s; rows run north to south.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from cranpm.core.grid import COARSE_STEP, EARTH_RADIUS_KM

STEPS_A_DAY = 4
DEGREES_PER_MS = 24 / STEPS_A_DAY * 3600 / (math.radians(1) * EARTH_RADIUS_KM * 1000)
"""Degrees of latitude that air moves in one step for each m/s."""
LEAST_KNOWN = 0.25
"""Share of known PM2.5 around a point below which it counts as unknown."""


def carried_change(
    pm25: Float[Tensor, "days 1 h w"],
    wind: Float[Tensor, "days 2 h w"],
    corner: Float[Tensor, "days 2"],
    lead: Int[Tensor, " days"],
    longest: int,
) -> Float[Tensor, "days 1 h w"]:
    """PM2.5 (ug m-3) that the wind brings within `lead` days, less what is there now; 0 where either is unknown.

    The way of the air is followed back through the mean wind of the way, in steps of six hours, `longest` days at most.
    """
    days, _, rows, cols = pm25.shape
    narrowing = torch.cos(torch.deg2rad(corner[:, :1] - (torch.arange(rows, device=pm25.device) + 0.5) * COARSE_STEP))
    per_degree = torch.tensor([2 / (cols * COARSE_STEP), 2 / (rows * COARSE_STEP)], device=pm25.device)
    here = _centres(rows, cols, pm25.device).expand(days, -1, -1, -1)
    # To grid_sample's coordinates, x eastward and y southward, both from -1 to 1; air is followed backward.
    east = -wind[:, 0] / narrowing[:, :, None].clamp(min=0.1)
    speed = torch.stack([east, wind[:, 1]], dim=1) * (DEGREES_PER_MS * per_degree[:, None, None])
    place = here
    for step in range(STEPS_A_DAY * longest):
        moving = (step < STEPS_A_DAY * lead).float()[:, None, None, None]
        place = place + moving * _sample(speed, place).permute(0, 2, 3, 1)
    known = pm25.isfinite().float()
    weight = _sample(known, place)
    brought = _sample(torch.nan_to_num(pm25), place) / weight.clamp(min=LEAST_KNOWN)
    return torch.where((weight > LEAST_KNOWN) & (known > 0), brought - torch.nan_to_num(pm25), 0.0)


def _centres(rows: int, cols: int, device: torch.device) -> Float[Tensor, "1 h w 2"]:
    """Centres of cells in the coordinates of grid_sample."""
    y = (torch.arange(rows, device=device) + 0.5) * 2 / rows - 1
    x = (torch.arange(cols, device=device) + 0.5) * 2 / cols - 1
    return torch.stack([x[None].expand(rows, -1), y[:, None].expand(-1, cols)], dim=2)[None]


def _sample(field: Float[Tensor, "days ch h w"], place: Float[Tensor, "days h w 2"]) -> Float[Tensor, "days ch h w"]:
    """Bilinear values; beyond the border the nearest."""
    return functional.grid_sample(field.float(), place, padding_mode="border", align_corners=False)
