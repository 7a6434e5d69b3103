"""Where the values of a provider's file lie: regular latitudes and longitudes, turned north up and west to east."""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain, Grid

LOOSE = 1e-3
"""Coordinates are often float32; by this share of a step they may be off."""


@dataclass(frozen=True)
class FileGrid:
    """Centres of rows (north to south) and columns (west to east), and how the file's own order is turned into them."""

    lat: Array
    lon: Array
    rows: Array
    cols: Array

    @classmethod
    def of(cls, lat: Array, lon: Array, what: str) -> "FileGrid":
        """From the file's coordinates in any order, longitudes 0..360 or -180..180."""
        lat, lon = np.asarray(lat, np.float64), np.asarray(lon, np.float64)
        if lat.ndim != 1 or lon.ndim != 1 or not lat.size or not lon.size:
            _refuse(what, "one-dimensional latitudes and longitudes", f"shapes {lat.shape} and {lon.shape}")
        if not (np.isfinite(lat).all() and np.isfinite(lon).all()):
            _refuse(what, "coordinates that are numbers", "some that are missing")
        if np.abs(lat).max() > 90 + 1e-6 or lon.min() < -180 - 1e-6 or lon.max() > 360 + 1e-6:
            found = f"latitude {lat.min():g}..{lat.max():g}, longitude {lon.min():g}..{lon.max():g}"
            _refuse(what, "latitude -90..90 and longitude -180..360", found)
        east = np.where(lon >= 180, lon - 360, lon)
        rows, cols = np.argsort(-lat), np.argsort(east)
        lat, east = lat[rows], east[cols]
        for name, values in (("latitude", -lat), ("longitude", east)):
            steps = np.diff(values)
            if (steps <= 0).any():
                _refuse(what, f"every {name} once", "some twice")
            if steps.size and np.ptp(steps) > 2 * LOOSE * steps.mean() + 1e-6:
                _refuse(what, f"{name} in even steps", f"steps of {steps.min():g} to {steps.max():g} degrees")
        return cls(lat, east, rows, cols)

    def same(self, other: "FileGrid") -> bool:
        """Whether both have the same centres."""
        return np.array_equal(self.lat, other.lat) and np.array_equal(self.lon, other.lon)

    def cut(self, domain: Domain) -> "FileGrid":
        """The part that a domain needs, with a margin; all of it if it does not hold the domain."""
        rows = _near(self.lat, domain.south, domain.north)
        cols = _near(self.lon, domain.west, domain.east)
        if min(len(rows), len(cols)) < 2:
            return self
        return FileGrid(self.lat[rows], self.lon[cols], self.rows[rows], self.cols[cols])

    def turn(self, raw: Array) -> Array:
        """Values of the file, rows and columns last, in our order."""
        if np.array_equal(self.rows, np.arange(raw.shape[-2])) and np.array_equal(self.cols, np.arange(raw.shape[-1])):
            return raw
        return raw[..., self.rows[:, None], self.cols]

    def grid(self, what: str) -> Grid:
        """The same as a grid of square cells around the centres."""
        if len(self.lat) < 2 or len(self.lon) < 2:
            _refuse(what, "at least 2 x 2 cells", f"{len(self.lat)} x {len(self.lon)}")
        down = (self.lat[0] - self.lat[-1]) / (len(self.lat) - 1)
        across = (self.lon[-1] - self.lon[0]) / (len(self.lon) - 1)
        step = round(float(down), 4)
        if abs(across - down) > LOOSE * down or abs(down - step) > LOOSE * down:
            _refuse(what, "cells as high as wide, in degrees", f"{down:g} x {across:g}")
        north, west = round(float(self.lat[0]) + step / 2, 4), round(float(self.lon[0]) - step / 2, 4)
        return Grid(north, west, step, len(self.lat), len(self.lon))


def _near(centres: Array, low: float, high: float) -> Array:
    """Indices of the centres in a range, and of two more on either side."""
    inside = np.flatnonzero((centres >= low) & (centres <= high))
    return np.arange(max(inside[0] - 2, 0), min(inside[-1] + 3, len(centres))) if len(inside) else inside


def _refuse(what: str, expected: str, found: str) -> NoReturn:
    raise CranpmError(
        expected=f"{expected} in {what}",
        found=found,
        remedy="Fetch the file again on a regular latitude-longitude grid.",
    )
