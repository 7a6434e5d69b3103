"""Figures 8 to 10: means over days in every pixel, as maps and pixel against pixel."""

from collections.abc import Sequence
from pathlib import Path

import netCDF4
import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid
from cranpm.verification.means import Means
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.maps import PM25_LABEL, Ground, beyond, draw_scale_bar, proportion
from cranpm.views.figures.scores_data import ScoresData
from cranpm.views.figures.sheet import letter, sheet, signed
from cranpm.views.figures.style import HIGHLIGHT, INK, PM25

MOST_METHODS = 3
CELLS = 150
"""Of the scatter, along each axis."""
DENSITY = "viridis"


def transfer(inputs: FigureInputs) -> Figure:
    """Above, mean maps of truth and methods; below, each method's means against the true ones."""
    found = ScoresData.of(inputs)
    means = read_means(found.folder / "means.nc")
    drawn = [name for name in found.few(MOST_METHODS, means.lead) if name in means.forecasts]
    note = "a mean over days hides what happens from day to day: persistence is nearly perfect here"
    title = f"PM$_{{2.5}}$, mean over {means.days} days, forecasts T+{means.lead}"
    figure, panels = _frame(means.grid, len(drawn) + 1, title, [note, *found.not_drawn(drawn), *found.notes()])
    ground = Ground.where(np.isfinite(means.truth), means.grid, 700)
    shown = ground.draw(panels[0, 0], means.truth, PM25)
    letter(panels[0, 0], 0, "truth")
    draw_scale_bar(panels[0, 0], means.grid)
    for number, name in enumerate(drawn, start=1):
        ground.draw(panels[0, number], means.forecasts[name], PM25)
        letter(panels[0, number], number, name)
        counted = _draw_scatter(panels[1, number], means, name, _top(means))
        letter(panels[1, number], len(drawn) + number, name)
    panels[1, 1].set_ylabel("mean forecast (µg m$^{-3}$)")
    _explain(panels[1, 0])
    figure.colorbar(shown, ax=panels[0], label=PM25_LABEL, extend=beyond(shown), aspect=22)
    figure.colorbar(counted, ax=panels[1], label="pixels", aspect=22)
    return figure


def _frame(grid: Grid, columns: int, title: str, notes: Sequence[str]) -> tuple[Figure, Array]:
    wide = min(3.2, 9.0 / columns)
    heights = [wide * proportion(grid), wide]
    figure = sheet(columns * (wide + 0.22) + 1.6, sum(heights) + 1.6, title, notes)
    panels = figure.subplots(2, columns, squeeze=False, height_ratios=heights)
    for axes in (*panels[0, 1:], *panels[1, 2:]):
        axes.tick_params(labelleft=False)
    return figure, panels


def _explain(axes: Axes) -> None:
    """What the lines of the scatters are, in the place that they leave free."""
    axes.set_axis_off()
    axes.plot([], [], color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label="forecast = truth")
    axes.plot([], [], color=HIGHLIGHT, linewidth=1.4, label="least squares, by area")
    axes.legend(loc="center", fontsize=9, title="pixel by pixel", title_fontsize=9)


def read_means(path: Path) -> Means:
    """Mean maps from the file that `cranpm verify --means` wrote."""
    if not path.is_file():
        raise CranpmError(expected=f"mean maps at {path}", found="none", remedy="Make them: `cranpm verify --means`.")
    with netCDF4.Dataset(path) as file:
        lat, lon = (np.asarray(file[name][:], np.float64) for name in ("lat", "lon"))
        fields = {
            name: np.ma.filled(variable[:].astype(np.float32), np.nan)
            for name, variable in file.variables.items()
            if variable.dimensions == ("lat", "lon")
        }
        lead, days = int(file.lead_days), int(file.days)
    step = round(float(lat[0] - lat[1]), 9)
    grid = Grid(round(float(lat[0]) + step / 2, 9), round(float(lon[0]) - step / 2, 9), step, len(lat), len(lon))
    return Means(lead, days, grid, fields.pop("truth"), fields)


def _top(means: Means) -> float:
    """A round end for both axes of all scatters."""
    most = max(float(np.nanmax(field)) for field in (means.truth, *means.forecasts.values()))
    return float(5 * np.ceil(most / 5))


def density(forecast: Array, truth: Array, top: float) -> Array:
    """(forecast, truth) pixels in square cells from 0 to `top`, forecasts rising with the row."""
    both = np.isfinite(forecast) & np.isfinite(truth)
    rows, cols = (np.clip(field[both] * (CELLS / top), 0, CELLS - 1).astype(np.int32) for field in (forecast, truth))
    return np.bincount(rows * CELLS + cols, minlength=CELLS * CELLS).reshape(CELLS, CELLS)


def _draw_scatter(axes: Axes, means: Means, name: str, top: float) -> AxesImage:
    counts = density(means.forecasts[name], means.truth, top)
    image = axes.imshow(
        np.ma.masked_equal(counts, 0),
        origin="lower",
        extent=(0, top, 0, top),
        norm=colors.LogNorm(1, max(2, counts.max())),
        cmap=DENSITY,
        interpolation="nearest",
    )
    tally = means.tally(name)
    slope = float(tally.slope)
    start = float(tally.mean_truth + tally.bias) - slope * float(tally.mean_truth)
    axes.plot([0, top], [0, top], color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
    axes.plot([0, top], [start, start + slope * top], color=HIGHLIGHT, linewidth=1.4)
    text = (
        f"y = {slope:.2f} x {'+' if start >= 0 else '−'} {abs(start):.2f}\nR² {float(tally.r2):.3f}\n"
        f"RMSE {float(tally.rmse):.2f}\nbias {signed(tally.bias)}\nN {counts.sum():,}"
    )
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.5}
    axes.text(0.98, 0.02, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=8, bbox=box)
    axes.set(xlim=(0, top), ylim=(0, top), xlabel="mean truth (µg m$^{-3}$)")
    return image
