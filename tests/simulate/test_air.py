from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from cranpm.core.geography import load_region
from cranpm.core.grid import Grid
from cranpm.simulate.air import ALOFT_UGM3, LAYER_WIND, AirState, run_day
from cranpm.simulate.emissions import POPULATION_POWER, EmissionMap, emission_map, town_emission
from cranpm.simulate.transport import step
from cranpm.simulate.weather import Surface

DAY = date(2020, 1, 15)


@pytest.fixture(scope="module")
def start(world):
    return AirState(np.full(world.grid.shape, 10.0), np.full(world.grid.shape, 500.0))


def day_of(world, start, *, emissions=None, fires=0.0, inflow=7.0, day=DAY):
    emissions = emissions or world.emissions
    return run_day(start, day, world.weather_grid, emissions, np.full(world.grid.shape, fires), inflow)


def test_the_budget_closes(world, start):
    state = start
    for number in range(3):
        state, air = day_of(world, state, day=date(2020, 1, 15 + number))
        assert air.budget.residual < 1e-3
        assert air.budget.emission > 0
        assert air.budget.removal > 0
        assert air.pm25_ugm3.min() >= 0


def test_the_budget_notices_a_leak(world, start):
    _, air = day_of(world, start)
    leaky = replace(air.budget, after=air.budget.after * 1.05)
    assert leaky.residual > 1e-3


def test_more_emission_is_more_pollution_and_none_is_less(world, start):
    base = day_of(world, start)[1].pm25_ugm3.mean()
    double = replace(world.emissions, always=2 * world.emissions.always, heating=2 * world.emissions.heating)
    silent = replace(world.emissions, allowed=np.zeros(world.grid.shape))
    assert day_of(world, start, emissions=double)[1].pm25_ugm3.mean() > base
    quiet = day_of(world, start, emissions=silent)[1]
    assert quiet.pm25_ugm3.mean() < base
    assert quiet.budget.emission == 0


def test_rain_cleans(world, start):
    """Where it rained much the air lost more than where it did not, emission aside."""
    silent = replace(world.emissions, allowed=np.zeros(world.grid.shape))
    for day in (date(2020, 1, 15 + number) for number in range(16)):
        _, air = day_of(world, start, emissions=silent, day=day)
        wet, dry = air.rain_mm > 5, air.rain_mm < 0.1
        if wet.mean() > 0.05 and dry.mean() > 0.05:
            assert air.pm25_ugm3[wet].mean() < air.pm25_ugm3[dry].mean()
            return
    pytest.fail("no day with both rain and dry land")


def test_cold_days_and_working_days_emit_more(world):
    fires = np.zeros(world.grid.shape)
    cold, mild = (np.full(world.grid.shape, kelvin) for kelvin in (268.0, 284.0))
    monday, sunday = date(2020, 1, 13), date(2020, 1, 19)
    assert world.emissions.rate(monday, cold, fires).sum() > 1.2 * world.emissions.rate(monday, mild, fires).sum()
    assert world.emissions.rate(monday, mild, fires).sum() > world.emissions.rate(sunday, mild, fires).sum()


def test_fires_burn_in_hot_weather_only(world):
    burning = np.zeros(world.grid.shape)
    burning[10, 10] = 5.0
    hot, cool = (np.full(world.grid.shape, kelvin) for kelvin in (300.0, 285.0))
    none = np.zeros(world.grid.shape)
    assert world.emissions.rate(DAY, hot, burning)[10, 10] == pytest.approx(
        world.emissions.rate(DAY, hot, none)[10, 10] + 5
    )
    assert np.array_equal(world.emissions.rate(DAY, cool, burning), world.emissions.rate(DAY, cool, none))


