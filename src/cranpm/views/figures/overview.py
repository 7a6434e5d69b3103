"""Figure 1: a day over the whole domain, regions seen closely, and what stations observed."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch
from matplotlib.ticker import MaxNLocator

from cranpm.core.grid import Array, Grid, Window
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.maps import (
    PM25_LABEL,
    Ground,
    beyond,
    draw_box,
    draw_scale_bar,
    draw_stations,
    extent,
    proportion,
)
from cranpm.views.figures.sheet import TITLE_INCH, letter, sheet
from cranpm.views.figures.style import FRAME, PM25

MOST_ZOOMS = 3
MAIN_INCH, SIDE_INCH = 6.4, 3.6
LEFT_INCH, BETWEEN_INCH, RIGHT_INCH = 0.7, 0.6, 0.7
HEAD_INCH, TICKS_INCH, BAR_INCH = 0.25, 0.3, 0.95
"""Height of a panel's title, of its degrees below, and of the colour bar with its labels."""


def overview(inputs: FigureInputs) -> Figure:
    """A day of the archive, or a forecast where --forecasts and --lead say so."""
    archive, (field, title, day) = inputs.held(), _shown(inputs)
    observed = archive.stations_pm25(day) if day in archive.days else None
    ground, zooms = Ground.of(archive, columns=1000), _from_north(inputs.zooms(MOST_ZOOMS))
    circles = f"circles: stations' daily means of {day}" if observed is not None else f"no observations of {day}"
    near = [Ground.of(archive, window, 900) for window in zooms.values()]
    grids = [close.grid for close in near]
    figure, (main, *insets), bar = _frame(ground.grid, grids, title, [circles, *inputs.notes()])
    image = ground.draw(main, field, PM25)
    figure.colorbar(image, cax=bar, orientation="horizontal", label=PM25_LABEL, extend=beyond(image))
    letter(main, 0, archive.domain.name)
    draw_scale_bar(main, ground.grid, 0.72 if len(insets) > 1 else 0.42)
    for number, (axes, close, name) in enumerate(zip(insets, near, zooms, strict=True), start=1):
        close.draw(axes, field[zooms[name]], PM25)
        letter(axes, number, name, loc="left" if len(insets) > 1 else "center")
        _link(figure, main, axes, close.grid, beside=len(insets) > 1)
        _name(main, close.grid, chr(ord("a") + number))
    for axes, size in ((main, None), *((axes, 24.0) for axes in insets)):
        if observed is not None:
            draw_stations(axes, archive, observed, PM25, size)
    return figure


def _from_north(zooms: dict[str, Window]) -> dict[str, Window]:
    """In the order of the map, so that the lines to close views cross as little as can be."""
    return dict(sorted(zooms.items(), key=lambda item: item[1][0].start + item[1][0].stop))


def _shown(inputs: FigureInputs) -> tuple[Array, str, date]:
    """The field, what it is, and the day that it is for."""
    day = inputs.start()
    if inputs.forecasts and inputs.lead is not None:
        method = inputs.forecasts[0]
        title = f"PM$_{{2.5}}$ on {inputs.valid} · {method.name}, T+{inputs.ahead} from {day}"
        return inputs.forecast(method), title, inputs.valid
    return inputs.held().pm25(day), f"PM$_{{2.5}}$ on {day}", day


def _frame(grid: Grid, zooms: Sequence[Grid], title: str, notes: Sequence[str]) -> tuple[Figure, list[Axes], Axes]:
    """The sheet with axes of the large map and of the close views, and of the colour bar."""
    tall = MAIN_INCH * proportion(grid)
    beside = len(zooms) > 1
    places = _beside(zooms, tall) if beside else _below(zooms[0], tall)
    width = LEFT_INCH + MAIN_INCH + RIGHT_INCH + (BETWEEN_INCH + SIDE_INCH if beside else 0)
    height = HEAD_INCH + tall + BAR_INCH + (0 if beside else HEAD_INCH + TICKS_INCH + places[0][3])
    figure = sheet(width, height, title, notes, arranged=False)
    top = figure.get_figheight() - TITLE_INCH - HEAD_INCH
    main = _add(figure, (LEFT_INCH, tall, MAIN_INCH, tall), top)
    bar = (LEFT_INCH + 0.15 * MAIN_INCH, height - HEAD_INCH - 0.45, 0.7 * MAIN_INCH, 0.14)
    return figure, [main, *(_add(figure, place, top) for place in places)], _add(figure, bar, top)


Place = tuple[float, float, float, float]
"""Inches: left, from the top of the map down to the lower edge, width, height."""


def _beside(zooms: Sequence[Grid], tall: float) -> list[Place]:
    """One below the other at the right, as large as the height of the map lets them be."""
    room = (tall + HEAD_INCH + TICKS_INCH) / len(zooms)
    found = []
    for number, zoom in enumerate(zooms):
        width = min(SIDE_INCH, (room - HEAD_INCH - TICKS_INCH) / proportion(zoom))
        height = width * proportion(zoom)
        found.append((LEFT_INCH + MAIN_INCH + BETWEEN_INCH, number * room + height, width, height))
    return found


def _below(zoom: Grid, tall: float) -> list[Place]:
    """One alone, under the map and as wide, unless it is tall."""
    width = min(MAIN_INCH, SIDE_INCH / proportion(zoom))
    height = width * proportion(zoom)
    return [(LEFT_INCH + (MAIN_INCH - width) / 2, tall + TICKS_INCH + HEAD_INCH + height, width, height)]


def _add(figure: Figure, place: Place, top: float) -> Axes:
    """Axes at a place that is measured from `top` inches above the sheet's lower edge."""
    (left, down, width, height), (across, up) = place, figure.get_size_inches()
    return figure.add_axes((left / across, (top - down) / up, width / across, height / up))


def _link(figure: Figure, main: Axes, axes: Axes, zoom: Grid, beside: bool) -> None:
    """A box on the map, and lines from it to its close view at the right or below."""
    wide = axes.get_position().width * figure.get_figwidth()
    draw_box(main, axes, zoom)
    if beside:
        axes.yaxis.tick_right()  # the lines come from the left
    axes.xaxis.set_major_locator(MaxNLocator(max(2, int(wide / 0.7)), steps=[1, 2, 5, 10]))
    west, east, south, north = extent(zoom)
    corners = ((north, north), (south, south)) if beside else ((west, west), (east, east))
    for here, there in corners:
        ends = ((east, here), (west, there)) if beside else ((here, south), (there, north))
        line = ConnectionPatch(*ends, main.transData, axes.transData, color=FRAME, linewidth=1.0)
        figure.add_artist(line)


def _name(main: Axes, zoom: Grid, name: str) -> None:
    """The letter of the close view at its box."""
    halo = [patheffects.withStroke(linewidth=2.5, foreground="white")]
    style: dict[str, Any] = {"color": FRAME, "fontsize": 9, "fontweight": "bold", "path_effects": halo, "zorder": 6}
    main.annotate(name, (zoom.west, zoom.north), (0, 2), textcoords="offset points", **style)
