"""How tiles lie on the coarse grid of their day: what the bridge between the branches knows of space and wind."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cranpm.core.grid import COARSE_STEP, FINE_STEP
from cranpm.network.context import DayContext
from cranpm.network.cranpm_settings import FusionName, NetworkSettings
from cranpm.network.reach import Chosen
from cranpm.network.token_geometry import fold, offsets, sample, token_centres, unfold
from cranpm.network.wind import upwind

THOUSAND_KM = 1000 / 111.2
"""In degrees of latitude."""
MS_IN_A_DAY = 86.4 / 1000
"""1000 km that a wind of 1 m/s travels in one day."""
WITH_BIAS: frozenset[FusionName] = frozenset({"cross", "concat", "coarse-queries-fine", "bidirectional"})
"""Fusions by attention; the others have no logits to put a bias on."""


class PairGeometry(NamedTuple):
    """How queries lie to keys: gamma of the wind, and distance in 1000 km; None where that bias is switched off."""

    upwind: Float[Tensor, " b #n m"] | None = None
    distance: Float[Tensor, "b n m"] | None = None
    offset: Float[Tensor, "b n m 2"] | None = None
    """From key to query, (north, east) in 1000 km; with `drift`, instead of the other two."""
    drift: Float[Tensor, "b n 2"] | None = None
    """How far the air travels until it is at the query, (north, east) in 1000 km."""

    def without_wind(self) -> "PairGeometry":
        return self._replace(upwind=None, drift=None if self.drift is None else torch.zeros_like(self.drift))

    def by_tile(self, tiles: int) -> "PairGeometry":
        """From the tiles of a day in one sequence to one for each tile."""
        return PairGeometry(*(None if part is None else unfold(part, tiles) for part in self))

    def reversed(self) -> "PairGeometry":
        """How keys lie to queries, by the wind at the queries: what is upwind of one has the other downwind."""
        upwind, distance = (None if part is None else part.transpose(1, 2) for part in (self.upwind, self.distance))
        return PairGeometry(None if upwind is None else -upwind, distance)


@dataclass(frozen=True)
class TileGeometry:
    """How a batch of tiles lies on the coarse grid of its days; tiles are ordered by day, equally many per day."""

    centres: Float[Tensor, "tiles n 2"]
    corner: Float[Tensor, "days 2"]
    grid: tuple[int, int]
    token: float
    """The coarse tokens form `grid` from `corner`, each `token` degrees wide."""
    by_day: PairGeometry
    """Of the fine tokens of all tiles of a day on its coarse tokens."""

    @property
    def days(self) -> int:
        return self.corner.shape[0]

    @property
    def by_tile(self) -> PairGeometry:
        return self.by_day.by_tile(self.centres.shape[0])

    def aligned(self, tokens: Float[Tensor, "b m width"]) -> Float[Tensor, "tiles n width"]:
        """Coarse tokens, of a day or of a tile, interpolated to the centres of the fine ones."""
        corner = self.corner.repeat_interleave(tokens.shape[0] // self.days, dim=0)
        return sample(tokens.transpose(1, 2).unflatten(2, self.grid), corner, self.token, self.centres)

    def of_tiles(self, tokens: Float[Tensor, "days m width"]) -> Float[Tensor, "tiles m width"]:
        """A copy of the day's tokens for each of its tiles."""
        return tokens.repeat_interleave(self.centres.shape[0] // self.days, dim=0)


def tile_geometry(
    context: DayContext,
    position: Float[Tensor, "tiles 2"],
    lead: Int[Tensor, " tiles"],
    tokens: tuple[int, int],
    settings: NetworkSettings,
    chosen: Chosen | None = None,
) -> TileGeometry:
    """Where tiles of `tokens` rows and columns of tokens, from their north-west `position`, lie on a day's grid.

    With `chosen`, of these tokens alone.
    """
    centres = token_centres(position, *tokens, settings.fine.patch * FINE_STEP)
    centres = centres if chosen is None else chosen.take(centres)
    token = settings.coarse.patch * COARSE_STEP
    pairs = PairGeometry()
    if settings.fusion in WITH_BIAS:
        here, there = fold(centres, context.days), token_centres(context.corner, *context.grid, token)
        wind = sample(context.wind, context.corner, COARSE_STEP, centres)
        if settings.wind_bias and settings.wind_form == "departure":
            drift = wind.flip(2) * lead[:, None, None] * MS_IN_A_DAY
            pairs = PairGeometry(
                offset=torch.stack(offsets(here, there), dim=3) / THOUSAND_KM, drift=fold(drift, context.days)
            )
            return TileGeometry(centres, context.corner, context.grid, token, pairs)
        if settings.wind_bias:
            pairs = pairs._replace(upwind=upwind(here, there, fold(wind, context.days)))
        if settings.distance_bias:
            pairs = pairs._replace(distance=torch.hypot(*offsets(here, there)) / THOUSAND_KM)
    return TileGeometry(centres, context.corner, context.grid, token, pairs)
