"""ERA5 from the Climate Data Store, as NetCDF (old and new layout), ZIP or GRIB; and what is used instead of it.

Means over the 24 hours of a UTC day. Precipitation is what fell in the hour that *ends* at the stated time: a day's
total runs from 01 UTC to 00 UTC of the next day.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from cranpm.core.channels import FURTHER_CHANNELS, PAPER_CHANNELS, Channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.availability import Availability
from cranpm.providers.datastore import StoreProvider
from cranpm.providers.gridded import Gridded, Origins, read_channels, summary, variables
from cranpm.providers.provider import DayReader, FetchQuery, FileSummary, Reading, ReadQuery
from cranpm.providers.quantities import QUANTITY_OF
from cranpm.providers.readers.files import Piece
from cranpm.providers.readers.variable import Variable
from cranpm.providers.request import Request
from cranpm.providers.timeline import Timeline, check_range

CHANNELS = {channel.name: channel for channel in (*PAPER_CHANNELS, *FURTHER_CHANNELS) if channel.source == "era5"}
SURFACE = tuple(channel.name for channel in CHANNELS.values() if channel.level_hpa is None)
ALOFT = {quantity: name for name, quantity in QUANTITY_OF.items()}
"""What files call a quantity on pressure levels; geopotential may come as a height, `gh`."""
LEVELS = tuple(sorted({channel.level_hpa for channel in CHANNELS.values() if channel.level_hpa}))
SURFACE_NAMES = (
    "10m_u_component_of_wind",
    "10m_v_component_of_wind",
    "2m_temperature",
    "surface_pressure",
    "total_precipitation",
)
ALOFT_NAMES = ("u_component_of_wind", "v_component_of_wind", "temperature", "geopotential", "specific_humidity")
EXTRA_NAMES = {"blh": "boundary_layer_height"}
GB_A_FIELD = 2.7e-6
"""Of 1,000 cells, about, as compressed NetCDF."""
FAR = 8
"""Spreads by which temperature and geopotential of a level may be off the usual: a height in metres is off by more."""
DRIEST = 1e-5
"""kg kg-1 that the moistest place of a day has at least, even at 500 hPa in winter."""


class Era5(StoreProvider):
    """The reanalysis, 0.25 degrees, hourly."""

    name, title, page = "era5", "ERA5", "era5.md"
    provides = tuple(CHANNELS)
    has = Availability(first=date(1940, 1, 1), late_days=4, usually_late_days=6)
    days_after = 1  # rain of a day ends at midnight of the next
    hosts = {"Climate Data Store": "https://cds.climate.copernicus.eu"}  # noqa: RUF012
    service = "https://cds.climate.copernicus.eu/api"
    licence = "https://cds.climate.copernicus.eu/datasets/reanalysis-era5-single-levels"

    def recognise(self, piece: Piece) -> FileSummary | None:
        found = [variable for variable in weather(variables(piece)) if variable.start is None]
        return summary(piece, self.name, found) if found else None

    def open(self, pieces: Sequence[Piece], query: ReadQuery) -> DayReader:
        origins = Origins(pieces, query.domain)

        def make(_: Gridded, timeline: Timeline, name: str, day: date) -> tuple[Array, list[np.datetime64], str]:
            return _day(timeline, CHANNELS[name], day, query.lenient)

        def day_of(day: date) -> Reading:
            reading = read_channels(origins, _timeline, make, day, self.name, query)
            if query.run is None and reading.facts["models"]:
                reading = replace(reading, notes=(*reading.notes, "weather: ECMWF's forecast instead of ERA5"))
            return reading

        return day_of

    def requests(self, query: FetchQuery) -> list[Request]:
        """A month of single and of pressure levels at a time; and the midnight after the days, for their rain."""
        found = []
        single = (*SURFACE_NAMES, *(EXTRA_NAMES[name] for name in query.channels if name in EXTRA_NAMES))
        for of_month in by_month(query.days).values():
            hours = [f"{hour:02d}:00" for hour in range(24)]
            found += [
                _request(query, "single", of_month, hours, single),
                _request(query, "pressure", of_month, hours, ALOFT_NAMES),
            ]
        after = {day + timedelta(days=1) for day in query.days} - set(query.days)
        for of_month in by_month(sorted(after)).values():
            found.append(_request(query, "single", of_month, ["00:00"], SURFACE_NAMES[-1:]))
        return found


def weather(found: Sequence[Variable]) -> list[Variable]:
    """Those of a file's variables that become channels."""
    aloft = (*ALOFT.values(), "gh")
    return [v for v in found if v.quantity.name in {"surface": SURFACE, "pressure": aloft}.get(v.kind, ())]


