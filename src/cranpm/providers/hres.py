"""WeatherBench 2's copy of ECMWF's forecasts (HRES) from 2016 to 2022: the weather of the days ahead for training.

A Zarr in Google's cloud without a key: start, period in steps of six hours, level, latitude (rising), longitude.
The run of 00 UTC of a start day is copied into a NetCDF file of the data store's layout, which is then ingested.
"""

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.files import whole_file
from cranpm.core.grid import Array, Domain
from cranpm.providers.availability import Availability
from cranpm.providers.era5 import ALOFT_NAMES, EXTRA_NAMES, LEVELS, SURFACE_NAMES
from cranpm.providers.forecast_provider import ForecastProvider
from cranpm.providers.gridded import COPIED_BY_US
from cranpm.providers.ifs import Ifs
from cranpm.providers.netcdf_layout import RUN, SPACE, new_run_layout, put
from cranpm.providers.provider import FetchQuery
from cranpm.providers.quantities import BY_ALIAS
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.netcdf import MODEL, SUM_HOURS
from cranpm.providers.readers.netcdf_times import decode_times
from cranpm.providers.readers.variable import IFS, Variable
from cranpm.providers.request import Request
from cranpm.providers.zarr_stores import UNITS, cut_out, indices_around, open_anonymously, unit_of, whole_axis

if TYPE_CHECKING:  # imported where it is used: every sandbox would wait for it
    import zarr

COPIED = f"hres via weatherbench2, {COPIED_BY_US}"
RAIN = "total_precipitation_6hr"
GB_A_STEP = 0.15
"""That is read: chunks hold the globe and 13 levels."""
HOURS = {"hours": 1, "days": 24, "minutes": 1 / 60, "seconds": 1 / 3600, "nanoseconds": 1 / 3.6e12}


class Hres(ForecastProvider):
    """0.25 degrees, every six hours; recorded as IFS, which it is, with a note of the copy."""

    name, title, page = "hres", "HRES via WeatherBench 2", "forecasts.md"
    provides = Ifs.provides
    forecasts, model, preference = ("weather",), IFS, Ifs.preference
    every, most = 6, 240
    replaces = "era5"
    has = Availability(first=date(2016, 1, 1), last=date(2022, 12, 31))
    hosts = {"Google Cloud Storage": "https://storage.googleapis.com"}  # noqa: RUF012
    licence = "https://www.ecmwf.int/en/forecasts/datasets/open-data"
    bucket, prefix = "weatherbench2", "datasets/hres/2016-2022-0012-1440x721.zarr"

    def owns(self, variable: Variable) -> bool:
        return variable.model == self.model and COPIED in variable.source

    def requests(self, query: FetchQuery) -> list[Request]:
        hours = self.steps(query.leads)
        ask = {"zarr": f"gs://{self.bucket}/{self.prefix}", "domain": query.domain.to_json(), "hours": list(hours)}
        return [
            Request(
                self.name, f"hres_{query.box}_{day}_{hours[-1]}h.nc", {**ask, "day": str(day)}, GB_A_STEP * len(hours)
            )
            for day in query.days
        ]

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        """Copy a run out of the Zarr."""
        day, domain = date.fromisoformat(request.ask["day"]), Domain(**request.ask["domain"])
        try:
            with whole_file(target) as beside:
                self.copy(self.group(), day, request.ask["hours"], domain, beside)
        except CranpmError:
            raise
        except Exception as error:  # of the store's libraries
            raise CranpmError(
                expected=f"the run of {day} in {request.ask['zarr']}", found=str(error)[:300], remedy="Try again later."
            ) from None
        return [target]

    def group(self) -> "zarr.Group":
        """The Zarr, opened anonymously."""
        return open_anonymously(self.bucket, self.prefix)

    def copy(self, group: "zarr.Group", day: date, hours: Sequence[int], domain: Domain, target: Path) -> None:
        """The run of 00 UTC of a day on the nodes that surround the domain."""
        _check_names(group, self.name)
        grid = FileGrid.of(whole_axis(group, "latitude"), whole_axis(group, "longitude"), self.name)
        rows = indices_around(grid.lat, domain.south, domain.north)
        cols = indices_around(grid.lon, domain.west, domain.east)
        raw = (grid.rows[rows], grid.cols[cols])
        at, periods = _start_index(group, day), _period_indices(group, hours)
        start = datetime.combine(day, datetime.min.time())
        facts = {"source": COPIED, "institution": str(dict(group.attrs).get("institution", "")), MODEL: IFS}
        kept = ("pressure_level", [float(level) for level in LEVELS], "hPa")
        chosen = [list(whole_axis(group, "level").astype(int)).index(level) for level in LEVELS]
        with new_run_layout(target, (grid.lat[rows], grid.lon[cols]), start, hours, kept, facts) as file:
            for name in (*SURFACE_NAMES[:-1], RAIN, *(extra for extra in EXTRA_NAMES.values() if extra in group)):
                known, sums = ("tp", {SUM_HOURS: self.every}) if name == RAIN else (BY_ALIAS[name].name, {})
                fields = _fields(group[name], at, periods, raw)[:, None]
                put(file, known, unit_of(group[name], UNITS.get(name, "")), fields, (*RUN, *SPACE), **sums)
            for name in ALOFT_NAMES:
                fields = _fields(group[name], at, periods, raw)[:, None, chosen]
                put(file, BY_ALIAS[name].name, unit_of(group[name]), fields, (*RUN, "pressure_level", *SPACE))


def _fields(array: Any, start: int, periods: Sequence[int], raw: tuple[Array, Array]) -> Array:
    """(period, [level,] row, column) in our order of rows and columns."""
    return np.stack([cut_out(array, (start, period), raw) for period in periods])


def _check_names(group: Any, label: str) -> None:
    missing = [name for name in (*SURFACE_NAMES[:-1], RAIN, *ALOFT_NAMES) if name not in group]
    if missing:
        raise CranpmError(
            expected=f"{missing[0]} in {label}", found="no such array", remedy="Choose a Zarr that has all fields."
        )


def _start_index(group: Any, day: date) -> int:
    stored = decode_times(whole_axis(group, "time"), unit_of(group["time"]), "hres")
    found = np.flatnonzero(stored == np.datetime64(day, "s"))
    if not len(found):
        raise CranpmError(
            expected=f"the run of {day} 00 UTC in hres",
            found=f"runs from {stored[0]} to {stored[-1]}",
            remedy="Choose a day among these.",
        )
    return int(found[0])


def _period_indices(group: Any, hours: Sequence[int]) -> list[int]:
    unit = unit_of(group["prediction_timedelta"])
    if unit not in HOURS:
        raise CranpmError(expected="prediction_timedelta in hours", found=repr(unit), remedy="Choose another Zarr.")
    stored = [round(float(value) * HOURS[unit], 6) for value in whole_axis(group, "prediction_timedelta")]
    missing = [hour for hour in hours if hour not in stored]
    if missing:
        raise CranpmError(
            expected=f"{missing[0]} hours after the start in hres",
            found=f"periods up to {max(stored):g} hours",
            remedy="Fetch with fewer --leads.",
        )
    return [stored.index(hour) for hour in hours]
