"""Power by wavelength, relative to the truth: is fine structure blurred?"""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cranpm.core.grid import EARTH_RADIUS_KM, FINE_STEP, Array
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.scores_data import ScoresData
from cranpm.views.figures.sheet import letter, sheet
from cranpm.views.figures.style import INK

LEAST_RATIO, MOST_RATIO = 1e-4, 3.0
"""Ends of the axis: below, structure is as good as gone, and how thoroughly does not matter."""
KM_PER_PIXEL = math.radians(FINE_STEP) * EARTH_RADIUS_KM


def spectra(inputs: FigureInputs) -> Figure:
    """Power of the forecasts over that of the truth, by wavelength: below 1, structure was lost."""
    found = ScoresData.of(inputs)
    leads = [lead for lead in found.leads if inputs.lead in (None, lead)]
    edges = np.array([*found.scores.wavelengths_px, 2 * found.scores.wavelengths_px[-1]]) * KM_PER_PIXEL
    note = f"squares of land; a pixel counts as {KM_PER_PIXEL:.2f} km, its height; below {LEAST_RATIO:g} not drawn"
    title = "Power of forecasts relative to the truth"
    columns = 6 if len(leads) > 1 else 3
    legend = 0.2 * math.ceil(len(found.names) / columns) + 0.1
    figure = sheet(max(5.2, 3.5 * len(leads) + 0.4), 3.4 + legend, title, [note, *found.notes()])
    parts = figure.add_gridspec(2, len(leads), height_ratios=[3.4, legend])
    panels = [figure.add_subplot(parts[0, number]) for number in range(len(leads))]
    for number, (axes, lead) in enumerate(zip(panels, leads, strict=True)):
        _draw_spectra(axes, found, lead, edges)
        letter(axes, number, f"T+{lead}")
    panels[0].set_ylabel("power of forecast / power of truth")
    below = figure.add_subplot(parts[1, :])
    below.set_axis_off()
    below.legend(*panels[0].get_legend_handles_labels(), loc="center", ncols=columns, fontsize=8.5)
    return figure


def _draw_spectra(axes: Axes, found: ScoresData, lead: int, edges: Array) -> None:
    middle = np.sqrt(edges[:-1] * edges[1:])
    for name in found.names:
        ratio = np.array(found.scores.of(name, lead).power_ratio, dtype=float)
        axes.plot(middle, ratio, label=name, **found.lines[name].marked)
    axes.axhline(1, color=INK, linewidth=0.9)
    axes.set(xscale="log", yscale="log", xlabel="wavelength (km)", ylim=(LEAST_RATIO, MOST_RATIO))
    ticks = [2, 5, 10, 20, 50, 100, 200]
    axes.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(alpha=0.25)
