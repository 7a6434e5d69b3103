"""The relations that the simulated weather is built on, recovered by finite differences from its products."""

from datetime import date

import numpy as np
import pytest

from cranpm.core.channels import CHANNELS, PAPER_CHANNELS
from cranpm.core.geography import load_region
from cranpm.core.grid import DOMAINS, Grid
from cranpm.simulate.air import WEATHER_HOURS
from cranpm.simulate.climate import climate_of
from cranpm.simulate.waves import M_PER_DEGREE, WaveGrid, Waves, WaveSettings, hours_since_epoch
from cranpm.simulate.weather import GAS_CONSTANT, OMEGA, Ground, Weather, WeatherGrid

GRID = DOMAINS["europe"].coarse
REGION = load_region("europe")
LEVELS = (500, 700, 850, 925, 1000)


def make(grid=GRID, **options):
    elevation, _ = REGION.elevation(grid)
    weather = Weather(0, climate_of(REGION.name), **options)
    return WeatherGrid(weather, grid, Ground.of(elevation, REGION.land(grid), grid))


@pytest.fixture(scope="module")
def weather():
    return make()


def noon(day):
    return hours_since_epoch(day, 12)


@pytest.fixture(scope="module")
def levels(weather):
    return weather.levels([hours_since_epoch(date(2021, 1, 20), hour) for hour in WEATHER_HOURS])


@pytest.mark.parametrize("level", [500, 700, 850])
def test_wind_is_geostrophic_above_the_boundary_layer(levels, level):
    z, u, v = (levels[name, level].astype(float) for name in ("geopotential", "wind_u", "wind_v"))
    coriolis = 2 * OMEGA * np.sin(np.radians(GRID.lat))[:, None]
    north = -np.gradient(z, axis=0) / (GRID.step * M_PER_DEGREE)
    east = np.gradient(z, axis=1) / (GRID.step * M_PER_DEGREE * np.cos(np.radians(GRID.lat))[:, None])
    inner = (slice(2, -2), slice(2, -2))
    assert np.abs(u + north / coriolis)[inner].max() < 0.03 * np.abs(u).max()
    assert np.abs(v - east / coriolis)[inner].max() < 0.03 * np.abs(v).max()


@pytest.mark.parametrize(("low", "high"), [(1000, 925), (925, 850), (850, 700), (700, 500)])
def test_thickness_is_hydrostatic(levels, low, high):
    mean = (levels["temperature", low] + levels["temperature", high]) / 2
    thickness = GAS_CONSTANT * mean * np.log(low / high)
    assert np.allclose(levels["geopotential", high] - levels["geopotential", low], thickness, rtol=1e-4)


def test_surface_wind_turns_towards_low_pressure(weather, levels):
    """Over sea the mean of wind x pressure gradient points down the gradient."""
    surface = weather.surface(noon(date(2021, 1, 20)))
    north, east = -np.gradient(levels["geopotential", 1000], axis=0), np.gradient(levels["geopotential", 1000], axis=1)
    sea = weather.ground.land == 0
    assert (surface.u10 * east + surface.v10 * north)[sea].mean() < 0


def test_lows_have_low_surface_pressure_and_mountains_too(weather, levels):
    pressure = weather.surface_pressure(levels)
    sea = weather.ground.land == 0
    assert np.corrcoef(pressure[sea], levels["geopotential", 1000][sea])[0, 1] > 0.99
    peak = np.unravel_index(weather.ground.elevation_m.argmax(), GRID.shape)
    height = weather.ground.elevation_m[peak]
    assert pressure[peak] == pytest.approx(1e5 * np.exp(-height / 8000), rel=0.06)
    assert 9.4e4 < pressure[sea].min() < pressure[sea].max() < 1.07e5


def test_every_level_has_sensible_values_in_both_seasons():
    """Ranges as the data sources state them; means and spreads as ERA5 has them over Europe, roughly."""
    grid = DOMAINS["europe"].coarse
    weather = make(grid)
    wanted = {
        "t500": (240, 268),
        "t850": (262, 292),
        "t1000": (268, 302),
        "z500": (5.1e4, 5.9e4),
        "q850": (1e-3, 1.1e-2),
    }
    for day in (date(2021, 1, 20), date(2021, 7, 20)):
        levels = weather.levels([hours_since_epoch(day, hour) for hour in WEATHER_HOURS])
        aloft = {c.name: levels[c.quantity, c.level_hpa] for c in PAPER_CHANNELS if c.level_hpa}
        assert len(aloft) == len(levels) == 25
        for name, field in aloft.items():
            assert CHANNELS[name].low <= field.min() <= field.max() <= CHANNELS[name].high, name
            assert field.std() > 1e-6
        for name, (low, high) in wanted.items():
            assert low < aloft[name].mean() < high, (name, day)
        surface = weather.surface(noon(day))
        assert 2 < surface.speed.mean() < 9
        assert surface.rain_mmh.min() >= 0
        assert 120 <= surface.mixing_m.min() <= surface.mixing_m.max() <= 2500
    winter, summer = (weather.surface(noon(date(2021, month, 20))) for month in (1, 7))
    land = weather.ground.land > 0
    assert summer.t2m[land].mean() - winter.t2m[land].mean() > 12
    assert summer.mixing_m[land].mean() > winter.mixing_m[land].mean()


