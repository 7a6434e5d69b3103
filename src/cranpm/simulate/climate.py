"""How the synthetic world's regions differ: their climate, and what their people emit."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Climate:
    """How one region differs from another; see climate.toml."""

    reference_latitude: float
    westerly_ms: float
    storminess: float
    inflow_ugm3: float
    emission: float


@cache
def _numbers() -> dict[str, Any]:
    return tomllib.loads(files("cranpm.simulate").joinpath("climate.toml").read_text())


def climate_of(region: str) -> Climate:
    """The climate of a packaged region by name."""
    return Climate(**_numbers()["region"][region])


def country_factors(use: str) -> dict[str, float]:
    """Emission factors by country code for `heating` or `always`, relative to the default country."""
    return {code: factors[use] for code, factors in _numbers()["country"].items()}
