"""What the simulated people, fields and fires emit, in ug per square metre and second."""

import math
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from scipy import ndimage

from cranpm.core.geography import Region, Towns
from cranpm.core.grid import Array, Grid
from cranpm.simulate.climate import climate_of, country_factors
from cranpm.simulate.waves import EPOCH, M_PER_DEGREE

PER_TOWN = 0.0156
"""Calibrates all emission from towns: ug s-1 m-2 for a place of 10,000 spread over one 0.125-degree cell."""
POPULATION_POWER = 0.5
HEATING_BELOW_K = 288.0
FIRE_SEASON_K = 294.0
FIRE_WINDOW_DAYS = 4
FIRES_PER_WINDOW = 72
"""On three continents, sea included; most burn nothing."""
SMOOTHING_MARGIN = 4.0
"""Degrees of towns around a grid that its smoothed emission takes in."""
FIRE_STRENGTH = 1.5


@dataclass(frozen=True)
class EmissionMap:
    """Where emission happens on one grid; the weather and the calendar say how much."""

    grid: Grid
    always: Array
    heating: Array
    farmland: Array
    allowed: Array
    """0 where a counterfactual world emits nothing."""

    def rate(self, day: date, t2m: Array, fires: Array) -> Array:
        """Emission at one time of one day."""
        week = (1.05, 1.05, 1.05, 1.05, 1.05, 0.92, 0.83)[day.weekday()]
        cold = np.clip(HEATING_BELOW_K - t2m, 0, 22) / 12
        spring = math.exp(-(((day.timetuple().tm_yday - 92) / 28) ** 2)) * np.clip((t2m - 276) / 8, 0, 1)
        burning = np.clip((t2m - FIRE_SEASON_K + 4) / 4, 0, 1)
        # Secondary aerosol: sunlit warm air turns gases of the same towns and fields into particles.
        secondary = 0.35 * np.clip((t2m - 278) / 15, 0, 1.2)
        total = self.always * (week + secondary) + self.heating * cold + self.farmland * (0.25 + spring)
        return (total + fires * burning) * self.allowed

    def fires(self, seed: int, day: date) -> Array:
        """Emission of the fires burning on a day: each starts in a window of four days and lasts into the next."""
        window = (day - EPOCH) // timedelta(days=FIRE_WINDOW_DAYS)
        out = np.zeros(self.grid.shape)
        for index, fading in ((window, 1.0), (window - 1, 0.4)):
            rng = np.random.default_rng([seed, 77, index + 2**20])
            # Fires are drawn on the whole globe's box of the mid-latitudes, so that every domain shares them.
            for lat, lon, strength in rng.uniform((10, -135, 0), (62, 105, 1), (FIRES_PER_WINDOW, 3)):
                self._burn(out, lat, lon, fading * FIRE_STRENGTH * strength**3)
        return out

    def _burn(self, out: Array, lat: float, lon: float, strength: float) -> None:
        if not self.grid.contains(lat, lon):
            return
        row, col = (int(np.round(value)) for value in self.grid.row_col(lat, lon))
        rows, cols = slice(max(row - 1, 0), row + 2), slice(max(col - 1, 0), col + 2)
        out[rows, cols] += strength * (self.farmland[rows, cols] > 0)


def emission_map(region: Region, grid: Grid, land: Array, elevation_m: Array) -> EmissionMap:
    """Emission of all towns on a grid: half near the centre, half spread over the country around it."""
    area = (grid.step / 0.125) ** 2 * np.cos(np.radians(grid.lat))[:, None] / math.cos(math.radians(50))
    climate = climate_of(region.name)
    factor, latitude = climate.emission, climate.reference_latitude
    maps = {use: _spread(region.towns, grid, use, latitude) * PER_TOWN * factor / area for use in ("always", "heating")}
    gentle = np.clip(1 - elevation_m / 1200, 0, 1) * land
    lat = grid.lat[:, None]
    green = np.exp(-(((lat - 48) / 9) ** 2)) + 0.8 * np.exp(-(((lat - 25) / 6) ** 2))
    farmland = 0.13 * factor * gentle * (0.08 + green)
    return EmissionMap(grid, maps["always"], maps["heating"], farmland, np.ones(grid.shape))


def town_emission(towns: Towns, use: str) -> Array:
    """Relative emission of each town for one use."""
    factors = country_factors(use)
    by_country = np.array([factors.get(code, factors["default"]) for code in towns.countries])
    return by_country * (towns.population / 1e4) ** POPULATION_POWER


def _spread(towns: Towns, grid: Grid, use: str, latitude: float) -> Array:
    """Town emission on the grid, smoothed over 9 km and 60 km in equal parts."""
    # A wide margin makes the smoothed map of a domain the same as that of a larger one.
    wide = grid.widen(SMOOTHING_MARGIN)
    rows, cols = (np.round(value).astype(int) for value in wide.row_col(towns.lat, towns.lon))
    inside = (rows >= 0) & (rows < wide.rows) & (cols >= 0) & (cols < wide.cols)
    points = np.zeros(wide.shape)
    np.add.at(points, (rows[inside], cols[inside]), town_emission(towns, use)[inside])
    cell = grid.step * M_PER_DEGREE / 1e3
    stretch = 1 / math.cos(math.radians(latitude))
    near, far = (
        ndimage.gaussian_filter(points, (km / cell, stretch * km / cell), mode="constant") for km in (9.0, 60.0)
    )
    margin = round(SMOOTHING_MARGIN / grid.step)
    return 0.5 * (near + far)[margin:-margin, margin:-margin]
