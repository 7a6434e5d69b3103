"""ECMWF's open data: last night's forecast in the place of ERA5, which is five days late. GRIB 2, every three hours."""

from cranpm.providers.era5 import LEVELS
from cranpm.providers.provider import Request, Wanted

URL = "https://data.ecmwf.int/forecasts/{day:%Y%m%d}/00z/ifs/0p25/oper/{day:%Y%m%d}000000-{step}h-oper-fc"
STEPS = tuple(range(0, 25, 3))
SURFACE, ALOFT = ("10u", "10v", "2t", "sp", "tp"), ("u", "v", "t", "q", "gh")


class Ifs:
    """The forecast from 00 UTC of each day for that day: only the fields that are needed, by their place in files."""

    name = "ifs"

    def requests(self, wanted: Wanted) -> list[Request]:
        """A file a day with all its steps: rain counts from the start of a forecast."""
        fields = {"surface": SURFACE, "aloft": ALOFT, "levels": LEVELS}
        return [
            Request(
                self.name,
                f"ifs_{day}.grib2",
                "index",
                {"index": [URL.format(day=day, step=step) for step in STEPS], **fields},
                0.2,
            )
            for day in wanted.days
        ]
