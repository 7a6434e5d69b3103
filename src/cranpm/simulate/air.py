"""One day of air: hourly emission, mixing, removal and transport of PM2.5 in the layer next to the ground."""

from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from cranpm.core.grid import Array, Grid
from cranpm.simulate.emissions import EmissionMap
from cranpm.simulate.transport import step
from cranpm.simulate.waves import hours_since_epoch
from cranpm.simulate.weather import Surface, WeatherGrid

WEATHER_HOURS = (2, 6, 10, 14, 18, 22)
"""Hours at which the weather is evaluated; each stands for four hourly steps."""
STEPS_EACH = 4
DRY_DEPOSITION_MS = 0.0006
WASHOUT_PER_MM = 0.15
VENTILATION_H = 250.0
"""Hours in which the layer is exchanged with the air above it."""
ALOFT_UGM3 = 6.0
LAYER_WIND = 0.9
"""Wind of the mixed layer as a multiple of the wind at 10 m."""


@dataclass(frozen=True)
class Budget:
    """Where the mass of a day went: cosine-weighted sums of concentration (ug m-3)."""

    before: float = 0.0
    after: float = 0.0
    emission: float = 0.0
    removal: float = 0.0
    inflow: float = 0.0
    exchange: float = 0.0

    @property
    def residual(self) -> float:
        """What is unaccounted for, as a share of all that moved."""
        gained = self.emission - self.removal + self.inflow + self.exchange
        moved = self.emission + self.removal + abs(self.inflow) + abs(self.exchange) + self.before
        return abs(self.after - self.before - gained) / moved


@dataclass(frozen=True)
class AirState:
    """What one hour hands to the next: PM2.5 and the height of the mixed layer."""

    pm25_ugm3: Array
    mixing_m: Array


@dataclass(frozen=True)
class AirDay:
    """Daily means on the transport grid."""

    pm25_ugm3: Array
    u10: Array
    v10: Array
    t2m: Array
    rain_mm: Array
    mixing_m: Array
    blocking: Array
    fresh_ugm3: Array
    """What is emitted within about two hours: the short-lived gases follow it."""
    budget: Budget


def run_day(
    state: AirState, day: date, weather: WeatherGrid, emissions: EmissionMap, fires: Array, inflow: float
) -> tuple[AirState, AirDay]:
    """The air after one day, and that day's means."""
    weight = np.cos(np.radians(weather.grid.lat))[:, None]
    budget = Budget(before=float((state.pm25_ugm3 * weight).sum()))
    surfaces = [weather.surface(hours_since_epoch(day, hour)) for hour in WEATHER_HOURS]
    mean, fresh = np.zeros(weather.grid.shape), np.zeros(weather.grid.shape)
    for surface in surfaces:
        rate = emissions.rate(day, surface.t2m, fires)
        fresh += rate / surface.mixing_m * 7200 / (1 + surface.speed / 4) / len(surfaces)
        state, budget = _mix(state, surface.mixing_m, weight, budget)
        for hour in range(STEPS_EACH):
            state, budget = _hour(state, surface, rate, weather.grid, inflow, budget, x_first=hour % 2 == 0)
            mean += state.pm25_ugm3 / (len(surfaces) * STEPS_EACH)
    budget = replace(budget, after=float((state.pm25_ugm3 * weight).sum()))
    return state, _means(surfaces, mean, fresh, budget)


def _mix(state: AirState, mixing_m: Array, weight: Array, budget: Budget) -> tuple[AirState, Budget]:
    """A layer that grows takes in the air above it; one that shrinks leaves its concentration as it is."""
    keep = np.minimum(state.mixing_m / mixing_m, 1.0)
    pm25 = ALOFT_UGM3 + keep * (state.pm25_ugm3 - ALOFT_UGM3)
    change = float(((pm25 - state.pm25_ugm3) * weight).sum())
    # A shallow layer remembers how deep it was for about half a day: air aloft is not clean at once.
    height = np.where(mixing_m > state.mixing_m, mixing_m, state.mixing_m + 0.3 * (mixing_m - state.mixing_m))
    return AirState(pm25, height), replace(budget, exchange=budget.exchange + change)


def _hour(
    state: AirState,
    surface: Surface,
    rate: Array,
    grid: Grid,
    inflow: float,
    budget: Budget,
    *,
    x_first: bool,
) -> tuple[AirState, Budget]:
    """Emission, removal and ventilation solved exactly for an hour, then transport."""
    seconds, weight = 3600.0, np.cos(np.radians(grid.lat))[:, None]
    removal = DRY_DEPOSITION_MS / surface.mixing_m + WASHOUT_PER_MM * surface.rain_mmh / 3600
    ventilation = 1 / (VENTILATION_H * 3600)
    loss, gain = removal + ventilation, rate / surface.mixing_m + ventilation * ALOFT_UGM3
    stay = np.exp(-loss * seconds)
    settled = gain / loss + (state.pm25_ugm3 - gain / loss) * stay
    # Integral of the concentration over the hour, by which every loss is proportional.
    burden = gain / loss * seconds + (state.pm25_ugm3 - gain / loss) * (1 - stay) / loss
    moved = step(settled, LAYER_WIND * surface.u10, LAYER_WIND * surface.v10, grid, seconds, inflow, x_first=x_first)
    vented = ventilation * (ALOFT_UGM3 * seconds - burden)
    budget = replace(
        budget,
        emission=budget.emission + float((rate / surface.mixing_m * seconds * weight).sum()),
        removal=budget.removal + float((removal * burden * weight).sum()),
        inflow=budget.inflow + moved.inflow,
        exchange=budget.exchange + moved.exchange + float((vented * weight).sum()),
    )
    return AirState(moved.field, state.mixing_m), budget


def _means(surfaces: list[Surface], pm25: Array, fresh: Array, budget: Budget) -> AirDay:
    def mean(name: str) -> Array:
        return np.mean([getattr(surface, name) for surface in surfaces], axis=0)

    return AirDay(
        pm25_ugm3=pm25,
        u10=mean("u10"),
        v10=mean("v10"),
        t2m=mean("t2m"),
        rain_mm=24 * mean("rain_mmh"),
        mixing_m=mean("mixing_m"),
        blocking=mean("blocking"),
        fresh_ugm3=fresh,
        budget=budget,
    )
