"""NetCDF files of the providers, old and new layouts: what is in them, read only as far as it is needed."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.own_products import refuse_own_product
from cranpm.providers.quantities import BY_ALIAS, RATIOS, LevelKind, factor
from cranpm.providers.readers.classic import needed_bytes
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.netcdf_times import read_clock, versions_of
from cranpm.providers.readers.variable import Variable

LATITUDES, LONGITUDES = ("latitude", "lat"), ("longitude", "lon")
LEVELS: dict[str, LevelKind] = {
    "pressure_level": "pressure",
    "isobaricInhPa": "pressure",
    "level": "pressure",
    "model_level": "model",
    "hybrid": "model",
}
SUM_HOURS = "cranpm_sum_hours"
"""An attribute of files that we copy: over how many hours rain was summed."""
MODEL = "cranpm_model"
"""An attribute of files of forecasts that we copy: which model's runs they hold."""


def variables(path: Path, label: str) -> list[Variable]:
    """All quantities that we know in a file; `label` names it in messages."""
    with opened(path, label) as file:
        names = [name for name in file.variables if name in BY_ALIAS]
        return [variable for name in names for variable in _variables(path, file, name, label)]


@contextmanager
def opened(path: Path, label: str) -> Iterator[netCDF4.Dataset]:
    """A provider's file for as long as it is read, values as stored; forecasts by cranpm are refused."""
    with opened_as_is(path, label) as file:
        refuse_own_product({name: str(file.getncattr(name)) for name in file.ncattrs()}, label)
        yield file


@contextmanager
def opened_as_is(path: Path, label: str) -> Iterator[netCDF4.Dataset]:
    """Anybody's file, values as stored. Its library bears neither threads nor forgotten files."""
    _check_whole(path, label)
    try:
        file = netCDF4.Dataset(path)
    except OSError as error:
        raise CranpmError(expected=f"a NetCDF file {label}", found=str(error), remedy="Fetch it again.") from None
    with file:
        file.set_auto_maskandscale(False)
        yield file


def _check_whole(path: Path, label: str) -> None:
    """A NetCDF-3 file that was cut short would read as zeros: compare its size with what its header promises."""
    with path.open("rb") as start:
        magic = start.read(4)
    if magic[:3] != b"CDF":
        return
    try:
        needed = needed_bytes(path)
    except (struct.error, KeyError, IndexError):
        raise CranpmError(
            expected=f"a whole NetCDF header in {label}", found="one that is cut or damaged", remedy="Fetch it again."
        ) from None
    found = path.stat().st_size
    if found < needed:
        raise CranpmError(expected=f"{needed} bytes in {label}", found=f"{found}: cut short", remedy="Fetch it again.")


def _find(file: netCDF4.Dataset, names: tuple[str, ...]) -> str | None:
    """The first of some names that the file has as a variable."""
    return next((name for name in names if name in file.variables), None)


def file_grid_of(file: netCDF4.Dataset, label: str) -> tuple[FileGrid, str, str]:
    """The file's grid and the names of its two axes."""
    lat, lon = _find(file, LATITUDES), _find(file, LONGITUDES)
    if lat is None or lon is None:
        raise CranpmError(
            expected=f"latitude and longitude in {label}",
            found=", ".join(file.variables) or "no variables",
            remedy="Fetch it on a regular latitude-longitude grid.",
        )
    return FileGrid.of(file[lat][:], file[lon][:], label), lat, lon


def _variables(path: Path, file: netCDF4.Dataset, name: str, label: str) -> list[Variable]:
    """A variable of a file; of a file of forecasts, the variable in each of its runs."""
    file_grid, lat, lon = file_grid_of(file, label)
    source = file[name]
    dimensions = list(source.dimensions)
    kind, level_name = _levels(file, dimensions)
    clock = read_clock(file, dimensions, label)
    known = {lat, lon, *clock.dimensions, level_name, "expver"}
    if extra := [name for name in dimensions if name not in known and len(file.dimensions[name]) > 1]:
        raise CranpmError(
            expected=f"{name} by time, level, latitude and longitude in {label}",
            found=f"also by {', '.join(extra)}",
            remedy="Fetch one member or one part at a time.",
        )
    levels = tuple(float(level) for level in file[level_name][:]) if level_name else (0.0,)
    block = _Block(path, label, name, clock.dimensions, level_name, (lat, lon))
    versions = versions_of(file, clock.times)
    quantity, unit = BY_ALIAS[name], str(getattr(source, "units", "")).strip()
    if not (quantity.ratios and unit in RATIOS):
        factor(quantity, unit, label)
    institution = str(getattr(file, "institution", ""))
    found = []
    for start, kept in clock.runs():
        found.append(
            Variable(
                file=label,
                quantity=quantity,
                unit=unit,
                times=clock.times[kept],
                kind=kind,
                levels=levels,
                file_grid=file_grid,
                reader=lambda indices, level, kept=kept: block.read(kept[indices], level),  # type: ignore[misc]
                leads=clock.leads[kept],
                versions=versions[kept],
                sum_hours=float(getattr(source, SUM_HOURS, 1.0)),
                accumulated=quantity.name == "tp" and start is not None and SUM_HOURS not in source.ncattrs(),
                institution=institution,
                source=str(getattr(file, "source", "")),
                model="" if start is None else str(getattr(file, MODEL, clock.model)),
                start=start,
            )
        )
    return found