def _request(query: FetchQuery, kind: str, days: list[date], hours: list[str], names: Sequence[str]) -> Request:
    domain = query.domain
    levels = {"pressure_level": [str(level) for level in LEVELS]} if kind == "pressure" else {}
    cells = (domain.coarse.rows + 1) * (domain.coarse.cols + 1) / 1000
    fields = len(names) * (len(LEVELS) if levels else 1) * len(hours) * len(days)
    collection = f"reanalysis-era5-{kind}-levels"
    what = kind if len(hours) > 1 else "midnight"
    return Request(
        provider=Era5.name,
        name=f"era5-{what}_{query.box}_{days[0]}_{days[-1]}.nc",
        ask={
            "collection": collection,
            "request": {
                "product_type": ["reanalysis"],
                "variable": list(names),
                "year": [f"{days[0].year}"],
                "month": [f"{days[0].month:02d}"],
                "day": [f"{day.day:02d}" for day in days],
                "time": hours,
                **levels,
                "area": [domain.north, domain.west, domain.south, domain.east],
                "data_format": "netcdf",
                "download_format": "unarchived",
            },
        },
        gigabytes=GB_A_FIELD * fields * cells,
        licence=f"https://cds.climate.copernicus.eu/datasets/{collection}?tab=download#manage-licences",
    )


def _timeline(files: Gridded, name: str) -> Timeline | None:
    channel = CHANNELS[name]
    if channel.level_hpa is None:
        return files.timeline(channel.name)
    names = [ALOFT[channel.quantity], *(["gh"] if channel.quantity == "geopotential" else [])]
    found = (files.timeline(name, "pressure", float(channel.level_hpa)) for name in names)
    return next((timeline for timeline in found if timeline is not None), None)


def _day(timeline: Timeline, channel: Channel, day: date, lenient: bool) -> tuple[Array, list[np.datetime64], str]:
    """The mean of a day or, of rain, its total; the times it is made of; a note."""
    if timeline.some.accumulated:
        return *timeline.increase(day), ""
    operational = timeline.some.start is not None
    step = timeline.step(day) if operational or lenient else 1
    times, note = timeline.present(day, step, lenient, ends=channel.quantity == "precipitation")
    if step > 1 and not operational:
        note = note or f"{timeline.name}: {step}-hourly"
    mean = timeline.fields(times).mean(axis=0, dtype=np.float64)
    summed = timeline.moments[times[0]].variable.sum_hours
    values = mean * (24 / summed) if channel.quantity == "precipitation" else mean
    return _plausible(channel, values, timeline.some.what), times, note


def _plausible(channel: Channel, values: Array, what: str) -> Array:
    """What a level can be; tiny negative rain and humidity, which packing leaves, become 0."""
    if channel.level_hpa and channel.quantity in ("temperature", "geopotential"):
        check_range(values, channel.mean - FAR * channel.spread, channel.mean + FAR * channel.spread, what)
    if channel.quantity == "humidity" and np.nanmax(values) < DRIEST:
        raise CranpmError(
            expected=f"at least {DRIEST:g} kg kg-1 somewhere in {what}",
            found=f"{np.nanmax(values):g}",
            remedy="Check its unit.",
        )
    return np.maximum(values, 0) if channel.quantity in ("humidity", "precipitation") else values


def by_month(days: Sequence[date]) -> dict[tuple[int, int], list[date]]:
    """Days by year and month."""
    found: dict[tuple[int, int], list[date]] = {}
    for day in sorted(days):
        found.setdefault((day.year, day.month), []).append(day)
    return found
