"""CAMS from the Atmosphere Data Store: the global reanalysis (EAC4), and how all files of CAMS are read.

Daily means of PM2.5, PM10, NO2, O3 and CO near the ground in ug m-3. Gases that come as mixing ratios are multiplied
by the density of air at the same time, from surface pressure and the lowest level's temperature and humidity.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from cranpm.core.channels import PAPER_CHANNELS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.ads import GASES, PAGE, PARTICLES, AdsProvider, ads_request, area_around
from cranpm.providers.availability import Availability
from cranpm.providers.era5 import by_month
from cranpm.providers.gridded import Gridded, Origins, read_channels, summary, variables
from cranpm.providers.provider import DayReader, FetchQuery, FileSummary, Reading, ReadQuery
from cranpm.providers.quantities import RATIOS
from cranpm.providers.readers.files import Piece
from cranpm.providers.request import Request
from cranpm.providers.timeline import Timeline, check_range

SPECIES = {channel.name: channel.quantity for channel in PAPER_CHANNELS if channel.source == "cams"}
GAS_CONSTANT, VAPOUR = 287.05, 0.608
"""Of dry air, J kg-1 K-1; how much lighter moist air is."""
RATIO_RANGE = (-1e-12, 1e-4)
LEAST_UGM3 = {"pm25": 0.05, "pm10": 0.05, "no2": 1e-3, "o3": 1.0, "co": 10.0}
"""That the most polluted place of a day has: less is another unit."""
LONGEST_STEP = 3
"""Hours between fields beyond which a day is less than good."""
COLLECTION, STEP = "cams-global-reanalysis-eac4", 0.75


class Cams(AdsProvider):
    """Composition near the ground."""

    name, title, page = "cams", "CAMS", "cams.md"
    provides = tuple(SPECIES)
    whole_zip = True  # it is one request: its surface pressure is not ERA5's
    has = Availability(first=date(2003, 1, 1), late_days=90, usually_late_days=540)
    licence = f"{PAGE}/{COLLECTION}"

    def recognise(self, piece: Piece) -> FileSummary | None:
        found = [variable for variable in variables(piece) if variable.start is None]
        if not any(variable.quantity.name in SPECIES.values() for variable in found):
            found = [variable for variable in found if variable.kind == "model"]  # what density is made of
        return summary(piece, self.name, found) if found else None

    def open(self, pieces: Sequence[Piece], query: ReadQuery) -> DayReader:
        origins = Origins(pieces, query.domain)

        def find(files: Gridded, channel: str) -> Timeline | None:
            return files.lowest(SPECIES[channel])

        def make(files: Gridded, timeline: Timeline, channel: str, day: date) -> tuple[Array, list[np.datetime64], str]:
            return _day(files, timeline, SPECIES[channel], day, query.lenient)

        def day_of(day: date) -> Reading:
            reading = read_channels(origins, find, make, day, self.name, query)
            if query.run is None and reading.facts["models"]:
                note = f"composition: a forecast ({', '.join(reading.facts['models'])}) instead of an analysis"
                reading = replace(reading, notes=(*reading.notes, note))
            return reading

        return day_of

    def requests(self, query: FetchQuery) -> list[Request]:
        """EAC4, a month at a time."""
        names = [*PARTICLES, "surface_pressure", *GASES, "temperature", "specific_humidity"]
        return [
            ads_request(
                self.name,
                f"cams-eac4_{query.box}_{days[0]}_{days[-1]}.zip",
                COLLECTION,
                {
                    "variable": names,
                    "model_level": ["60"],
                    "date": [f"{days[0]}/{days[-1]}"],
                    "time": [f"{hour:02d}:00" for hour in range(0, 24, 3)],
                    "area": area_around(query.domain, STEP),
                    "data_format": "netcdf_zip",
                },
                len(names) * 8 * len(days),
                STEP,
            )
            for days in by_month(query.days).values()
        ]


def _day(
    files: Gridded, timeline: Timeline, species: str, day: date, lenient: bool
) -> tuple[Array, list[np.datetime64], str]:
    """The mean of a day in ug m-3, the times it is made of, and a note."""
    step = timeline.step(day)
    times, note = timeline.present(day, step if step <= LONGEST_STEP or lenient else 1, lenient)
    if step > LONGEST_STEP:
        note = note or f"{timeline.name}: {step}-hourly"
    values = concentration(files, timeline, times).mean(axis=0, dtype=np.float64)
    if np.nanmax(values) < LEAST_UGM3[species]:
        raise CranpmError(
            expected=f"at least {LEAST_UGM3[species]:g} ug m-3 somewhere in {timeline.some.what}",
            found=f"{np.nanmax(values):g}",
            remedy="Check its unit.",
        )
    return np.maximum(values, 0), times, note


def concentration(files: Gridded, timeline: Timeline, times: Sequence[np.datetime64]) -> Array:
    """(time, row, column) in ug m-3."""
    variable = timeline.some
    if not (variable.quantity.ratios and variable.unit in RATIOS):
        return timeline.fields(times)
    ratio = timeline.stored(times).astype(np.float64)
    check_range(ratio, *RATIO_RANGE, variable.what)
    values = ratio * density(files, timeline, times) * 1e9
    check_range(values, variable.quantity.low, variable.quantity.high, variable.what)
    return np.asarray(values)


def density(files: Gridded, timeline: Timeline, times: Sequence[np.datetime64]) -> Array:
    """Of moist air at the ground, kg m-3, on the gas's own grid and times."""
    level = timeline.some.levels[timeline.moments[times[0]].level]
    helpers = {
        "sp": files.timeline("sp"),
        "t": files.timeline("t", "model", level),
        "q": files.timeline("q", "model", level),
    }
    found = {}
    for name, helper in helpers.items():
        if helper is None or any(time not in helper.moments for time in times):
            raise CranpmError(
                expected=f"{name} beside the mixing ratio in {timeline.some.what}, for the density of air",
                found="none for some of its times",
                remedy="Fetch surface_pressure, and temperature and specific_humidity on the same model level, too.",
            )
        if not helper.some.file_grid.same(timeline.some.file_grid):
            raise CranpmError(
                expected=f"{name} on the grid of {timeline.some.what}",
                found="another",
                remedy="Fetch both in one request.",
            )
        found[name] = helper.fields(times).astype(np.float64)
    return np.asarray(found["sp"] / (GAS_CONSTANT * found["t"] * (1 + VAPOUR * found["q"])))
