"""What a run says of points and boxes."""

from pathlib import Path
from typing import Any

import numpy as np

from cranpm.core.air_quality import THRESHOLDS_UGM3, index_name
from cranpm.core.errors import CranpmError
from cranpm.core.geography import region_of
from cranpm.core.grid import Array, Grid
from cranpm.core.packing import PUBLISHED, STEP_UGM3
from cranpm.forecasting.publication import rasters
from cranpm.forecasting.publication.geotiff import BLOCK
from cranpm.forecasting.publication.reader import AbsentError, Run

TOWNS = 400


def point(run: Run, lat: float, lon: float) -> dict[str, Any]:
    """The pixel that holds a point, in every lead."""
    row, col = pixel(run.grid, lat, lon)
    forecast = []
    for lead in run.leads:
        value = at_pixel(run.raster(lead), row, col)
        forecast.append({"lead": lead, "valid": run.valid(lead), "pm25": value, "index": index_name(value)})
    quality = "degraded_input" if run.degraded else "good"
    return {**_centre(run.grid, row, col), "forecast": forecast, "quality": quality}


def pixel(grid: Grid, lat: float, lon: float) -> tuple[int, int]:
    if not grid.contains(lat, lon):
        raise AbsentError(
            expected=f"a point inside N {grid.north:g}, W {grid.west:g}, S {grid.south:g}, E {grid.east:g}",
            found=f"{lat:g}, {lon:g}",
            remedy="Choose a point on the map.",
        )
    row, col = (round(float(part)) for part in grid.row_col(lat, lon))
    return min(max(row, 0), grid.rows - 1), min(max(col, 0), grid.cols - 1)


def _centre(grid: Grid, row: int, col: int) -> dict[str, float]:
    lat, lon = grid.lat_lon(row, col)
    return {"lat": round(float(lat), 6), "lon": round(float(lon), 6)}


def at_pixel(path: Path, row: int, col: int) -> float | None:
    """ug m-3, or None where there is no value."""
    return number(PUBLISHED.unpack(rasters.window(path, slice(row, row + 1), slice(col, col + 1)))[0, 0])


def number(value: float) -> float | None:
    return round(float(value), 1) if np.isfinite(value) else None


def sampled(run: Run, lead: int, lats: Array, lons: Array) -> Array:
    """The pixels that hold the points, read strip by strip."""
    rows, cols = (np.round(part).astype(int) for part in run.grid.row_col(lats, lons))
    rows, cols = rows.clip(0, run.grid.rows - 1), cols.clip(0, run.grid.cols - 1)
    values = np.full(len(rows), np.nan, np.float32)
    for first in np.unique(rows // BLOCK) * BLOCK:
        here = (rows >= first) & (rows < first + BLOCK)
        across = slice(first, min(first + BLOCK, run.grid.rows))
        strip = rasters.window(run.raster(lead), across, slice(0, run.grid.cols))
        values[here] = PUBLISHED.unpack(strip[rows[here] - first, cols[here]])
    return values


def box(run: Run, north: float, west: float, south: float, east: float) -> dict[str, Any]:
    """Statistics of the land in a box, weighted by area, one row a lead."""
    rows, cols = run.grid.slices(north, west, south, east)
    if rows.stop == rows.start or cols.stop == cols.start:
        raise AbsentError(
            expected="a box with pixels of the map, north above south and east of west",
            found=f"N {north:g}, W {west:g}, S {south:g}, E {east:g}",
            remedy="Choose another box.",
        )
    return {"leads": [{"lead": lead, "valid": run.valid(lead)} | _figures(run, lead, rows, cols) for lead in run.leads]}


def _figures(run: Run, lead: int, rows: slice, cols: slice) -> dict[str, Any]:
    """From the area of each step of 0.1 ug m-3, so that a continent needs no more memory than a village."""
    area = np.zeros(32768)
    for first in range(rows.start, rows.stop, BLOCK):
        across = slice(first, min(first + BLOCK, rows.stop))
        steps = rasters.window(run.raster(lead), across, cols)
        weight = np.broadcast_to(run.grid.row_area_km2[across, None], steps.shape)
        there = steps != PUBLISHED.missing
        area += np.bincount(steps[there], weights=weight[there], minlength=len(area))
    total = area.sum()
    above = [{"threshold": t, "share": _share(area[round(t / STEP_UGM3) + 1 :], total)} for t in THRESHOLDS_UGM3]
    if not total:
        return {**dict.fromkeys(("mean", "low", "median", "p90", "high")), "area_km2": 0.0, "above": above}
    found = np.flatnonzero(area)
    quantiles = [int(np.searchsorted(area.cumsum(), share * total)) for share in (0.5, 0.9)]
    figures = zip(("low", "median", "p90", "high"), (found[0], *quantiles, found[-1]), strict=True)
    return {
        "mean": round(float(area @ np.arange(len(area)) * STEP_UGM3 / total), 3),
        **{name: round(float(step) * STEP_UGM3, 1) for name, step in figures},
        "area_km2": round(float(total), 1),
        "above": above,
    }


def _share(part: Array, total: float) -> float | None:
    return round(float(part.sum() / total), 6) if total else None


def towns(grid: Grid) -> list[dict[str, Any]]:
    """The largest towns on a grid; none where the package has no geography."""
    try:
        every = region_of(grid).towns
    except CranpmError:
        return []
    here = np.flatnonzero(grid.contains(every.lat, every.lon))[:TOWNS]
    return [
        {
            "name": every.names[i],
            "lat": round(float(every.lat[i]), 4),
            "lon": round(float(every.lon[i]), 4),
            "population": int(every.population[i]),
        }
        for i in here
    ]
