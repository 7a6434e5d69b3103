"""ECMWF's learned model (AIFS), open data: a second opinion on the weather of the days ahead."""

from datetime import date

from cranpm.providers.availability import Availability
from cranpm.providers.ifs import Ifs
from cranpm.providers.open_data import OpenData
from cranpm.providers.readers.variable import AIFS


class Aifs(OpenData):
    """0.25 degrees, every six hours; never recorded as IFS."""

    name, title, page = "aifs", "AIFS open data", "forecasts.md"
    provides = tuple(name for name in Ifs.provides if name != "blh")
    forecasts, model, preference = ("weather",), AIFS, 2
    replaces = "era5"
    has = Availability(first=date(2025, 2, 26))
    hosts = Ifs.hosts
    licence = Ifs.licence
    every, most = 6, 360

    def folder(self, day: date) -> str:
        return "aifs-single/0p25/oper"
