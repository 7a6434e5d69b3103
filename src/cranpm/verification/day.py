"""One start day: all methods against the same truth on the same pixels, in strips of rows, so memory stays small."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from cranpm.archive.store import Archive
from cranpm.core.grid import Array, Grid, Window, block_sums, cells_of
from cranpm.core.interpolation import at_points
from cranpm.core.regions import inside, regions
from cranpm.verification.methods import Method
from cranpm.verification.statistics import SCALES, STATISTICS, Pixels
from cranpm.verification.structure import SQUARE

STRIP = 2 * SQUARE
PREFIX = "statistic."


@dataclass(frozen=True)
class DaySums:
    """What one start day adds to every score, by method and lead."""

    statistics: Mapping[str, Array]
    """By name: (method, lead, scale, place, *shape); the first place is the whole domain, then regions inside it."""
    sampled: Array
    """(method, lead, station) PM2.5 of the forecasts."""
    observed: Array
    """(lead, station) PM2.5 of the valid day."""
    at_start: Array
    """(station) PM2.5 of the start day."""
    uncovered: Array
    """(method, lead) pixels with truth but without a forecast; they count for no method."""

    def arrays(self) -> dict[str, Array]:
        """All of it as named arrays, for a file."""
        named = {f"{PREFIX}{name}": sums for name, sums in self.statistics.items()}
        others = ("sampled", "observed", "at_start", "uncovered")
        return named | {name: getattr(self, name) for name in others}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "DaySums":
        """The opposite of `arrays`."""
        sums = {name.removeprefix(PREFIX): part for name, part in arrays.items() if name.startswith(PREFIX)}
        return cls(sums, **{name: part for name, part in arrays.items() if not name.startswith(PREFIX)})


class Geometry:
    """What all days share: grids, regions, stations, and the statistics made ready for them."""

    def __init__(self, archive: Archive, statistics: Sequence[str]):
        self.archive, self.grids = archive, (archive.domain.fine, archive.domain.coarse)
        self.places = places(archive.domain.fine)
        self.windows = [_windows(self.places, grid) for grid in self.grids]
        self.statistics = {name: STATISTICS[name](archive) for name in statistics}
        self.halo = max(statistic.halo for statistic in self.statistics.values())
        self.row, self.col = archive.domain.fine.row_col(archive.stations.lat, archive.stations.lon)

    def zeros(self, methods: int) -> dict[str, Array]:
        """By statistic, (method, scale, place, *shape)."""
        return {
            name: np.zeros((methods, len(one.scales), len(self.places) if one.by_place else 1, *one.shape))
            for name, one in self.statistics.items()
        }


def _windows(names: Sequence[str], grid: Grid) -> list[Window]:
    """Of places on a grid."""
    whole = (slice(0, grid.rows), slice(0, grid.cols))
    return [whole, *(grid.slices(*regions()[name]) for name in names[1:])]


def places(grid: Grid) -> list[str]:
    """The whole domain, and the regions that lie inside it."""
    return ["all", *(name for name, box in regions().items() if inside(box, grid))]


def measure(geometry: Geometry, methods: Sequence[Method], day: date, leads: Sequence[int]) -> DaySums:
    """The sums of a start day. Pixels without a truth, or without a forecast of any method, count for none."""
    by_lead = [_Lead(geometry, methods, day, lead) for lead in leads]
    archive = geometry.archive
    return DaySums(
        statistics={name: np.stack([lead.sums[name] for lead in by_lead], axis=1) for name in geometry.statistics},
        sampled=np.stack([lead.sampled for lead in by_lead], axis=1),
        observed=np.stack([archive.stations_pm25(day + timedelta(days=lead)) for lead in leads]),
        at_start=archive.stations_pm25(day),
        uncovered=np.stack([lead.uncovered for lead in by_lead], axis=1),
    )


class _Lead:
    """The sums of one lead, strip by strip."""

    def __init__(self, geometry: Geometry, methods: Sequence[Method], day: date, lead: int):
        self.geometry, self.fine = geometry, geometry.grids[0]
        count = len(methods)
        self.sums = geometry.zeros(count)
        self.sampled = np.full((count, len(geometry.row)), np.nan, np.float32)
        self.uncovered = np.zeros(count, np.int64)
        self._cells = np.zeros((count + 2, *geometry.grids[1].shape))
        """Area-weighted sums of forecasts and truth in coarse cells, and the weight."""
        valid = day + timedelta(days=lead)
        for start in range(0, self.fine.rows, STRIP):
            rows = slice(start, min(start + STRIP, self.fine.rows))
            around = slice(max(0, rows.start - geometry.halo), min(rows.stop + geometry.halo, self.fine.rows))
            truth = geometry.archive.pm25(valid, (around, slice(0, self.fine.cols)))
            if np.isfinite(truth).any() or self._stations(rows).size:
                self._strip(rows, around, truth, [method.strip(day, lead, around) for method in methods])
        self._coarse()

    def _strip(self, rows: slice, around: slice, truth: Array, forecasts: list[Array]) -> None:
        inner = slice(rows.start - around.start, rows.stop - around.start)
        present = np.isfinite(truth)
        everywhere = np.ones(truth.shape, dtype=bool)
        for index, forecast in enumerate(forecasts):
            covered = np.isfinite(forecast)
            self.uncovered[index] += int((present & ~covered)[inner].sum())
            everywhere &= covered
        truth = np.where(everywhere, truth, np.float32(np.nan))
        forecasts = [np.where(everywhere, forecast, np.float32(np.nan)) for forecast in forecasts]
        row_area = self.fine.row_area_km2[around]
        area = np.broadcast_to(row_area[:, None], truth.shape)
        self._add_coarse(rows, truth[inner], area[inner], [forecast[inner] for forecast in forecasts])
        here = self._stations(rows)
        for index, forecast in enumerate(forecasts):
            self._add(index, 0, Pixels(forecast, truth, area, inner, around.start, row_area))
            rows_here = self.geometry.row[here] - around.start
            self.sampled[index, here] = at_points(forecast, rows_here, self.geometry.col[here])

    def _stations(self, rows: slice) -> Array:
        """Numbers of the stations in some rows; those on the southern edge belong to the last."""
        row, end = self.geometry.row, rows.stop - 0.5
        last = (row <= end) if rows.stop == self.fine.rows else (row < end)
        return np.flatnonzero((row >= rows.start - 0.5) & last)

    def _add(self, method: int, scale: int, part: Pixels) -> None:
        """Add a part of the fields to every statistic of its scale."""
        by_place = [_inside(part, window) for window in self.geometry.windows[scale]]
        for name, statistic in self.geometry.statistics.items():
            if SCALES[scale] not in statistic.scales:
                continue
            sums = self.sums[name][method, statistic.scales.index(SCALES[scale])]
            for place, pixels in enumerate(by_place if statistic.by_place else [part]):
                if pixels is not None:
                    sums[place] += statistic.pixels(pixels)

    def _add_coarse(self, rows: slice, truth: Array, area: Array, forecasts: list[Array]) -> None:
        grid, shape = self.fine.window(rows, slice(0, self.fine.cols)), self.geometry.grids[1].shape
        down, right = cells_of(grid, self.geometry.grids[1])
        weight = area * np.isfinite(truth)
        for index, field in enumerate([*forecasts, truth]):
            weighted = np.where(weight > 0, field, 0) * weight
            self._cells[index] += block_sums(weighted, down, right, shape)
        self._cells[-1] += block_sums(weight, down, right, shape)

    def _coarse(self) -> None:
        """At 25 km: means over the land of each cell, which counts by the area of that land."""
        *sums, weight = self._cells
        means = [np.divide(total, weight, out=np.full(weight.shape, np.nan), where=weight > 0) for total in sums]
        for index, forecast in enumerate(means[:-1]):
            row_area = self.geometry.grids[1].row_area_km2
            self._add(index, 1, Pixels(forecast, means[-1], weight, slice(0, len(weight)), 0, row_area))


def _inside(part: Pixels, window: Window) -> Pixels | None:
    """The rows that count of a part inside a window of the whole grid; None where there are none."""
    down, right = window
    start = max(down.start, part.first_row + part.rows.start)
    stop = min(down.stop, part.first_row + part.rows.stop)
    if start >= stop or right.start >= right.stop:
        return None
    here = (slice(start - part.first_row, stop - part.first_row), right)
    row_area = None if part.row_area_km2 is None else part.row_area_km2[here[0]]
    return Pixels(part.forecast[here], part.truth[here], part.weight[here], slice(None), start, row_area)
