"""What records say: figures by method, lead, scale, place and group, and how certain their differences are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.archive.day_data import held_out
from cranpm.archive.store import Archive
from cranpm.core.grid import Array
from cranpm.verification.agency import Exceedance, fairmode, index_agreement
from cranpm.verification.bootstrap import Draws, Interval, draws_for, rmse_change
from cranpm.verification.day import SCALES, Record, places
from cranpm.verification.run import Plan, load_records, verify
from cranpm.verification.stations import groups, roughness_m, seasons
from cranpm.verification.structure import WAVELENGTHS_PX, pair_similarity
from cranpm.verification.tally import EDGES_UGM3, THRESHOLDS_UGM3, Tally

UNKNOWN = "unknown"
"""Said of weights whose loss saw stations, but nobody knows which."""


@dataclass(frozen=True)
class Scores:
    """Days of records, and all that is asked of them."""

    archive: Archive
    names: list[str]
    facts: Mapping[str, Mapping[str, Any]]
    """What tables say of each method."""
    days: list[date]
    leads: tuple[int, ...]
    places: list[str]
    records: list[Record]
    left_out: Mapping[date, str]

    @cached_property
    def tally(self) -> Tally:
        """(day, method, lead, scale, place)."""
        parts = [record.tally for record in self.records]
        return Tally(np.stack([part.moments for part in parts]), np.stack([part.joint for part in parts]))

    @cached_property
    def similarity(self) -> Array:
        """(method, lead, scale) mean structural similarity over all windows of all days; NaN if not computed."""
        total = np.sum([record.similarity for record in self.records], axis=0)
        return np.divide(total[..., 0], total[..., 1], out=np.full(total.shape[:-1], np.nan), where=total[..., 1] > 0)

    @cached_property
    def power_ratio(self) -> Array:
        """(method, lead, band): power of the forecast over that of the truth; below 1, fine structure was lost."""
        total = np.sum([record.power for record in self.records], axis=0)
        return np.divide(total[..., 0], total[..., 1], out=np.full(total.shape[:-1], np.nan), where=total[..., 1] > 0)

    @cached_property
    def draws(self) -> Draws:
        return draws_for(self.days)

    def rmse_change(self, method: int, reference: int, lead: int, scale: int, place: int = 0) -> Interval:
        """RMSE of a method relative to another's, in percent: below 0 is better. Both are drawn on the same days."""
        return rmse_change(self.tally[:, [method, reference], lead, scale, place].squared, self.draws)

    # Stations

    @cached_property
    def sampled(self) -> Array:
        """(day, method, lead, station)."""
        return np.stack([record.sampled for record in self.records])

    @cached_property
    def observed(self) -> Array:
        """(day, lead, station)."""
        return np.stack([record.observed for record in self.records])

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

    # All of it

    def to_json(self) -> dict[str, Any]:
        """Everything, by method and lead."""
        return {
            "days": {"count": len(self.days), "first": str(self.days[0]), "last": str(self.days[-1])},
            "left_out": {str(day): reason for day, reason in self.left_out.items()},
            "archive": {"snapshot": self.archive.snapshot, "source": self.archive.source},
            "stations": {name: int(members.sum()) for name, members in self.groups.items()},
            "wavelengths_px": list(WAVELENGTHS_PX),
            "bins_ugm3": list(EDGES_UGM3),
            "rmse_change_percent": self._changes(),
            "methods": {
                name: {
                    **self.facts[name],
                    "uncovered_pixels": int(sum(record.uncovered[index].sum() for record in self.records)),
                    "leads": {f"T+{self.leads[lead]}": self._of(index, lead) for lead in range(len(self.leads))},
                }
                for index, name in enumerate(self.names)
            },
        }

    def _changes(self) -> list[dict[str, Any]]:
        """Of every method against every other, with the interval."""
        found = []
        for one, other in permutations(range(len(self.names)), 2):
            for lead, ahead in enumerate(self.leads):
                kinds = {name: self.rmse_change(one, other, lead, scale) for scale, name in enumerate(SCALES)}
                for name, change in (*kinds.items(), ("stations", self.station_change(one, other, lead))):
                    bounds = [number(change.low), number(change.high)]
                    row = {"method": self.names[one], "against": self.names[other], "lead": ahead, "at": name}
                    found.append({**row, "value": number(change.value), "interval": bounds})
        return found

    def _of(self, method: int, lead: int) -> dict[str, Any]:
        total = self.tally.sum()[method, lead]
        observed = self.pairs(method, lead)
        start = np.stack([record.at_start for record in self.records])
        quality = fairmode(*observed, start)
        by_scale = {
            scale: {place: figures(total[s, p]) for p, place in enumerate(self.places)}
            for s, scale in enumerate(SCALES)
        }
        for s, scale in enumerate(SCALES):
            by_scale[scale]["all"]["ssim"] = number(self.similarity[method, lead, s])
            by_scale[scale]["all"] |= reliability(total[s, 0])
        return {
            "fields": by_scale,
            "power_ratio": [number(value) for value in self.power_ratio[method, lead]],
            "pairs_by_forecast": pairs_by_forecast(*observed),
            "stations": {
                **{name: self.station_figures(method, lead, name) for name in self.groups},
                **{
                    f"season: {name}": self.station_figures(method, lead, "all", name)
                    for name in seasons(self.valid(lead))
                },
            },
            "fairmode": {
                "stations": int(np.isfinite(quality.mqi).sum()),
                "mqi_90": number(quality.mqi_90),
                "mqi_year_90": number(quality.mqi_year_90),
                "mqi_forecast_90": number(quality.mqi_forecast_90),
                "target": {
                    str(name): [number(x), number(y)]
                    for name, x, y in zip(self.archive.stations.ids, quality.target_x, quality.target_y, strict=True)
                },
            },
        }

    def station_figures(self, method: int, lead: int, group: str, season: str | None = None) -> dict[str, Any]:
        forecast, observed = self.pairs(method, lead, group, season)
        return figures(Tally.of(forecast, observed)) | {"pair_ssim": number(pair_similarity(forecast, observed))}


