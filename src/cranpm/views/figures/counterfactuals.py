"""Counterfactuals: how much skill each model loses when a cause is taken away or changed."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.experiments.results import AS_IT_IS
from cranpm.views.figures.experiment_data import ExperimentData, experiments_folder
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.sheet import letter, sheet
from cranpm.views.figures.style import COAST, INK

EXPERIMENT = "counterfactuals"
PALETTE = "RdBu_r"
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def counterfactuals(inputs: FigureInputs) -> Figure:
    """Model by condition: points of skill that are lost."""
    data = ExperimentData.load(experiments_folder(inputs) / EXPERIMENT)
    lead = inputs.lead or data.leads[0]
    blocks = _blocks(data)
    lost = [lost_points(data, names, lead) for names in blocks.values()]
    width, height = max(7.0, 3.4 + 0.8 * sum(map(len, blocks.values()))), max(3.0, 1.9 + 0.42 * len(data.rows))
    note = f"skill: 1 − RMSE / RMSE of persistence under the same condition; mean over seeds: {data.seeds}"
    title = f"Skill lost at T+{lead} when a cause is taken away or changed"
    figure = sheet(width, height, title, [note, *data.notes(inputs.archive)])
    ratios = [max(len(names), 1.5) for names in blocks.values()]
    panels = figure.subplots(1, len(blocks), squeeze=False, width_ratios=ratios, sharey=True)[0]
    top = max(float(np.abs(part).max()) for part in lost)
    norm = colors.AsinhNorm(linear_width=max(top / 8, 0.05), vmin=-top, vmax=top)
    for number, (title, names) in enumerate(blocks.items()):
        image = _draw_cells(panels[number], data.rows, names, lost[number], norm)
        letter(panels[number], number, title)
    bar = figure.colorbar(image, ax=panels, label="skill lost (percentage points)", aspect=25)
    ticks = [sign * tick for sign in (-1, 1) for tick in TICKS if top / 30 < tick <= top] + [0]
    bar.set_ticks(sorted(ticks), labels=[f"{tick:+g}".replace("-", "−") if tick else "0" for tick in sorted(ticks)])
    bar.minorticks_off()
    return figure


def _blocks(data: ExperimentData) -> dict[str, list[str]]:
    """Conditions by what they change."""
    found = {"inputs changed": data.interventions, "other worlds": data.worlds}
    if not any(found.values()):
        raise CranpmError(
            expected="conditions in which something is changed",
            found="none",
            remedy="Run `cranpm experiment counterfactuals`.",
        )
    return {title: names for title, names in found.items() if names}


def lost_points(data: ExperimentData, conditions: Sequence[str], lead: int) -> Array:
    """(row, condition) skill as it is minus skill under the condition, in percentage points."""

    def skill(row: str, condition: str) -> float:
        return 100 * float(np.mean(data.skill(row, lead, condition)))

    return np.array([[skill(row, AS_IT_IS) - skill(row, name) for name in conditions] for row in data.rows])


def _draw_cells(
    axes: Axes, rows: Sequence[str], names: Sequence[str], lost: Array, norm: colors.Normalize
) -> AxesImage:
    image = axes.imshow(lost, cmap=PALETTE, norm=norm, aspect="auto")
    for (row, column), value in np.ndenumerate(lost):
        dark = abs(float(norm(value)) - 0.5) > 0.28
        axes.text(
            column,
            row,
            f"{round(float(value), 1) + 0.0:+.1f}".replace("-", "−"),
            ha="center",
            va="center",
            fontsize=8,
            color="white" if dark else INK,
        )
    axes.set_yticks(range(len(rows)), rows, fontsize=8.5)
    axes.set_xticks(range(len(names)), [_folded(name) for name in names], fontsize=8, rotation=35, ha="right")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0, color=COAST)
    return image


def _folded(name: str) -> str:
    """A world's name with its box on a second line."""
    return name.replace(":", "\n")
