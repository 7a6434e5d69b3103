"""Reliability: what was true when a forecast fell into a bin of concentration."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from cranpm.core.grid import Array
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.scores_data import ScoresData
from cranpm.views.figures.sheet import letter, sheet
from cranpm.views.figures.style import INK, QUIET, SEA

MOST_LINES = 4
LEAST_PAIRS = 20
"""At stations, for a mean to be drawn."""


def reliability(inputs: FigureInputs) -> Figure:
    """What was true when a forecast fell into a bin: over all pixels, at stations, and bin by bin."""
    found = ScoresData.of(inputs)
    lead = inputs.lead or found.leads[0]
    drawn = found.few(MOST_LINES, lead)
    edges = [0.0, *found.scores.bins_ugm3]
    edges.append(edges[-1] + 25)
    note = (
        "squares: forecast and truth in one bin; (a) by the joint table of bins, each bin of the truth at its mean, "
        f"the last bin open; (b) bins with {LEAST_PAIRS} pairs or more"
    )
    title = f"Reliability of PM$_{{2.5}}$ forecasts, T+{lead}"
    figure = sheet(11.4, 4.1, title, [note, *found.not_drawn(drawn), *found.notes()])
    pixels, stations, cells = figure.subplots(1, 3)
    _draw_pixels(pixels, found, drawn, lead, edges)
    letter(pixels, 0, "all pixels of 1 km")
    _draw_stations(stations, found, drawn, lead, edges)
    letter(stations, 1, "stations")
    shown = found.ours or drawn[0]
    image = _draw_joint(cells, _joint(found, shown, lead), edges)
    letter(cells, 2, f"{shown}, pixels of 1 km")
    figure.colorbar(image, ax=cells, label="share of the forecast's bin (%)", aspect=28)
    return figure


def _joint(found: ScoresData, name: str, lead: int) -> Array:
    """(bin of the forecast, bin of the truth) share of the pixels."""
    return np.array(found.scores.of(name, lead).fields["1 km"]["all"].joint, dtype=float)


def mean_truth(joint: Array, truth_by_bin: Array) -> Array:
    """Mean truth by the forecast's bin; NaN where nothing was forecast in a bin."""
    total = joint.sum(axis=1)
    summed = (joint * np.where(joint > 0, truth_by_bin, 0)).sum(axis=1)
    return np.divide(summed, total, out=np.full(len(total), np.nan), where=total > 0)


def _draw_pixels(axes: Axes, found: ScoresData, drawn: Sequence[str], lead: int, edges: Sequence[float]) -> None:
    """Over every bin of the forecast a level line at the mean truth."""
    middle = np.add(edges[:-1], edges[1:]) / 2
    for name in drawn:
        by_bin = np.array(found.scores.of(name, lead).fields["1 km"]["all"].bin_truth, dtype=float)
        levels = mean_truth(_joint(found, name, lead), by_bin)
        line = found.lines[name]
        axes.hlines(levels, edges[:-1], edges[1:], color=line.colour, linewidth=2.4 if line.ours else 1.2, zorder=3)
        axes.plot(middle, levels, **line.marked | {"linewidth": 0.6})
    _dress(axes, edges, edges[-1], "truth")
    axes.set_xlabel("forecast's bin (µg m$^{-3}$)")


def _draw_stations(axes: Axes, found: ScoresData, drawn: Sequence[str], lead: int, edges: Sequence[float]) -> None:
    """Mean observation over mean forecast, one marker per bin of the forecast."""
    reach = edges[-1]
    for name in drawn:
        part = found.scores.of(name, lead).pairs_by_forecast
        count, forecast, truth = (np.array(values, dtype=float) for values in (part.pairs, part.forecast, part.truth))
        enough = count >= LEAST_PAIRS
        axes.plot(forecast[enough], truth[enough], label=name, **found.lines[name].marked)
        reach = max(reach, 1.06 * float(np.max([forecast[enough], truth[enough]], initial=0)))
    _dress(axes, [*edges[:-1], reach], reach, "observation")
    axes.legend(fontsize=8, loc="upper left")


def _dress(axes: Axes, edges: Sequence[float], reach: float, what: str) -> None:
    """Squares in which forecast and truth share a bin, and the line on which they are equal."""
    for low, high in pairwise(edges):
        axes.add_patch(Rectangle((low, low), high - low, high - low, facecolor=SEA, edgecolor="none", zorder=0))
    axes.plot([0, reach], [0, reach], color=QUIET, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    axes.set(xlabel="mean forecast (µg m$^{-3}$)", ylabel=f"mean {what} (µg m$^{{-3}}$)")
    axes.set(xlim=(0, reach), ylim=(0, reach))


def _draw_joint(axes: Axes, joint: Array, edges: Sequence[float]) -> AxesImage:
    """Share of the truth's bins in every bin of the forecast."""
    total = joint.sum(axis=1, keepdims=True)
    share = 100 * np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0)
    image = axes.imshow(np.ma.masked_invalid(share.T), origin="lower", cmap="YlGnBu", vmin=0, vmax=100, aspect="auto")
    for (row, column), value in np.ndenumerate(share.T):
        if value >= 0.5:
            colour = "white" if value > 60 else INK
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=7.5, color=colour)
    places = np.arange(1, len(joint)) - 0.5
    labels = [f"{edge:g}" for edge in edges[1:-1]]
    axes.set_xticks(places, labels)
    axes.set_yticks(places, labels)
    axes.set(xlabel="forecast's bin (µg m$^{-3}$)", ylabel="truth's bin (µg m$^{-3}$)")
    return image
