"""Coarse fields at pixels, for methods that look at one pixel at a time."""

from typing import no_type_check

import numba
import numpy as np

from cranpm.core.grid import COARSE_STEP, Array

LEAST_WEIGHT = np.float32(1e-3)
"""Below it nothing is known: latitudes in float32 place a pixel to some 1e-5 of a cell only, and the next pixel is 0.04
of a cell away."""


def pixel_features(fields: Array, corner: tuple[float, float], pixels: Array) -> Array:
    """(pixels, features) float32: what `pixels` (5, pixels) hold themselves, then the coarse fields (ch, h, w) there.

    Pixels hold their latitude and longitude in places 2 and 3; `corner` is that of the grid's north-west edge. Between
    the centres of cells values are bilinear, beyond the outermost the nearest. Cells that are missing leave their
    weight to the others; where all four are, the feature is missing.
    """
    rows = (corner[0] - pixels[2].astype(np.float64)) / COARSE_STEP - 0.5
    cols = (pixels[3].astype(np.float64) - corner[1]) / COARSE_STEP - 0.5
    found = np.empty((pixels.shape[1], len(pixels) + len(fields)), np.float32)
    found[:, : len(pixels)] = pixels.T
    _interpolate(np.ascontiguousarray(fields.transpose(1, 2, 0)), rows, cols, found[:, len(pixels) :])
    return found


@no_type_check  # also keeps the tests' checks of shapes out of what numba compiles
def _interpolate(fields, rows, cols, out):  # pragma: no cover
    height, width, channels = fields.shape
    for pixel in numba.prange(len(rows)):
        row = min(max(rows[pixel], 0.0), height - 1.0)
        col = min(max(cols[pixel], 0.0), width - 1.0)
        above, before = int(row), int(col)
        below, after = min(above + 1, height - 1), min(before + 1, width - 1)
        down, right = np.float32(row - above), np.float32(col - before)
        one = np.float32(1)
        weights = ((one - down) * (one - right), (one - down) * right, down * (one - right), down * right)
        for channel in range(channels):
            values = (
                fields[above, before, channel],
                fields[above, after, channel],
                fields[below, before, channel],
                fields[below, after, channel],
            )
            total, weight = np.float32(0), np.float32(0)
            for corner in range(4):
                if values[corner] == values[corner]:
                    total += values[corner] * weights[corner]
                    weight += weights[corner]
            out[pixel, channel] = total / weight if weight > LEAST_WEIGHT else np.float32(np.nan)


_interpolate = numba.njit(parallel=True, cache=True)(_interpolate)
