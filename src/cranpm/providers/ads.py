"""What requests to the Atmosphere Data Store have in common."""

from typing import Any

import numpy as np

from cranpm.core.grid import Domain
from cranpm.providers.datastore import StoreProvider
from cranpm.providers.request import Request

PAGE = "https://ads.atmosphere.copernicus.eu/datasets"
GB_A_FIELD = 4e-6
"""Of 1,000 cells, about."""
PARTICLES = ("particulate_matter_2.5um", "particulate_matter_10um")
GASES = ("nitrogen_dioxide", "ozone", "carbon_monoxide")


class AdsProvider(StoreProvider):
    """A provider whose files are in the Atmosphere Data Store."""

    hosts = {"Atmosphere Data Store": "https://ads.atmosphere.copernicus.eu"}  # noqa: RUF012
    service = "https://ads.atmosphere.copernicus.eu/api"


def area_around(domain: Domain, step: float) -> list[float]:
    """North, west, south, east on the nodes of a grid, a step larger than the domain: the store rounds inward."""
    edges = (
        min(90, np.ceil(domain.north / step) * step + step),
        max(-180, np.floor(domain.west / step) * step - step),
        max(-90, np.floor(domain.south / step) * step - step),
        min(180, np.ceil(domain.east / step) * step + step),
    )
    return [round(float(edge), 6) for edge in edges]


def ads_request(provider: str, name: str, collection: str, asked: dict[str, Any], fields: int, step: float) -> Request:
    """A request for so many fields of the area in `asked`, on a grid of so many degrees."""
    north, west, south, east = asked["area"]
    cells = (north - south) * (east - west) / step**2 / 1000
    return Request(
        provider=provider,
        name=name,
        ask={"collection": collection, "request": asked},
        gigabytes=GB_A_FIELD * fields * cells,
        licence=f"{PAGE}/{collection}?tab=download#manage-licences",
    )
