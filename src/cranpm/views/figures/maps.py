"""Maps: aggregated to the size of the picture before drawing, so that 29 million pixels cost little."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colors, patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from cranpm.archive.store import Archive
from cranpm.core.channels import find_channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import EARTH_RADIUS_KM, EVERYWHERE, Array, Grid, Window
from cranpm.views.figures.sheet import check_picture, source_label
from cranpm.views.figures.style import COAST, FRAME, INK, PM25, SEA, Shade, drawing

WIDTH_PX = 1500
MANY_STATIONS = 800
SMALL_PX = 700
"""A panel up to this width has room for few degrees."""
PM25_LABEL = "PM$_{2.5}$ (µg m$^{-3}$)"


@dataclass(frozen=True)
class Layer:
    """A field with all that is needed to draw it."""

    values: Array
    grid: Grid
    label: str
    palette: str = "viridis"
    norm: colors.Normalize | None = None


@dataclass(frozen=True)
class Ground:
    """What lies under maps of one window: where it is and its coast, prepared once for all panels."""

    grid: Grid
    land: Array
    """Share of land, aggregated."""
    land_grid: Grid
    columns: int = WIDTH_PX
    """Most pixels that a panel is wide."""

    @classmethod
    def of(cls, archive: Archive, window: Window = EVERYWHERE, columns: int = WIDTH_PX) -> "Ground":
        grid = archive.domain.fine.window(*window)
        return cls.where(archive.land(window), grid, columns)

    @classmethod
    def where(cls, land: Array, grid: Grid, columns: int = WIDTH_PX) -> "Ground":
        """From a mask of land."""
        return cls(grid, *aggregate(land.astype(np.float32), grid, columns), columns)

    def draw(self, axes: Axes, values: Array, shade: Shade) -> AxesImage:
        """A field of the window with its coast."""
        image = draw_field(axes, Layer(values, self.grid, shade.label, shade.palette, shade.norm), self.columns)
        self.draw_coast(axes)
        dress(axes, self.grid, ticks=7 if self.columns > SMALL_PX else 5)
        return image

    def draw_coast(self, axes: Axes) -> None:
        """The coast, painted and not drawn in vector files: a continent has too many corners."""
        if 0 < self.land.mean() < 1:
            lon, lat = self.land_grid.lon, self.land_grid.lat
            coast = axes.contour(lon, lat, self.land, levels=[0.5], colors=COAST, linewidths=0.5)
            coast.set_rasterized(True)


def draw_field(axes: Axes, layer: Layer, columns: int = WIDTH_PX) -> AxesImage:
    """A field in its true proportions, north up."""
    picture, grid = aggregate(layer.values, layer.grid, columns)
    image = axes.imshow(
        np.ma.masked_invalid(picture),
        extent=extent(grid),
        cmap=layer.palette,
        norm=layer.norm,
        interpolation="nearest",
        aspect=stretch(layer.grid),
    )
    dress(axes, layer.grid)
    return image


def pm25_layer(values: Array, grid: Grid) -> Layer:
    """PM2.5 in the one colour scale that all maps share, so that they can be compared."""
    return Layer(values, grid, PM25_LABEL, PM25.palette, PM25.norm)


def draw_archive(archive: Archive, field: str, day: date | None, path: Path, *, stations: bool = True) -> None:
    """A map of one field of an archive: pm25, wind, elevation, land or any coarse channel."""
    known = ("pm25", "wind", "elevation", "land", *archive.channel_names)
    if field not in known:
        raise CranpmError(expected=f"a field among {', '.join(known)}", found=field, remedy="Name one of these.")
    if field not in ("elevation", "land") and day is None:
        raise CranpmError(expected=f"a day for {field}", found="none", remedy="Add --day YYYY-MM-DD.")
    check_picture(path)
    title = field if day is None or field in ("elevation", "land") else f"{field} · {day}"
    wind = circles = None
    if field == "pm25" and day is not None:
        layer = pm25_layer(archive.pm25(day), archive.domain.fine)
        title = f"PM$_{{2.5}}$ · {day}"
        circles = archive.stations_pm25(day) if stations else None
    elif field == "wind" and day is not None:
        u, v = archive.coarse(day)[[find_channel(archive.channels, name) for name in ("wind_u", "wind_v")]]
        layer, wind = Layer(np.hypot(u, v), archive.domain.coarse, "wind speed at 10 m (m s$^{-1}$)", "BuPu"), (u, v)
        title = f"wind at 10 m · {day}"
    elif field in archive.channel_names and day is not None:
        index = archive.channel_names.index(field)
        label = f"{archive.channels[index].meaning} ({archive.channels[index].unit})"
        layer = Layer(archive.coarse(day)[index], archive.domain.coarse, label)
    else:
        layer = _static_layer(archive, field)
    draw(layer, archive, title, path, circles=circles, wind=wind)


def _static_layer(archive: Archive, field: str) -> Layer:
    statics, grid = archive.statics(), archive.domain.fine
    if field == "land":
        return Layer(statics.land.astype(float), grid, "land (1) and sea (0)", "Greys")
    height = np.where(statics.land, statics.elevation_m, np.nan)
    return Layer(height, grid, "elevation (m)", "gist_earth", colors.Normalize(-1200, 3600))


def draw(
    layer: Layer,
    archive: Archive,
    title: str,
    path: Path,
    *,
    circles: Array | None = None,
    wind: tuple[Array, Array] | None = None,
) -> None:
    """Write one PNG map with coast, graticule, scale bar, colour bar and, on request, stations and wind arrows."""
    check_picture(path)
    with drawing():
        figure, axes, bar = _frame(layer.grid)
        image = draw_field(axes, layer)
        draw_coast(axes, archive)
        dress(axes, layer.grid)  # the coast of the fine grid may reach beyond a coarse field
        if wind is not None:
            _draw_wind(axes, layer.grid, *wind)
        if circles is not None:
            draw_stations(axes, archive, circles, layer)
            axes.legend(loc="lower left", frameon=True, framealpha=0.9, fontsize=9, borderpad=0.5)
        draw_scale_bar(axes, layer.grid)
        figure.colorbar(image, cax=bar, label=layer.label, extend=beyond(image))
        axes.set_title(title, loc="left", fontsize=14, fontweight="bold")
        axes.set_title(data_label(archive), loc="right", fontsize=9)
        figure.savefig(path, format="png")


def data_label(archive: Archive) -> str:
    """What everybody who looks at the map must know of its data."""
    return source_label(archive.source)


def beyond(image: AxesImage) -> str:
    """At which ends of the colour bar values lie beyond the colours, as matplotlib says it."""
    shown: Array = np.ma.compressed(np.ma.masked_invalid(np.ma.asarray(image.get_array())))
    low, high = image.norm.vmin, image.norm.vmax
    under = shown.size > 0 and low is not None and bool(shown.min() < low)
    over = shown.size > 0 and high is not None and bool(shown.max() > high)
    return {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[under, over]


def stretch(grid: Grid) -> float:
    """How much longer a degree north is than one east, in the middle of a grid."""
    return 1 / math.cos(math.radians((grid.north + grid.south) / 2))


def proportion(grid: Grid) -> float:
    """Height over width of a map."""
    return (grid.north - grid.south) * stretch(grid) / (grid.east - grid.west)


def _frame(grid: Grid) -> tuple[Figure, Axes, Axes]:
    left, right, top, bottom = 0.75, 1.35, 0.55, 0.55
    width = 10.0
    height = width * proportion(grid)
    figure = Figure(figsize=(width + left + right, height + top + bottom), dpi=WIDTH_PX / (width + left + right))
    across, up = figure.get_size_inches()
    axes = figure.add_axes((left / across, bottom / up, width / across, height / up))
    bar = figure.add_axes(
        ((left + width + 0.18) / across, (bottom + 0.1 * height) / up, 0.22 / across, 0.8 * height / up)
    )
    return figure, axes, bar


def dress(axes: Axes, grid: Grid, ticks: int = 7) -> None:
    """Limits, sea, graticule and at most so many degrees along each side of a map."""
    axes.set_facecolor(SEA)
    axes.set(xlim=(grid.west, grid.east), ylim=(grid.south, grid.north))
    axes.xaxis.set_major_formatter(lambda x, _: f"{abs(x):g}°{'W' if x < 0 else 'E' if x > 0 else ''}")
    axes.yaxis.set_major_formatter(lambda y, _: f"{abs(y):g}°{'S' if y < 0 else 'N' if y > 0 else ''}")
    axes.grid(color=COAST, alpha=0.18, linewidth=0.5)
    axes.tick_params(length=3, colors=INK)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))


def draw_box(axes: Axes, close: Axes, zoom: Grid) -> None:
    """Where a close view lies, in the colour of its frame."""
    west, east, south, north = extent(zoom)
    frame = Rectangle((west, south), east - west, north - south, fill=False, edgecolor=FRAME, linewidth=1.2, zorder=5)
    axes.add_patch(frame)
    for spine in close.spines.values():
        spine.set(visible=True, edgecolor=FRAME, linewidth=1.2)


def aggregate(values: Array, grid: Grid, columns: int = WIDTH_PX) -> tuple[Array, Grid]:
    """Means of the valid pixels in square blocks, so many that at most `columns` lie side by side."""
    factor = max(1, math.ceil(grid.cols / columns))
    rows, cols = grid.rows // factor, grid.cols // factor
    part = values[: rows * factor, : cols * factor]
    valid = np.isfinite(part)
    total = _block_sums(np.where(valid, part, 0).astype(np.float32, copy=False), factor)
    count = _block_sums(valid, factor)
    means = np.divide(total, count, out=np.full((rows, cols), np.nan), where=count > 0)
    return means, Grid(grid.north, grid.west, grid.step * factor, rows, cols)


def _block_sums(values: Array, factor: int) -> Array:
    """Down first: whole rows add fast, and little is left to add across."""
    rows, cols = values.shape[0] // factor, values.shape[1] // factor
    down = values.reshape(rows, factor, -1).sum(axis=1, dtype=np.float32)
    return down.reshape(rows, cols, factor).sum(axis=2, dtype=np.float64)


def extent(grid: Grid) -> tuple[float, float, float, float]:
    return grid.west, grid.east, grid.south, grid.north


def draw_coast(axes: Axes, archive: Archive) -> None:
    Ground.of(archive).draw_coast(axes)


def _draw_wind(axes: Axes, grid: Grid, u: Array, v: Array) -> None:
    every = max(1, round(max(grid.shape) / 30))
    part = (slice(every // 2, None, every), slice(every // 2, None, every))
    lon, lat = np.meshgrid(grid.lon, grid.lat)
    arrows = axes.quiver(lon[part], lat[part], u[part], v[part], color=INK, width=0.0018, scale=200)
    axes.quiverkey(arrows, 0.5, 1.03, 10, "10 m s$^{-1}$", labelpos="W", coordinates="axes")


def draw_stations(axes: Axes, archive: Archive, values: Array, shade: Shade | Layer, size: float | None = None) -> None:
    """Circles of the stations that reported, in the colours of the map; `size` in square points."""
    found, stations = np.isfinite(values), archive.stations
    if size is None:
        size = 26 if found.sum() < MANY_STATIONS else 5
    style: dict[str, Any] = {"cmap": shade.palette, "norm": shade.norm, "edgecolors": "white"}
    style["linewidths"] = 0.5 if size > 10 else 0.2
    axes.scatter(stations.lon[found], stations.lat[found], s=size, c=values[found], label="stations", zorder=3, **style)


def draw_scale_bar(axes: Axes, grid: Grid, at: float = 0.72) -> None:
    """A round length near the lower edge; `at`: where it starts, as a share of the width."""
    lat = grid.south + 0.045 * (grid.north - grid.south)
    km_per_degree = math.radians(1) * EARTH_RADIUS_KM * math.cos(math.radians(lat))
    width_km = (grid.east - grid.west) * km_per_degree
    length = _round_length(width_km / 6)
    start = grid.west + at * (grid.east - grid.west)
    end = start + length / km_per_degree
    halo: dict[str, Any] = {"path_effects": [patheffects.withStroke(linewidth=4, foreground="white", alpha=0.8)]}
    axes.plot([start, end], [lat, lat], color=INK, linewidth=2.5, solid_capstyle="butt", **halo)
    middle = ((start + end) / 2, lat)
    axes.annotate(f"{length:g} km", middle, (0, 4), textcoords="offset points", ha="center", fontsize=9, **halo)


def _round_length(km: float) -> float:
    choices: Sequence[float] = [step * 10**power for power in range(4) for step in (1, 2, 5)]
    return min(choices, key=lambda choice: abs(choice - km))
