"""Figures 3 and 4: truth, forecasts and their errors on one day, with a close view of a region."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid, Window
from cranpm.verification.tally import Tally
from cranpm.views.figures.inputs import FigureInputs, overlap
from cranpm.views.figures.maps import PM25_LABEL, Ground, beyond, draw_box, draw_scale_bar, proportion
from cranpm.views.figures.sheet import letter, sheet, signed
from cranpm.views.figures.style import ERROR, FRAME, PM25

MOST_METHODS = 4
BAR_INCH, GAP_INCH, HEADS_INCH = 1.6, 0.22, 2.2
"""Widths of colour bar and degrees, and of the gap between panels; height of all that stands above and below panels."""


@dataclass(frozen=True)
class Day:
    """Fields of one valid day on the same pixels: truth first, then methods; and the start day's."""

    names: list[str]
    fields: list[Array]
    start: Array
    region: str
    window: Window


def comparison(inputs: FigureInputs) -> Figure:
    """Columns: truth and forecasts. Rows: the domain, a region, and errors, with that of persistence first."""
    day = _read(inputs)
    far, near = Ground.of(inputs.held(), columns=700), Ground.of(inputs.held(), day.window, 700)
    title = f"PM$_{{2.5}}$ on {inputs.valid} · forecasts T+{inputs.ahead} from {inputs.start()}"
    figure, panels = _frame(far.grid, near.grid, len(day.names), title, inputs.notes())
    shown = [_draw_fields(panels[:, column], day, column, far, near) for column in range(len(day.names))]
    wrong = [_draw_error(panels[2, column], day, column, far) for column in range(len(day.names))]
    draw_scale_bar(panels[0, 0], far.grid)
    figure.colorbar(shown[0], ax=panels[:2], label=PM25_LABEL, extend=_beyond(shown), shrink=0.8, aspect=35)
    figure.colorbar(wrong[0], ax=panels[2], label="error (µg m$^{-3}$)", extend=_beyond(wrong), aspect=18)
    return figure


def _read(inputs: FigureInputs) -> Day:
    methods = inputs.forecasts
    if not 1 <= len(methods) <= MOST_METHODS:
        raise CranpmError(
            expected=f"1 to {MOST_METHODS} times --forecasts: more cannot be read side by side",
            found=str(len(methods)),
            remedy="Name those to compare.",
        )
    archive = inputs.held()
    fields = overlap([archive.pm25(inputs.valid), *(inputs.forecast(method) for method in methods)])
    (region, window), *_ = inputs.zooms(1).items()
    return Day(["truth", *(method.name for method in methods)], fields, archive.pm25(inputs.start()), region, window)


def _frame(far: Grid, near: Grid, columns: int, title: str, notes: Sequence[str]) -> tuple[Figure, Array]:
    """The sheet, and axes by row and column."""
    wide = max(2.1, min(3.4, 9.6 / columns))
    heights = [wide * proportion(grid) for grid in (far, near, far)]
    width = columns * (wide + GAP_INCH) + BAR_INCH
    figure = sheet(width, sum(heights) + HEADS_INCH, title, notes)
    panels = figure.subplots(3, columns, squeeze=False, height_ratios=heights)
    for axes in panels[:, 1:].ravel():
        axes.tick_params(labelleft=False)
    return figure, panels


def _draw_fields(panels: Array, day: Day, column: int, far: Ground, near: Ground) -> AxesImage:
    """One column: the domain and, below it, the region."""
    field, truth, window = day.fields[column], day.fields[0], day.window
    image = far.draw(panels[0], field, PM25)
    near.draw(panels[1], field[window], PM25)
    letter(panels[0], column, f"{day.names[column]}\n" + (skill(field, truth, far.grid) if column else ""))
    inner = skill(field[window], truth[window], near.grid) if column else ""
    panels[1].set_title(f"{day.region}\n{inner}", fontsize=9, fontweight="normal", color=FRAME)
    draw_box(panels[0], panels[1], near.grid)
    return image


def _draw_error(axes: Axes, day: Day, column: int, far: Ground) -> AxesImage:
    """Forecast - truth; in the first column that of the start day's own field, which is persistence."""
    truth = day.fields[0]
    field, name = (day.fields[column], day.names[column]) if column else (day.start, "start day")
    image = far.draw(axes, field - truth, ERROR)
    text = skill(field, truth, far.grid) if column == 0 else ""
    letter(axes, len(day.names) + column, f"{name} − truth\n{text}")
    return image


def skill(forecast: Array, truth: Array, grid: Grid) -> str:
    """RMSE and bias (ug m-3) over all pixels, weighted by area, as text."""
    tally = Tally.of(forecast, truth, grid.row_area_km2[:, None])
    return f"RMSE {float(tally.rmse):.2f}, bias {signed(tally.bias)}"


def _beyond(images: Sequence[AxesImage]) -> str:
    ends = {beyond(image) for image in images}
    low, high = bool(ends & {"min", "both"}), bool(ends & {"max", "both"})
    return "both" if low and high else "min" if low else "max" if high else "neither"
