"""ERA5 without a key, from Zarr in Google's cloud: ARCO-ERA5 (hourly) and WeatherBench 2 (six-hourly).

A day is copied into a NetCDF file of the data store's layout, which is then ingested like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.files import whole_file
from cranpm.core.grid import Array, Domain
from cranpm.providers.availability import Availability
from cranpm.providers.era5 import ALOFT_NAMES, LEVELS, SURFACE_NAMES, Era5
from cranpm.providers.netcdf_layout import SPACE, new_layout, put
from cranpm.providers.provider import FetchQuery, Provider
from cranpm.providers.quantities import BY_ALIAS
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.netcdf import SUM_HOURS
from cranpm.providers.readers.netcdf_times import decode_times
from cranpm.providers.request import Request

if TYPE_CHECKING:  # imported where it is used: every sandbox would wait for it
    import zarr


UNITS = {"total_precipitation_6hr": "m"}
"""Of arrays that state none: WeatherBench 2's rain is made of differences of ECMWF's sums, which are in metres."""


@dataclass(frozen=True)
class ZarrStore(Provider):
    """A Zarr of the globe by hour and level; copied days are read as ERA5's."""

    name: str
    title: str
    bucket: str
    prefix: str
    step_hours: int
    rain: str
    gigabytes_read: float
    has: Availability = Provider.has
    provides = tuple(name for name in Era5.provides if name != "blh")
    replaces = "era5"
    hosts = {"Google Cloud Storage": "https://storage.googleapis.com"}  # noqa: RUF012
    licence = "https://cds.climate.copernicus.eu/datasets/reanalysis-era5-single-levels"
    page = "era5.md"

    def requests(self, query: FetchQuery) -> list[Request]:
        """One file per day; `gigabytes` is what is read: chunks hold the globe."""
        place = f"gs://{self.bucket}/{self.prefix}"
        return [
            Request(
                self.name,
                f"{self.name}_{query.box}_{day}.nc",
                {"zarr": place, "day": str(day), "domain": query.domain.to_json()},
                self.gigabytes_read,
            )
            for day in query.days
        ]

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        """Copy a day out of the Zarr."""
        try:
            with whole_file(target) as beside:
                self.copy(self.group(), date.fromisoformat(request.ask["day"]), Domain(**request.ask["domain"]), beside)
        except CranpmError:
            raise
        except Exception as error:  # of the store's libraries
            raise CranpmError(
                expected=f"{request.ask['day']} in {request.ask['zarr']}",
                found=str(error)[:300],
                remedy="Try again later.",
            ) from None
        return [target]

    def group(self) -> "zarr.Group":
        """The Zarr, opened anonymously."""
        return open_anonymously(self.bucket, self.prefix)

    def copy(self, group: "zarr.Group", day: date, domain: Domain, target: Path) -> None:
        """A day with the midnight after it, where rain ends, on the nodes that surround the domain."""
        grid = FileGrid.of(whole_axis(group, "latitude"), whole_axis(group, "longitude"), self.name)
        rows, cols = (
            indices_around(grid.lat, domain.south, domain.north),
            indices_around(grid.lon, domain.west, domain.east),
        )
        start = datetime.combine(day, datetime.min.time())
        times = [start + timedelta(hours=hour) for hour in range(0, 25, self.step_hours)]
        where = self._indices(group, times)
        raw = (grid.rows[rows], grid.cols[cols])
        levels = list(whole_axis(group, "level").astype(int))
        kept = ("pressure_level", [float(level) for level in LEVELS], "hPa")
        made_by = f"copied by cranpm from {self.prefix}"
        with new_layout(target, grid.lat[rows], grid.lon[cols], times, kept, made_by) as file:
            for name in (*SURFACE_NAMES[:-1], self.rain):
                values = np.stack([cut_out(group[name], (index,), raw) for index in where])
                known, sums = ("tp", {SUM_HOURS: self.step_hours}) if name == self.rain else (BY_ALIAS[name].name, {})
                put(file, known, unit_of(group[name], UNITS.get(name, "")), values, ("valid_time", *SPACE), **sums)
            chosen = [levels.index(level) for level in LEVELS]
            for name in ALOFT_NAMES:
                fields = [cut_out(group[name], (index,), raw)[chosen] for index in where]
                dimensions = ("valid_time", "pressure_level", *SPACE)
                put(file, BY_ALIAS[name].name, unit_of(group[name]), np.array(fields), dimensions)

    def _indices(self, group: "zarr.Group", times: Sequence[datetime]) -> list[int]:
        unit = str(dict(group["time"].attrs).get("units", ""))
        stored = decode_times(whole_axis(group, "time"), unit, self.name)
        end = dict(group.attrs).get("valid_time_stop")
        found = np.searchsorted(stored, np.array(times, "datetime64[s]"))
        late = end is not None and times[-1].date() > date.fromisoformat(str(end)[:10])
        if late or found.max() >= len(stored) or not np.array_equal(stored[found], np.array(times, "datetime64[s]")):
            raise CranpmError(
                expected=f"{times[0]}..{times[-1]} in {self.name}",
                found=f"times up to {end or stored[-1]}",
                remedy="Choose earlier days, or another source.",
            )
        return [int(index) for index in found]


def open_anonymously(bucket: str, prefix: str) -> "zarr.Group":
    """A Zarr in Google's cloud."""
    import zarr
    from obstore.store import GCSStore
    from zarr.storage import ObjectStore

    store = ObjectStore(GCSStore(bucket, prefix=prefix, skip_signature=True), read_only=True)
    return zarr.open_group(store, mode="r")


def whole_axis(group: Any, name: str) -> Array:
    """The values of an axis."""
    return np.asarray(group[name][:])


def indices_around(centres: Array, low: float, high: float) -> Array:
    """Indices of the centres in a range and of those next to it."""
    inside = np.flatnonzero((centres >= low - 1e-6) & (centres <= high + 1e-6))
    return np.arange(max(inside[0] - 1, 0), min(inside[-1] + 2, len(centres)))


def cut_out(array: Any, index: tuple[int, ...], raw: tuple[Array, Array]) -> Array:
    """One chunk, read once, and the part of it that is wanted."""
    rows, cols = raw
    return np.asarray(array[index])[..., rows[:, None], cols]


def unit_of(array: Any, otherwise: str = "") -> str:
    """As its attributes state it, or `otherwise` where they do not."""
    return str(dict(array.attrs).get("units", otherwise))


ARCO = ZarrStore(
    "arco",
    "ARCO-ERA5",
    "gcp-public-data-arco-era5",
    "ar/full_37-1h-0p25deg-chunk-1.zarr-v3",
    step_hours=1,
    rain="total_precipitation",
    gigabytes_read=19.0,
    has=Availability(first=date(1940, 1, 1), late_days=5, usually_late_days=120),
)
WEATHERBENCH2 = ZarrStore(
    "weatherbench2",
    "WeatherBench 2",
    "weatherbench2",
    "datasets/era5/1959-2023_01_10-wb13-6h-1440x721_with_derived_variables.zarr",
    step_hours=6,
    rain="total_precipitation_6hr",
    gigabytes_read=1.2,
    has=Availability(first=date(1959, 1, 1), last=date(2023, 1, 9)),
)
