"""One synthetic world: geography, weather, air and instruments, day after day.

The weather of any time is a pure function of the seed. The air runs forward from a spin-up before the world's
first day; its state is stored with some of the days (`DayData.restart`), so that a range extended later is the same to
the bit as one long run.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from cranpm.archive.day_data import DayData, Statics, Stations
from cranpm.core.channels import LEVELS_HPA, PAPER_CHANNELS, Channel
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.core.geography import region_of
from cranpm.core.grid import Array, Domain, Grid, coarsen, parse_box
from cranpm.simulate import downscale, observe
from cranpm.simulate.air import WEATHER_HOURS, AirDay, AirState, run_day
from cranpm.simulate.climate import climate_of
from cranpm.simulate.emissions import EmissionMap, emission_map
from cranpm.simulate.forecast import Forecaster, weather_quantities
from cranpm.simulate.waves import hours_since_epoch
from cranpm.simulate.weather import Ground, Weather, WeatherGrid

SIMULATOR_VERSION = 1
"""To be raised with every change that alters a simulated day: an archive is never extended by another simulator."""
TRANSPORT_STEP = 0.125
MARGIN = 2.0
"""Degrees of air simulated around the domain, so that pollution can arrive from outside."""
SAVE_EVERY = 10
"""Days between saved states; a killed run continues from the last one."""
SURFACE = (
    *("wind_u", "wind_v", "temperature", "surface_pressure", "precipitation", "boundary_layer_height"),
    *("pm25", "pm10", "no2", "o3", "co"),
)
ALOFT = ("wind_u", "wind_v", "temperature", "geopotential", "humidity")
"""Quantities that the simulator can give at the surface, and on the pressure levels."""


class SimulationSettings(BaseModel):
    """What makes one synthetic world differ from another."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the weather, the fires and every instrument's errors."""
    world: str = "factual"
    """factual, reverse-wind, flat-relief, or no-emissions:N,W,S,E."""
    first_day: date | None = None
    """Where the air's history starts, after the spin-up; days before it do not exist in this world.
    Without it, the first day that is simulated."""
    spin_up_days: int = Field(default=12, ge=0, le=366)
    """Days run before the first one and thrown away."""
    retrieval_noise: float = Field(default=0.07, ge=0, le=0.5)
    """Relative error of the 1-km PM2.5 product; 0 stores the truth."""

    @field_validator("world")
    @classmethod
    def _known(cls, world: str) -> str:
        if world in ("factual", "reverse-wind", "flat-relief"):
            return world
        box = _silent_box(world)
        if box is not None and box[0] > box[2] and box[3] > box[1]:
            return world
        raise ValueError("choose factual, reverse-wind, flat-relief or no-emissions:N,W,S,E")

    @property
    def silent_box(self) -> tuple[float, float, float, float] | None:
        """The box without emissions, as N, W, S, E."""
        return _silent_box(self.world)


def _silent_box(world: str) -> tuple[float, float, float, float] | None:
    name, _, box = world.partition(":")
    return parse_box(box, "no-emissions with", "no-emissions:46,8,45,11") if name == "no-emissions" else None


@dataclass(frozen=True)
class SavedAir:
    """The air at the end of a day."""

    day: date
    state: AirState

    def arrays(self) -> dict[str, Array]:
        """For storage; the day is kept beside it by the archive."""
        return {"pm25": self.state.pm25_ugm3.astype(np.float32), "mixing": self.state.mixing_m.astype(np.float32)}

    @classmethod
    def of(cls, day: date, arrays: Mapping[str, Array]) -> "SavedAir":
        return cls(day, AirState(arrays["pm25"].astype(float), arrays["mixing"].astype(float)))