def _levels(file: netCDF4.Dataset, dimensions: list[str]) -> tuple[LevelKind, str | None]:
    """Metres above the ground are levels of the surface, of which only 0 counts."""
    for name, kind in LEVELS.items():
        if name in dimensions and name in file.variables:
            unit, long_name = (str(getattr(file[name], key, "")) for key in ("units", "long_name"))
            if unit == "m":
                return "surface", name
            if "model_level" in long_name:
                return "model", name
            return ("pressure" if unit in ("hPa", "millibars", "mbar") else kind), name
    return "surface", None


class _Block:
    """Fields of some times at all levels, as they lie in chunks together; the last block that was read is kept."""

    def __init__(
        self,
        path: Path,
        label: str,
        name: str,
        time_names: tuple[str, ...],
        level_name: str | None,
        space: tuple[str, str],
    ):
        self.path, self.label, self.name = path, label, name
        self.time_names, self.level_name, self.space = time_names, level_name, space
        self._held: tuple[bytes, Array] = (b"", np.zeros(0))

    def read(self, indices: Array, level: int) -> Array:
        """(time, row, column) of a level."""
        key = indices.tobytes()
        if self._held[0] != key:
            self._held = (key, self._load(indices))
        return self._held[1][:, level]

    def _load(self, indices: Array) -> Array:
        """(time, level, row, column); of several expver, the final one where it has a value."""
        with opened(self.path, self.label) as file:
            source = file[self.name]
            dimensions = list(source.dimensions)
            shape = [source.shape[dimensions.index(name)] for name in self.time_names]
            picked = np.unravel_index(indices, shape)
            spans = {
                name: slice(int(part.min()), int(part.max()) + 1)
                for name, part in zip(self.time_names, picked, strict=True)
            }
            kept = [
                *self.time_names,
                *(name for name in ("expver", self.level_name) if name in dimensions),
                *self.space,
            ]
            try:
                raw = source[tuple(spans.get(name, slice(None) if name in kept else 0) for name in dimensions)]
            except (RuntimeError, OSError, IndexError) as error:
                raise CranpmError(
                    expected=f"{self.name} whole in {self.label}", found=str(error), remedy="Fetch it again."
                ) from None
            values = unpacked(source, raw)
            versions = np.asarray(file["expver"][:]) if "expver" in kept else None
        left = [name for name in dimensions if name in kept]
        values = values.transpose([left.index(str(name)) for name in kept])
        values = values[tuple(part - spans[name].start for name, part in zip(self.time_names, picked, strict=True))]
        if versions is not None:
            values = _final_first(values, versions)
        return values if self.level_name else values[:, None]


def _final_first(values: Array, versions: Array) -> Array:
    """Of several expver (the second axis), the lowest where it has a value."""
    order = np.argsort(versions)
    merged = values[:, order[0]]
    for index in order[1:]:
        merged = np.where(np.isnan(merged), values[:, index], merged)
    return merged


def unpacked(source: "netCDF4.Variable[Any]", raw: Array) -> Array:
    """As numbers: packed integers scaled, fill values NaN."""
    missing = np.zeros(raw.shape, bool)
    for name in ("_FillValue", "missing_value"):
        if name in source.ncattrs():
            missing |= raw == np.asarray(source.getncattr(name)).ravel()[0]
    scale, offset = (
        float(getattr(source, name, default)) for name, default in (("scale_factor", 1), ("add_offset", 0))
    )
    values: Array = raw.astype(np.float64 if (scale, offset) != (1, 0) else np.float32)
    if (scale, offset) != (1, 0):
        values = values * scale + offset
    values[missing] = np.nan
    return values
