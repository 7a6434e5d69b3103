"""The simulated weather: geostrophic and hydrostatic aloft, rubbed and steered by the ground below.

Geopotential = mean westerly + thermal wind + f * (psi_surface + psi_thermal * ln(1000 hPa / p)),
with both streamfunctions made of travelling waves. Temperature and wind then follow analytically on every level:
T = -(1/R) dPhi/dln(p), u = -(1/f) dPhi/dy, v = (1/f) dPhi/dx. u is eastward, v northward, rows run north to south.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from cranpm.core.channels import LEVELS_HPA
from cranpm.core.grid import EARTH_RADIUS_KM, Array, Grid
from cranpm.simulate.climate import Climate
from cranpm.simulate.waves import M_PER_DEGREE, WaveGrid, Waves, WaveSettings, day_of_year

GRAVITY, GAS_CONSTANT, OMEGA = 9.80665, 287.05, 7.292e-5
LAPSE_PER_LN_P = 45.0
"""Kelvin lost per unit of ln(p) upwards."""
TROPICS = 12.0
"""Latitude below which the Coriolis parameter levels off, so that winds stay finite."""
THERMAL_GAIN, THERMAL_TILT = 2.2, math.radians(60)
"""Strength and westward tilt with height of the temperature waves."""
HUMIDITY = {500: 0.35, 700: 0.45, 850: 0.60, 925: 0.70, 1000: 0.75}
FRICTION = {500: (1.0, 0.0), 700: (1.0, 0.0), 850: (1.0, 0.0), 925: (0.85, 10.0), 1000: (0.70, 18.0)}
"""Share of the geostrophic wind and degrees turned towards low pressure, by level."""
MIXING_M = (120.0, 2500.0)
"""Least and greatest height of the mixed layer."""

FLOW = {
    "planetary": WaveSettings(
        14, 4000, 9000, memory_h=280, drift_ms=4, rms=4.0, by_gradient=True, run_error=0.1, run_growth=0.24
    ),
    "synoptic": WaveSettings(
        40, 1500, 4000, memory_h=150, drift_ms=4, rms=4.0, by_gradient=True, run_error=0.045, run_growth=0.38
    ),
    "mesoscale": WaveSettings(80, 400, 1400, memory_h=60, drift_ms=4, rms=1.0, by_gradient=True, run_error=0.3),
}
STABILITY = WaveSettings(60, 350, 1500, memory_h=96, drift_ms=3, rms=0.8, run_error=0.6, run_growth=0.2)
SHOWERS = WaveSettings(60, 300, 1000, memory_h=48, drift_ms=4, rms=1.0, run_error=0.3, run_growth=0.35)

Levels = dict[tuple[str, int | None], Array]
"""Daily fields by quantity and pressure level (hPa); None is the surface."""


@dataclass(frozen=True)
class Ground:
    """What the weather feels of the surface: elevation (m), its slopes (m per m), land, and depth of basins (m)."""

    elevation_m: Array
    slope_east: Array
    slope_north: Array
    land: Array
    basin_m: Array

    @classmethod
    def of(cls, elevation_m: Array, land: Array, grid: Grid) -> "Ground":
        smooth = ndimage.gaussian_filter(elevation_m, 1.0)
        north, east = np.gradient(smooth)
        metres = grid.step * M_PER_DEGREE
        zonal = metres * np.cos(np.radians(grid.lat))[:, None]
        reach = max(round(0.75 / grid.step), 1)
        rim = ndimage.gaussian_filter(ndimage.maximum_filter(smooth, size=2 * reach + 1), reach / 2)
        basin = np.clip(rim - smooth, 0, None) * land
        return cls(elevation_m, east / zonal, -north / metres, land.astype(float), basin)


@dataclass(frozen=True)
class Surface:
    """Weather near the ground at one time."""

    u10: Array
    v10: Array
    t2m: Array
    rain_mmh: Array
    mixing_m: Array
    blocking: Array
    """0 where the wind passes freely, towards 1 where relief holds it back."""

    @property
    def speed(self) -> Array:
        return np.hypot(self.u10, self.v10)


class Weather:
    """All chance of one synthetic world."""

    def __init__(self, seed: int, climate: Climate, *, reverse_wind: bool = False):
        latitude = climate.reference_latitude
        self.climate, self.sign = climate, -1.0 if reverse_wind else 1.0
        self.flow = {tag: Waves(settings, seed, tag, latitude) for tag, settings in FLOW.items()}
        self.stability = Waves(STABILITY, seed, "stability", latitude)
        self.showers = Waves(SHOWERS, seed, "showers", latitude)

    def vigour(self, hours: float) -> float:
        """Strength of all waves: a quarter more in winter than on average."""
        return self.climate.storminess * (1 + 0.25 * math.cos(2 * np.pi * (day_of_year(hours) - 15) / 365.25))


class WeatherGrid:
    """The weather on one grid: the true one, or that of a forecast run."""

    start_h: float | None = None
    """When the start day of the run began, in hours since the epoch; None for the truth."""

    def __init__(self, weather: Weather, grid: Grid, ground: Ground):
        self.weather, self.grid, self.ground = weather, grid, ground
        self.flow = {tag: WaveGrid(waves, grid) for tag, waves in weather.flow.items()}
        self.stability, self.showers = WaveGrid(weather.stability, grid), WaveGrid(weather.showers, grid)
        sine, cosine = np.sin(np.radians(grid.lat)), np.cos(np.radians(grid.lat))
        level = sine**4 + math.sin(math.radians(TROPICS)) ** 4
        self.coriolis = (2 * OMEGA * level**0.25 * np.where(sine < 0, -1, 1))[:, None]
        self.log_coriolis_dy = (sine**3 * cosine / level / (EARTH_RADIUS_KM * 1e3))[:, None]
        self.westerly = (weather.climate.westerly_ms * 2 * OMEGA * np.abs(sine))[:, None] / np.abs(self.coriolis)

    def forecast(self, start_h: float) -> "WeatherGrid":
        """The same grid, with the weather as forecast for the start day that began at `start_h`."""
        run = copy.copy(self)
        run.start_h = start_h
        return run

    def surface(self, hours: float) -> Surface:
        """Weather near the ground at one time."""
        land, vigour = self.ground.land, self.weather.vigour(hours)
        u = self.westerly - self._psi([hours], dy=1) - self.log_coriolis_dy * self._psi([hours])
        v = self._psi([hours], dx=1)
        turn = np.radians(10 + 12 * land)
        u, v = u * np.cos(turn) - v * np.sin(turn), u * np.sin(turn) + v * np.cos(turn)
        u, v = u * (0.8 - 0.25 * land), v * (0.8 - 0.25 * land)
        blocking = self._blocking(np.hypot(u, v))
        u, v = (self.weather.sign * (1 - 0.65 * blocking) * wind for wind in (u, v))
        calm = self.stability.field(self.weather.stability.amplitude(hours, self.start_h))
        spin = np.clip(self._vorticity([hours]) / (2.0e-5 * vigour), -2, 2)
        return Surface(
            u10=u,
            v10=v,
            t2m=self._t2m(hours, self._thermal([hours]), blocking, calm),
            rain_mmh=self._rain(hours, spin, u, v),
            mixing_m=self._mixing(hours, np.hypot(u, v), spin, calm, blocking),
            blocking=blocking,
        )

    def _psi(self, hours: list[float], *, dx: int = 0, dy: int = 0) -> Array:
        """The streamfunction at the surface, or its slopes, averaged over some hours."""
        return self._sum(hours, tuple(self.flow), 1.0, dx, dy)

    def _thermal(self, hours: list[float], *, dx: int = 0, dy: int = 0) -> Array:
        """What the streamfunction gains per unit of ln(1000 hPa / p): long waves, tilted westward with height."""
        gain = THERMAL_GAIN * complex(math.cos(THERMAL_TILT), math.sin(THERMAL_TILT))
        return self._sum(hours, ("planetary", "synoptic"), gain, dx, dy)

    def _sum(self, hours: list[float], tags: tuple[str, ...], gain: complex, dx: int, dy: int) -> Array:
        vigour = float(np.mean([self.weather.vigour(hour) for hour in hours]))
        total = np.zeros(self.grid.shape, np.float32)
        for waves in (self.flow[tag] for tag in tags):
            total += waves.field(vigour * gain * waves.waves.mean_amplitude(hours, self.start_h), dx=dx, dy=dy)
        return total

    def _vorticity(self, hours: list[float]) -> Array:
        return self._psi(hours, dx=2) + self._psi(hours, dy=2)

    def _blocking(self, speed: Array) -> Array:
        """1 - Froude number over 0.8, between 0 and 1, in basins: relief holds slow air back."""
        froude = speed / (0.01 * self.ground.basin_m + 1e-3)
        return np.clip(1 - froude / 0.8, 0, 1) * np.clip(self.ground.basin_m / 300, 0, 1)

    def _t2m(self, hours: float, thermal: Array, blocking: Array, calm: Array) -> Array:
        land = self.ground.land
        lat = self.grid.lat[:, None]
        wave = self.coriolis / GAS_CONSTANT * thermal
        season = _season(hours)
        # Land swings more than the mean of land and sea that the air aloft follows; winter basins and calm
        # nights hold cold air below an inversion: this is how stability shows in the channels.
        swing = lat / 50 * (2.5 * land - 3.0 * (1 - land))
        cold_pool = 3.0 * blocking * max(season, 0) + 1.5 * calm * land
        return _sea_level(lat, hours) - swing * season + 0.9 * wave - 6.5e-3 * self.ground.elevation_m - cold_pool

    def _rain(self, hours: float, spin: Array, u: Array, v: Array) -> Array:
        """mm per hour: cyclonic air, uplift by relief and showers, above a threshold."""
        uplift = np.clip((u * self.ground.slope_east + v * self.ground.slope_north) / 0.04, -1.5, 1.5)
        showers = self.showers.field(self.weather.showers.amplitude(hours, self.start_h))
        return 0.45 * np.clip(0.7 * spin + uplift + 0.7 * showers - 0.75, 0, None)

    def _mixing(self, hours: float, speed: Array, spin: Array, calm: Array, blocking: Array) -> Array:
        """Height of the mixed layer, m: wind and sun raise it; winter highs, calm and basins lower it."""
        season = _season(hours)
        land_m = 170 + 90 * speed + 400 * (0.5 - 0.5 * season)
        depth = self.ground.land * land_m + (1 - self.ground.land) * (450 + 35 * speed)
        stable = 0.22 * calm - 0.16 * spin * (0.6 + 0.4 * season)
        return np.clip(depth * np.exp(-stable) * (1 - 0.4 * blocking), *MIXING_M)

    def levels(self, hours: list[float]) -> Levels:
        """Wind, temperature, geopotential and humidity on the pressure levels, averaged over some hours."""
        psi, psi_x, psi_y = self._psi(hours), self._psi(hours, dx=1), self._psi(hours, dy=1)
        thermal, thermal_x, thermal_y = self._thermal(hours), self._thermal(hours, dx=1), self._thermal(hours, dy=1)
        lat, mid = self.grid.lat[:, None], float(np.mean(hours))
        spin = np.clip(self._vorticity(hours) / 2.0e-5, -1.5, 1.5)
        out: Levels = {}
        for level in LEVELS_HPA:
            height = math.log(1000 / level)
            stream, stream_x, stream_y = psi + height * thermal, psi_x + height * thermal_x, psi_y + height * thermal_y
            u = self.westerly - stream_y - self.log_coriolis_dy * stream
            u = u - GAS_CONSTANT * height / self.coriolis * _sea_level_dy(lat, mid)
            share, turn = FRICTION[level][0] * self.weather.sign, math.radians(FRICTION[level][1])
            temperature = _sea_level(lat, mid) - LAPSE_PER_LN_P * height + self.coriolis / GAS_CONSTANT * thermal
            out["wind_u", level] = share * (u * math.cos(turn) - stream_x * math.sin(turn))
            out["wind_v", level] = share * (u * math.sin(turn) + stream_x * math.cos(turn))
            out["temperature", level] = temperature
            out["geopotential", level] = self._mean_geopotential(height, mid) + self.coriolis * stream
            relative = np.clip(HUMIDITY[level] * (1 + 0.25 * spin), 0.05, 1)
            out["humidity", level] = _saturation(temperature, level) * relative
        return out

    def _mean_geopotential(self, height: float, hours: float) -> Array:
        lat = self.grid.lat[:, None]
        westerly = 2 * OMEGA * EARTH_RADIUS_KM * 1e3 * self.weather.climate.westerly_ms * np.cos(np.radians(lat))
        thickness = GAS_CONSTANT * (_sea_level(lat, hours) * height - LAPSE_PER_LN_P * height**2 / 2)
        return np.broadcast_to(GRAVITY * 60 + westerly + thickness, self.grid.shape)

    def surface_pressure(self, levels: Levels) -> Array:
        """Pa at the ground, by the hydrostatic profile of the same day."""
        warmth = levels["temperature", 1000]
        rise = GRAVITY * self.ground.elevation_m - levels["geopotential", 1000]
        height = rise / (GAS_CONSTANT * warmth)
        for _ in range(3):
            height = rise / (GAS_CONSTANT * (warmth - LAPSE_PER_LN_P * height / 2))
        return 1e5 * np.exp(-height)


def _season(hours: float) -> float:
    """+1 in the middle of January, -1 in the middle of July."""
    return math.cos(2 * math.pi * (day_of_year(hours) - 18) / 365.25)


def _sea_level(lat: Array, hours: float) -> Array:
    """Mean temperature at 1000 hPa by latitude and season, K."""
    return 301 - 0.55 * (lat - 20) - 8 * lat / 50 * _season(hours)


def _sea_level_dy(lat: Array, hours: float) -> Array:
    """Its slope, K per metre northward."""
    return (-0.55 - 8 / 50 * _season(hours)) / M_PER_DEGREE + 0 * lat


def _saturation(temperature: Array, level_hpa: int) -> Array:
    """Saturation specific humidity over water, kg/kg (Magnus)."""
    celsius = temperature - 273.15
    vapour_hpa = 6.112 * np.exp(17.62 * celsius / (243.12 + celsius))
    return 0.622 * vapour_hpa / (level_hpa - 0.378 * vapour_hpa)
