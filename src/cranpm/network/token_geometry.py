"""Where tokens lie on the Earth, and values of a field there. BatchOrder are (latitude, longitude) in degrees."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def token_centres(
    corner: Float[Tensor, "b 2"], rows: int, cols: int, size: float
) -> Float[Tensor, "b {rows}*{cols} 2"]:
    """Centres of a raster of square tokens, `size` degrees wide, from its north-west corner."""
    south = (torch.arange(rows, device=corner.device) + 0.5) * size
    east = (torch.arange(cols, device=corner.device) + 0.5) * size
    lat, lon = corner[:, :1] - south, corner[:, 1:] + east
    return torch.stack([lat[:, :, None].expand(-1, -1, cols), lon[:, None].expand(-1, rows, -1)], dim=3).flatten(1, 2)


def offsets(here: Float[Tensor, "b n 2"], there: Float[Tensor, "b m 2"]) -> tuple[Tensor, Tensor]:
    """How far north and east each `here` lies of each `there`, in degrees of latitude on the plane at `here`."""
    lat, lon = here[..., :1], here[..., 1:]
    return lat - there[:, None, :, 0], (lon - there[:, None, :, 1]) * torch.cos(torch.deg2rad(lat))


def sample(
    field: Float[Tensor, "days ch h w"],
    corner: Float[Tensor, "days 2"],
    step: float,
    places: Float[Tensor, "tiles n 2"],
) -> Float[Tensor, "tiles n ch"]:
    """Bilinear values of a field with cells of `step` degrees; beyond the outermost centres the nearest value.

    Tiles are ordered by day, equally many per day.
    """
    days, _, rows, cols = field.shape
    by_day = fold(places, days)
    down, along = corner[:, None, 0] - by_day[..., 0], by_day[..., 1] - corner[:, None, 1]
    grid = torch.stack([2 * along / (cols * step) - 1, 2 * down / (rows * step) - 1], dim=2)
    values = functional.grid_sample(field.float(), grid[:, :, None], padding_mode="border", align_corners=False)
    return unfold(values.squeeze(3).transpose(1, 2), places.shape[0])


def fold(x: Float[Tensor, "tiles n ch"], days: int) -> Float[Tensor, "{days} m ch"]:
    """The tiles of one day as one long sequence, so that what belongs to the day is not copied for each tile."""
    return x.unflatten(0, (days, -1)).flatten(1, 2)


def unfold(x: Float[Tensor, "days m ch"], tiles: int) -> Float[Tensor, "{tiles} n ch"]:
    """The inverse of `fold`."""
    return x.unflatten(1, (tiles // x.shape[0], -1)).flatten(0, 1)
