"""ECMWF's physical model (IFS), open data: the weather of the days ahead, and of today where ERA5 is days late."""

from datetime import date

from cranpm.providers.availability import Availability
from cranpm.providers.era5 import Era5
from cranpm.providers.open_data import HOSTS, OpenData
from cranpm.providers.readers.variable import IFS

FIRST, QUARTER_DEGREE, MODEL_FOLDERS = date(2023, 1, 18), date(2024, 2, 1), date(2024, 2, 29)
"""The oldest day on the mirrors; 0.4 degrees before the second; before the third, addresses do not name the model."""


class Ifs(OpenData):
    """0.25 degrees, every three hours up to 144 hours after 00 UTC."""

    name, title, page = "ifs", "IFS open data", "forecasts.md"
    provides = Era5.provides
    forecasts, model, preference = ("weather",), IFS, 3
    replaces = "era5"
    has = Availability(first=FIRST, doubt_before=MODEL_FOLDERS)
    hosts = HOSTS
    licence = "https://www.ecmwf.int/en/forecasts/datasets/open-data"
    every, most = 3, 144

    def folder(self, day: date) -> str:
        if day < QUARTER_DEGREE:
            return "0p4-beta/oper"
        return "0p25/oper" if day < MODEL_FOLDERS else "ifs/0p25/oper"
