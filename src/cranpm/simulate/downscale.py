"""From the transport grid to 1 km: towns stand out, their plumes lean with the wind, valleys hold what summits shed.

pm25(1 km) = pm25(transport) * [1 + local * (texture(wind) - 1)] * exp(-(z - z_transport) / depth)

`texture` is the density of town emission smeared downwind, relative to its mean over the surrounding 25 km. It is
prepared once for eight directions on the pixel grid and for calm air, and blended by the wind of the day.
"""

import math
from dataclasses import dataclass, replace

import numba
import numpy as np

from cranpm.archive.day_data import Statics
from cranpm.core.geography import Towns
from cranpm.core.grid import COARSE_STEP, EARTH_RADIUS_KM, Array, Grid, coarsen
from cranpm.core.interpolation import refine
from cranpm.simulate.air import AirDay
from cranpm.simulate.emissions import town_emission

DIRECTIONS = ((0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1))
"""(row, column) steps towards which the wind blows: east, north-east, north, ... counter-clockwise."""
CALM = len(DIRECTIONS)
PLUME_KM = 7.0
TOWN_RADIUS_KM = 1.5
RURAL = 0.7
"""Emission density without any town, relative to the mean density over land."""
TEXTURE_SCALE = 85
"""Textures are kept as bytes: 85 is the surroundings' mean, 255 the cap."""
HIGHEST_UGM3 = 1400.0
"""No daily mean over a square kilometre is higher, whatever the valley and the emission."""
KM_PER_DEGREE = math.radians(1) * EARTH_RADIUS_KM


@dataclass(frozen=True)
class Downscaler:
    """Everything that does not change from day to day; memory: 14 bytes per pixel."""

    grid: Grid
    transport: Grid
    textures: Array
    elevation_m: Array
    transport_elevation_m: Array
    land: Array

    def field(self, air: AirDay) -> Array:
        """PM2.5 of one day on the fine grid, ug m-3, float32, NaN at sea."""
        fields, rows, cols = self._inputs(air)
        return _downscale(fields, rows, cols, self.textures, self.elevation_m, self.land)

    def sampled(self, every: int) -> "Downscaler":
        """The same for one pixel in every `every` x `every`: what a report needs of a continent."""
        start = every // 2
        part = (slice(start, None, every), slice(start, None, every))
        rows, cols = self.land[part].shape
        lat, lon = float(self.grid.lat[start]), float(self.grid.lon[start])
        step = every * self.grid.step
        grid = Grid(round(lat + step / 2, 9), round(lon - step / 2, 9), step, rows, cols)
        return replace(
            self,
            grid=grid,
            textures=np.ascontiguousarray(self.textures[(slice(None), *part)]),
            elevation_m=np.ascontiguousarray(self.elevation_m[part]),
            land=np.ascontiguousarray(self.land[part]),
        )

    def _inputs(self, air: AirDay) -> tuple[Array, Array, Array]:
        speed = np.hypot(air.u10, air.v10)
        cosine = np.cos(np.radians(self.transport.lat))[:, None]
        stagnant = np.exp(-speed / 6) * np.clip(1.3 - air.mixing_m / 1500, 0.3, 1.2)
        depth_m = 350 + 0.9 * air.mixing_m
        fields = np.stack(
            (
                air.pm25_ugm3,
                np.clip(0.15 + 0.35 * stagnant, 0, 0.5),
                air.u10 / cosine,
                air.v10 + 0 * speed,
                np.exp(-speed / 1.5),
                1 / depth_m,
                self.transport_elevation_m,
            )
        )
        rows, cols = self.transport.row_col(self.grid.lat, self.grid.lon)
        return fields.astype(np.float32), rows, cols


def build(
    towns: Towns, emitting: Array, statics: Statics, grid: Grid, transport: Grid, transport_elevation_m: Array
) -> Downscaler:
    """A downscaler for a fine grid; towns that do not emit leave no trace and change nothing elsewhere."""
    rural = RURAL * max(float(_town_density(towns, np.ones(len(towns)), grid)[statics.land].mean()), 1e-6)
    density = _town_density(towns, emitting, grid) + np.float32(rural)
    smeared = [_smear(density, *direction, grid.lat, grid.step) for direction in DIRECTIONS]
    textures = np.empty((CALM + 1, *grid.shape), np.uint8)
    for index in range(CALM):
        # A plume fans out: a part of it goes to the neighbouring directions.
        fan = 0.5 * smeared[index] + 0.25 * (smeared[index - 1] + smeared[(index + 1) % CALM])
        textures[index] = _texture(fan, grid)
    halo = sum(smeared[1:], start=smeared[0]) / CALM
    textures[CALM] = _texture(halo, grid)
    return Downscaler(grid, transport, textures, statics.elevation_m, transport_elevation_m, statics.land)


def _texture(density: Array, grid: Grid) -> Array:
    """Density relative to its surroundings, as bytes."""
    return np.clip(TEXTURE_SCALE * density / _surroundings(density, grid), 0, 255).astype(np.uint8)


