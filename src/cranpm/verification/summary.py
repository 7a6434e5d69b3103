"""Everything that a verification found, as the typed content of `scores.json`."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np

from cranpm.core.air_quality import THRESHOLDS_UGM3
from cranpm.core.grid import Array
from cranpm.verification.agency import Exceedance, fairmode, index_agreement
from cranpm.verification.bootstrap import Interval
from cranpm.verification.scores import Scores
from cranpm.verification.scores_file import (
    FORMAT,
    Bins,
    Change,
    Days,
    ErrorScores,
    Event,
    FairmodeScores,
    FieldScores,
    ForecastBins,
    LeadScores,
    MethodScores,
    MetricScore,
    Number,
    ScoresFile,
    Source,
    StationScores,
)
from cranpm.verification.stations import seasons
from cranpm.verification.statistics import SCALES, STATISTICS, ratio
from cranpm.verification.structure import WAVELENGTHS_PX, pair_similarity
from cranpm.verification.tally import EDGES_UGM3, Tally

STATIONS = "stations"


def summarise(scores: Scores, reference: str) -> ScoresFile:
    """All scores by method and lead; differences of metrics are to the method `reference`."""
    methods = {
        name: MethodScores(
            **scores.facts[name],
            uncovered_pixels=int(sum(day.uncovered[index].sum() for day in scores.by_day)),
            leads={f"T+{ahead}": _of(scores, index, lead) for lead, ahead in enumerate(scores.leads)},
        )
        for index, name in enumerate(scores.names)
    }
    return ScoresFile(
        format=FORMAT,
        days=Days(count=len(scores.days), first=scores.days[0], last=scores.days[-1]),
        left_out=dict(scores.left_out),
        archive=Source(snapshot=scores.archive.snapshot, source=scores.archive.source),
        reference=reference,
        stations={name: int(members.sum()) for name, members in scores.groups.items()},
        wavelengths_px=WAVELENGTHS_PX,
        bins_ugm3=EDGES_UGM3,
        rmse_change_percent=tuple(_changes(scores)),
        metrics=tuple(metric_scores(scores, reference)),
        methods=methods,
    )


def _changes(scores: Scores) -> Iterator[Change]:
    """Of every method relative to every other."""
    for one, other in permutations(range(len(scores.names)), 2):
        for lead, ahead in enumerate(scores.leads):
            found = {name: scores.rmse_change(one, other, lead, scale) for scale, name in enumerate(SCALES)}
            found[STATIONS] = scores.station_change(one, other, lead)
            for at, change in found.items():
                names = {"method": scores.names[one], "against": scores.names[other]}
                yield Change(**names, lead=ahead, at=at, value=number(change.value), interval=_bounds(change))


def metric_scores(scores: Scores, reference: str) -> Iterator[MetricScore]:
    """Every metric of every statistic over the whole domain and at stations, and its difference to the reference."""
    for name in scores.statistics:
        if STATISTICS[name].metrics:
            for at, sums in _daily_sums(scores, name):
                for lead, ahead in enumerate(scores.leads):
                    yield from _metrics(scores, sums[:, :, lead], reference, statistic=name, at=at, lead=ahead)


def _metrics(scores: Scores, sums: Array, reference: str, **where: Any) -> Iterator[MetricScore]:
    """Of every method, from (day, method, *shape). All methods are drawn on the same days."""
    other = scores.names.index(reference)
    totals = [scores.draws.totals(sums[:, index]) for index in range(len(scores.names))]
    for key, metric in STATISTICS[where["statistic"]].metrics.items():
        values = [[metric.of(part) for part in parts] for parts in totals]
        for index, method in enumerate(scores.names):
            own = scores.draws.interval(*values[index])
            gaps = (mine - theirs for mine, theirs in zip(values[index], values[other], strict=True))
            same = np.array_equal(sums[:, index], sums[:, other])  # then nothing is uncertain
            gap = Interval(0.0, 0.0, 0.0) if same else scores.draws.interval(*gaps)
            yield MetricScore(
                **where,
                metric=key,
                title=metric.title,
                method=method,
                value=number(own.value),
                interval=_bounds(own),
                difference=number(gap.value),
                difference_interval=_bounds(gap),
            )


def _daily_sums(scores: Scores, name: str) -> Iterator[tuple[str, Array]]:
    """(day, method, lead, *shape) of a statistic by scale, and at stations."""
    kind, sums = STATISTICS[name], scores.sums(name)
    for index, scale in enumerate(kind.scales):
        yield scale, sums[:, :, :, index, 0]
    if kind.at_stations and len(scores.archive.stations):
        yield STATIONS, scores.station_sums(name)


def _of(scores: Scores, method: int, lead: int) -> LeadScores:
    total = scores.tally.sum()[method, lead]
    return LeadScores(
        fields={
            scale: {
                place: FieldScores(
                    **_errors(total[s, p]),
                    **({} if p else {"ssim": number(scores.similarity[method, lead, s]), **reliability(total[s, 0])}),
                )
                for p, place in enumerate(scores.places)
            }
            for s, scale in enumerate(SCALES)
        },
        power_ratio=_numbers(scores.power_ratio[method, lead]),
        pairs_by_forecast=pairs_by_forecast(*scores.pairs(method, lead)),
        stations={
            **{name: station_scores(scores, method, lead, name) for name in scores.groups},
            **{
                f"season: {name}": station_scores(scores, method, lead, "all", name)
                for name in seasons(scores.valid(lead))
            },
        },
        fairmode=_fairmode(scores, method, lead),
    )


def _fairmode(scores: Scores, method: int, lead: int) -> FairmodeScores:
    quality = fairmode(*scores.pairs(method, lead), np.stack([day.at_start for day in scores.by_day]))
    points = zip(scores.archive.stations.ids, quality.target_x, quality.target_y, strict=True)
    return FairmodeScores(
        stations=int(np.isfinite(quality.mqi).sum()),
        mqi_90=number(quality.mqi_90),
        mqi_year_90=number(quality.mqi_year_90),
        mqi_forecast_90=number(quality.mqi_forecast_90),
        target={str(name): (number(x), number(y)) for name, x, y in points},
    )


def station_scores(
    scores: Scores, method: int, lead: int, group: str = "all", season: str | None = None
) -> StationScores:
    """Of the pairs at a group of stations in a season, or all year."""
    pairs = scores.pairs(method, lead, group, season)
    return StationScores(**_errors(Tally.of(*pairs)), pair_ssim=number(pair_similarity(*pairs)))


def _errors(tally: Tally) -> dict[str, Any]:
    """The content of `ErrorScores`."""
    same, near = index_agreement(tally)
    plain = ("rmse", "mae", "bias", "correlation", "r2", "mean_truth")
    events = [Exceedance.of(tally, threshold) for threshold in THRESHOLDS_UGM3]
    found = {
        **{name: number(getattr(tally, name)) for name in plain},
        "bins": Bins(**{name: _numbers(getattr(tally, f"bin_{name}")) for name in Bins.model_fields}),
        "exceedance": {
            f"{event.threshold_ugm3:g}": Event(**{name: number(getattr(event, name)) for name in Event.model_fields})
            for event in events
        },
        "index_same": number(same),
        "index_within_one": number(near),
    }
    return dict(ErrorScores(**found))


def reliability(tally: Tally) -> dict[str, Any]:
    """Share of the weight by (bin of the forecast, bin of the truth), and the mean truth in each bin of it."""
    joint = tally.joint / max(float(tally.joint.sum()), 1e-300)
    means = ratio(tally.moments[:, 2], tally.moments[:, 0])
    return {"joint": tuple(map(tuple, joint.tolist())), "bin_truth": _numbers(means)}


def pairs_by_forecast(forecast: Array, observed: Array) -> ForecastBins:
    """By the forecast's bin: number of pairs, mean forecast and mean observation."""
    turned = Tally.of(observed, forecast)  # which bins by its second argument
    count, observations, forecasts = turned.moments[:, :3].T
    return ForecastBins(
        pairs=tuple(count.tolist()),
        forecast=_numbers(ratio(forecasts, count)),
        truth=_numbers(ratio(observations, count)),
    )


def _bounds(found: Interval) -> tuple[Number, Number]:
    return number(found.low), number(found.high)


def _numbers(values: Array) -> tuple[Number, ...]:
    return tuple(number(value) for value in values)


def number(value: Any) -> Number:
    """A plain number; None for NaN, which JSON has not."""
    return float(value) if np.isfinite(value) else None
