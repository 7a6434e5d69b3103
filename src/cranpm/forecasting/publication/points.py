"""What a run says of points and boxes: the answers that the command line, the API and reports share."""

from datetime import date
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from cranpm.core.air_quality import THRESHOLDS_UGM3, index_name
from cranpm.core.errors import CranpmError
from cranpm.core.geography import region_of
from cranpm.core.grid import Array, Grid, Window, check_point
from cranpm.core.packing import PUBLISHED, STEP_UGM3
from cranpm.forecasting.publication.geotiff import BLOCK
from cranpm.forecasting.publication.run import AbsentError, Run

TOWNS = 400


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class PointLead(_Answer):
    """One lead at a pixel."""

    lead: int
    valid: date
    pm25: float | None = Field(description="µg m⁻³; null at sea.")
    index: str | None = Field(description="Band of the air quality index.")


class Point(_Answer):
    """The forecast for the pixel that holds a point."""

    lat: float = Field(description="Centre of the pixel that holds the point.")
    lon: float
    forecast: tuple[PointLead, ...]
    quality: Literal["good", "degraded_input"]
    checked: bool = Field(description="Whether the files were compared with their checksums.")


class Above(_Answer):
    """Share of the land above a threshold (µg m⁻³)."""

    threshold: float
    share: float | None


class BoxLead(_Answer):
    """Statistics of one lead in a box, µg m⁻³; null where there is no land."""

    lead: int
    valid: date
    mean: float | None
    low: float | None
    median: float | None
    p90: float | None
    high: float | None
    area_km2: float
    above: tuple[Above, ...]


class Box(_Answer):
    """Statistics of the land in a box, weighted by area."""

    leads: tuple[BoxLead, ...]


class Town(_Answer):
    """A town on the map."""

    name: str
    lat: float
    lon: float
    population: int


def point(run: Run, lat: float, lon: float) -> Point:
    """The pixel that holds a point, in every lead."""
    row, col = pixel(run.grid, lat, lon)
    here = (slice(row, row + 1), slice(col, col + 1))
    values = [(lead, number(run.pm25(lead, here)[0, 0])) for lead in run.leads]
    centre = run.grid.lat_lon(row, col)
    return Point(
        lat=round(float(centre[0]), 6),
        lon=round(float(centre[1]), 6),
        forecast=tuple(PointLead(lead=n, valid=run.valid(n), pm25=v, index=index_name(v)) for n, v in values),
        quality="degraded_input" if run.degraded else "good",
        checked=run.checked,
    )


def pixel(grid: Grid, lat: float, lon: float) -> tuple[int, int]:
    """Row and column of the pixel that holds a point; refused off the grid."""
    check_point(lat, lon)
    if not grid.contains(lat, lon):
        raise AbsentError(
            expected=f"a point inside N {grid.north:g}, W {grid.west:g}, S {grid.south:g}, E {grid.east:g}",
            found=f"{lat:g}, {lon:g}",
            remedy="Choose a point on the map, in degrees north and east.",
        )
    row, col = (round(float(part)) for part in grid.row_col(lat, lon))
    return min(max(row, 0), grid.rows - 1), min(max(col, 0), grid.cols - 1)


def number(value: float) -> float | None:
    """Rounded to 0.1; None for NaN."""
    return round(float(value), 1) if np.isfinite(value) else None


def sampled(run: Run, lead: int, lats: Array, lons: Array) -> Array:
    """PM2.5 (ug m-3) of the pixels that hold the points, read strip by strip."""
    rows, cols = (np.round(part).astype(int) for part in run.grid.row_col(lats, lons))
    rows, cols = rows.clip(0, run.grid.rows - 1), cols.clip(0, run.grid.cols - 1)
    values = np.full(len(rows), np.nan, np.float32)
    for first in np.unique(rows // BLOCK) * BLOCK:
        here = (rows >= first) & (rows < first + BLOCK)
        strip = run.steps(lead, (slice(int(first), int(first) + BLOCK), slice(None)))
        values[here] = PUBLISHED.unpack(strip[rows[here] - first, cols[here]])
    return values


def box(run: Run, north: float, west: float, south: float, east: float) -> Box:
    """Statistics of the land in a box, weighted by area, one row per lead."""
    for lat, lon in ((north, west), (south, east)):
        check_point(lat, lon)
    window = run.grid.slices(north, west, south, east)
    if any(part.stop == part.start for part in window):
        raise AbsentError(
            expected="a box with pixels of the map, north above south and east of west",
            found=f"N {north:g}, W {west:g}, S {south:g}, E {east:g}",
            remedy="Choose another box.",
        )
    return Box(leads=tuple(_statistics(run, lead, window) for lead in run.leads))


def _statistics(run: Run, lead: int, window: Window) -> BoxLead:
    area = _area_by_step(run, lead, window)
    total = float(area.sum())
    above = tuple(Above(threshold=t, share=_share(area[round(t / STEP_UGM3) + 1 :], total)) for t in THRESHOLDS_UGM3)
    figures: dict[str, float | None] = dict.fromkeys(("mean", "low", "median", "p90", "high"))
    if total:
        found = np.flatnonzero(area)
        quantiles = [int(np.searchsorted(area.cumsum(), share * total)) for share in (0.5, 0.9)]
        figures = {
            "mean": round(float(area @ np.arange(len(area)) * STEP_UGM3 / total), 3),
            "low": _ugm3(found[0]),
            "median": _ugm3(quantiles[0]),
            "p90": _ugm3(quantiles[1]),
            "high": _ugm3(found[-1]),
        }
    return BoxLead(lead=lead, valid=run.valid(lead), **figures, area_km2=round(total, 1), above=above)


def _area_by_step(run: Run, lead: int, window: Window) -> Array:
    """km2 at each step of 0.1 ug m-3, so that a continent needs no more memory than a village."""
    rows, cols = window
    area = np.zeros(32768)
    for first in range(rows.start, rows.stop, BLOCK):
        across = slice(first, min(first + BLOCK, rows.stop))
        steps = run.steps(lead, (across, cols))
        weight = np.broadcast_to(run.grid.row_area_km2[across, None], steps.shape)
        there = steps != PUBLISHED.missing
        area += np.bincount(steps[there], weights=weight[there], minlength=len(area))
    return area


def _ugm3(step: float) -> float:
    return round(float(step) * STEP_UGM3, 1)


def _share(part: Array, total: float) -> float | None:
    return round(float(part.sum() / total), 6) if total else None


def towns(grid: Grid) -> list[Town]:
    """The largest towns on a grid; none where the package has no geography."""
    try:
        every = region_of(grid).towns
    except CranpmError:
        return []
    here = np.flatnonzero(grid.contains(every.lat, every.lon))[:TOWNS]
    return [
        Town(
            name=every.names[i],
            lat=round(float(every.lat[i]), 4),
            lon=round(float(every.lon[i]), 4),
            population=int(every.population[i]),
        )
        for i in here
    ]