def _surroundings(density: Array, grid: Grid) -> Array:
    """Mean over about 25 km, smooth."""
    ratio = round(COARSE_STEP / grid.step)
    coarse = Grid(grid.north, grid.west, COARSE_STEP, -(-grid.rows // ratio), -(-grid.cols // ratio))
    return np.maximum(refine(coarsen(density, grid, coarse), coarse, grid), density.min())


def _town_density(towns: Towns, emitting: Array, grid: Grid) -> Array:
    """Town emission per square kilometre: one bell per town, wider for larger places."""
    emission = (town_emission(towns, "always") + town_emission(towns, "heating")) * emitting
    radius = TOWN_RADIUS_KM * (towns.population / 1e4) ** 0.28
    rows, cols = grid.row_col(towns.lat, towns.lon)
    near = (rows > -40) & (rows < grid.rows + 40) & (cols > -60) & (cols < grid.cols + 60)
    out = np.zeros(grid.shape, np.float32)
    _splat(out, rows[near], cols[near], emission[near], radius[near] / KM_PER_DEGREE / grid.step, grid.lat)
    return out


@numba.njit(cache=True)
def _splat(out: Array, rows: Array, cols: Array, amounts: Array, radii: Array, lat: Array) -> None:  # pragma: no cover
    """Add a round bell of given amount and radius (in pixels along a meridian) for every point."""
    for n in range(rows.size):
        reach = 3.5 * radii[n]
        middle = min(max(int(rows[n]), 0), lat.size - 1)
        shrink = math.cos(math.radians(lat[middle]))
        for r in range(max(0, int(rows[n] - reach)), min(out.shape[0], int(rows[n] + reach) + 2)):
            for c in range(max(0, int(cols[n] - reach / shrink)), min(out.shape[1], int(cols[n] + reach / shrink) + 2)):
                square = (r - rows[n]) ** 2 + ((c - cols[n]) * shrink) ** 2
                if square < reach * reach:
                    out[r, c] += amounts[n] * math.exp(-0.5 * square / radii[n] ** 2) / (radii[n] ** 2)


@numba.njit(cache=True)
def _smear(density: Array, row_step: int, col_step: int, lat: Array, step: float) -> Array:  # pragma: no cover
    """Carry density towards (row_step, col_step) with an e-folding distance of PLUME_KM."""
    rows, cols = density.shape
    out = np.empty_like(density)
    for i in range(rows):
        r = i if row_step >= 0 else rows - 1 - i
        east_km = step * KM_PER_DEGREE * math.cos(math.radians(lat[r]))
        share = np.float32(min(math.hypot(row_step * step * KM_PER_DEGREE, col_step * east_km) / PLUME_KM, 1.0))
        for j in range(cols):
            c = j if col_step >= 0 else cols - 1 - j
            from_r, from_c = r - row_step, c - col_step
            if 0 <= from_r < rows and 0 <= from_c < cols:
                out[r, c] = (1 - share) * out[from_r, from_c] + share * density[r, c]
            else:
                out[r, c] = density[r, c]
    return out


@numba.njit(parallel=True, cache=True)
def _downscale(
    fields: Array, rows: Array, cols: Array, textures: Array, elevation_m: Array, land: Array
) -> Array:  # pragma: no cover
    """The formula at the head of this file, pixel by pixel."""
    out = np.empty(elevation_m.shape, np.float32)
    eighth = np.float32(8 / (2 * math.pi))
    for r in numba.prange(rows.size):
        top = min(max(math.floor(rows[r]), 0), fields.shape[1] - 2)
        down = np.float32(rows[r] - top)
        line = fields[:, top, :] + down * (fields[:, top + 1, :] - fields[:, top, :])
        for c in range(cols.size):
            if not land[r, c]:
                out[r, c] = np.nan
                continue
            left = min(max(math.floor(cols[c]), 0), fields.shape[2] - 2)
            w = np.float32(cols[c] - left)
            pm25 = line[0, left] + w * (line[0, left + 1] - line[0, left])
            local = line[1, left] + w * (line[1, left + 1] - line[1, left])
            east = line[2, left] + w * (line[2, left + 1] - line[2, left])
            north = line[3, left] + w * (line[3, left + 1] - line[3, left])
            calm = line[4, left] + w * (line[4, left + 1] - line[4, left])
            shallow = line[5, left] + w * (line[5, left + 1] - line[5, left])
            base_m = line[6, left] + w * (line[6, left + 1] - line[6, left])
            turn = math.atan2(north, east) * eighth
            if turn < 0:
                turn += np.float32(8)
            first = int(turn) % 8
            part = turn - np.float32(int(turn))
            plume = (1 - part) * textures[first, r, c] + part * textures[(first + 1) % 8, r, c]
            texture = ((1 - calm) * plume + calm * textures[CALM, r, c]) / np.float32(TEXTURE_SCALE)
            rise = min(max((elevation_m[r, c] - base_m) * shallow, np.float32(-0.45)), np.float32(0.8))
            out[r, c] = min(pm25 * (1 + local * (texture - 1)) * math.exp(-rise), HIGHEST_UGM3)
    return out
