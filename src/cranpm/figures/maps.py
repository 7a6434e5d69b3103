"""Maps as PNG: aggregated to the size of the picture before drawing, so that 29 million pixels cost little."""

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

from cranpm.channels import COARSE, INDEX
from cranpm.errors import CranpmError
from cranpm.figures.style import COAST, INK, PM25, SEA, drawing
from cranpm.grid import EARTH_RADIUS_KM, Array, Grid
from cranpm.store import SIMULATION, Archive

WIDTH_PX = 1500


@dataclass(frozen=True)
class Layer:
    """A field with all that is needed to draw it."""

    values: Array
    grid: Grid
    label: str
    palette: str = "viridis"
    norm: colors.Normalize | None = None


def pm25_layer(values: Array, grid: Grid) -> Layer:
    """PM2.5 in the one colour scale that all maps share, so that they can be compared."""
    return Layer(values, grid, "PM$_{2.5}$ (µg m$^{-3}$)", PM25.palette, PM25.norm)


def draw_archive(archive: Archive, field: str, day: date | None, path: Path, *, stations: bool = True) -> None:
    """A map of one field of an archive: pm25, wind, elevation, land or any coarse channel."""
    known = ("pm25", "wind", "elevation", "land", *INDEX)
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
        u, v = archive.coarse(day)[[INDEX["u10"], INDEX["v10"]]]
        layer, wind = Layer(np.hypot(u, v), archive.domain.coarse, "wind speed at 10 m (m s$^{-1}$)", "BuPu"), (u, v)
        title = f"wind at 10 m · {day}"
    elif field in INDEX and day is not None:
        channel = COARSE[INDEX[field]]
        layer = Layer(archive.coarse(day)[INDEX[field]], archive.domain.coarse, f"{channel.meaning} ({channel.unit})")
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
        picture, picture_grid = _aggregate(layer.values, layer.grid)
        image = axes.imshow(
            np.ma.masked_invalid(picture),
            extent=extent(picture_grid),
            cmap=layer.palette,
            norm=layer.norm,
            interpolation="nearest",
            aspect="auto",
        )
        draw_coast(axes, archive)
        axes.set(xlim=(layer.grid.west, layer.grid.east), ylim=(layer.grid.south, layer.grid.north))
        if wind is not None:
            _draw_wind(axes, layer.grid, *wind)
        if circles is not None:
            _draw_stations(axes, archive, circles, layer)
        _draw_scale_bar(axes, layer.grid)
        beyond = layer.norm is not None and bool(np.nanmax(picture) > (layer.norm.vmax or math.inf))
        figure.colorbar(image, cax=bar, label=layer.label, extend="max" if beyond else "neither")
        axes.set_title(title, loc="left", fontsize=14, fontweight="bold")
        axes.set_title(data_label(archive), loc="right", fontsize=9)
        figure.savefig(path, format="png")


