"""How good forecasts are on days that were not learned from, beside persistence and damped persistence."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import torch

from cranpm.baselines.simple.damped import DampedPersistence
from cranpm.core.grid import Array, Window
from cranpm.network import ForecastNetwork
from cranpm.training.batches import land_corners
from cranpm.training.inputs import Inputs
from cranpm.verification.tally import Tally

METHODS = ("network", "persistence", "damped")


@dataclass(frozen=True)
class TileScores:
    """A network and what it must beat on the same pixels, day by day."""

    days: list[date]
    leads: tuple[int, ...]
    tally: Tally
    """(day, method, lead)."""

    def of(self, lead: int, method: str = "network") -> Tally:
        """Over all days."""
        return self.tally[:, METHODS.index(method), self.leads.index(lead)].sum()

    def rmse(self, lead: int, method: str = "network") -> float:
        return float(self.of(lead, method).rmse)

    def mae(self, lead: int, method: str = "network") -> float:
        return float(self.of(lead, method).mae)

    def skill(self, lead: int, reference: str) -> float:
        """1 - RMSE / RMSE of the reference: above 0 is better than it."""
        return 1 - self.rmse(lead) / self.rmse(lead, reference)

    def mean_rmse(self) -> float:
        return float(np.mean([self.rmse(lead) for lead in self.leads]))

    def row(self) -> dict[str, float]:
        """All figures by name."""
        figures = {}
        for lead in self.leads:
            figures[f"rmse_t{lead}"], figures[f"mae_t{lead}"] = self.rmse(lead), self.mae(lead)
            for reference in METHODS[1:]:
                figures[f"rmse_{reference}_t{lead}"] = self.rmse(lead, reference)
                figures[f"skill_{reference}_t{lead}"] = self.skill(lead, reference)
        return figures


def spread_days(days: Sequence[date], count: int) -> list[date]:
    """So many of the days, evenly spread."""
    return [days[index] for index in np.unique(np.linspace(0, len(days) - 1, count).round().astype(int))]


def fixed_tiles(land: Array, size: int, days: Sequence[date], count: int, tiles: int) -> list[tuple[date, Window]]:
    """Start days evenly spread, and for each some tiles over land; always the same."""
    chosen = spread_days(days, count)
    corners, share = land_corners(land, size)
    random = np.random.default_rng(11)
    picks = random.choice(len(corners), (len(chosen), tiles), p=share / share.sum())
    return [
        (day, (slice(int(row), int(row) + size), slice(int(col), int(col) + size)))
        for day, of_day in zip(chosen, picks, strict=True)
        for row, col in corners[of_day]
    ]


@torch.no_grad()
def score(
    network: ForecastNetwork,
    inputs: Inputs,
    tiles: Sequence[tuple[date, Window]],
    leads: tuple[int, ...],
    damped: DampedPersistence,
    device: torch.device | str = "cpu",
    rank: int = 0,
    processes: int = 1,
) -> TileScores:
    """Scores of a network on tiles; `device` is where it lies. Processes share the days: tallies add up."""
    days = list(dict.fromkeys(day for day, _ in tiles))
    tally = Tally.zero(len(days), len(METHODS), len(leads))
    for number in range(rank, len(days), processes):
        day = days[number]
        context = network.encode_day(inputs.day(day).to(device))
        for window in (window for when, window in tiles if when == day):
            tiles_by_lead = inputs.tile(day, window).repeat(len(leads)).to(device)
            ahead_of = torch.tensor(leads, device=device)
            forecast = network.forecast_tile(context, tiles_by_lead, ahead_of).float().cpu().numpy()
            today = inputs.pm25(day, window)
            for index, ahead in enumerate(leads):
                truth = inputs.pm25(day + timedelta(days=ahead), window)
                for method, field in enumerate((forecast[index], today, damped.forecast(today, day, ahead, window))):
                    tally.add((number, method, index), Tally.of(field, truth))
    return TileScores(days, leads, tally)
