"""Scores as tables: the paper's two, and those that it lacks."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from cranpm.core.air_quality import THRESHOLDS_UGM3
from cranpm.verification.agency import Exceedance, fairmode, index_agreement
from cranpm.verification.scores import Scores
from cranpm.verification.scores_file import ScoresFile
from cranpm.verification.stations import seasons
from cranpm.verification.statistics import SCALES
from cranpm.verification.structure import RANGE_UGM3, WAVELENGTHS_PX, WINDOW
from cranpm.verification.summary import station_scores
from cranpm.verification.table import SURE, TextTable, percent
from cranpm.verification.tally import EDGES_UGM3

TERRAIN = ("all", "flat", "complex")


@cache
def paper() -> dict[str, Any]:
    """The paper's own numbers."""
    return tomllib.loads(files("cranpm.verification").joinpath("paper.toml").read_text())


def all_tables(scores: Scores, summary: ScoresFile, with_paper: bool = False) -> list[TextTable]:
    """Every table, in the order in which a reader asks."""
    reference = summary.reference
    return [
        *(table_1(scores, scale, reference, with_paper) for scale in range(len(SCALES))),
        table_2(scores, reference, with_paper),
        differences(scores),
        station_groups(scores),
        by_region(scores),
        by_bin(scores),
        exceedances(scores),
        quality(scores),
        spectra(scores),
        metrics(summary),
    ]


def table_1(scores: Scores, scale: int, reference: str, with_paper: bool) -> TextTable:
    """Laid out as the paper's table 1; the last figure of each lead is the change of RMSE against `reference`."""
    tally, against = scores.tally.sum(), scores.names.index(reference)
    header, rows = ["method", "made at", "parameters"], []
    for lead in scores.leads:
        header += [f"T+{lead} {figure}" for figure in ("RMSE", "MAE", "SSIM", f"change against {reference}")]
        header += [f"T+{lead} RMSE in the paper"] if with_paper else []
    for index, name in enumerate(scores.names):
        fact = scores.facts[name]
        cells = [name, str(fact.get("resolution") or "1 km"), _millions(fact.get("parameters"))]
        for lead in range(len(scores.leads)):
            here = tally[index, lead, scale, 0]
            change = scores.rmse_change(index, against, lead, scale) if index != against else None
            cells += [
                *_plain([here.rmse, here.mae]),
                _plain([scores.similarity[index, lead, scale]])[0],
                percent(change),
            ]
            if with_paper:
                theirs = _in_paper(paper()[SCALES[scale]], fact)
                known = theirs and scores.leads[lead] <= len(theirs)
                cells.append(f"{theirs[scores.leads[lead] - 1][0]:.2f}" if theirs and known else "")
        rows.append(tuple(cells))
    return TextTable(
        f"table1-{SCALES[scale].replace(' ', '')}",
        f"PM2.5 over land at {SCALES[scale]}, ug m-3 ({_period(scores)})",
        tuple(header),
        rows,
        (
            "All weighted by area. At 25 km, means over the land of each cell; methods made at 25 km were refined "
            "bilinearly for 1 km.",
            f"SSIM in windows of {WINDOW} x {WINDOW}, data range {RANGE_UGM3:g} ug m-3.",
            SURE,
            *_made_of(scores),
            *(["Numbers in the paper are of real Europe in 2022: other data, shown for comparison."] * with_paper),
        ),
    )


def table_2(scores: Scores, reference: str, with_paper: bool) -> TextTable:
    """Laid out as the paper's table 2: stations at the first lead, by terrain, and those that no loss used."""
    split = ("held out",) if "in the loss" in scores.groups else ()
    terrain = [group for group in (*TERRAIN, *split) if group in scores.groups]
    against = scores.names.index(reference)
    header, rows = ["method"], []
    for group in terrain:
        title = f"{group} (N = {int(scores.groups[group].sum())})"
        changed = f"change against {reference}"
        header += [f"{title} {figure}" for figure in ("RMSE", "MAE", "SSIM of pairs", "bias", changed)]
        header += [f"{group} RMSE in the paper"] if with_paper else []
    for index, name in enumerate(scores.names):
        cells = [name]
        for group in terrain:
            found = station_scores(scores, index, 0, group)
            change = scores.station_change(index, against, 0, group) if index != against else None
            cells += [
                *_plain([found.rmse, found.mae, found.pair_ssim]),
                _signed(found.bias),
                percent(change),
            ]
            if with_paper:
                theirs = _in_paper(paper()["stations"].get(group, {}), scores.facts[name])
                cells.append(f"{theirs[0]:.2f}" if theirs else "")
        rows.append(tuple(cells))
    return TextTable(
        "table2",
        f"At stations, T+{scores.leads[0]}, ug m-3 ({_period(scores)})",
        tuple(header),
        rows,
        (
            f"Flat: elevation varies by less than 50 m (standard deviation within 25 km). {_unseen(scores)}",
            "SSIM of pairs: the formula over all matched pairs as one window.",
            SURE,
            *_made_of(scores),
        ),
    )


