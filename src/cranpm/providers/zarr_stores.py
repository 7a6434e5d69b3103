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
from cranpm.providers.era5 import ALOFT_NAMES, LEVELS, SURFACE_NAMES
from cranpm.providers.ifs import Ifs
from cranpm.providers.netcdf_layout import SPACE, new_layout, put
from cranpm.providers.provider import FetchQuery, Provider
from cranpm.providers.quantities import BY_ALIAS
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.netcdf import SUM_HOURS, decode_times
from cranpm.providers.request import Request

if TYPE_CHECKING:  # imported where it is used: every sandbox would wait for it
    import zarr


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
    provides = Ifs.provides
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
        import zarr
        from obstore.store import GCSStore
        from zarr.storage import ObjectStore

        store = ObjectStore(GCSStore(self.bucket, prefix=self.prefix, skip_signature=True), read_only=True)
        return zarr.open_group(store, mode="r")

    def copy(self, group: "zarr.Group", day: date, domain: Domain, target: Path) -> None:
        """A day with the midnight after it, where rain ends, on the nodes that surround the domain."""
        grid = FileGrid.of(_whole(group, "latitude"), _whole(group, "longitude"), self.name)
        rows, cols = _around(grid.lat, domain.south, domain.north), _around(grid.lon, domain.west, domain.east)
        start = datetime.combine(day, datetime.min.time())
        times = [start + timedelta(hours=hour) for hour in range(0, 25, self.step_hours)]
        where = self._indices(group, times)
        raw = (grid.rows[rows], grid.cols[cols])
        levels = list(_whole(group, "level").astype(int))
        kept = ("pressure_level", [float(level) for level in LEVELS], "hPa")
        made_by = f"copied by cranpm from {self.prefix}"
        with new_layout(target, grid.lat[rows], grid.lon[cols], times, kept, made_by) as file:
            for name in (*SURFACE_NAMES[:-1], self.rain):
                values = np.stack([_cut(group[name], (index,), raw) for index in where])
                known, sums = ("tp", {SUM_HOURS: self.step_hours}) if name == self.rain else (BY_ALIAS[name].name, {})
                put(file, known, _unit(group[name]), values, ("valid_time", *SPACE), **sums)
            chosen = [levels.index(level) for level in LEVELS]
            for name in ALOFT_NAMES:
                fields = [_cut(group[name], (index,), raw)[chosen] for index in where]
                dimensions = ("valid_time", "pressure_level", *SPACE)
                put(file, BY_ALIAS[name].name, _unit(group[name]), np.array(fields), dimensions)

    def _indices(self, group: "zarr.Group", times: Sequence[datetime]) -> list[int]:
        unit = str(dict(group["time"].attrs).get("units", ""))
        stored = decode_times(_whole(group, "time"), unit, self.name)
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


def _whole(group: Any, name: str) -> Array:
    return np.asarray(group[name][:])


def _around(centres: Array, low: float, high: float) -> Array:
    """Indices of the centres in a range and of those next to it."""
    inside = np.flatnonzero((centres >= low - 1e-6) & (centres <= high + 1e-6))
    return np.arange(max(inside[0] - 1, 0), min(inside[-1] + 2, len(centres)))


def _cut(array: Any, index: tuple[int, ...], raw: tuple[Array, Array]) -> Array:
    """One chunk, read once, and the part of it that is wanted."""
    rows, cols = raw
    return np.asarray(array[index])[..., rows[:, None], cols]


def _unit(array: Any) -> str:
    return str(dict(array.attrs).get("units", ""))


ARCO = ZarrStore(
    "arco",
    "ARCO-ERA5",
    "gcp-public-data-arco-era5",
    "ar/full_37-1h-0p25deg-chunk-1.zarr-v3",
    step_hours=1,
    rain="total_precipitation",
    gigabytes_read=19.0,
)
WEATHERBENCH2 = ZarrStore(
    "weatherbench2",
    "WeatherBench 2",
    "weatherbench2",
    "datasets/era5/1959-2023_01_10-wb13-6h-1440x721_with_derived_variables.zarr",
    step_hours=6,
    rain="total_precipitation_6hr",
    gigabytes_read=1.2,
)
