"""CAMS's European ensemble from the Atmosphere Data Store: composition at 0.1 degrees, hourly, for about three years.

The forecast from 00 UTC reaches 96 hours, which is three days ahead; its analysis is there for days that have ended.
"""

from datetime import date

from cranpm.core.grid import Domain
from cranpm.providers.ads import GASES, PAGE, PARTICLES, AdsProvider, ads_request, area_around
from cranpm.providers.availability import Availability
from cranpm.providers.cams import Cams
from cranpm.providers.forecast_provider import ForecastProvider
from cranpm.providers.provider import FetchQuery
from cranpm.providers.readers.variable import CAMS_EUROPE
from cranpm.providers.request import Request

COLLECTION = "cams-europe-air-quality-forecasts"
STEP = 0.1
NORTH, WEST, SOUTH, EAST = AREA = (72.0, -25.0, 30.0, 45.0)
"""Of the European ensemble, degrees."""


class CamsEurope(ForecastProvider, AdsProvider):
    """Forecasts of start days and analyses of days before today; analyses are read as CAMS's."""

    name, title, page = "cams-europe", "CAMS European ensemble", "forecasts.md"
    provides = Cams.provides
    forecasts, model, preference = ("composition",), CAMS_EUROPE, 2
    every, most = 1, 96
    replaces = "cams"
    has = Availability(kept_days=1095)
    area = AREA
    licence = f"{PAGE}/{COLLECTION}"

    def requests(self, query: FetchQuery) -> list[Request]:
        """All forecasts, then the analyses: what cannot be had later comes first."""
        hours, clock = self.steps(query.leads), [f"{hour:02d}:00" for hour in range(24)]
        ended = [day for day in query.days if query.today is None or day < query.today]
        return [
            *(self._request(query, "forecast", day, ["00:00"], hours) for day in query.days),
            *(self._request(query, "analysis", day, clock, (0,)) for day in ended),
        ]

    def _request(self, query: FetchQuery, kind: str, day: date, times: list[str], hours: tuple[int, ...]) -> Request:
        names = [*PARTICLES, *GASES]
        asked = {
            "variable": names,
            "model": ["ensemble"],
            "level": ["0"],
            "date": [f"{day}/{day}"],
            "type": [kind],
            "time": times,
            "leadtime_hour": [str(hour) for hour in hours],
            "area": _area(query.domain),
            "data_format": "netcdf",
        }
        fields = len(names) * len(times) * len(hours)
        reach = f"_{hours[-1]}h" if kind == "forecast" else ""
        name = f"cams-europe-{kind}_{query.box}_{day}{reach}.nc"
        return ads_request(self.name, name, COLLECTION, asked, fields, STEP)


def _area(domain: Domain) -> list[float]:
    """Around a domain, as far as the ensemble goes."""
    north, west, south, east = area_around(domain, STEP)
    return [min(north, NORTH), max(west, WEST), max(south, SOUTH), min(east, EAST)]
