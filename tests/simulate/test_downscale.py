from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from cranpm.simulate import downscale
from cranpm.simulate.air import AirState, run_day

MILAN = (45.46, 9.19)


@pytest.fixture(scope="module")
def air(world):
    state = AirState(np.full(world.grid.shape, 10.0), np.full(world.grid.shape, 500.0))
    fires = np.zeros(world.grid.shape)
    return run_day(state, date(2020, 1, 15), world.weather_grid, world.emissions, fires, 7.0)[1]


def still(air, u=0.0, v=0.0, pm25=20.0):
    """The same day with one wind and one concentration everywhere."""
    full = np.ones_like(air.u10)
    return replace(air, u10=u * full, v10=v * full, pm25_ugm3=pm25 * full, mixing_m=500 * full)


def around(world, field, lat, lon, north, east, reach=12):
    """Mean of a box whose centre lies some pixels north and east of a place."""
    row, col = (round(float(value)) for value in world.domain.fine.row_col(lat, lon))
    row, col = row - north, col + east
    return np.nanmean(field[row - reach : row + reach, col - reach : col + reach])


def test_sea_is_missing_and_land_is_not(world, air):
    field = world.downscaler.field(air)
    assert field.dtype == np.float32
    assert np.array_equal(np.isnan(field), ~world.statics.land)
    assert np.nanmin(field) > 0


def test_the_mean_of_the_transport_grid_is_kept(world, air):
    field = world.downscaler.field(still(air))
    assert np.nanmean(field) == pytest.approx(20, rel=0.12)


@pytest.mark.parametrize(("u", "v", "downwind"), [(5, 0, (0, 1)), (-5, 0, (0, -1)), (0, 5, (1, 0)), (0, -5, (-1, 0))])
def test_plumes_lean_downwind(world, air, u, v, downwind):
    """The texture alone, on flat ground: a lone town's plume lies on its downwind side."""
    flat = replace(
        world.downscaler,
        elevation_m=np.zeros_like(world.downscaler.elevation_m),
        transport_elevation_m=np.zeros_like(world.downscaler.transport_elevation_m),
        textures=lone_town_textures(world),
        land=np.ones_like(world.downscaler.land),
    )
    field = flat.field(still(air, u, v))
    ahead, behind = (
        around(world, field, *MILAN, sign * 14 * downwind[0], sign * 14 * downwind[1], 6) for sign in (1, -1)
    )
    assert ahead > 1.1 * behind


def lone_town_textures(world, emitting=True):
    towns = world.region.towns
    index = int(np.argmin((towns.lat - MILAN[0]) ** 2 + (towns.lon - MILAN[1]) ** 2))
    one = slice(index, index + 1)
    lone = type(towns)(towns.names[one], towns.countries[one], towns.lat[one], towns.lon[one], np.array([3e5]))
    return downscale.build(
        lone, np.array([emitting]), world.statics, world.domain.fine, world.grid, world.downscaler.transport_elevation_m
    ).textures


def test_a_silent_town_leaves_no_bump(world):
    assert np.ptp(lone_town_textures(world)[downscale.CALM]) > 50
    assert np.ptp(lone_town_textures(world, emitting=False)[downscale.CALM]) <= 1


def test_valleys_hold_what_summits_shed(world, air):
    field = world.downscaler.field(still(air))
    rise = world.statics.elevation_m - refined_base(world)
    assert np.nanmean(field[rise > 300]) < 0.8 * np.nanmean(field[(rise < -300) & world.statics.land])


def refined_base(world):
    from cranpm.core.interpolation import refine

    return refine(world.downscaler.transport_elevation_m, world.grid, world.domain.fine)


def test_towns_stand_out_more_in_calm_air(world, air):
    """A Brescia-sized contrast: town centres against their surroundings."""
    centre = world.downscaler.textures[downscale.CALM] > 1.6 * downscale.TEXTURE_SCALE
    contrast = []
    for u in (0.5, 12.0):
        field = world.downscaler.field(still(air, u))
        contrast.append(np.nanmean(field[centre]) / np.nanmean(field))
    assert contrast[0] > contrast[1] > 1


def test_sampled_points_are_pixels_of_the_field(world, air):
    points = world.downscaler.sampled(25)
    assert points.grid.shape == points.land.shape == (20, 20)
    assert np.allclose(points.field(air), world.downscaler.field(air)[12::25, 12::25], rtol=1e-3, equal_nan=True)


def test_smearing_matches_a_slow_reference():
    rng = np.random.default_rng(0)
    density = rng.uniform(0, 1, (12, 15)).astype(np.float32)
    lat = np.linspace(46, 45.88, 12)
    fast = downscale._smear(density, -1, 1, lat, 0.01)
    slow = np.empty_like(density)
    for row in range(11, -1, -1):
        east = 0.01 * downscale.KM_PER_DEGREE * np.cos(np.radians(lat[row]))
        share = min(np.hypot(0.01 * downscale.KM_PER_DEGREE, east) / downscale.PLUME_KM, 1)
        for col in range(15):
            upwind = row + 1 < 12 and col >= 1
            carried = (1 - share) * slow[row + 1, col - 1] + share * density[row, col] if upwind else density[row, col]
            slow[row, col] = carried
    assert np.allclose(fast, slow, atol=1e-6)
