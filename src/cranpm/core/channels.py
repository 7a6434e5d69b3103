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
    """One coarse daily field; values outside `low`..`high` are refused as implausible.

    `mean` and `spread` are round figures for Europe; training fits its own.
    """

    name: str
    unit: str
    source: Literal["era5", "cams"]
    low: float
    high: float
    mean: float
    spread: float
    meaning: str
    level_hpa: int | None = None
    quantity: str = ""
    """What it is physically, on whatever level: wind_u, temperature, pm25 ..."""


_SURFACE = (
    Channel("u10", "m s-1", "era5", -60, 60, 1, 4, "eastward wind at 10 m, daily mean", quantity="wind_u"),
    Channel("v10", "m s-1", "era5", -60, 60, 0, 4, "northward wind at 10 m, daily mean", quantity="wind_v"),
    Channel("t2m", "K", "era5", 180, 330, 284, 10, "temperature at 2 m, daily mean", quantity="temperature"),
    Channel("sp", "Pa", "era5", 4.5e4, 1.1e5, 97000, 5000, "surface pressure, daily mean", quantity="surface_pressure"),
    Channel("tp", "m", "era5", -1e-6, 1.0, 0.002, 0.005, "precipitation, daily total", quantity="precipitation"),
)
_ALOFT = (
    ("u", "m s-1", -150, 150, (8, 5, 3, 2, 1), (14, 10, 9, 8, 6), "eastward wind"),
    ("v", "m s-1", -150, 150, (0, 0, 0, 0, 0), (12, 9, 8, 7, 5), "northward wind"),
    ("t", "K", 180, 330, (253, 269, 278, 282, 286), (9, 8, 8, 8, 9), "temperature"),
    ("z", "m2 s-2", -5e3, 6.5e4, (54500, 29300, 14300, 7500, 1000), (1900, 1200, 900, 800, 750), "geopotential"),
    (
        "q",
        "kg kg-1",
        0,
        0.04,
        (8e-4, 2.4e-3, 4.5e-3, 6e-3, 7.5e-3),
        (8e-4, 1.7e-3, 2.5e-3, 3e-3, 4e-3),
        "specific humidity",
    ),
)
"""Name, unit, limits, then mean and spread at each level."""
ALOFT_QUANTITIES = {"u": "wind_u", "v": "wind_v", "t": "temperature", "z": "geopotential", "q": "humidity"}
_COMPOSITION = (
    Channel("cams_pm25", "ug m-3", "cams", 0, 2000, 12, 10, "PM2.5 at the surface", quantity="pm25"),
    Channel("cams_pm10", "ug m-3", "cams", 0, 2000, 18, 14, "PM10 at the surface", quantity="pm10"),
    Channel("cams_no2", "ug m-3", "cams", 0, 1000, 6, 7, "nitrogen dioxide at the surface", quantity="no2"),
    Channel("cams_o3", "ug m-3", "cams", 0, 500, 70, 20, "ozone at the surface", quantity="o3"),
    Channel("cams_co", "ug m-3", "cams", 0, 2e4, 180, 80, "carbon monoxide at the surface", quantity="co"),
)

COARSE: tuple[Channel, ...] = (
    *_SURFACE,
    *(
        Channel(
            f"{name}{level}",
            unit,
            "era5",
            low,
            high,
            mean,
            spread,
            f"{meaning} at {level} hPa, daily mean",
            level,
            ALOFT_QUANTITIES[name],
        )
        for name, unit, low, high, means, spreads, meaning in _ALOFT
        for level, mean, spread in zip(LEVELS_HPA, means, spreads, strict=True)
    ),
    *_COMPOSITION,
)
COARSE_NAMES: tuple[str, ...] = tuple(channel.name for channel in COARSE)
INDEX: Mapping[str, int] = {name: index for index, name in enumerate(COARSE_NAMES)}

COARSE_INPUT: tuple[tuple[str, int], ...] = tuple((name, day) for day in (0, -1) for name in COARSE_NAMES)
"""What the coarse branch reads: (channel, day relative to t), 70 entries."""
FINE_INPUT: tuple[str, ...] = ("pm25_today", "elevation", "latitude", "longitude", "pm25_yesterday")
