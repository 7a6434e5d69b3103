"""The coarse daily fields that an archive can hold, as data: each says which quantity it is, and at which level.

An archive stores the names of the channels that it was made with, in their order; nothing assumes how many there are.
`PAPER_CHANNELS` are the paper's 35 (Sec. 3.2), in the order in which they are stored and reach the network.
Physics asks for a quantity and a level (`find_channel`), never for the letters of a name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cranpm.core.errors import CranpmError
from cranpm.core.registry import Registry

LEVELS_HPA = (500, 700, 850, 925, 1000)
GROUPS = ("weather", "composition")
"""What forecasts of the days ahead are given by: either may be absent while the other is there."""
COMPOSITION = frozenset({"pm25", "pm10", "no2", "o3", "co", "so2"})
"""Quantities of the air's composition, as all that has CAMS's form; the others are weather."""


@dataclass(frozen=True)
class Channel:
    """One coarse daily field; values outside `low`..`high` are refused as implausible.

    `mean` and `spread` are round figures for Europe; training fits its own.
    """

    name: str
    quantity: str
    """What the field is of, whatever its level and source: wind_u (eastward), wind_v (northward), temperature, pm25."""
    unit: str
    source: str
    """Which provider's form the field has: meteorology as ERA5, composition as CAMS."""
    low: float
    high: float
    mean: float
    spread: float
    meaning: str
    level_hpa: int | None = None
    """None at the surface."""

    @property
    def group(self) -> str:
        """One of `GROUPS`."""
        return "composition" if self.quantity in COMPOSITION or self.source == "cams" else "weather"

    @property
    def standard_name(self) -> str | None:
        """The name of the quantity in the CF conventions, where they have one."""
        return STANDARD_NAMES.get(self.quantity)


STANDARD_NAMES = {
    "wind_u": "eastward_wind",
    "wind_v": "northward_wind",
    "temperature": "air_temperature",
    "geopotential": "geopotential",
    "humidity": "specific_humidity",
    "surface_pressure": "surface_air_pressure",
    "precipitation": "lwe_thickness_of_precipitation_amount",
    "boundary_layer_height": "atmosphere_boundary_layer_thickness",
    "pm25": "mass_concentration_of_pm2p5_ambient_aerosol_particles_in_air",
    "pm10": "mass_concentration_of_pm10_ambient_aerosol_particles_in_air",
    "no2": "mass_concentration_of_nitrogen_dioxide_in_air",
    "o3": "mass_concentration_of_ozone_in_air",
    "co": "mass_concentration_of_carbon_monoxide_in_air",
}
"""CF standard name of each quantity."""

CHANNELS: Registry[Channel] = Registry("channel")
"""All known channels by name; a plugin adds its own with `CHANNELS.add(channel.name, channel)`."""

