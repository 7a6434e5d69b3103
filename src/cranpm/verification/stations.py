"""Forecasts at stations: sampled between pixels, and grouped by what stations have in common."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from cranpm.archive.day_data import Stations
from cranpm.archive.store import Archive
from cranpm.core.grid import EARTH_RADIUS_KM, Array, Grid

FLAT_M = 50.0
"""Standard deviation of elevation within 25 km from which terrain is complex."""
AROUND_KM = 25.0
ALTITUDES_M = (200.0, 500.0)
SEASONS = {"winter": (12, 1, 2), "spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11)}


def roughness_m(archive: Archive) -> Array:
    """Standard deviation of the elevation of land within 25 km of each station."""
    grid, elevation, land = archive.domain.fine, archive.elevation(), archive.land()
    rows, cols = grid.row_col(archive.stations.lat, archive.stations.lon)
    return np.array([_spread_around(elevation, land, grid, row, col) for row, col in zip(rows, cols, strict=True)])


def _spread_around(elevation: Array, land: Array, grid: Grid, row: float, col: float) -> float:
    km = EARTH_RADIUS_KM * np.radians(grid.step)
    shrink = np.cos(np.radians(grid.north - (row + 0.5) * grid.step))
    reach = int(np.ceil(AROUND_KM / km)), int(np.ceil(AROUND_KM / (km * shrink)))
    window = tuple(
        slice(max(0, int(place) - far), min(int(place) + far + 2, size))
        for place, far, size in zip((row, col), reach, grid.shape, strict=True)
    )
    down, right = np.ogrid[window]
    near = (((down - row) * km) ** 2 + ((right - col) * km * shrink) ** 2 <= AROUND_KM**2) & land[window]
    return float(elevation[window][near].std()) if near.any() else float("nan")


def groups(stations: Stations, roughness: Array, unseen: Array | None) -> dict[str, Array]:
    """Which stations belong to each group; `unseen` are those that the loss never saw, None if nobody knows."""
    found: dict[str, Array] = {
        "all": np.ones(len(stations), dtype=bool),
        "flat": roughness < FLAT_M,
        "complex": roughness >= FLAT_M,
    }
    if unseen is not None:
        found |= {"held out": unseen, "in the loss": ~unseen}
    for title, values in (("type", stations.kind), ("area", stations.area), ("country", stations.country)):
        found |= {f"{title}: {value}": values == value for value in sorted(set(values.tolist()))}
    bounds = [-np.inf, *ALTITUDES_M, np.inf]
    names = [
        f"below {ALTITUDES_M[0]:g} m",
        f"{ALTITUDES_M[0]:g} to {ALTITUDES_M[1]:g} m",
        f"above {ALTITUDES_M[1]:g} m",
    ]
    for name, low, high in zip(names, bounds[:-1], bounds[1:], strict=True):
        found[f"altitude: {name}"] = (stations.altitude_m >= low) & (stations.altitude_m < high)
    return {name: members for name, members in found.items() if members.any()}


def seasons(valid: Sequence[date]) -> dict[str, Array]:
    """Which days belong to each season that occurs."""
    found = {name: np.array([day.month in months for day in valid]) for name, months in SEASONS.items()}
    return {name: members for name, members in found.items() if members.any()}
