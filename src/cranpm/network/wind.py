"""Wind in the network: the scan of tokens from upwind to downwind, and the bias toward upwind tokens.

u is eastward and v northward, in m/s; rows run north to south, columns west to east.
"""

import math
from dataclasses import dataclass
from functools import cache, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from cranpm.network.swin import from_windows, to_windows
from cranpm.network.token_geometry import offsets, token_centres

SECTORS = 16
CALM_MS = 0.1
"""Below this speed the wind has no direction: tokens keep their order and the bias is 0."""


@cache
def scan_orders(window: int) -> tuple[tuple[int, ...], ...]:
    """For each sector the tokens of a window x window group from upwind to downwind; the last is for calm air.

    Sector k blows toward the angle k x 22.5 degrees, counted from east to north. The order is by the projection of
    the token centres on that direction; ties by the crosswind coordinate.
    """
    tokens = range(window * window)

    def upwind_first(sector: int, token: int) -> tuple[float, float]:
        angle = sector * 2 * math.pi / SECTORS
        east, north = token % window, -(token // window)
        along = east * math.cos(angle) + north * math.sin(angle)
        return round(along, 6), north * math.cos(angle) - east * math.sin(angle)

    orders = (tuple(sorted(tokens, key=partial(upwind_first, sector))) for sector in range(SECTORS))
    return (*orders, tuple(tokens))


def sector(wind: Float[Tensor, "*b 2"]) -> Int[Tensor, "*b"]:
    """Number of the sector, 0..15, that (u, v) blows toward; 16 in calm air."""
    angle = torch.atan2(wind[..., 1], wind[..., 0])
    number = torch.round(angle / (2 * math.pi / SECTORS)).long() % SECTORS
    return torch.where(torch.linalg.vector_norm(wind, dim=-1) >= CALM_MS, number, SECTORS)


@dataclass(frozen=True)
class WindScan:
    """A reordering of the tokens inside each window x window group of a grid."""

    order: Int[Tensor, "groups n"]
    window: int

    @classmethod
    def along(cls, wind: Float[Tensor, "b 2 h w"], patch: int, window: int) -> "WindScan":
        """The scan by the mean wind of each group; `patch` is the side of a token in cells of the wind field."""
        mean = functional.avg_pool2d(wind, patch * window, ceil_mode=True, count_include_pad=False)
        groups = mean.permute(0, 2, 3, 1).flatten(0, 2)
        return cls(torch.tensor(scan_orders(window), device=wind.device)[sector(groups)], window)

    def scan(self, grid: Tensor) -> Tensor:
        """(b, rows, cols, ...) with each group's tokens from upwind to downwind, in raster order."""
        return self._reorder(grid, self.order)

    def unscan(self, grid: Tensor) -> Tensor:
        """The inverse of `scan`."""
        return self._reorder(grid, self.order.argsort(dim=1))

    def scan_pairs(self, pairs: Float[Tensor, "#b n n"], grid: tuple[int, int]) -> Float[Tensor, "b n n"]:
        """What holds between tokens, in raster order on a grid, with the tokens in the scan's order."""
        days = len(self.order) * self.window**2 // (grid[0] * grid[1])
        place = torch.arange(grid[0] * grid[1], device=pairs.device).view(1, *grid).expand(days, *grid)
        order = self.scan(place).flatten(1)
        rows = pairs.expand(days, -1, -1).gather(1, order[:, :, None].expand(-1, -1, order.shape[1]))
        return rows.gather(2, order[:, None, :].expand(-1, order.shape[1], -1))

    def _reorder(self, grid: Tensor, order: Tensor) -> Tensor:
        rows, cols, *rest = grid.shape[1:]
        groups = to_windows(grid.flatten(3) if rest else grid[..., None], self.window)
        moved = groups.gather(1, order[:, :, None].expand(-1, -1, groups.shape[2]))
        return from_windows(moved, self.window, rows, cols).reshape(grid.shape)


def unit_wind(wind: Float[Tensor, "*b 2"]) -> Float[Tensor, "*b 2"]:
    """Direction of (u, v); zero in calm air and where the wind is not a number."""
    speed = torch.hypot(wind[..., :1], wind[..., 1:])
    return torch.where((speed >= CALM_MS) & speed.isfinite(), wind / speed, 0.0)


def upwind(
    here: Float[Tensor, "b n 2"], there: Float[Tensor, "b m 2"], wind: Float[Tensor, "b n 2"]
) -> Float[Tensor, "b n m"]:
    """gamma[i, j] = unit(p_i - p_j) . unit(wind at i): +1 where `there` j lies upwind of `here` i, -1 downwind.

    Distances are taken on the plane that touches the Earth at i: longitude is shortened by cos(latitude).
    0 where the two coincide or the air is calm.
    """
    north, east = offsets(here, there)
    direction = unit_wind(wind)
    distance = torch.hypot(north, east)
    along = east * direction[..., :1] + north * direction[..., 1:]
    return torch.where(distance > 0, along / distance, 0.0)


def upwind_on_grid(
    wind: Float[Tensor, "b 2 rows cols"], corner: Float[Tensor, "b 2"], size: float
) -> Float[Tensor, "b n n"]:
    """gamma among the tokens of one grid, `size` degrees wide each."""
    rows, cols = wind.shape[2:]
    places = token_centres(corner, rows, cols, size)
    return upwind(places, places, wind.flatten(2).transpose(1, 2))