_SURFACE = (
    Channel("u10", "wind_u", "m s-1", "era5", -60, 60, 1, 4, "eastward wind at 10 m, daily mean"),
    Channel("v10", "wind_v", "m s-1", "era5", -60, 60, 0, 4, "northward wind at 10 m, daily mean"),
    Channel("t2m", "temperature", "K", "era5", 180, 330, 284, 10, "temperature at 2 m, daily mean"),
    Channel("sp", "surface_pressure", "Pa", "era5", 4.5e4, 1.1e5, 97000, 5000, "surface pressure, daily mean"),
    Channel("tp", "precipitation", "m", "era5", -1e-6, 1.0, 0.002, 0.005, "precipitation, daily total"),
)
_ALOFT = (
    ("u", "wind_u", "m s-1", -150, 150, (8, 5, 3, 2, 1), (14, 10, 9, 8, 6), "eastward wind"),
    ("v", "wind_v", "m s-1", -150, 150, (0, 0, 0, 0, 0), (12, 9, 8, 7, 5), "northward wind"),
    ("t", "temperature", "K", 180, 330, (253, 269, 278, 282, 286), (9, 8, 8, 8, 9), "temperature"),
    (
        "z",
        "geopotential",
        "m2 s-2",
        -5e3,
        6.5e4,
        (54500, 29300, 14300, 7500, 1000),
        (1900, 1200, 900, 800, 750),
        "geopotential",
    ),
    (
        "q",
        "humidity",
        "kg kg-1",
        0,
        0.04,
        (8e-4, 2.4e-3, 4.5e-3, 6e-3, 7.5e-3),
        (8e-4, 1.7e-3, 2.5e-3, 3e-3, 4e-3),
        "specific humidity",
    ),
)
"""Name, quantity, unit, limits, then mean and spread at each level, and the meaning."""
_COMPOSITION = (
    Channel("cams_pm25", "pm25", "ug m-3", "cams", 0, 2000, 12, 10, "PM2.5 at the surface"),
    Channel("cams_pm10", "pm10", "ug m-3", "cams", 0, 2000, 18, 14, "PM10 at the surface"),
    Channel("cams_no2", "no2", "ug m-3", "cams", 0, 1000, 6, 7, "nitrogen dioxide at the surface"),
    Channel("cams_o3", "o3", "ug m-3", "cams", 0, 500, 70, 20, "ozone at the surface"),
    Channel("cams_co", "co", "ug m-3", "cams", 0, 2e4, 180, 80, "carbon monoxide at the surface"),
)
PAPER_CHANNELS: tuple[Channel, ...] = (
    *_SURFACE,
    *(
        Channel(
            f"{name}{level}",
            quantity,
            unit,
            "era5",
            low,
            high,
            mean,
            spread,
            f"{meaning} at {level} hPa, daily mean",
            level,
        )
        for name, quantity, unit, low, high, means, spreads, meaning in _ALOFT
        for level, mean, spread in zip(LEVELS_HPA, means, spreads, strict=True)
    ),
    *_COMPOSITION,
)
FURTHER_CHANNELS: tuple[Channel, ...] = (
    Channel("blh", "boundary_layer_height", "m", "era5", 0, 8000, 600, 400, "boundary-layer height, daily mean"),
)
"""Known, and not among the paper's."""
for _channel in (*PAPER_CHANNELS, *FURTHER_CHANNELS):
    CHANNELS.add(_channel.name, _channel)

FINE_INPUT: tuple[str, ...] = ("pm25_today", "elevation", "latitude", "longitude", "pm25_yesterday")
"""What the fine branch of the network reads."""


def channels_of(channels: Sequence[Channel], group: str) -> tuple[Channel, ...]:
    """Those of a group, in their order; a group that there is not is refused."""
    if group not in GROUPS:
        raise CranpmError(expected=f"a group: {' or '.join(GROUPS)}", found=group, remedy="Name one of these.")
    return tuple(channel for channel in channels if channel.group == group)


def find_channel(channels: Sequence[Channel], quantity: str, level_hpa: int | None = None) -> int:
    """Index of the channel that holds a quantity at a pressure level, or at the surface where none is given."""
    for index, channel in enumerate(channels):
        if (channel.quantity, channel.level_hpa) == (quantity, level_hpa):
            return index
    where = f"at {level_hpa} hPa" if level_hpa else "at the surface"
    raise CranpmError(
        expected=f"a channel with {quantity} {where}",
        found=", ".join(channel.name for channel in channels) or "no channels",
        remedy="Use an archive or a list of channels that has it.",
    )


def parse_channels(names: Iterable[str]) -> tuple[Channel, ...]:
    """Known channels by name, in the order given; refused where one is unknown or comes twice."""
    listed = list(names)
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice or not listed:
        raise CranpmError(
            expected="channels, each once",
            found=f"{', '.join(twice)} more than once" if twice else "none",
            remedy="Name every channel once.",
        )
    return tuple(CHANNELS[name] for name in listed)
