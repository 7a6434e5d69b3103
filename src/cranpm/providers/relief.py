"""Is a raster the relief of this place? By what it states, by its range, and by comparison with the packaged relief.

The packaged relief is independent of the raster. Over cells of 0.25 degrees, real rasters (a 1-km model of Italy in
UTM, a 1-second .hgt tile) correlate with it by 0.974 to 0.999 and their means differ by at most 8 %, also in the Po
plain, where cells differ by 14 m only. Relief that is turned, in feet, of another place or another quantity fails by
far: the mildest, one degree of the Alps with east and west exchanged, has a correlation of 0.942.
Single pixels of the same rasters correlate by 0.67 to 0.91: they are compared where cells are too few or too flat.
"""

import re
from collections.abc import Iterable

import numpy as np
import rasterio

from cranpm.core.errors import CranpmError
from cranpm.core.geography import Region, find_region
from cranpm.core.grid import Array, Grid

METRES = ("", "m", "metre", "metres", "meter", "meters")
LOWEST_M, HIGHEST_M = -450.0, 8900.0
"""Of land; a void (-32768, -9999) is below and is no height."""
VOID = 20_000.0
"""From here on a number is a void; between the highest mountain and this it is another unit."""
NOT_HEIGHTS = re.compile(r"pm\s?_?2[._p]?5|particulate|[uµμ]g[ ./]?m|concentration|\bfeet\b|\bft\b", re.IGNORECASE)
CELL = 25
"""Pixels of 0.01 degrees along the side of a cell that is compared."""
LEAST_CELLS, LEAST_LAND = 6, 0.5
"""Cells that are compared at least, and the share of land that each has."""
LEAST_SPREAD_M, LEAST_CORRELATION = 10.0, 0.96
"""Where cells differ by less than the first, correlation says nothing."""
MOST_BIAS, MOST_BIAS_M = 0.2, 25.0
"""Share of the mean height, or metres, by which the means may differ."""
LEAST_PIXELS, PIXEL_CORRELATION, PIXEL_BIAS = 100, 0.4, 0.5
"""The same for single pixels of land."""
BLOCK, ABOVE_SEA_M = 10, 5.0
"""No block of so many pixels of land, higher than this on average, is exactly 0 m throughout; fjords are narrower."""
REMEDY = "Use rasters of heights in metres for this domain: cranpm fetch elevation."


def check_statements(raster: rasterio.DatasetReader, label: str) -> None:
    """Refuse a raster that states another quantity or another unit than heights in metres."""
    unit = str(raster.units[0] or "").strip()
    stated = " ".join(map(str, (*filter(None, raster.descriptions), *_values(raster.tags()), *_values(raster.tags(1)))))
    odd = unit if unit.lower() not in METRES else NOT_HEIGHTS.search(stated)
    if odd:
        found = f"unit {odd!r}" if isinstance(odd, str) else f"{odd.group()!r} in what it states of itself"
        raise CranpmError(expected=f"heights in metres in {label}", found=found, remedy=REMEDY)


def _values(tags: dict[str, str]) -> Iterable[str]:
    return (value for name, value in tags.items() if name != "AREA_OR_POINT")


def possible_heights(values: Array, label: str) -> Array:
    """Heights in metres as float64; voids become NaN, and heights above every mountain are refused."""
    heights = values.astype(np.float64)
    too_high = (heights > HIGHEST_M) & (heights < VOID)
    if too_high.any():
        raise CranpmError(
            expected=f"heights of at most {HIGHEST_M:g} m in {label}",
            found=f"{heights[too_high].max():g}",
            remedy="Convert feet or other units to metres first.",
        )
    heights[(heights < LOWEST_M) | (heights > HIGHEST_M)] = np.nan
    return heights


def check_heights(mean_m: Array, spread_m: Array, grid: Grid, land: Array | None) -> str:
    """Refuse heights (m) that cannot be those of a grid; returns what could not be compared, or nothing.

    `land` is the packaged coast, or None where the package has none.
    """
    for name, values in (("mean height", mean_m), ("spread of heights", spread_m)):
        if values.shape != grid.shape or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            _refuse(f"a {name} in every pixel of {grid.shape}", f"shape {values.shape} of {values.dtype}, or gaps")
    region = find_region(grid)
    if region is not None and land is not None:
        return check_relief(mean_m, land, grid, region)
    _refuse_constant(mean_m)
    return (
        "the package has no relief and no coast here; only unit and range were checked, "
        "and land is where the height is not 0 m"
    )


def check_relief(mean_m: Array, land: Array, grid: Grid, region: Region) -> str:
    """Refuse heights (m) that are not those of the packaged relief; returns what could not be compared, or nothing."""
    packaged = region.elevation(grid)[0]
    _refuse_constant(mean_m[land])
    zeros, heights = (_cells(values, land, BLOCK, 1.0) for values in (mean_m == 0, packaged))
    lost = int(((zeros == 1) & (heights > ABOVE_SEA_M)).sum())
    if lost:
        _refuse("heights other than 0 m on land above the sea", f"exactly 0 m in {lost} blocks of 0.1 degrees")
    ours, theirs = (_cells(values, land, CELL, LEAST_LAND) for values in (mean_m, packaged))
    if len(ours) >= LEAST_CELLS:
        _check_bias(ours, theirs, MOST_BIAS)
        if theirs.std() >= LEAST_SPREAD_M:
            _check_correlation(ours, theirs, LEAST_CORRELATION, "cells of 0.25 degrees")
            return ""
    ours, theirs = mean_m[land], packaged[land]
    if len(ours) < LEAST_PIXELS or theirs.std() < LEAST_SPREAD_M:
        return "too little land, or too flat, to compare with the packaged relief: heights may be in another unit"
    _check_bias(ours, theirs, PIXEL_BIAS)
    _check_correlation(ours, theirs, PIXEL_CORRELATION, "pixels")
    return ""


def _refuse_constant(heights: Array) -> None:
    if heights.size >= LEAST_PIXELS and np.ptp(heights) == 0:
        _refuse("heights that differ from place to place", f"{heights.flat[0]:g} m everywhere")


def _check_bias(ours: Array, theirs: Array, share: float) -> None:
    most = max(share * abs(float(theirs.mean())), MOST_BIAS_M)
    if abs(float((ours - theirs).mean())) > most:
        _refuse(
            f"a mean height of land within {most:.0f} m of {theirs.mean():.0f} m, that of the packaged relief",
            f"{ours.mean():.0f} m",
        )


def _check_correlation(ours: Array, theirs: Array, least: float, where: str) -> None:
    correlation = float(np.corrcoef(ours, theirs)[0, 1]) if ours.std() else 0.0
    if correlation < least:
        _refuse(f"a correlation of at least {least:g} with the packaged relief, in {where}", f"{correlation:.2f}")


def _refuse(expected: str, found: str) -> None:
    raise CranpmError(expected=expected, found=found, remedy=REMEDY)


def _cells(values: Array, land: Array, side: int, least_land: float) -> Array:
    """Mean over the land of each cell of `side` x `side` pixels that has enough land."""
    rows, cols = (size // side for size in land.shape)
    if not rows or not cols:
        return np.zeros(0)
    shape = (rows, side, cols, side)
    share = land[: rows * side, : cols * side].reshape(shape)
    cells = np.where(land, values, 0.0)[: rows * side, : cols * side].reshape(shape)
    counts, sums = share.sum(axis=(1, 3)), cells.sum(axis=(1, 3), dtype=np.float64)
    mostly = counts >= least_land * side**2
    return np.asarray(sums[mostly] / counts[mostly])
