"""Scores of a network on tiles of days that it did not learn from, beside persistence and damped persistence."""

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

METHODS = ("network", "persistence", "damped")
SUMS = ("count", "squared", "absolute")
"""Pixels with a forecast and a truth, sum of their squared errors, sum of their absolute errors."""


@dataclass(frozen=True)
class TileScores:
    """A network and the baselines on the same pixels, day by day."""

    days: list[date]
    leads: tuple[int, ...]
    sums: Array
    """(day, method, lead, [count, squared error, absolute error]), float64; sums of parts add up."""

    def totals(self, lead: int, method: str = "network") -> Array:
        """[count, squared error, absolute error] over all days."""
        totals: Array = self.sums[:, METHODS.index(method), self.leads.index(lead)].sum(axis=0)
        return totals

    def rmse(self, lead: int, method: str = "network") -> float:
        """Root mean squared error (ug m-3); NaN where no pixel counts."""
        count, squared, _ = self.totals(lead, method)
        return float(np.sqrt(squared / count)) if count else float("nan")

    def mae(self, lead: int, method: str = "network") -> float:
        """Mean absolute error (ug m-3); NaN where no pixel counts."""
        count, _, absolute = self.totals(lead, method)
        return float(absolute / count) if count else float("nan")

    def skill(self, lead: int, reference: str) -> float:
        """1 - RMSE / RMSE of the reference: above 0 is better than the reference."""
        return 1 - self.rmse(lead) / self.rmse(lead, reference)

    def mean_rmse(self) -> float:
        """Mean over the leads of the network's RMSE (ug m-3)."""
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


def error_sums(forecast: Array, truth: Array) -> Array:
    """[count, squared error, absolute error] over the pixels where both fields (ug m-3) have a value."""
    error = np.asarray(forecast, np.float64) - np.asarray(truth, np.float64)
    error = error[np.isfinite(error)]
    return np.array([error.size, np.square(error).sum(), np.abs(error).sum()], np.float64)


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
    """Scores of a network on tiles; `device` is where it lies. Processes share the days: sums add up."""
    days = list(dict.fromkeys(day for day, _ in tiles))
    sums = np.zeros((len(days), len(METHODS), len(leads), len(SUMS)))
    for number in range(rank, len(days), processes):
        day = days[number]
        context = network.encode_day(inputs.leads(day, leads).to(device))
        for window in (window for when, window in tiles if when == day):
            tiles_by_lead = inputs.tile(day, window).repeat(len(leads)).to(device)
            ahead_of = torch.tensor(leads, device=device)
            forecast = network.forecast_tile(context, tiles_by_lead, ahead_of).float().cpu().numpy()
            today = inputs.pm25(day, window)
            for index, ahead in enumerate(leads):
                truth = inputs.pm25(day + timedelta(days=ahead), window)
                for method, field in enumerate((forecast[index], today, damped.forecast(today, day, ahead, window))):
                    sums[number, method, index] += error_sums(field, truth)
    return TileScores(days, leads, sums)
