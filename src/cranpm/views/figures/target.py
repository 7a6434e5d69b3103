"""FAIRMODE's target diagram: stations by bias and by error without bias, over the measurement's uncertainty."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from cranpm.core.grid import Array
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.scores_data import ScoresData
from cranpm.views.figures.sheet import letter, sheet
from cranpm.views.figures.style import INK, NOTE, QUIET, SEA

WIDEST = 2.5
"""Stations beyond are counted, not drawn: they would make the circle small."""


def target(inputs: FigureInputs) -> Figure:
    """One panel per method: stations by bias and by error without bias, both over the measurement's uncertainty."""
    found = ScoresData.of(inputs)
    lead = inputs.lead or found.leads[0]
    columns = min(4, len(found.names))
    rows = math.ceil(len(found.names) / columns)
    points = {name: _target_points(found, name, lead) for name in found.names}
    reach = _reach(list(points.values()))
    note = (
        "inside the circle FAIRMODE's objective is met, inside the dotted one the error is below the measurement's, U; "
        "left: correlation is to blame, right: variance"
    )
    title = f"FAIRMODE target diagram, PM$_{{2.5}}$ at stations, T+{lead}"
    figure = sheet(2.45 * columns + 0.4, 2.95 * rows + 0.2, title, [note, *found.notes()])
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for number, name in enumerate(found.names):
        _draw_target(panels[number], points[name], reach, found.lines[name].colour)
        quality = found.scores.of(name, lead).fairmode
        text = "no MQI" if quality.mqi_90 is None else f"MQI$_{{90}}$ {quality.mqi_90:.2f}"
        letter(panels[number], number, f"{name}\n{text}", color=INK)
    for axes in panels[len(found.names) :]:
        axes.set_axis_off()
    for number in range((rows - 1) * columns, len(found.names)):
        panels[number].set_xlabel("error without bias / 2U", fontsize=9)
    for axes in panels:
        axes.tick_params(labelbottom=True)
    for axes in panels[::columns]:
        axes.set_ylabel("bias / 2U", fontsize=9)
    return figure


def _target_points(found: ScoresData, name: str, lead: int) -> Array:
    """(station, [x, y]) of those with enough days."""
    pairs = found.scores.of(name, lead).fairmode.target.values()
    return np.array([pair for pair in pairs if None not in pair], dtype=float).reshape(-1, 2)


def _reach(points: Sequence[Array]) -> float:
    """How far the axes go: all stations and the circle, but not too far."""
    most = max((float(np.abs(part).max()) for part in points if part.size), default=1.0)
    return min(WIDEST, max(1.15, 1.05 * most))


def _draw_target(axes: Axes, points: Array, reach: float, colour: str) -> None:
    axes.add_patch(Circle((0, 0), 1, facecolor=SEA, edgecolor=INK, linewidth=1))
    axes.add_patch(Circle((0, 0), 0.5, fill=False, edgecolor=INK, linewidth=0.8, linestyle=":"))
    axes.axhline(0, color=QUIET, linewidth=0.6)
    axes.axvline(0, color=QUIET, linewidth=0.6)
    axes.plot(*points.T, "o", color=colour, markersize=2.6, alpha=0.5, markeredgewidth=0, rasterized=len(points) > 1000)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    met = int((np.hypot(*points.T) <= 1).sum())
    beyond = int((np.abs(points).max(axis=1, initial=0) > reach).sum())
    text = f"{met} of {len(points)} met" + (f", {beyond} beyond" if beyond else "")
    axes.text(0.98, 0.02, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=7.5, color=NOTE)
