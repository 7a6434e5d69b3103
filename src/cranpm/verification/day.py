"""One start day: all methods against the same truth on the same pixels, in strips of rows, so memory stays small."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta

import numpy as np

from cranpm.archive.store import Archive
from cranpm.core.grid import Array, Grid, Window, block_sums, cells_of
from cranpm.core.interpolation import at_points
from cranpm.core.regions import inside, regions
from cranpm.verification.methods import Method
from cranpm.verification.structure import HALO, SQUARE, WAVELENGTHS_PX, power_sums, similarity_sums, squares
from cranpm.verification.tally import BINS, MOMENTS, Tally

STRIP = 2 * SQUARE
SCALES = ("1 km", "25 km")


@dataclass(frozen=True)
class Record:
    """Sums of one start day, by method and lead."""

    moments: Array
    """(method, lead, scale, place, bin, moment); the first place is the whole domain, then regions inside it."""
    joint: Array
    """(method, lead, scale, place, bin of forecast, bin of truth)."""
    similarity: Array
    """(method, lead, scale, [sum, weight])."""
    power: Array
    """(method, lead, band, [forecast, truth])."""
    sampled: Array
    """(method, lead, station) PM2.5 of the forecasts."""
    observed: Array
    """(lead, station) PM2.5 of the valid day."""
    at_start: Array
    """(station) PM2.5 of the start day."""
    uncovered: Array
    """(method, lead) pixels with truth but without a forecast; they count for no method."""

    @property
    def tally(self) -> Tally:
        return Tally(self.moments, self.joint)

    def arrays(self) -> dict[str, Array]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Setting:
    """What all days share: places, weights, squares, stations."""

    def __init__(self, archive: Archive):
        self.archive, self.grid = archive, archive.domain.fine
        self.coarse = archive.domain.coarse
        self.places = places(self.grid)
        self.squares = squares(archive.land())
        self.row, self.col = self.grid.row_col(archive.stations.lat, archive.stations.lon)
        self.windows, self.coarse_windows = (_windows(self.places, grid) for grid in (self.grid, self.coarse))


def _windows(names: Sequence[str], grid: Grid) -> list[Window]:
    """Of places on a grid."""
    whole = (slice(0, grid.rows), slice(0, grid.cols))
    return [whole, *(grid.slices(*regions()[name]) for name in names[1:])]


def places(grid: Grid) -> list[str]:
    """The whole domain, and the regions that lie inside it."""
    return ["all", *(name for name, box in regions().items() if inside(box, grid))]


def measure(
    setting: Setting, methods: Sequence[Method], day: date, leads: Sequence[int], similarity: bool = True
) -> Record:
    """The record of a start day. Pixels without a truth, or without a forecast of any method, count for none."""
    by_lead = [_Lead(setting, methods, day, lead, similarity) for lead in leads]
    archive = setting.archive
    return Record(
        moments=np.stack([lead.moments for lead in by_lead], axis=1),
        joint=np.stack([lead.joint for lead in by_lead], axis=1),
        similarity=np.stack([lead.similarity for lead in by_lead], axis=1),
        power=np.stack([lead.power for lead in by_lead], axis=1),
        sampled=np.stack([lead.sampled for lead in by_lead], axis=1),
        observed=np.stack([archive.stations_pm25(day + timedelta(days=lead)) for lead in leads]),
        at_start=archive.stations_pm25(day),
        uncovered=np.stack([lead.uncovered for lead in by_lead], axis=1),
    )


class _Lead:
    """The sums of one lead, strip by strip."""

    def __init__(self, setting: Setting, methods: Sequence[Method], day: date, lead: int, similarity: bool):
        self.setting, self.compare = setting, similarity
        count, places = len(methods), len(setting.places)
        self.moments = np.zeros((count, len(SCALES), places, BINS, MOMENTS))
        self.joint = np.zeros((count, len(SCALES), places, BINS, BINS))
        self.similarity = np.zeros((count, len(SCALES), 2))
        self.power = np.zeros((count, len(WAVELENGTHS_PX), 2))
        self.sampled = np.full((count, len(setting.row)), np.nan, np.float32)
        self.uncovered = np.zeros(count, np.int64)
        self._sums = np.zeros((count + 2, *setting.coarse.shape))
        """Area-weighted sums of forecasts and truth in coarse cells, and the weight."""
        valid = day + timedelta(days=lead)
        for start in range(0, setting.grid.rows, STRIP):
            rows = slice(start, min(start + STRIP, setting.grid.rows))
            around = slice(max(0, rows.start - HALO), min(rows.stop + HALO, setting.grid.rows))
            truth = setting.archive.pm25(valid, (around, slice(0, setting.grid.cols)))
            if np.isfinite(truth).any() or self._stations(rows).size:
                self._strip(rows, around, truth, [method.strip(day, lead, around) for method in methods])
        self._coarse()

    def _strip(self, rows: slice, around: slice, truth: Array, forecasts: list[Array]) -> None:
        setting, inner = self.setting, slice(rows.start - around.start, rows.stop - around.start)
        present = np.isfinite(truth)
        everywhere = np.ones(truth.shape, dtype=bool)
        for index, forecast in enumerate(forecasts):
            covered = np.isfinite(forecast)
            self.uncovered[index] += int((present & ~covered)[inner].sum())
            everywhere &= covered
        truth = np.where(everywhere, truth, np.float32(np.nan))
        forecasts = [np.where(everywhere, forecast, np.float32(np.nan)) for forecast in forecasts]
        grid = setting.grid.window(rows, slice(0, setting.grid.cols))
        area = np.broadcast_to(grid.row_area_km2[:, None], grid.shape)
        self._add_coarse(grid, truth[inner], area, [forecast[inner] for forecast in forecasts])
        here = self._stations(rows)
        for index, forecast in enumerate(forecasts):
            for place, (down, right) in enumerate(setting.windows):
                part = slice(max(down.start, rows.start), min(down.stop, rows.stop))
                if part.start < part.stop and right.start < right.stop:
                    moved = slice(part.start - around.start, part.stop - around.start)
                    weight = area[part.start - rows.start : part.stop - rows.start, right]
                    self._count(index, 0, place, Tally.of(forecast[moved, right], truth[moved, right], weight))
            if self.compare:
                weights = setting.grid.row_area_km2[around]
                self.similarity[index, 0] += similarity_sums(forecast, truth, inner, weights)
            for row, col in setting.squares:
                if rows.start <= row < rows.stop:
                    square = (slice(row - around.start, row - around.start + SQUARE), slice(col, col + SQUARE))
                    self.power[index] += power_sums(forecast[square], truth[square])
            self.sampled[index, here] = at_points(forecast, setting.row[here] - around.start, setting.col[here])

    def _stations(self, rows: slice) -> Array:
        """Numbers of the stations in some rows; those on the southern edge belong to the last."""
        row, end = self.setting.row, rows.stop - 0.5
        last = (row <= end) if rows.stop == self.setting.grid.rows else (row < end)
        return np.flatnonzero((row >= rows.start - 0.5) & last)

    def _count(self, method: int, scale: int, place: int, tally: Tally) -> None:
        self.moments[method, scale, place] += tally.moments
        self.joint[method, scale, place] += tally.joint

    def _add_coarse(self, grid: Grid, truth: Array, area: Array, forecasts: list[Array]) -> None:
        rows, cols = cells_of(grid, self.setting.coarse)
        weight = area * np.isfinite(truth)
        for index, field in enumerate([*forecasts, truth]):
            weighted = np.where(weight > 0, field, 0) * weight
            self._sums[index] += block_sums(weighted, rows, cols, self.setting.coarse.shape)
        self._sums[-1] += block_sums(weight, rows, cols, self.setting.coarse.shape)

    def _coarse(self) -> None:
        """At 25 km: means over the land of each cell, which counts by the area of that land."""
        *sums, weight = self._sums
        means = [np.divide(total, weight, out=np.full(weight.shape, np.nan), where=weight > 0) for total in sums]
        for index, forecast in enumerate(means[:-1]):
            for place, window in enumerate(self.setting.coarse_windows):
                self._count(index, 1, place, Tally.of(forecast[window], means[-1][window], weight[window]))
            if self.compare:
                weights = self.setting.coarse.row_area_km2
                self.similarity[index, 1] += similarity_sums(forecast, means[-1], row_weight=weights)
