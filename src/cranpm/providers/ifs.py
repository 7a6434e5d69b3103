"""ECMWF's open data: last night's forecast instead of ERA5, which is five days late. GRIB 2, every three hours."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cranpm.core.errors import CranpmError
from cranpm.core.files import whole_file
from cranpm.providers.download import part_of, text
from cranpm.providers.era5 import LEVELS, Era5, weather
from cranpm.providers.gridded import summary, variables
from cranpm.providers.provider import FetchQuery, FileSummary, Provider
from cranpm.providers.readers.files import Piece
from cranpm.providers.readers.variable import OPERATIONAL
from cranpm.providers.request import Request

URL = "https://data.ecmwf.int/forecasts/{day:%Y%m%d}/00z/ifs/0p25/oper/{day:%Y%m%d}000000-{step}h-oper-fc"
STEPS = tuple(range(0, 25, 3))
SURFACE, ALOFT = ("10u", "10v", "2t", "sp", "tp"), ("u", "v", "t", "q", "gh")


class Ifs(Provider):
    """The forecast from 00 UTC of each day for that day: only the fields that are needed, by their place in files."""

    name, title, page = "ifs", "IFS open data", "era5.md"
    provides = tuple(name for name in Era5.provides if name != "blh")
    role = "forecast"
    replaces = "era5"
    hosts = {"ECMWF open data": "https://data.ecmwf.int"}  # noqa: RUF012
    licence = "https://www.ecmwf.int/en/forecasts/datasets/open-data"

    def recognise(self, piece: Piece) -> FileSummary | None:
        """Files whose weather is of ECMWF's operational forecast alone."""
        found = weather(variables(piece))
        if not found or any(set(variable.versions) != {OPERATIONAL} for variable in found):
            return None
        return summary(piece, self.name, found)

    def requests(self, query: FetchQuery) -> list[Request]:
        """One file per day with all its steps: rain counts from the start of a forecast."""
        fields = {"surface": SURFACE, "aloft": ALOFT, "levels": LEVELS}
        return [
            Request(
                self.name,
                f"ifs_{day}.grib2",
                {"index": [URL.format(day=day, step=step) for step in STEPS], **fields},
                gigabytes=0.2,
            )
            for day in query.days
        ]

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        """Messages of GRIB files, found by the indices beside them, one range of bytes each."""
        with whole_file(target) as beside, beside.open("wb") as file:
            for place in request.ask["index"]:
                lines = [json.loads(line) for line in text(f"{place}.index", wait).splitlines() if line.strip()]
                wanted = [line for line in lines if _is_wanted(line, request.ask)]
                if not wanted:
                    raise CranpmError(
                        expected=f"fields in {place}.index", found=f"{len(lines)} others", remedy="Look at the index."
                    )
                for line in wanted:
                    file.write(part_of(f"{place}.grib2", int(line["_offset"]), int(line["_length"]), wait))
        return [target]


def _is_wanted(line: Mapping[str, Any], ask: Mapping[str, Any]) -> bool:
    if line.get("levtype") == "sfc":
        return line["param"] in ask["surface"]
    return line.get("levtype") == "pl" and line["param"] in ask["aloft"] and int(line["levelist"]) in ask["levels"]
