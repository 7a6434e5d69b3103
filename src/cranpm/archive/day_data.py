"""What every provider of data, real or simulated, gives to the archive: one day on the domain's grids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from cranpm.core.channels import Channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain

if TYPE_CHECKING:
    from cranpm.archive.days_ahead import DaysAhead

PM25_CEILING_UGM3 = 2000.0
"""No daily mean is higher; a fill value decoded as a number is (6553.5)."""


class Quality(IntEnum):
    """What is known of a stored day."""

    ABSENT = 0
    GOOD = 1
    DEGRADED = 2


@dataclass(frozen=True)
class Statics:
    """Fields that never change: elevation and its spread inside a pixel (m), and land, on the fine grid."""

    elevation_m: Array
    spread_m: Array
    land: Array


@dataclass(frozen=True)
class Stations:
    """Monitoring stations: `kind` is traffic, industrial or background; `area` urban, suburban or rural."""

    ids: Array
    lat: Array
    lon: Array
    altitude_m: Array
    country: Array
    kind: Array
    area: Array

    def __post_init__(self) -> None:
        nowhere = ~((np.abs(self.lat) <= 90) & (np.abs(self.lon) <= 180))  # true for NaN
        if np.any(nowhere):
            index = int(np.flatnonzero(nowhere)[0])
            raise CranpmError(
                expected="stations with a finite latitude in -90..90 and longitude in -180..180",
                found=f"{self.ids[index]} at latitude {self.lat[index]}, longitude {self.lon[index]}",
                remedy="Correct or leave out this station.",
            )

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class DayData:
    """One day of data in physical units; NaN is missing."""

    day: date
    coarse: Array
    """(channels, rows, cols) on the coarse grid, in the order and units of the archive's channels."""
    pm25_ugm3: Array
    """(rows, cols) on the fine grid; NaN over sea and where nothing was retrieved."""
    stations_ugm3: Array
    """One value per station, NaN where it did not report."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    quality: Quality = Quality.GOOD
    restart: Mapping[str, Array] = field(default_factory=dict)
    """The state from which the provider can continue after this day; empty on most days."""
    ahead: Sequence["DaysAhead"] = ()
    """Forecasts of the days after this one, at most one run per group."""

    def check(self, domain: Domain, stations: int, channels: Sequence[Channel]) -> None:
        """Refuse wrong shapes, and values that no such quantity can take."""
        if self.quality is Quality.ABSENT:
            self._refuse("a day that is good or degraded", "one marked absent", "Leave an absent day out.")
        shapes = {
            "coarse": (self.coarse.shape, (len(channels), *domain.coarse.shape)),
            "pm25": (self.pm25_ugm3.shape, domain.fine.shape),
            "stations": (self.stations_ugm3.shape, (stations,)),
        }
        for name, (found, expected) in shapes.items():
            if found != expected:
                self._refuse(f"{name} of shape {expected}", str(found), "Put it on the grids of the archive's domain.")
        for channel, values in zip(channels, self.coarse, strict=True):
            self._check_range(channel.name, values, channel.low, channel.high, channel.unit)
            if self.quality is Quality.GOOD and np.isnan(values).any():
                share = f"{np.isnan(values).mean():.0%} of it missing"
                self._refuse(f"all of {channel.name} on a good day", share, "Mark the day as degraded.")
        self._check_range("pm25", self.pm25_ugm3, 0, PM25_CEILING_UGM3, "ug m-3")
        self._check_range("stations", self.stations_ugm3, 0, PM25_CEILING_UGM3, "ug m-3")
        if not np.isfinite(self.pm25_ugm3).any():
            self._refuse("PM2.5 on some pixels", "none at all", "Leave the day out: a gap is listed, never filled.")

    def _check_range(self, name: str, values: Array, low: float, high: float, unit: str) -> None:
        if values.size == 0:
            return
        if np.isinf(values).any():
            self._refuse(f"{name} finite or NaN", "infinity", "Mark missing values with NaN.")
        least, most = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
        if least < low or most > high:
            self._refuse(f"{name} in {low:g}..{high:g} {unit}", f"{least:g}..{most:g}", "Check its units.")

    def _refuse(self, expected: str, found: str, remedy: str) -> None:
        raise CranpmError(expected=f"on {self.day}: {expected}", found=found, remedy=remedy)


def held_out(count: int, share: float, seed: int) -> Array:
    """Which of `count` stations are kept from the loss."""
    order = np.random.default_rng([seed, 7]).permutation(count)
    return order < round(share * count)
