"""Forecasts of the synthetic world: the weather and the CAMS-like composition of the days after a start day.

A forecast is a pure function of seed, start day and lead. The weather is that of waves which a run has partly lost
(`Waves.amplitude`); near the ground the difference which the loss makes on the coarse grid is added to the truth of
the target day, so that the error is zero at lead 0 and the relief of the finer transport grid stays in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np

from cranpm.archive.days_ahead import DaysAhead
from cranpm.core.channels import Channel
from cranpm.core.grid import Array
from cranpm.simulate.air import WEATHER_HOURS, AirDay
from cranpm.simulate.observe import CamsLike
from cranpm.simulate.waves import hours_since_epoch
from cranpm.simulate.weather import MIXING_M, Levels, WeatherGrid

FORECAST_VERSION = 1
"""To be raised with every change that alters a simulated forecast; kept in the provenance of each."""
ERROR_HOURS = (4, 12, 20)
"""Hours at which errors near the ground are evaluated: they change little within a day."""
MODELS = {"weather": "simulation", "composition": "simulation-cams"}
NEAR_GROUND = ("u10", "v10", "t2m", "rain_mm", "mixing_m")


class Forecaster:
    """The weather centre and the composition model of one synthetic world."""

    def __init__(self, weather: WeatherGrid, cams: CamsLike, channels: Sequence[Channel]):
        self.weather, self.cams, self.channels = weather, cams, channels
        self._true: dict[date, Mapping[str, Array]] = {}

    def days_ahead(self, start: date, later: Sequence[AirDay]) -> list[DaysAhead]:
        """Both runs of a start day; `later` is the true air of the days after it, on the coarse grid."""
        reference = datetime(start.year, start.month, start.day)
        facts = {"source": "simulation", "forecast_version": FORECAST_VERSION}
        leads, runs = self.channels_ahead(start, later, self.channels), []
        for group, model in MODELS.items():
            own = [index for index, channel in enumerate(self.channels) if channel.group == group]
            if own:
                runs.append(DaysAhead(group, model, reference, {n: fields[own] for n, fields in leads.items()}, facts))
        return runs

    def channels_ahead(self, start: date, later: Sequence[AirDay], channels: Sequence[Channel]) -> dict[int, Array]:
        """By lead in days: (channels, rows, cols) float32 as forecast on a start day; `later` as in `days_ahead`."""
        stacked = {}
        for lead, air in enumerate(later, start=1):
            given = self.forecast(start, lead, air)
            stacked[lead] = np.stack([given[c.quantity, c.level_hpa] for c in channels]).astype(np.float32)
        self._true = {day: known for day, known in self._true.items() if day > start}
        return stacked

    def forecast(self, start: date, lead: int, truth: AirDay) -> Levels:
        """All quantities of the day `lead` days after `start`; `truth` is that day's air on the coarse grid."""
        target, run = start + timedelta(days=lead), self.weather.forecast(hours_since_epoch(start))
        air = self._near_ground(target, run, truth)
        hours = [hours_since_epoch(target, hour) for hour in WEATHER_HOURS]
        return weather_quantities(air, run, hours) | self.cams.composition(air, target, start)

    def _near_ground(self, target: date, run: WeatherGrid, truth: AirDay) -> AirDay:
        """The true air with the forecast's wind, temperature, rain and mixed layer."""
        if target not in self._true:
            self._true[target] = _surface_means(self.weather, target)
        true, wrong = self._true[target], _surface_means(run, target)
        fields = {name: getattr(truth, name) + (wrong[name] - true[name]) for name in NEAR_GROUND}
        fields["rain_mm"] = np.maximum(fields["rain_mm"], 0)
        fields["mixing_m"] = np.clip(fields["mixing_m"], *MIXING_M)
        return replace(truth, **fields)


def weather_quantities(air: AirDay, weather: WeatherGrid, hours: list[float]) -> Levels:
    """The meteorology of a day: `air` near the ground, `weather` on the levels and for the surface pressure."""
    levels = weather.levels(hours)
    return {
        ("wind_u", None): air.u10,
        ("wind_v", None): air.v10,
        ("temperature", None): air.t2m,
        ("surface_pressure", None): weather.surface_pressure(levels),
        ("precipitation", None): air.rain_mm / 1000,
        ("boundary_layer_height", None): air.mixing_m,
        **levels,
    }


def _surface_means(weather: WeatherGrid, day: date) -> Mapping[str, Array]:
    """Means of a day near the ground, by the names of `AirDay`."""
    surfaces = [weather.surface(hours_since_epoch(day, hour)) for hour in ERROR_HOURS]
    means = {name: np.mean([getattr(s, name) for s in surfaces], axis=0) for name in ("u10", "v10", "t2m", "mixing_m")}
    return means | {"rain_mm": 24 * np.mean([s.rain_mmh for s in surfaces], axis=0)}
