"""Does a forecast look like the truth: structural similarity, and power by wavelength (is fine structure blurred?)."""

from collections.abc import Mapping
from functools import cache
from typing import ClassVar

import numba
import numpy as np

from cranpm.archive.store import Archive
from cranpm.core.grid import Array
from cranpm.verification.statistics import SCALES, STATISTICS, Metric, Pixels, Statistic, ratio

WINDOW = 7
"""Side of the square in which structure is compared, in pixels; all its pixels count alike."""
HALO = WINDOW // 2
RANGE_UGM3 = 50.0
"""Range of the data in the formula's two constants, the same for all days and methods."""
C1, C2 = (0.01 * RANGE_UGM3) ** 2, (0.03 * RANGE_UGM3) ** 2

SQUARE = 256
"""Side of the squares whose spectra are taken, in pixels."""
LEAST_LAND = 0.99
MOST_SQUARES = 16
WAVELENGTHS_PX = (2, 4, 8, 16, 32, 64, 128)
"""Shortest wavelength of each band; the last reaches to the side of a square."""


def similarity_sums(forecast: Array, truth: Array, rows: slice = slice(None), row_weight: Array | None = None) -> Array:
    """(sum, weight) of the local similarity (Wang et al. 2004) at pixels whose window has no missing value.

    `rows` are those to count; the others only serve as their surroundings.
    """
    first, last, _ = rows.indices(truth.shape[0])
    weight = np.ones(len(truth)) if row_weight is None else np.asarray(row_weight, np.float64)
    out = np.zeros(2)
    inner = max(first, HALO), min(last, truth.shape[0] - HALO)
    _similarity(np.asarray(forecast), np.asarray(truth), weight, *inner, out)
    return out


def pair_similarity(forecast: Array, truth: Array) -> float:
    """The plain formula over matched pairs, as if they were one window."""
    both = np.isfinite(forecast) & np.isfinite(truth)
    if both.sum() < 2:
        return float("nan")
    f, t = forecast[both].astype(np.float64), truth[both].astype(np.float64)
    cov = np.cov(f, t)
    return float(
        (2 * f.mean() * t.mean() + C1)
        * (2 * cov[0, 1] + C2)
        / ((f.mean() ** 2 + t.mean() ** 2 + C1) * (cov[0, 0] + cov[1, 1] + C2))
    )


@numba.njit(cache=True, nogil=True)
def _similarity(
    forecast: Array, truth: Array, weight: Array, first: int, last: int, out: Array
) -> None:  # pragma: no cover
    """Sums over seven rows for every column, then over seven columns; nothing is carried from row to row."""
    cols, n = truth.shape[1], WINDOW * WINDOW
    column = np.zeros((6, cols))
    for row in range(first, last):
        for col in range(cols):
            for moment in range(6):
                column[moment, col] = 0.0
            for down in range(row - HALO, row + HALO + 1):
                f, t = np.float64(forecast[down, col]), np.float64(truth[down, col])
                if np.isfinite(f) and np.isfinite(t):
                    column[0, col] += 1
                    column[1, col] += f
                    column[2, col] += t
                    column[3, col] += f * f
                    column[4, col] += t * t
                    column[5, col] += f * t
        total = 0.0
        count = 0
        for col in range(HALO, cols - HALO):
            s0 = s1 = s2 = s3 = s4 = s5 = 0.0
            for beside in range(col - HALO, col + HALO + 1):
                s0 += column[0, beside]
            if s0 < n:
                continue
            for beside in range(col - HALO, col + HALO + 1):
                s1 += column[1, beside]
                s2 += column[2, beside]
                s3 += column[3, beside]
                s4 += column[4, beside]
                s5 += column[5, beside]
            mean_f, mean_t = s1 / n, s2 / n
            squared = (s3 + s4 - n * (mean_f * mean_f + mean_t * mean_t)) / (n - 1)
            product = (s5 - n * mean_f * mean_t) / (n - 1)
            level = (2 * mean_f * mean_t + C1) / (mean_f * mean_f + mean_t * mean_t + C1)
            total += level * (2 * product + C2) / (squared + C2)
            count += 1
        out[0] += weight[row] * total
        out[1] += weight[row] * count


def squares(land: Array) -> list[tuple[int, int]]:
    """Corners of squares that are all but land, side by side from the north-west; some of them where there are many."""
    found = [
        (row, col)
        for row in range(0, land.shape[0] - SQUARE + 1, SQUARE)
        for col in range(0, land.shape[1] - SQUARE + 1, SQUARE)
        if land[row : row + SQUARE, col : col + SQUARE].mean() >= LEAST_LAND
    ]
    picks = np.unique(np.linspace(0, len(found) - 1, min(len(found), MOST_SQUARES)).round().astype(int))
    return [found[pick] for pick in picks]


def power_sums(forecast: Array, truth: Array) -> Array:
    """(band of wavelengths, [forecast, truth]) power of the anomalies in one square; gaps take the mean.

    A square of which more than half is missing has no power at all.
    """
    bands, taper = _bands()
    out = np.zeros((len(WAVELENGTHS_PX), 2))
    here = np.isfinite(forecast) & np.isfinite(truth)
    if here.mean() < 0.5:
        return out
    for index, field in enumerate((forecast, truth)):
        anomaly = np.where(here, field - field[here].mean(dtype=np.float64), 0.0)
        power = np.abs(np.fft.fft2(anomaly * taper)) ** 2
        out[:, index] = np.bincount(bands.ravel(), power.ravel(), len(WAVELENGTHS_PX) + 1)[1:]
    return out


@cache
def _bands() -> tuple[Array, Array]:
    """Band of each coefficient (0: the mean) and the taper that keeps edges out of the spectrum."""
    frequency = np.fft.fftfreq(SQUARE)
    radius = np.hypot(frequency[:, None], frequency)
    with np.errstate(divide="ignore"):
        wavelength = 1 / radius
    bands = np.searchsorted(np.array(WAVELENGTHS_PX), wavelength, side="right")
    bands = np.where(radius == 0, 0, np.maximum(bands, 1))
    hann = np.hanning(SQUARE + 1)[:-1]
    return bands, np.outer(hann, hann)


@STATISTICS.register("ssim")
class Similarity(Statistic):
    """Structural similarity: (sum, weight) over windows without a gap."""

    shape = (2,)
    metrics: ClassVar[Mapping[str, Metric]] = {"ssim": Metric("SSIM", lambda sums: ratio(sums[..., 0], sums[..., 1]))}
    by_place = False
    at_stations = False
    halo = HALO

    def pixels(self, part: Pixels) -> Array:
        return similarity_sums(part.forecast, part.truth, part.rows, part.row_area_km2)


@STATISTICS.register("spectra")
class Spectra(Statistic):
    """Power by wavelength in squares of land: (band, [forecast, truth])."""

    shape = (len(WAVELENGTHS_PX), 2)
    scales = SCALES[:1]
    by_place = False
    at_stations = False

    def __init__(self, archive: Archive):
        self.squares = squares(archive.land())

    def pixels(self, part: Pixels) -> Array:
        total = np.zeros(self.shape)
        for row, col in self.squares:
            start = row - part.first_row
            if part.rows.start <= start < part.rows.stop:
                square = (slice(start, start + SQUARE), slice(col, col + SQUARE))
                total += power_sums(part.forecast[square], part.truth[square])
        return total
