"""Real relief, coast and towns for any grid inside the regions that the package carries.

The asset is small (see tools/build_geography.py), so relief finer than 1/12 degree is invented:
seeded noise whose height follows the roughness of the real relief around it, the same for every world.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np
from scipy import ndimage

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid

RELIEF_STEP = 1 / 12
LAND_PER_DEGREE = 120
NOISE_OCTAVES = ((0.06, 0.30), (0.03, 0.16))
"""(lattice spacing in degrees, height as a share of the local roughness)."""


@dataclass(frozen=True)
class Towns:
    """Places of 5,000 inhabitants and more, largest first."""

    names: tuple[str, ...]
    countries: Array
    lat: Array
    lon: Array
    population: Array

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Region:
    """One region of the package: nodes of real relief, the 30-arc-second coast and towns."""

    name: str
    north: float
    west: float
    south: float
    east: float
    relief_m: Array
    land_bits: Array
    towns: Towns

    def covers(self, grid: Grid) -> bool:
        return (
            grid.north <= self.north and grid.south >= self.south and grid.west >= self.west and grid.east <= self.east
        )

    def land(self, grid: Grid) -> Array:
        """Whether each pixel centre is on land."""
        rows = ((self.north - grid.lat) * LAND_PER_DEGREE).astype(int)
        cols = ((grid.lon - self.west) * LAND_PER_DEGREE).astype(int)
        width = round((self.east - self.west) * LAND_PER_DEGREE)
        return np.unpackbits(self.land_bits[rows], axis=1, count=width).astype(bool)[:, cols]

    def elevation(self, grid: Grid) -> tuple[Array, Array]:
        """Elevation and its spread inside a pixel, metres, float32, zero at sea."""
        land = self.land(grid)
        roughness = _on_lattice(_roughness(self.relief_m), self, grid)
        height = _on_lattice(self.relief_m, self, grid)
        for octave, (spacing, share) in enumerate(NOISE_OCTAVES):
            height += share * roughness * _noise(self, grid, spacing, octave)
        floor = np.float32(min(0.0, float(self.relief_m.min())))
        height = np.where(land, np.maximum(height, floor), 0)
        return height.astype(np.float32), np.where(land, 0.1 * roughness, 0).astype(np.float32)


def _on_lattice(nodes: Array, region: Region, grid: Grid) -> Array:
    """Cubic interpolation from the region's 1/12-degree nodes to pixel centres."""
    padded = np.pad(nodes.astype(np.float32), 2, mode="edge")
    values = _cubic(padded, (region.north - grid.lat) / RELIEF_STEP + 2, axis=0)
    return _cubic(values, (grid.lon - region.west) / RELIEF_STEP + 2, axis=1)


def _roughness(relief_m: Array) -> Array:
    """Standard deviation of the relief within about 20 km, metres."""
    height = relief_m.astype(float)
    mean = ndimage.uniform_filter(height, 5)
    return np.sqrt(np.maximum(ndimage.uniform_filter(height**2, 5) - mean**2, 0))


def _noise(region: Region, grid: Grid, spacing: float, octave: int) -> Array:
    """Smooth noise of unit variance fixed to the Earth: a random lattice, cubically interpolated."""
    rows = round((region.north - region.south) / spacing) + 4
    cols = round((region.east - region.west) / spacing) + 4
    seeds = [octave, *region.name.encode()]
    lattice = np.random.default_rng(seeds).standard_normal((rows, cols), dtype=np.float32)
    values = _cubic(lattice, (region.north - grid.lat) / spacing + 1, axis=0)
    return _cubic(values, (grid.lon - region.west) / spacing + 1, axis=1) * np.float32(1.3)


def _cubic(field: Array, position: Array, *, axis: int) -> Array:
    """Catmull-Rom interpolation along one axis."""
    low = np.floor(position).astype(int)
    t = (position - low).astype(np.float32)
    weights = (
        -0.5 * t + t**2 - 0.5 * t**3,
        1 - 2.5 * t**2 + 1.5 * t**3,
        0.5 * t + 2 * t**2 - 1.5 * t**3,
        -0.5 * t**2 + 0.5 * t**3,
    )
    out: Array = np.float32(0)  # type: ignore[assignment]
    for offset, weight in enumerate(weights):
        shaped = weight[:, None] if axis == 0 else weight[None, :]
        out = out + shaped * np.take(field, low + offset - 1, axis=axis)
    return out


@cache
def _boxes() -> dict[str, dict[str, float]]:
    """Edges of each packaged region, degrees."""
    return tomllib.loads(files("cranpm.core").joinpath("geography.toml").read_text())


@cache
def load_region(name: str) -> Region:
    """One region of the packaged geography."""
    with as_file(files("cranpm.core").joinpath("geography.npz")) as path, np.load(path) as asset:
        positions = asset[f"{name}/positions"].astype(float)
        towns = Towns(
            names=tuple(asset[f"{name}/names"].tobytes().decode().split("\n")),
            countries=asset[f"{name}/countries"].astype(str),
            lat=positions[:, 0],
            lon=positions[:, 1],
            # A population that GeoNames does not know is given as 0.
            population=np.maximum(asset[f"{name}/population"], 1000).astype(float),
        )
        relief, land = asset[f"{name}/relief"], asset[f"{name}/land"]
    return Region(name, **_boxes()[name], relief_m=relief, land_bits=land, towns=towns)


def find_region(grid: Grid) -> Region | None:
    """The region that covers a grid; None where the package has no geography."""
    return next((region for region in map(load_region, _boxes()) if region.covers(grid)), None)


def region_of(grid: Grid) -> Region:
    """The region that covers a grid, refused where the package has no geography."""
    region = find_region(grid)
    if region is not None:
        return region
    names = tuple(_boxes())
    boxes = "; ".join(f"{r.name} N {r.north} W {r.west} S {r.south} E {r.east}" for r in map(load_region, names))
    raise CranpmError(
        expected=f"a box inside the packaged geography, margin included ({boxes})",
        found=f"N {grid.north} W {grid.west} S {grid.south} E {grid.east}",
        remedy="Choose a box inside one region, or ingest real data.",
    )
