"""Maps of where a tile looks on the coarse grid, one column per wind and one row per view."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from cranpm.archive.store import Archive
from cranpm.experiments.attention import VIEWS, WINDS, Look
from cranpm.views.figures.maps import data_label, draw_coast, extent
from cranpm.views.figures.sheet import check_picture
from cranpm.views.figures.style import INK

BOX = "#c2410c"


def draw_looks(looks: Mapping[tuple[str, str], Look], archive: Archive, path: Path) -> None:
    """Write the maps of all looks (by wind and view) in one colour scale; a wind without a look has no column."""
    check_picture(path)
    winds = [wind for wind in WINDS if (wind, VIEWS[0]) in looks]
    figure = Figure(figsize=(5 * len(winds) + 0.5, 12), dpi=120, layout="constrained")
    panels = figure.subplots(len(VIEWS), len(winds), sharex=True, sharey=True, squeeze=False)
    norm = colors.PowerNorm(0.5, 0, 100 * max(look.together.max() for look in looks.values()))
    for row, view in enumerate(VIEWS):
        for column, wind in enumerate(winds):
            image = _draw_look(panels[row, column], looks[wind, view], archive, norm)
            panels[row, column].set_title(_title(looks[wind, view], wind, view), loc="left", fontsize=10.5)
    figure.supxlabel("longitude (°E)", fontsize=10)
    figure.supylabel("latitude (°N)", fontsize=10)
    figure.colorbar(image, ax=panels, label="attention (% per coarse token)", shrink=0.7)
    figure.suptitle(f"Where the tile (box) looks · {data_label(archive)}", fontsize=12, x=0.02, ha="left")
    figure.savefig(path, format="png")


def _draw_look(axes: Axes, seen: Look, archive: Archive, norm: colors.Normalize) -> AxesImage:
    image = axes.imshow(100 * seen.together, extent=extent(seen.grid), cmap="YlGnBu", norm=norm, aspect=1.4)
    draw_coast(axes, archive)
    west, east, south, north = extent(seen.tile)
    axes.plot([west, east, east, west, west], [north, north, south, south, north], color=BOX, linewidth=1.8)
    u, v = seen.wind_ms
    speed = float(np.hypot(u, v))
    middle = ((west + east) / 2, (north + south) / 2)
    axes.quiver(
        *middle, u / speed, v / speed, color=INK, edgecolor="white", linewidth=1.2, scale=8, width=0.014, zorder=3
    )
    return image


def _title(seen: Look, wind: str, view: str) -> str:
    speed = float(np.hypot(*seen.wind_ms))
    upwind = f"{100 * seen.upwind_share():.0f} % upwind"
    return f"{wind} wind, {speed:.1f} m s$^{{-1}}$, {seen.day}\n{view}: {upwind}"