def check_picture(path: Path) -> None:
    """Refuse a place where no PNG can be written, before any work is done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fits = path.suffix == ".png" and not path.is_dir()
    except OSError:
        fits = False
    if not fits:
        raise CranpmError(
            expected="a file name that ends in .png, in a folder that can be made",
            found=str(path),
            remedy="Change --out.",
        )


def data_label(archive: Archive) -> str:
    """What everybody who looks at the map must know of its data."""
    simulated = SIMULATION in archive.source
    return "simulated data · not a real observation" if simulated else f"source: {archive.source}"


def _frame(grid: Grid) -> tuple[Figure, Axes, Axes]:
    stretch = 1 / math.cos(math.radians((grid.north + grid.south) / 2))
    ratio = (grid.north - grid.south) * stretch / (grid.east - grid.west)
    left, right, top, bottom = 0.75, 1.35, 0.55, 0.55
    width = 10.0
    height = width * ratio
    figure = Figure(figsize=(width + left + right, height + top + bottom), dpi=WIDTH_PX / (width + left + right))
    across, up = figure.get_size_inches()
    axes = figure.add_axes((left / across, bottom / up, width / across, height / up))
    bar = figure.add_axes(
        ((left + width + 0.18) / across, (bottom + 0.1 * height) / up, 0.22 / across, 0.8 * height / up)
    )
    axes.set_facecolor(SEA)
    axes.set_xlim(grid.west, grid.east)
    axes.set_ylim(grid.south, grid.north)
    axes.xaxis.set_major_formatter(lambda x, _: f"{abs(x):g}°{'W' if x < 0 else 'E' if x > 0 else ''}")
    axes.yaxis.set_major_formatter(lambda y, _: f"{abs(y):g}°{'S' if y < 0 else 'N' if y > 0 else ''}")
    axes.grid(color=COAST, alpha=0.18, linewidth=0.5)
    axes.tick_params(length=3, colors=INK)
    return figure, axes, bar


def _aggregate(values: Array, grid: Grid) -> tuple[Array, Grid]:
    """Block means of the valid pixels, at about two samples a picture pixel at most."""
    factor = max(1, math.ceil(grid.cols / WIDTH_PX))
    rows, cols = grid.rows // factor, grid.cols // factor
    blocks = values[: rows * factor, : cols * factor].reshape(rows, factor, cols, factor)
    valid = np.isfinite(blocks)
    count = valid.sum((1, 3))
    total = np.where(valid, blocks, 0).sum((1, 3), dtype=np.float64)
    means = np.divide(total, count, out=np.full((rows, cols), np.nan), where=count > 0)
    return means, Grid(grid.north, grid.west, grid.step * factor, rows, cols)


def extent(grid: Grid) -> tuple[float, float, float, float]:
    return grid.west, grid.east, grid.south, grid.north


def draw_coast(axes: Axes, archive: Archive) -> None:
    land, grid = _aggregate(archive.land().astype(np.float32), archive.domain.fine)
    if 0 < land.mean() < 1:
        axes.contour(grid.lon, grid.lat, land, levels=[0.5], colors=COAST, linewidths=0.5)


def _draw_wind(axes: Axes, grid: Grid, u: Array, v: Array) -> None:
    every = max(1, round(max(grid.shape) / 30))
    part = (slice(every // 2, None, every), slice(every // 2, None, every))
    lon, lat = np.meshgrid(grid.lon, grid.lat)
    arrows = axes.quiver(lon[part], lat[part], u[part], v[part], color=INK, width=0.0018, scale=200)
    axes.quiverkey(arrows, 0.5, 1.03, 10, "10 m s$^{-1}$", labelpos="W", coordinates="axes")


def _draw_stations(axes: Axes, archive: Archive, values: Array, layer: Layer) -> None:
    found = np.isfinite(values)
    size = 26 if found.sum() < 800 else 6
    style: dict[str, Any] = {"cmap": layer.palette, "norm": layer.norm, "edgecolors": "white", "linewidths": 0.3}
    stations = archive.stations
    axes.scatter(stations.lon[found], stations.lat[found], s=size, c=values[found], label="stations", **style)
    axes.legend(loc="lower left", frameon=True, framealpha=0.9, fontsize=9, borderpad=0.5)


def _draw_scale_bar(axes: Axes, grid: Grid) -> None:
    lat = grid.south + 0.045 * (grid.north - grid.south)
    km_per_degree = math.radians(1) * EARTH_RADIUS_KM * math.cos(math.radians(lat))
    width_km = (grid.east - grid.west) * km_per_degree
    length = _round_length(width_km / 6)
    start = grid.west + 0.72 * (grid.east - grid.west)
    end = start + length / km_per_degree
    halo: dict[str, Any] = {"path_effects": [patheffects.withStroke(linewidth=4, foreground="white", alpha=0.8)]}
    axes.plot([start, end], [lat, lat], color=INK, linewidth=2.5, solid_capstyle="butt", **halo)
    middle = ((start + end) / 2, lat)
    axes.annotate(f"{length:g} km", middle, (0, 4), textcoords="offset points", ha="center", fontsize=9, **halo)


def _round_length(km: float) -> float:
    choices: Sequence[float] = [step * 10**power for power in range(4) for step in (1, 2, 5)]
    return min(choices, key=lambda choice: abs(choice - km))
