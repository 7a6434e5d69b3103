"""Figure 5: means of regions day by day, with the error of every method beside."""

import numpy as np
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.scores_data import ScoresData
from cranpm.views.figures.sheet import letter, sheet
from cranpm.views.figures.style import TRUTH

MOST_LINES = 3
LABEL = "PM$_{2.5}$ (µg m$^{-3}$)"


def places(inputs: FigureInputs) -> Figure:
    """One row per place: the series of its mean, and RMSE at 1 km."""
    found = ScoresData.of(inputs)
    lead = inputs.lead or found.leads[0]
    series, drawn = _chosen(found, inputs.region), found.few(MOST_LINES, lead)
    each = max(1.7, 0.19 * len(found.names) + 0.5)
    note = f"lines: {', '.join(drawn)}; bars: all" if len(drawn) < len(found.names) else "bars: RMSE of the pixels"
    title = f"Regional means of PM$_{{2.5}}$, forecasts T+{lead}"
    figure = sheet(10.2, each * len(series) + 0.5, title, [note, *found.notes()])
    panels = figure.subplots(len(series), 2, squeeze=False, width_ratios=[3.1, 1], sharex="col")
    for row, (place, by_lead) in enumerate(series.items()):
        _draw_series(panels[row, 0], by_lead[lead], drawn, found)
        _draw_bars(panels[row, 1], found, lead, place)
        letter(panels[row, 0], row, "whole domain" if place == "all" else place)
    panels[0, 1].set_title("RMSE at 1 km (µg m$^{-3}$)", fontsize=9.5)
    handles = panels[0, 0].get_legend_handles_labels()
    panels[0, 0].legend(*handles, loc="upper right", ncols=4, fontsize=8.5, bbox_to_anchor=(1, 1.17), borderaxespad=0)
    return figure


def _chosen(found: ScoresData, region: str | None) -> dict[str, dict[int, dict[str, Array]]]:
    """Series of all places, or of the one that was asked for."""
    series = found.series()
    if region is None:
        return series
    if region not in series:
        raise CranpmError(
            expected=f"--region among {', '.join(series)}", found=region, remedy="Name one that was verified."
        )
    return {region: series[region]}


def _draw_series(axes: Axes, columns: dict[str, Array], drawn: list[str], found: ScoresData) -> None:
    days, order = columns["valid"], np.argsort(columns["valid"])
    days = days[order]
    styles = {"truth": {"color": TRUTH, "linewidth": 1.8, "zorder": 3.5}}
    for name in ("truth", *drawn):
        style = styles.get(name) or found.lines[name].plain | {"linewidth": 1.8 if found.lines[name].ours else 1.1}
        axes.plot(*broken(days, columns[name][order]), label=name, **style)
    axes.set(ylabel=LABEL, ylim=(0, None))
    axes.margins(x=0.01)
    locator = dates.AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.grid(alpha=0.2)


def broken(days: Array, values: Array) -> tuple[Array, Array]:
    """Days and values with a gap of NaN wherever days are missing, so that no line bridges them."""
    steps = np.diff(days).astype(int)
    if not steps.size:
        return days, values
    gaps = np.flatnonzero(steps > 2 * np.median(steps)) + 1
    return np.insert(days, gaps, days[gaps - 1] + 1), np.insert(values, gaps, np.nan)


def _draw_bars(axes: Axes, found: ScoresData, lead: int, place: str) -> None:
    """All methods, the best above."""
    names = sorted(found.names, key=lambda name: found.rmse(name, lead, place=place))
    values = [found.rmse(name, lead, place=place) for name in names]
    colours = [found.lines[name].colour for name in names]
    bars = axes.barh(range(len(names)), values, color=colours, height=0.7)
    axes.bar_label(bars, fmt="%.2f", fontsize=7.5, padding=2)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if found.lines[name].ours else "normal")
    axes.invert_yaxis()
    axes.margins(x=0.25)
    axes.tick_params(left=False)
