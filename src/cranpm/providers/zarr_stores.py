"""ERA5 without a key, from Zarr in Google's cloud: ARCO-ERA5 (hourly) and WeatherBench 2 (six-hourly).

A day is copied into a NetCDF file of the data store's layout, which is then ingested like any other.
"""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from obstore.store import GCSStore
from zarr.storage import ObjectStore

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain
from cranpm.providers.era5 import ALOFT_NAMES, LEVELS, SURFACE_NAMES
from cranpm.providers.netcdf_layout import SPACE, new_layout, put
from cranpm.providers.provider import Request, Wanted
from cranpm.providers.quantities import BY_ALIAS
from cranpm.providers.readers.file_grid import Place
from cranpm.providers.readers.netcdf import SUM_HOURS, decode_times


class Cloud:
    """A Zarr of the globe by hour and level."""

    def __init__(self, name: str, bucket: str, prefix: str, step_hours: int, rain: str, gigabytes_read: float):
        self.name, self.bucket, self.prefix = name, bucket, prefix
        self.step_hours, self.rain, self.gigabytes_read = step_hours, rain, gigabytes_read

    def requests(self, wanted: Wanted) -> list[Request]:
        """A file a day; `gigabytes` is what is read: chunks hold the globe."""
        place = f"gs://{self.bucket}/{self.prefix}"
        return [
            Request(
                self.name,
                f"{self.name}_{wanted.box}_{day}.nc",
                "zarr",
                {"zarr": place, "day": str(day), "domain": wanted.domain.to_json()},
                self.gigabytes_read,
            )
            for day in wanted.days
        ]

    def open(self) -> zarr.Group:
        """Anonymously."""
        store = ObjectStore(GCSStore(self.bucket, prefix=self.prefix, skip_signature=True), read_only=True)
        return zarr.open_group(store, mode="r")

    def copy(self, group: zarr.Group, day: date, domain: Domain, target: Path) -> None:
        """A day with the midnight after it, where rain ends, on the nodes that surround the domain."""
        place = Place.of(_whole(group, "latitude"), _whole(group, "longitude"), self.name)
        rows, cols = _around(place.lat, domain.south, domain.north), _around(place.lon, domain.west, domain.east)
        start = datetime.combine(day, datetime.min.time())
        times = [start + timedelta(hours=hour) for hour in range(0, 25, self.step_hours)]
        where = self._indices(group, times)
        raw = (place.rows[rows], place.cols[cols])
        levels = list(_whole(group, "level").astype(int))
        kept = ("pressure_level", [float(level) for level in LEVELS], "hPa")
        made_by = f"copied by cranpm from {self.prefix}"
        with new_layout(target, place.lat[rows], place.lon[cols], times, kept, made_by) as file:
            for name in (*SURFACE_NAMES[:-1], self.rain):
                values = np.stack([_cut(group[name], (index,), raw) for index in where])
                known, sums = ("tp", {SUM_HOURS: self.step_hours}) if name == self.rain else (BY_ALIAS[name].name, {})
                put(file, known, _unit(group[name]), values, ("valid_time", *SPACE), **sums)
            chosen = [levels.index(level) for level in LEVELS]
            for name in ALOFT_NAMES:
                fields = [_cut(group[name], (index,), raw)[chosen] for index in where]
                dimensions = ("valid_time", "pressure_level", *SPACE)
                put(file, BY_ALIAS[name].name, _unit(group[name]), np.array(fields), dimensions)

    def _indices(self, group: zarr.Group, times: Sequence[datetime]) -> list[int]:
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


CLOUDS = {
    cloud.name: cloud
    for cloud in (
        Cloud(
            "arco",
            "gcp-public-data-arco-era5",
            "ar/full_37-1h-0p25deg-chunk-1.zarr-v3",
            step_hours=1,
            rain="total_precipitation",
            gigabytes_read=19.0,
        ),
        Cloud(
            "weatherbench2",
            "weatherbench2",
            "datasets/era5/1959-2023_01_10-wb13-6h-1440x721_with_derived_variables.zarr",
            step_hours=6,
            rain="total_precipitation_6hr",
            gigabytes_read=1.2,
        ),
    )
}