def test_fires_are_the_same_for_every_domain(world):
    days = [date(2021, 7, 1 + 4 * number) for number in range(7)]
    maps = [world.emissions.fires(0, day) for day in days]
    assert sum(fire.sum() for fire in maps) > 0
    assert any(not np.array_equal(world.emissions.fires(1, day), fire) for day, fire in zip(days, maps, strict=True))
    inner = (slice(2, -2), slice(2, -2))
    part = replace(world.emissions, grid=world.grid.window(*inner), farmland=world.emissions.farmland[inner])
    burning = max(range(len(days)), key=lambda number: maps[number][inner].sum())
    assert maps[burning][inner].sum() > 0
    assert np.array_equal(part.fires(0, days[burning])[2:-2, 2:-2], maps[burning][inner][2:-2, 2:-2])


def test_emission_follows_people(world):
    """Milan's cell emits far more than the Alps'; a domain's map is a crop of its region's."""
    emissions = world.emissions.always
    row, col = (round(float(value)) for value in world.grid.row_col(45.46, 9.19))
    high, far = (round(float(value)) for value in world.grid.row_col(46.6, 10.5))
    assert emissions[row, col] > 4 * emissions[high, far]
    inner = (slice(8, 48), slice(8, 48))
    grid = world.grid.window(*inner)
    region = load_region("europe")
    part = emission_map(region, grid, region.land(grid), region.elevation(grid)[0])
    assert np.allclose(part.always, emissions[inner], rtol=1e-3)


def test_a_person_in_poland_emits_more_than_one_in_sweden():
    towns = load_region("europe").towns
    heating = town_emission(towns, "heating") / towns.population**POPULATION_POWER
    assert heating[towns.countries == "PL"].mean() > 5 * heating[towns.countries == "SE"].mean()


class SteadyWind:
    """Weather that never changes: one wind, no rain, a constant mixed layer."""

    def __init__(self, grid, u, v):
        self.grid, self.u, self.v = grid, u, v

    def surface(self, hours):
        full = np.ones(self.grid.shape)
        return Surface(self.u * full, self.v * full, 270 * full, 0 * full, 500 * full, 0 * full)


@pytest.mark.parametrize(("u", "v"), [(4, 0), (-4, 0), (0, 4), (0, -4), (3, 3)])
def test_a_chimney_smokes_downwind(u, v):
    """One source for a day: the plume's front lies where the wind has been, east of it for u, north for v."""
    grid = Grid(50, 4, 0.125, 81, 81)
    weather = SteadyWind(grid, float(u), float(v))
    chimney = np.zeros(grid.shape)
    chimney[40, 40] = 50.0
    start = AirState(np.full(grid.shape, ALOFT_UGM3), np.full(grid.shape, 500.0))
    none = np.zeros(grid.shape)
    burning, out = (EmissionMap(grid, towns, none, none, np.ones(grid.shape)) for towns in (chimney, none))
    ends = [run_day(start, DAY, weather, emissions, none, ALOFT_UGM3) for emissions in (burning, out)]
    smoke = ends[0][0].pm25_ugm3 - ends[1][0].pm25_ugm3
    rows, cols = np.mgrid[:81, :81]
    # A steady source over a day has its mean age near half a day: the centroid lies about u * 12 h downwind.
    km_north = -(((smoke * rows).sum() / smoke.sum()) - 40) * 13.9
    km_east = (((smoke * cols).sum() / smoke.sum()) - 40) * 13.9 * np.cos(np.radians(grid.lat[40]))
    reach = LAYER_WIND * 12 * 3.6
    assert (km_east, km_north) == pytest.approx((u * reach, v * reach), rel=0.15, abs=8)
    assert ends[0][1].budget.residual < 1e-3


def test_uniform_wind_exchanges_nothing_through_the_top():
    """Eastward air on a sphere does not converge: what transport gains or loses, it gains or loses at the borders."""
    grid = Grid(50, 4, 0.125, 40, 60)
    field = np.random.default_rng(1).uniform(1, 30, grid.shape)
    moved = step(field, np.full(grid.shape, 7.0), np.zeros(grid.shape), grid, 3600, 5.0, x_first=True)
    weight = np.cos(np.radians(grid.lat))[:, None]
    change = ((moved.field - field) * weight).sum()
    assert abs(moved.exchange) < 1e-3 * abs(moved.inflow)
    assert change == pytest.approx(moved.inflow, rel=1e-3)
