"""What providers call their variables, in which units, and what we make of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cranpm.core.channels import PAPER_CHANNELS
from cranpm.core.errors import CranpmError

LevelKind = Literal["surface", "pressure", "model"]
GRAVITY = 9.80665
"""m s-2: a geopotential height in metres times this is a geopotential."""
_SPEED = {"m s**-1": 1.0, "m s-1": 1.0, "m/s": 1.0}
_RATIO = {"kg kg**-1": 1.0, "kg kg-1": 1.0, "kg/kg": 1.0}
_DENSITY = {"kg m**-3": 1e9, "kg m-3": 1e9, "kg/m3": 1e9}
_MICROGRAMS = dict.fromkeys(
    ("ug m-3", "ug m**-3", "ug/m3", "ug.m-3", "µg/m3", "\u03bcg/m3", "µg m-3", "µg m**-3", "[\\mug/m^3]"), 1.0
)


@dataclass(frozen=True)
class Quantity:
    """A physical quantity as files hold it. `units` gives the factor to ours; gases may come as mixing ratios too."""

    name: str
    aliases: tuple[str, ...]
    units: Mapping[str, float]
    low: float
    high: float
    """Of values in our unit; what lies outside was decoded wrongly or is in another unit."""
    ratios: bool = False
    """Whether kg kg-1 is meant too, to be multiplied by the density of air."""


QUANTITY_OF: Mapping[str, str] = {
    "u": "wind_u",
    "v": "wind_v",
    "t": "temperature",
    "z": "geopotential",
    "q": "humidity",
}
"""What variables on levels are physically, by the names of files."""


def _limits(name: str) -> tuple[float, float]:
    """Of the channel with this name, or of all channels on levels that hold what files call so."""
    aloft = QUANTITY_OF.get(name)
    found = [c for c in PAPER_CHANNELS if (c.name == name if aloft is None else c.level_hpa and c.quantity == aloft)]
    return min(channel.low for channel in found), max(channel.high for channel in found)


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("u10", ("u10", "10u", "10m_u_component_of_wind"), _SPEED, *_limits("u10")),
    Quantity("v10", ("v10", "10v", "10m_v_component_of_wind"), _SPEED, *_limits("v10")),
    Quantity("t2m", ("t2m", "2t", "2m_temperature"), {"K": 1.0}, *_limits("t2m")),
    Quantity("sp", ("sp", "surface_pressure"), {"Pa": 1.0}, *_limits("sp")),
    Quantity(
        "tp",
        ("tp", "total_precipitation"),
        {"m": 1.0, "kg m**-2": 1e-3, "kg m-2": 1e-3},
        *_limits("tp"),
    ),
    Quantity("blh", ("blh", "boundary_layer_height"), {"m": 1.0}, 0, 1e4),
    Quantity("u", ("u", "u_component_of_wind"), _SPEED, *_limits("u")),
    Quantity("v", ("v", "v_component_of_wind"), _SPEED, *_limits("v")),
    Quantity("t", ("t", "temperature"), {"K": 1.0}, *_limits("t")),
    Quantity("q", ("q", "specific_humidity"), _RATIO, -1e-4, 0.04),
    Quantity("z", ("z", "geopotential"), {"m**2 s**-2": 1.0, "m2 s-2": 1.0, "m^2 s^-2": 1.0}, *_limits("z")),
    Quantity("gh", ("gh",), {"gpm": GRAVITY, "m": GRAVITY}, *_limits("z")),
    Quantity("pm25", ("pm2p5", "pm2p5_conc"), _DENSITY | _MICROGRAMS, -1.0, 2000),
    Quantity("pm10", ("pm10", "pm10_conc"), _DENSITY | _MICROGRAMS, -1.0, 5000),
    Quantity("no2", ("no2", "no2_conc"), _DENSITY | _MICROGRAMS, -1.0, 1000, ratios=True),
    Quantity("o3", ("go3", "o3", "o3_conc"), _DENSITY | _MICROGRAMS, -1.0, 500, ratios=True),
    Quantity("co", ("co", "co_conc"), _DENSITY | _MICROGRAMS, -1.0, 2e4, ratios=True),
)
"""A tiny negative concentration is what numerics leave behind and becomes 0; more is refused."""
BY_ALIAS: Mapping[str, Quantity] = {alias: quantity for quantity in QUANTITIES for alias in quantity.aliases}
BY_NAME: Mapping[str, Quantity] = {quantity.name: quantity for quantity in QUANTITIES}
RATIOS: Mapping[str, float] = _RATIO


def factor(quantity: Quantity, unit: str, what: str) -> float:
    """From the file's unit to ours; a unit that we do not know is refused."""
    if unit not in quantity.units:
        raise CranpmError(
            expected=f"{quantity.name} in {' or '.join(quantity.units)} in {what}",
            found=repr(unit) if unit else "no unit",
            remedy="Fetch the file as the provider makes it, or state the right unit in it.",
        )
    return quantity.units[unit]
