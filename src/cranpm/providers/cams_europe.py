"""CAMS's European ensemble from the Atmosphere Data Store: composition at 0.1 degrees, hourly, for about three years.

The forecast from 00 UTC reaches 96 hours, which is three days ahead; its analysis is there for days that have ended.
"""

from pathlib import Path

from cranpm.providers.ads import GASES, HOSTS, PAGE, PARTICLES, SERVICE, ads_request, area_around
from cranpm.providers.availability import Availability
from cranpm.providers.cams import Cams
from cranpm.providers.datastore import fetch_from_store
from cranpm.providers.forecast_provider import ForecastProvider, steps
from cranpm.providers.provider import FetchQuery
from cranpm.providers.readers.variable import CAMS_EUROPE
from cranpm.providers.request import Request

COLLECTION = "cams-europe-air-quality-forecasts"
STEP, MOST = 0.1, 96


class CamsEurope(ForecastProvider):
    """Forecasts of start days and analyses of days before today; analyses are read as CAMS's."""

    name, title, page = "cams-europe", "CAMS European ensemble", "forecasts.md"
    provides = Cams.provides
    forecasts, model, preference = ("composition",), CAMS_EUROPE, 2
    replaces = "cams"
    has = Availability(kept_days=1095)
    hosts = HOSTS
    service = SERVICE
    licence = f"{PAGE}/{COLLECTION}"
    needs_key = True

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        return fetch_from_store(self.service, request, target, wait)

    def requests(self, query: FetchQuery) -> list[Request]:
        found = []
        for day in query.days:
            found.append(self._request(query, "forecast", str(day), ["00:00"], steps(query.leads, 1, MOST)))
            if query.today is None or day < query.today:
                found.append(self._request(query, "analysis", str(day), [f"{hour:02d}:00" for hour in range(24)], (0,)))
        return found

    def _request(self, query: FetchQuery, kind: str, day: str, times: list[str], hours: tuple[int, ...]) -> Request:
        names = [*PARTICLES, *GASES]
        asked = {
            "variable": names,
            "model": ["ensemble"],
            "level": ["0"],
            "date": [f"{day}/{day}"],
            "type": [kind],
            "time": times,
            "leadtime_hour": [str(hour) for hour in hours],
            "area": area_around(query.domain, STEP),
            "data_format": "netcdf",
        }
        fields = len(names) * len(times) * len(hours)
        return ads_request(self.name, f"cams-europe-{kind}_{query.box}_{day}.nc", COLLECTION, asked, fields, STEP)
