"""The channels of one day, in the order in which they are stored and reach the network.

The coarse branch sees these 35 fields of today and then of yesterday: 70 channels (paper, Sec. 3.2).
The fine branch sees 5: PM2.5 today, elevation, latitude, longitude, PM2.5 yesterday.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LEVELS_HPA = (500, 700, 850, 925, 1000)


@dataclass(frozen=True)
class Channel:
    """One coarse daily field; values outside `low`..`high` are refused as implausible."""

    name: str
    unit: str
    source: Literal["era5", "cams"]
    low: float
    high: float
    meaning: str
    level_hpa: int | None = None


_SURFACE = (
    Channel("u10", "m s-1", "era5", -60, 60, "eastward wind at 10 m, daily mean"),
    Channel("v10", "m s-1", "era5", -60, 60, "northward wind at 10 m, daily mean"),
    Channel("t2m", "K", "era5", 180, 330, "temperature at 2 m, daily mean"),
    Channel("sp", "Pa", "era5", 4.5e4, 1.1e5, "surface pressure, daily mean"),
    Channel("tp", "m", "era5", -1e-6, 1.0, "precipitation, daily total"),
)
_ALOFT = (
    ("u", "m s-1", -150, 150, "eastward wind"),
    ("v", "m s-1", -150, 150, "northward wind"),
    ("t", "K", 180, 330, "temperature"),
    ("z", "m2 s-2", -5e3, 6.5e4, "geopotential"),
    ("q", "kg kg-1", 0, 0.04, "specific humidity"),
)
_COMPOSITION = (
    Channel("cams_pm25", "ug m-3", "cams", 0, 2000, "PM2.5 at the surface"),
    Channel("cams_pm10", "ug m-3", "cams", 0, 2000, "PM10 at the surface"),
    Channel("cams_no2", "ug m-3", "cams", 0, 1000, "nitrogen dioxide at the surface"),
    Channel("cams_o3", "ug m-3", "cams", 0, 500, "ozone at the surface"),
    Channel("cams_co", "ug m-3", "cams", 0, 2e4, "carbon monoxide at the surface"),
)

COARSE: tuple[Channel, ...] = (
    *_SURFACE,
    *(
        Channel(f"{name}{level}", unit, "era5", low, high, f"{meaning} at {level} hPa, daily mean", level)
        for name, unit, low, high, meaning in _ALOFT
        for level in LEVELS_HPA
    ),
    *_COMPOSITION,
)
COARSE_NAMES: tuple[str, ...] = tuple(channel.name for channel in COARSE)
INDEX: Mapping[str, int] = {name: index for index, name in enumerate(COARSE_NAMES)}

COARSE_INPUT: tuple[tuple[str, int], ...] = tuple((name, day) for day in (0, -1) for name in COARSE_NAMES)
"""What the coarse branch reads: (channel, day relative to t), 70 entries."""
FINE_INPUT: tuple[str, ...] = ("pm25_today", "elevation", "latitude", "longitude", "pm25_yesterday")