def test_relief_blocks_and_lifts(weather):
    surfaces = [weather.surface(noon(date(2021, 1, day))) for day in range(1, 25)]
    basin = weather.ground.basin_m > 800
    plain = (weather.ground.basin_m < 50) & (weather.ground.land > 0)
    speed = np.mean([surface.speed for surface in surfaces], axis=0)
    assert speed[basin].mean() < 0.8 * speed[plain].mean()
    uphill = np.array([s.u10 * weather.ground.slope_east + s.v10 * weather.ground.slope_north for s in surfaces])
    rain = np.array([surface.rain_mmh for surface in surfaces])
    steep = np.abs(uphill) > 0.02
    assert rain[steep & (uphill > 0)].mean() > 2 * rain[steep & (uphill < 0)].mean()


def test_slopes_point_uphill():
    grid = Grid(50, 4, 0.25, 20, 30)
    east, north = np.meshgrid(np.arange(30) * 10.0, -np.arange(20) * 20.0)
    ground = Ground.of(east + north + 1000, np.ones(grid.shape), grid)
    assert (ground.slope_east[2:-2, 2:-2] > 0).all()
    assert (ground.slope_north[2:-2, 2:-2] > 0).all()


def test_reversed_wind_is_the_same_wind_backwards(weather):
    other = make(reverse_wind=True)
    hours = noon(date(2021, 3, 3))
    one, two = weather.surface(hours), other.surface(hours)
    assert np.allclose(one.u10, -two.u10)
    assert np.allclose(one.v10, -two.v10)
    assert np.allclose(one.t2m, two.t2m)


def test_weather_is_a_function_of_seed_time_and_place(weather):
    hours = noon(date(2023, 8, 1))
    assert np.array_equal(make().surface(hours).u10, weather.surface(hours).u10)
    rows, cols = GRID.slices(50, 4, 42, 16)
    part = make(GRID.window(rows, cols)).surface(hours)
    # Blocking looks at the relief around, so the rim of a small grid may differ.
    inner = (slice(6, -6), slice(6, -6))
    assert np.allclose(part.t2m[inner], weather.surface(hours).t2m[rows, cols][inner], atol=0.5)
    other = WeatherGrid(Weather(1, climate_of(REGION.name)), GRID, weather.ground)
    assert abs(np.corrcoef(other.surface(hours).v10.ravel(), weather.surface(hours).v10.ravel())[0, 1]) < 0.5


def test_weather_forgets():
    """Tomorrow resembles today, the day after less, next fortnight hardly: partly predictable."""
    weather = make(DOMAINS["alps"].coarse)
    winds = np.array([weather.surface(noon(date(2021, 1, 1)) + 24 * day).v10.ravel() for day in range(200)])
    winds -= winds.mean()
    match = {lag: float((winds[lag:] * winds[:-lag]).mean() / (winds**2).mean()) for lag in (1, 3, 14)}
    assert 0.5 < match[1] < 0.95
    assert match[3] < match[1] - 0.2
    assert abs(match[14]) < 0.25


def test_derivatives_of_waves_match_finite_differences():
    settings = WaveSettings(20, 800, 3000, memory_h=50, drift_ms=5, rms=4.0, by_gradient=True)
    waves = Waves(settings, 3, "test", 50.0)
    grid = Grid(60, 0, 0.1, 100, 100)
    on_grid = WaveGrid(waves, grid)
    amplitude = waves.amplitude(1234.0)
    field = on_grid.field(amplitude).astype(float)
    north = -np.gradient(field, axis=0) / (grid.step * M_PER_DEGREE)
    east = np.gradient(field, axis=1) / (grid.step * M_PER_DEGREE * np.cos(np.radians(grid.lat))[:, None])
    inner = (slice(1, -1), slice(1, -1))
    assert np.allclose(on_grid.field(amplitude, dx=1)[inner], east[inner], atol=0.02)
    assert np.allclose(on_grid.field(amplitude, dy=1)[inner], north[inner], atol=0.02)


def test_waves_keep_their_strength():
    settings = WaveSettings(60, 300, 1500, memory_h=30, drift_ms=5, rms=2.0)
    waves = Waves(settings, 0, "strength", 50.0)
    on_grid = WaveGrid(waves, GRID)
    fields = np.array([on_grid.field(waves.amplitude(37.0 * number)) for number in range(60)])
    assert fields.std() == pytest.approx(2.0, rel=0.1)
