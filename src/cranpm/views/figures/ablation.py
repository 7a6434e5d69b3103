"""Figure 6: what the parts of the network, of its loss and of its data are worth."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cranpm.core.errors import CranpmError
from cranpm.views.figures.experiment_data import ExperimentData, experiments_folder, has_experiment
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.sheet import letter, sheet
from cranpm.views.figures.style import HIGHLIGHT, INK, SERIES

TABLES = ("table3a", "table3b", "table3c", "priors", "relief", "learning-curves")


def tables_in(inputs: FigureInputs) -> list[str]:
    """Experiments of the ablation that have results."""
    return [name for name in TABLES if has_experiment(inputs, name)]


def ablation(inputs: FigureInputs) -> Figure:
    """One row of panels per experiment, one column per lead."""
    folder = experiments_folder(inputs)
    if not tables_in(inputs):
        raise CranpmError(
            expected=f"at least one of {', '.join(TABLES)} in {folder}",
            found="none",
            remedy="Make them with `cranpm experiment NAME --out FOLDER`.",
        )
    found = [ExperimentData.load(folder / name) for name in tables_in(inputs)]
    leads = [lead for lead in found[0].leads if inputs.lead in (None, lead)]
    heights = [0.27 * len(data.rows) + 0.95 for data in found]
    note = "dots: seeds; diamonds and bars: their mean ± standard deviation; dashed: mean of the reference"
    figure = sheet(10.2, sum(heights), "RMSE on test days by variant", [note, *found[0].notes(inputs.archive)])
    panels = figure.subplots(len(found), len(leads), squeeze=False, height_ratios=heights, sharey="row")
    for row, data in enumerate(found):
        for column, lead in enumerate(leads):
            _draw_rows(panels[row, column], data, lead)
            panels[row, column].set_xlabel(f"RMSE at T+{lead} (µg m$^{{-3}}$)", fontsize=9)
        letter(panels[row, 0], row, data.title)
    return figure


def _draw_rows(axes: Axes, data: ExperimentData, lead: int) -> None:
    if data.reference in data.rows:
        level = float(np.mean(data.rmse(data.reference, lead)))
        axes.axvline(level, color=HIGHLIGHT, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    for place, row in enumerate(data.rows):
        values = data.rmse(row, lead)
        colour = HIGHLIGHT if row == data.reference else SERIES[2]
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        axes.errorbar(np.mean(values), place, xerr=spread, color=colour, marker="D", markersize=5, capsize=2.5)
        axes.plot(values, [place] * len(values), "o", color=INK, markersize=3, alpha=0.55, zorder=3)
    axes.set_ylim(len(data.rows) - 0.4, -0.6)
    axes.set_yticks(range(len(data.rows)), data.rows)
    for label in axes.get_yticklabels():
        label.set(fontsize=8.5, fontweight="bold" if label.get_text() == data.reference else "normal")
    axes.margins(x=0.08)
    axes.grid(axis="x", alpha=0.25)
