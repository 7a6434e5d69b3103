"""Figure 3c, d: error by lead at both scales, and how certain the change against a reference is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.scores_data import ScoresData
from cranpm.views.figures.sheet import letter, sheet
from cranpm.views.figures.style import INK, QUIET

SCALES = ("1 km", "25 km")
LABEL_INCH, ROW_INCH = 0.15, 0.3
TIE: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
"""Between the end of a line and its name."""
MARKERS = "o^sDvP*X"
FAINTEST = 0.4
"""How strong the last lead is drawn; the first is drawn fully."""


def leads(inputs: FigureInputs) -> Figure:
    """Above, RMSE by lead; below, its change against the reference with the 95 % interval."""
    found = ScoresData.of(inputs)
    others = [name for name in found.names if name != found.reference]
    below = ROW_INCH * len(others) + 0.7 if others else 0.0
    notes = ["bars: 95 % intervals by a paired bootstrap over days in blocks of a week"] if others else []
    figure = sheet(10.2, 4.0 + below, "RMSE of daily PM$_{2.5}$ by lead (days ahead)", [*notes, *found.notes()])
    panels = figure.subplots(2 if others else 1, 2, squeeze=False, height_ratios=[4.0, below] if others else [1])
    for number, scale in enumerate(SCALES):
        _draw_lines(panels[0, number], found, scale)
        letter(panels[0, number], number, f"at {scale}")
        if others:
            _draw_changes(panels[1, number], found, others, scale)
            letter(panels[1, number], 2 + number, f"change, at {scale}")
    return figure


def _draw_lines(axes: Axes, found: ScoresData, scale: str) -> None:
    ends = {}
    for name in found.names:
        values = [found.rmse(name, lead, scale) for lead in found.leads]
        axes.plot(found.leads, values, **found.lines[name].marked)
        ends[name] = values[-1]
    axes.set_xticks(found.leads, [f"T+{lead}" for lead in found.leads])
    axes.set(ylabel="RMSE (µg m$^{-3}$)", ylim=_limits(axes))
    axes.grid(axis="y", alpha=0.25)
    first, last = found.leads[0], found.leads[-1]
    span = max(last - first, 1)
    axes.set_xlim(first - 0.08 * span, last + 0.55 * span)
    label_ends(axes, last, ends, found)


def _limits(axes: Axes) -> tuple[float, float]:
    low, high = axes.get_ylim()
    return max(0.0, low), high


def label_ends(axes: Axes, x: float, ends: Mapping[str, float], found: ScoresData) -> None:
    """Names of lines beside their right ends, moved where they would touch, each tied to its line."""
    low, high = axes.get_ylim()
    gap = (high - low) * LABEL_INCH / 3.3
    names = sorted(ends, key=lambda name: ends[name])
    places = spread([ends[name] for name in names], gap, low, high)
    shift = 0.09 * (axes.get_xlim()[1] - axes.get_xlim()[0])
    for name, place in zip(names, places, strict=True):
        line = found.lines[name]
        axes.annotate(
            name,
            (x, ends[name]),
            (x + shift, place),
            va="center",
            fontsize=8.5,
            color=line.colour if line.ours else INK,
            fontweight="bold" if line.ours else "normal",
            arrowprops=TIE | {"color": line.colour},
        )


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels of rising values: `gap` or more between them, near their values, from low to high."""
    groups: list[list[float]] = []  # each: wanted places of labels that touch
    for value in values:
        groups.append([value])
        while len(groups) > 1 and _start(groups[-1], gap, low, high) < _end(groups[-2], gap, low, high) + gap:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_start(group, gap, low, high) + number * gap for group in groups for number in range(len(group))]


def _start(group: Sequence[float], gap: float, low: float, high: float) -> float:
    """Place of the first label of a block that is centred on what its labels want."""
    length = (len(group) - 1) * gap
    return max(low, min(float(np.mean(group)) - length / 2, high - length))


def _end(group: Sequence[float], gap: float, low: float, high: float) -> float:
    return _start(group, gap, low, high) + (len(group) - 1) * gap


def _shade(step: int, found: ScoresData) -> float:
    """Opacity of a lead: less for later ones."""
    return 1 - (1 - FAINTEST) * step / max(len(found.leads) - 1, 1)


def _draw_changes(axes: Axes, found: ScoresData, others: Sequence[str], scale: str) -> None:
    """Dots with intervals: methods from above in order, leads one below the other."""
    changes = {
        (change.method, change.lead): change
        for change in found.scores.rmse_change_percent
        if (change.against, change.at) == (found.reference, scale)
    }
    for place, name in enumerate(others):
        for step, lead in enumerate(found.leads):
            change = changes.get((name, lead))
            if change is None or change.value is None:
                continue
            y = place + (step - (len(found.leads) - 1) / 2) * 0.72 / max(len(found.leads), 3)
            low, high = change.interval
            style: dict[str, Any] = {"color": found.lines[name].colour, "alpha": _shade(step, found)}
            if low is not None and high is not None:
                axes.plot([low, high], [y, y], linewidth=1.6, **style)
            axes.plot(change.value, y, marker=MARKERS[step % len(MARKERS)], markersize=4, linestyle="none", **style)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(others)), others)
    axes.set(ylim=(len(others) - 0.4, -0.6), xlabel=f"RMSE against {found.reference} (%); below 0 is better")
    for step, lead in enumerate(found.leads):
        axes.plot(
            [],
            [],
            MARKERS[step % len(MARKERS)],
            color=QUIET,
            alpha=_shade(step, found),
            markersize=4,
            label=f"T+{lead}",
        )
    above: dict[str, Any] = {
        "loc": "lower right",
        "bbox_to_anchor": (1, 1),
        "borderaxespad": 0.2,
    }  # where no interval can lie
    axes.legend(fontsize=8, ncols=len(found.leads), handletextpad=0.1, columnspacing=0.8, **above)
    axes.grid(axis="x", alpha=0.25)
