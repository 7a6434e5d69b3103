"""CAMS's global forecasts from the Atmosphere Data Store: composition and weather of the days ahead in one request.

0.4 degrees, from 2015, up to 120 hours after 00 UTC; a run is usually complete by 10 UTC.
"""

from datetime import date

from cranpm.providers.ads import GASES, PAGE, PARTICLES, AdsProvider, ads_request, area_around
from cranpm.providers.availability import Availability
from cranpm.providers.cams import Cams
from cranpm.providers.era5 import ALOFT_NAMES, EXTRA_NAMES, LEVELS, SURFACE_NAMES, Era5
from cranpm.providers.forecast_provider import ForecastProvider
from cranpm.providers.provider import FetchQuery
from cranpm.providers.readers.variable import CAMS_GLOBAL
from cranpm.providers.request import Request

COLLECTION = "cams-global-atmospheric-composition-forecasts"
STEP = 0.4
MORE_LEVELS = date(2019, 7, 9)
"""From this day on the model has 137 levels; before, 60."""


class CamsGlobal(ForecastProvider, AdsProvider):
    """Every three hours; the fallback where the better models are late."""

    name, title, page = "cams-global", "CAMS global forecasts", "forecasts.md"
    provides = (*Cams.provides, *Era5.provides)
    forecasts, model, preference = ("weather", "composition"), CAMS_GLOBAL, 1
    every, most = 3, 120
    replaces = "cams"
    has = Availability(first=date(2015, 1, 1))
    licence = f"{PAGE}/{COLLECTION}"

    def requests(self, query: FetchQuery) -> list[Request]:
        """One per start day. The run ends after 120 hours: from 00 UTC that is four days ahead."""
        extra = sorted(set(query.channels) & set(EXTRA_NAMES))
        single = [*SURFACE_NAMES, *PARTICLES, *(EXTRA_NAMES[name] for name in extra)]
        hours = self.steps(query.leads)
        aloft = len(ALOFT_NAMES) * len(LEVELS) + len(GASES) + 2  # and temperature and humidity beside the gases
        return [
            ads_request(
                self.name,
                f"cams-global_{query.box}_{day}_{'_'.join([f'{hours[-1]}h', *extra])}.zip",
                COLLECTION,
                {
                    "variable": [*single, *ALOFT_NAMES, *GASES],
                    "pressure_level": [str(level) for level in LEVELS],
                    "model_level": ["137" if day >= MORE_LEVELS else "60"],
                    "date": [f"{day}/{day}"],
                    "time": ["00:00"],
                    "leadtime_hour": [str(hour) for hour in hours],
                    "type": ["forecast"],
                    "area": area_around(query.domain, STEP),
                    "data_format": "netcdf_zip",
                },
                (len(single) + aloft) * len(hours),
                STEP,
            )
            for day in query.days
        ]
