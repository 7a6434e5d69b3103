"""ERA5 from the Climate Data Store, as NetCDF (old and new layout), ZIP or GRIB; and IFS open data in its stead.

Means over the 24 hours of a UTC day. Precipitation is what fell in the hour that *ends* at the stated time: a day's
total runs from 01 UTC to 00 UTC of the next day.
"""

from collections.abc import Sequence
from datetime import date

import numpy as np

from cranpm.channels import COARSE, Channel
from cranpm.errors import CranpmError
from cranpm.grid import Array, Domain
from cranpm.sources.base import DayReader, Reading, Request, Seen
from cranpm.sources.daily import Timeline
from cranpm.sources.fields import Gridded, lacking, seen, variables
from cranpm.sources.files import Piece
from cranpm.sources.grib import OPERATIONAL
from cranpm.sources.regrid import onto

CHANNELS = tuple(channel for channel in COARSE if channel.source == "era5")
SURFACE = ("u10", "v10", "t2m", "sp", "tp")
ALOFT = ("u", "v", "t", "z", "q", "gh")
LEVELS = tuple(sorted({channel.level_hpa for channel in CHANNELS if channel.level_hpa}))
SURFACE_NAMES = (
    "10m_u_component_of_wind",
    "10m_v_component_of_wind",
    "2m_temperature",
    "surface_pressure",
    "total_precipitation",
)
ALOFT_NAMES = ("u_component_of_wind", "v_component_of_wind", "temperature", "geopotential", "specific_humidity")
GB_AN_HOUR = 4e-6
"""Of one field of 1,000 cells, about, as compressed NetCDF."""


class Era5:
    """The reanalysis, 0.25 degrees, hourly."""

    name = "era5"
    gives = tuple(channel.name for channel in CHANNELS)

    def look(self, piece: Piece) -> Seen | None:
        found = [
            variable
            for variable in variables(piece)
            if (variable.kind == "surface" and variable.quantity.name in SURFACE)
            or (variable.kind == "pressure" and variable.quantity.name in ALOFT)
        ]
        return seen(piece, self.name, found) if found else None

    def open(self, pieces: Sequence[Piece], domain: Domain, lenient: bool) -> DayReader:
        files = Gridded(pieces)

        def day_of(day: date) -> Reading:
            fields: dict[str, Array] = {}
            notes: list[str] = []
            for channel in CHANNELS:
                timeline = self._timeline(files, channel)
                if timeline is None:
                    if not lenient:
                        raise lacking(channel.name, day, self.name)
                    notes.append(f"{channel.name} missing")
                    continue
                values, note = self._day(timeline, channel, day, lenient)
                notes += [note] if note else []
                fields[channel.name] = onto(values, timeline.grid(), domain.coarse, timeline.some.what)
            versions = sorted({variable.version for variable in files.variables if variable.version})
            return Reading(_sound(fields), tuple(notes), {"expver": versions})

        return day_of

    def _timeline(self, files: Gridded, channel: Channel) -> Timeline | None:
        if channel.level_hpa is None:
            return files.timeline(channel.name)
        name = channel.name.removesuffix(str(channel.level_hpa))
        found = files.timeline(name, "pressure", float(channel.level_hpa))
        return files.timeline("gh", "pressure", float(channel.level_hpa)) if found is None and name == "z" else found

    def _day(self, timeline: Timeline, channel: Channel, day: date, lenient: bool) -> tuple[Array, str]:
        coarse = timeline.some.version == OPERATIONAL
        step = timeline.step(day) if coarse or lenient else 1
        times, note = timeline.present(day, step, step if channel.name == "tp" else 0, lenient)
        if step > 1 and not coarse:
            note = note or f"{timeline.name}: {step}-hourly"
        mean = timeline.fields(times).mean(axis=0, dtype=np.float64)
        return mean * (24 / step) if channel.name == "tp" else mean, note

    def requests(self, days: Sequence[date], domain: Domain) -> list[Request]:
        """A month of single levels and of pressure levels at a time; of precipitation, one more day."""
        area = [domain.north, domain.west, domain.south, domain.east]
        cells = (domain.coarse.rows + 1) * (domain.coarse.cols + 1) / 1000
        found = []
        for (year, month), of_month in by_month(days).items():
            common = {
                "product_type": ["reanalysis"],
                "year": [f"{year}"],
                "month": [f"{month:02d}"],
                "day": [f"{day.day:02d}" for day in of_month],
                "time": [f"{hour:02d}:00" for hour in range(24)],
                "area": area,
                "data_format": "netcdf",
                "download_format": "unarchived",
            }
            hours = 24 * len(of_month)
            for kind, names, levels in (("single", SURFACE_NAMES, None), ("pressure", ALOFT_NAMES, LEVELS)):
                fields = len(names) * (len(levels) if levels else 1)
                found.append(
                    Request(
                        source=self.name,
                        name=f"era5-{kind}_{year}-{month:02d}_{of_month[0].day:02d}-{of_month[-1].day:02d}.nc",
                        ask={
                            "collection": f"reanalysis-era5-{kind}-levels",
                            "request": common
                            | {"variable": list(names)}
                            | ({"pressure_level": [str(level) for level in levels]} if levels else {}),
                        },
                        gigabytes=GB_AN_HOUR * hours * fields * cells / 1.5,
                        licence=f"https://cds.climate.copernicus.eu/datasets/reanalysis-era5-{kind}-levels?tab=download"
                        "#manage-licences",
                    )
                )
        return found


def by_month(days: Sequence[date]) -> dict[tuple[int, int], list[date]]:
    """Days by year and month."""
    found: dict[tuple[int, int], list[date]] = {}
    for day in sorted(days):
        found.setdefault((day.year, day.month), []).append(day)
    return found


def _sound(fields: dict[str, Array]) -> dict[str, Array]:
    """Rounding of packed files leaves tiny negative rain and humidity: 0. A gap inside a field is refused."""
    for name, values in fields.items():
        if np.isnan(values).any():
            raise CranpmError(
                expected=f"{name} everywhere",
                found=f"{np.isnan(values).mean():.1%} of it missing",
                remedy="Fetch it again, for the whole domain.",
            )
        if name == "tp" or name.startswith("q"):
            fields[name] = np.maximum(values, 0)
    return fields
