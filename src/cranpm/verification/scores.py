"""Scores by method, lead, scale, place and group of stations, from the sums of days."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.archive.day_data import held_out
from cranpm.archive.store import Archive
from cranpm.core.cluster import Pool
from cranpm.core.grid import Array
from cranpm.verification.bootstrap import Interval, Resamples, resamples_for, rmse_change
from cranpm.verification.day import DaySums, places
from cranpm.verification.run import ALONE, Plan, load_days, verify
from cranpm.verification.stations import groups, roughness_m, seasons
from cranpm.verification.statistics import SCALES, STATISTICS, ratio
from cranpm.verification.structure import WAVELENGTHS_PX
from cranpm.verification.tally import Tally

UNKNOWN = "unknown"
"""Said of weights whose loss saw stations, but nobody knows which."""


@dataclass(frozen=True)
class Scores:
    """The sums of all days, and what follows from them."""

    archive: Archive
    names: list[str]
    facts: Mapping[str, Mapping[str, Any]]
    """What tables say of each method."""
    days: list[date]
    leads: tuple[int, ...]
    places: list[str]
    by_day: list[DaySums]
    left_out: Mapping[date, str]

    def sums(self, statistic: str) -> Array:
        """(day, method, lead, scale, place, *shape) of a statistic."""
        return np.stack([day.statistics[statistic] for day in self.by_day])

    @property
    def statistics(self) -> list[str]:
        """Those that were computed."""
        return list(self.by_day[0].statistics)

    @cached_property
    def tally(self) -> Tally:
        """(day, method, lead, scale, place)."""
        return Tally.unpacked(self.sums("errors"))

    @cached_property
    def similarity(self) -> Array:
        """(method, lead, scale) mean structural similarity over all windows of all days; NaN if not computed."""
        if "ssim" not in self.statistics:
            return np.full((len(self.names), len(self.leads), len(SCALES)), np.nan)
        total = self.sums("ssim").sum(axis=0)[..., 0, :]
        return ratio(total[..., 0], total[..., 1])

    @cached_property
    def power_ratio(self) -> Array:
        """(method, lead, band): power of the forecast over that of the truth; NaN if not computed.

        Below 1, fine structure was lost.
        """
        if "spectra" not in self.statistics:
            return np.full((len(self.names), len(self.leads), len(WAVELENGTHS_PX)), np.nan)
        total = self.sums("spectra").sum(axis=0)[:, :, 0, 0]
        return ratio(total[..., 0], total[..., 1])

    @cached_property
    def draws(self) -> Resamples:
        return resamples_for(self.days)

    def rmse_change(self, method: int, reference: int, lead: int, scale: int, place: int = 0) -> Interval:
        """RMSE of a method relative to another's, in percent: below 0 is better. Both are drawn on the same days."""
        return rmse_change(self.tally[:, [method, reference], lead, scale, place].squared, self.draws)

    # Stations

    @cached_property
    def sampled(self) -> Array:
        """(day, method, lead, station)."""
        return np.stack([day.sampled for day in self.by_day])

    @cached_property
    def observed(self) -> Array:
        """(day, lead, station)."""
        return np.stack([day.observed for day in self.by_day])

    @cached_property
    def unseen(self) -> Array | None:
        """Stations that no method's loss saw; None where that cannot be known: other stations, or other software."""
        seen = np.zeros(len(self.archive.stations), dtype=bool)
        for fact in self.facts.values():
            used = fact.get("stations_in_loss")
            if used == UNKNOWN or (used and used["stations"] != len(seen)):
                return None
            if used:
                seen |= ~held_out(len(seen), used["held_out"], int(used["seed"]))
        return ~seen

    @cached_property
    def groups(self) -> dict[str, Array]:
        return groups(self.archive.stations, roughness_m(self.archive), self.unseen)

    def valid(self, lead: int) -> list[date]:
        return [day + timedelta(days=self.leads[lead]) for day in self.days]

    def pairs(self, method: int, lead: int, group: str = "all", season: str | None = None) -> tuple[Array, Array]:
        """Forecasts and observations (day, station); NaN where any method has none, so that all have the same pairs."""
        members = self.groups[group]
        common = np.isfinite(self.observed[:, lead]) & np.isfinite(self.sampled[:, :, lead]).all(axis=1)
        chosen = seasons(self.valid(lead))[season] if season else np.ones(len(self.days), dtype=bool)
        observed = np.where(common, self.observed[:, lead], np.nan)[chosen][:, members]
        return self.sampled[:, method, lead][chosen][:, members], observed

    def station_change(self, method: int, reference: int, lead: int, group: str = "all") -> Interval:
        """As `rmse_change`, at stations."""
        daily = [
            [Tally.of(f, o).squared for f, o in zip(*self.pairs(which, lead, group), strict=True)]
            for which in (method, reference)
        ]
        return rmse_change(np.stack(daily, axis=1), self.draws)

    def station_sums(self, statistic: str) -> Array:
        """(day, method, lead, *shape) of a statistic over the pairs at all stations."""
        made = STATISTICS[statistic](self.archive)
        found = [
            [
                [made.pairs(*pair) for pair in zip(*self.pairs(method, lead), strict=True)]
                for lead in range(len(self.leads))
            ]
            for method in range(len(self.names))
        ]
        return np.moveaxis(np.array(found), 2, 0)

    # Regions

    def series(self) -> list[dict[str, Any]]:
        """Mean PM2.5 at 1 km of every place, day and lead: the truth and each method."""
        totals = self.tally.totals[:, :, :, 0]  # day, method, lead, place, moment
        rows = []
        for place, name in enumerate(self.places):
            for lead, ahead in enumerate(self.leads):
                for index, day in enumerate(self.days):
                    weight, forecast, truth = totals[index, :, lead, place, :3].T
                    if weight[0] > 0:
                        means = dict(zip(self.names, (forecast / weight).tolist(), strict=True))
                        start = {"place": name, "start": str(day), "valid": str(day + timedelta(days=ahead))}
                        rows.append({**start, "lead": ahead, "truth": float(truth[0] / weight[0]), **means})
        return rows


def score(
    plan: Plan,
    days: Iterable[date],
    folder: Path | str,
    pool: Pool = ALONE,
    on_day: Callable[[int, int], None] = lambda done, total: None,
) -> Scores:
    """The scores of days (see `verify`); the sums of each day are kept in `folder`."""
    kept, left_out = verify(plan, days, folder, pool, on_day)
    return Scores(
        archive=plan.archive,
        names=[method.name for method in plan.methods],
        facts={method.name: method.facts(kept, plan.leads) for method in plan.methods},
        days=kept,
        leads=plan.leads,
        places=places(plan.archive.domain.fine),
        by_day=load_days(folder, kept),
        left_out=left_out,
    )