def differences(scores: Scores) -> TextTable:
    """Every method relative to every other: change of RMSE with its interval."""
    header = ("method", "against", *(f"T+{lead} at {scale}" for scale in SCALES for lead in scores.leads))
    rows = []
    for one in range(len(scores.names)):
        for other in range(len(scores.names)):
            if one != other:
                changes = [
                    percent(scores.rmse_change(one, other, lead, scale))
                    for scale in range(len(SCALES))
                    for lead in range(len(scores.leads))
                ]
                rows.append((scores.names[one], scores.names[other], *changes))
    return TextTable("differences", "Change of RMSE against each other method, %", header, rows, (SURE,))


def station_groups(scores: Scores) -> TextTable:
    """RMSE and bias at stations by what they have in common, first lead."""
    asked = [(group, None) for group in scores.groups] + [("all", name) for name in seasons(scores.valid(0))]
    rows = []
    for group, season in asked:
        cells = [season or group, str(int(scores.groups[group].sum()))]
        for index in range(len(scores.names)):
            found = station_scores(scores, index, 0, group, season)
            cells.append(f"{_plain([found.rmse])[0]} ({_signed(found.bias)})")
        rows.append(tuple(cells))
    title = f"RMSE (and bias) at stations by group, T+{scores.leads[0]}, ug m-3"
    return TextTable("stations", title, ("group", "N", *scores.names), rows)


def by_region(scores: Scores) -> TextTable:
    tally = scores.tally.sum()
    rows = [
        (place, f"T+{ahead}", *(_plain([tally[index, lead, 0, p].rmse])[0] for index in range(len(scores.names))))
        for p, place in enumerate(scores.places)
        for lead, ahead in enumerate(scores.leads)
    ]
    return TextTable("regions", "RMSE at 1 km by region, ug m-3", ("region", "lead", *scores.names), rows)


def by_bin(scores: Scores) -> TextTable:
    tally = scores.tally.sum()
    names = [f"up to {EDGES_UGM3[0]:g}", *(f"{a:g} to {b:g}" for a, b in pairwise(EDGES_UGM3))]
    names.append(f"above {EDGES_UGM3[-1]:g}")
    rows = []
    for lead, ahead in enumerate(scores.leads):
        for number, name in enumerate(names):
            share = float(tally[0, lead, 0, 0].bin_share[number])
            cells = []
            for index in range(len(scores.names)):
                here = tally[index, lead, 0, 0]
                cells.append(f"{_plain([here.bin_rmse[number]])[0]} ({_signed(here.bin_bias[number])})")
            rows.append((f"T+{ahead}", name, f"{100 * share:.1f} %", *cells))
    title = "RMSE (and bias) at 1 km by true concentration, ug m-3"
    return TextTable("bins", title, ("lead", "truth", "share", *scores.names), rows)


def exceedances(scores: Scores) -> TextTable:
    tally, rows = scores.tally.sum(), []
    for index, name in enumerate(scores.names):
        for lead, ahead in enumerate(scores.leads):
            here = tally[index, lead, 0, 0]
            cells = []
            for threshold in THRESHOLDS_UGM3:
                event = Exceedance.of(here, threshold)
                cells += _plain([event.pod, event.far, event.csi, event.ets])
            same, near = index_agreement(here)
            rows.append((name, f"T+{ahead}", *cells, *_plain([same, near])))
    header = [f"above {threshold:g}: {figure}" for threshold in THRESHOLDS_UGM3 for figure in _EVENT]
    return TextTable(
        "exceedances",
        "Exceedances of daily means (ug m-3) and categories of the European Air Quality Index at 1 km",
        ("method", "lead", *header, "same category", "at most one off"),
        rows,
        ("Bands of the index as they were until 2024 (10, 20, 25, 50, 75 ug m-3), used on daily means.",),
    )