def judge(
    plan: Plan,
    days: Iterable[date],
    folder: Path | str,
    jobs: int = 1,
    on_day: Callable[[int, int], None] = lambda done, total: None,
) -> Scores:
    """Verify days (see `verify`) and sum them up; records are kept in `folder`."""
    kept, left_out = verify(plan, days, folder, jobs, on_day)
    return Scores(
        archive=plan.archive,
        names=[method.name for method in plan.methods],
        facts={method.name: method.facts() for method in plan.methods},
        days=kept,
        leads=plan.leads,
        places=places(plan.archive.domain.fine),
        records=load_records(folder, kept),
        left_out=left_out,
    )


def figures(tally: Tally) -> dict[str, Any]:
    """All figures of one tally, ready for JSON."""
    events = [Exceedance.of(tally, threshold) for threshold in THRESHOLDS_UGM3]
    same, near = index_agreement(tally)
    return {
        **{name: number(getattr(tally, name)) for name in ("rmse", "mae", "bias", "correlation", "r2", "mean_truth")},
        "bins": {
            name: [number(value) for value in getattr(tally, f"bin_{name}")] for name in ("rmse", "bias", "share")
        },
        "exceedance": {
            f"{event.threshold_ugm3:g}": {name: number(getattr(event, name)) for name in ("pod", "far", "csi", "ets")}
            for event in events
        },
        "index_same": number(same),
        "index_within_one": number(near),
    }


def reliability(tally: Tally) -> dict[str, Any]:
    """Share of the weight by (bin of the forecast, bin of the truth), and the mean truth in each bin of it."""
    weight = tally.moments[:, 0]
    means = _mean(tally.moments[:, 2], weight)
    joint = tally.joint / max(float(tally.joint.sum()), 1e-300)
    return {"joint": joint.tolist(), "bin_truth": [number(value) for value in means]}


def pairs_by_forecast(forecast: Array, observed: Array) -> dict[str, Any]:
    """By the forecast's bin: number of pairs, mean forecast and mean observation."""
    turned = Tally.of(observed, forecast)  # which bins by its second argument
    count, observations, forecasts = turned.moments[:, :3].T
    means = [_mean(total, count) for total in (forecasts, observations)]
    named = zip(("forecast", "truth"), means, strict=True)
    return {"pairs": count.tolist(), **{name: [number(value) for value in part] for name, part in named}}


def _mean(total: Array, weight: Array) -> Array:
    """NaN where nothing was counted."""
    return np.divide(total, weight, out=np.full(len(weight), np.nan), where=weight > 0)


def number(value: Any) -> float | None:
    """A plain number; None for NaN, which JSON has not."""
    return float(value) if np.isfinite(value) else None