class World:
    """A synthetic world on one domain; its settings must say where its history starts.

    Its days hold `channels` on the coarse grid.
    """

    def __init__(self, domain: Domain, settings: SimulationSettings, channels: Sequence[Channel] = PAPER_CHANNELS):
        check_channels(channels)
        self.channels = tuple(channels)
        if settings.first_day is None:
            raise CranpmError(expected="a first day", found="none", remedy="Set simulation.first_day.")
        self.domain, self.settings, self.first_day = domain, settings, settings.first_day
        rows, cols = (round(size * domain.coarse.step / TRANSPORT_STEP) for size in domain.coarse.shape)
        self.grid = Grid(domain.north, domain.west, TRANSPORT_STEP, rows, cols).widen(MARGIN)
        self.region = region_of(self.grid)
        self.climate = climate_of(self.region.name)
        self.statics = self._statics(domain.fine)
        if not self.statics.land.any():
            raise CranpmError(
                expected="a domain with land",
                found=f"only sea in {domain}",
                remedy="Choose a box that holds some coast.",
            )
        below = self._statics(self.grid)
        self.weather = Weather(settings.seed, self.climate, reverse_wind=settings.world == "reverse-wind")
        ground = Ground.of(below.elevation_m, below.land, self.grid)
        self.weather_grid = WeatherGrid(self.weather, self.grid, ground)
        elevation, land = (
            coarsen(f, domain.fine, domain.coarse) for f in (self.statics.elevation_m, self.statics.land)
        )
        coarse_ground = Ground.of(elevation, land, domain.coarse)
        self.coarse_weather = WeatherGrid(self.weather, domain.coarse, coarse_ground)
        self.silent = self._silent_towns()
        self.emissions = self._emissions(below.land)
        self.cams = observe.CamsLike(settings.seed, domain.coarse, self.climate.reference_latitude)
        self.forecaster = Forecaster(self.coarse_weather, self.cams, self.channels)
        self.network = observe.place_stations(
            self.region, domain.fine, self.statics.land, self.statics.elevation_m, seed=0
        )
        self.downscaler = downscale.build(
            self.region.towns, ~self.silent, self.statics, domain.fine, self.grid, below.elevation_m
        )

    @property
    def stations(self) -> Stations:
        return self.network.stations

    def _statics(self, grid: Grid) -> Statics:
        elevation, spread = self.region.elevation(grid)
        if self.settings.world == "flat-relief":
            elevation, spread = np.zeros_like(elevation), np.zeros_like(spread)
        return Statics(elevation, spread, self.region.land(grid))

    def _emissions(self, land: Array) -> EmissionMap:
        """Where this world emits: on real relief in every world, so that only what was named differs."""
        made = emission_map(self.region, self.grid, land, self.region.elevation(self.grid)[0])
        box = self.settings.silent_box
        if box is None:
            return made
        allowed = np.ones(self.grid.shape)
        allowed[self.grid.slices(*box)] = 0
        return replace(made, allowed=allowed)

    def _silent_towns(self) -> Array:
        """The towns that a counterfactual world switches off."""
        towns, box = self.region.towns, self.settings.silent_box
        if box is None:
            return np.zeros(len(towns), bool)
        north, west, south, east = box
        if self.grid.slices(*box)[0].stop == 0:
            raise CranpmError(
                expected=f"a box without emissions that overlaps the domain {self.domain.name}",
                found=f"N {north}, W {west}, S {south}, E {east}",
                remedy="Give the box as N,W,S,E inside the domain.",
            )
        return (towns.lat <= north) & (towns.lat >= south) & (towns.lon >= west) & (towns.lon <= east)

    def check_start(self, first: date) -> None:
        """Refuse days that do not exist in this world."""
        if first < self.first_day:
            raise CranpmError(
                expected=f"days from {self.first_day} on, where this world starts",
                found=str(first),
                remedy="Start a new archive with an earlier first day.",
            )

    def days(
        self, wanted: DayRange | Sequence[date], saved: SavedAir | None = None, ahead: int = 0
    ) -> Iterator[DayData]:
        """The wanted days, run forward from a saved state where it helps, else from the spin-up.

        Each with forecasts of the `ahead` days after it.
        """
        for day, air, restart, later in self.air_ahead(wanted, saved, ahead):
            forecasts = self.forecaster.days_ahead(day, later) if ahead else []
            yield replace(self.observed(day, air, restart), ahead=forecasts)

    def air(
        self, wanted: DayRange | Sequence[date], saved: SavedAir | None = None
    ) -> Iterator[tuple[date, AirDay, dict[str, Array]]]:
        """Daily means on the transport grid, and on some days the state from which a later run can continue."""
        for day, air, restart, _ in self.air_ahead(wanted, saved, 0):
            yield day, air, restart

    def air_ahead(
        self, wanted: DayRange | Sequence[date], saved: SavedAir | None, ahead: int
    ) -> Iterator[tuple[date, AirDay, dict[str, Array], list[AirDay]]]:
        """What `air` gives, and the daily means of the next `ahead` days on the coarse grid: the air runs that far."""
        waiting: deque[tuple[date, AirDay, dict[str, Array], list[AirDay]]] = deque()
        last = max(wanted)
        for after, air in self._run(min(wanted), last + timedelta(days=ahead), saved):
            if waiting:
                below = self.on_coarse(air)
                for *_, later in waiting:
                    later.append(below)
            if after.day in wanted:
                save = after.day.toordinal() % SAVE_EVERY == 0 or after.day == last
                waiting.append((after.day, air, after.arrays() if save else {}, []))
            while waiting and len(waiting[0][3]) == ahead:
                yield waiting.popleft()

    def _run(self, first: date, last: date, saved: SavedAir | None) -> Iterator[tuple[SavedAir, AirDay]]:
        """The air of every day from a saved state or the spin-up to the last one, with the state at its end."""
        self.check_start(first)
        if saved is None or saved.day >= first:
            saved = self._before_the_first_day()
        for day in DayRange(saved.day + timedelta(days=1), last):
            fires = self.emissions.fires(self.settings.seed, day)
            inflow = self.climate.inflow_ugm3
            state, air = run_day(saved.state, day, self.weather_grid, self.emissions, fires, inflow)
            # The state is rounded as it would be stored, so that stopping changes nothing.
            saved = SavedAir.of(day, SavedAir(day, state).arrays())
            yield saved, air

    def _before_the_first_day(self) -> SavedAir:
        start = self.first_day - timedelta(days=self.settings.spin_up_days + 1)
        shape = self.grid.shape
        return SavedAir(start, AirState(np.full(shape, self.climate.inflow_ugm3), np.full(shape, 500.0)))

    def observed(self, day: date, air: AirDay, restart: dict[str, Array]) -> DayData:
        """What the instruments make of one day."""
        fine, seed = self.domain.fine, self.settings.seed
        truth = self.downscaler.field(air)
        return DayData(
            day=day,
            coarse=self.coarse_channels(day, air),
            pm25_ugm3=self.retrieved(truth, day),
            stations_ugm3=self.network.report(truth, fine, seed, day),
            provenance={"source": "simulation", "world": self.settings.world, "seed": seed},
            restart=restart,
        )

    def retrieved(self, truth_ugm3: Array, day: date, every: int = 1) -> Array:
        """The 1-km product that an instrument makes of the truth, on all pixels or on one in every few."""
        key = (self.settings.seed + 1) * 1_000_003 + day.toordinal() * 2
        return observe.retrieve(truth_ugm3, self.domain.fine, self.settings.retrieval_noise, key, every)

    def coarse_channels(self, day: date, air: AirDay) -> Array:
        """(channels, rows, cols) float32 of one day on the coarse grid."""
        below = self.on_coarse(air)
        hours = [hours_since_epoch(day, hour) for hour in WEATHER_HOURS]
        given = weather_quantities(below, self.coarse_weather, hours) | self.cams.composition(below, day)
        return np.stack([given[c.quantity, c.level_hpa] for c in self.channels]).astype(np.float32)

    def on_coarse(self, air: AirDay) -> AirDay:
        """Daily means on the coarse grid of the domain."""
        edge = round(MARGIN / TRANSPORT_STEP)
        inner = (slice(edge, -edge), slice(edge, -edge))
        grid = self.grid.window(*inner)
        means: dict[str, Any] = {
            field.name: coarsen(getattr(air, field.name)[inner], grid, self.domain.coarse)
            for field in fields(air)
            if field.name != "budget"
        }
        return replace(air, **means)


def check_channels(channels: Sequence[Channel]) -> None:
    """Refuse channels that the simulator cannot give."""
    for channel in channels:
        known = SURFACE if channel.level_hpa is None else ALOFT
        if channel.quantity not in known or channel.level_hpa not in (None, *LEVELS_HPA):
            level = "" if channel.level_hpa is None else f" at {channel.level_hpa} hPa"
            raise CranpmError(
                expected=f"a quantity that the simulator can give: {', '.join(known)}",
                found=f"{channel.name}, which is {channel.quantity}{level}",
                remedy="Leave this channel out, or ingest it from a provider.",
            )