_EVENT = ("POD", "FAR", "CSI", "ETS")


def quality(scores: Scores) -> TextTable:
    start, rows = np.stack([day.at_start for day in scores.by_day]), []
    for index, name in enumerate(scores.names):
        for lead, ahead in enumerate(scores.leads):
            found = fairmode(*scores.pairs(index, lead), start)
            count = int(np.isfinite(found.mqi).sum())
            figures = _plain([found.mqi_90, found.mqi_year_90, found.mqi_forecast_90])
            rows.append((name, f"T+{ahead}", str(count), *figures))
    return TextTable(
        "fairmode",
        "FAIRMODE quality indicators at stations, 90th percentile (the objective is met up to 1)",
        ("method", "lead", "stations", "MQI", "MQI of the mean", "forecast MQI"),
        rows,
        ("Forecast MQI: against persistence of the observation, with the uncertainty of the measurement added to it.",),
    )


def spectra(scores: Scores) -> TextTable:
    rows = [
        (name, f"T+{ahead}", *_plain(scores.power_ratio[index, lead]))
        for index, name in enumerate(scores.names)
        for lead, ahead in enumerate(scores.leads)
    ]
    names = [f"from {low} px" for low in WAVELENGTHS_PX]
    return TextTable(
        "spectra",
        "Power of the forecast over that of the truth, by wavelength",
        ("method", "lead", *names),
        rows,
        ("Below 1: structure of that size was lost. Above 1: it was invented.",),
    )


def metrics(summary: ScoresFile) -> TextTable:
    """Every metric of every statistic, with intervals: also of those that plugins bring."""
    rows: list[tuple[str, ...]] = [
        (
            one.title,
            one.method,
            f"T+{one.lead}",
            one.at,
            "" if one.value is None else f"{one.value:.3f}",
            _range(one.interval),
            "" if one.method == summary.reference or one.difference is None else f"{one.difference:+.3f}",
            "" if one.method == summary.reference else _range(one.difference_interval, "+"),
        )
        for one in summary.metrics
    ]
    header = ("metric", "method", "lead", "at", "value", "95 % interval", f"minus {summary.reference}", "95 % interval")
    return TextTable("metrics", "All metrics over the whole domain and at stations, with intervals", header, rows)


def _range(bounds: tuple[float | None, float | None], sign: str = "") -> str:
    low, high = bounds
    return "" if low is None or high is None else f"[{low:{sign}.3f}, {high:{sign}.3f}]"


def _in_paper(numbers: dict[str, Any], fact: Mapping[str, Any]) -> Any:
    """The paper's numbers of a method, if it is what the paper had: its baselines worked at 25 km."""
    if fact["kind"] in ("cran-pm", "released"):
        return numbers.get("cran-pm")
    return numbers.get(fact["kind"]) if fact.get("resolution") == "25 km" else None


def _made_of(scores: Scores) -> list[str]:
    """What a method used, where it says so: CAMS's forecasts or its analyses."""
    return [f"{name}: {fact['made_of']}." for name, fact in scores.facts.items() if fact.get("made_of")]


def _unseen(scores: Scores) -> str:
    if scores.unseen is None:
        return "Which stations the losses saw is not known."
    return f"{int(scores.unseen.sum())} of {len(scores.unseen)} stations were in no method's loss."


def _plain(values: Any) -> list[str]:
    return ["" if value is None or not np.isfinite(value) else f"{float(value):.2f}" for value in values]


def _signed(value: Any) -> str:
    return "" if value is None or not np.isfinite(value) else f"{float(value):+.2f}"


def _millions(count: Any) -> str:
    return "" if count is None else f"{count / 1e6:.2f} M"


def _period(scores: Scores) -> str:
    return f"{len(scores.days)} start days in {scores.days[0]}..{scores.days[-1]}"
