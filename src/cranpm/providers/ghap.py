"""GHAP: daily PM2.5 at 1 km, one NetCDF file per day, from Zenodo in monthly ZIPs.

Its grid is our fine grid: pixels are found by their coordinates. A fill value that was not declared decodes to 6553.5.
"""

import json
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from cranpm.archive.day_data import PM25_CEILING_UGM3
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid
from cranpm.providers.availability import Availability
from cranpm.providers.download import download, text
from cranpm.providers.era5 import by_month
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.provider import PM25, DayReader, FetchQuery, FileSummary, Provider, Reading, ReadQuery
from cranpm.providers.quantities import BY_NAME, factor
from cranpm.providers.readers.files import Piece, sniff
from cranpm.providers.readers.netcdf import file_grid_of, opened, unpacked
from cranpm.providers.regrid import same_points
from cranpm.providers.request import Request
from cranpm.providers.timeline import check_range

NAMED = re.compile(r"GHAP_PM2\.5_D1K_(\d{4})(\d{2})(\d{2})_V(\d+)\.nc$")
NAMES = ("PM2.5", "PM25", "GWRPM25")
"""GHAP's, and ACAG's."""
RECORDS = {2017: 10801181, 2018: 10795801, 2019: 10799037, 2020: 10800555, 2021: 10799203, 2022: 10795662}
"""Of Zenodo, by year."""
GB_A_MONTH = 3.0


class Ghap(Provider):
    """PM2.5 of a day."""

    name, title, page = "ghap", "GHAP", "ghap.md"
    provides = (PM25,)
    required = "always"
    hosts = {"Zenodo": "https://zenodo.org"}  # noqa: RUF012
    has = Availability(first=date(min(RECORDS), 1, 1), last=date(max(RECORDS), 12, 31))
    service = "https://zenodo.org/api/records"
    licence = "https://creativecommons.org/licenses/by/4.0/"

    def recognise(self, piece: Piece) -> FileSummary | None:
        day = day_in(piece.name)
        if piece.member and day:  # a month is not unpacked to look at it
            return FileSummary(piece, self.name, ("PM2.5",), day, day)
        with piece.local() as path:
            if sniff(path) != "netcdf":
                return None
            with opened(path, str(piece)) as file:
                held = [name for name in NAMES if name in file.variables]
                if not held:
                    return None
                file_grid, _, _ = file_grid_of(file, str(piece))
                made_up = getattr(file, "institution", "") == MADE_UP
        step = file_grid.grid(str(piece)).step
        nameless = () if day else ("no day GHAP_PM2.5_D1K_YYYYMMDD_Vn.nc in its name: of no use for days",)
        notes = (*nameless, *([MADE_UP] if made_up else []))
        return FileSummary(piece, self.name, (f"{held[0]} at {step:g} degrees",), day, day, notes)

    def open(self, pieces: Sequence[Piece], query: ReadQuery) -> DayReader:
        by_day: dict[date, list[Piece]] = {}
        for piece in pieces:
            if day := day_in(piece.name):
                by_day.setdefault(day, []).append(piece)

        def day_of(day: date) -> Reading:
            found = by_day.get(day, [])
            newest = [piece for piece in found if _version(piece.name) == max(_version(p.name) for p in found)]
            if len(newest) != 1:
                raise CranpmError(
                    expected=f"one file of GHAP for {day}",
                    found=", ".join(map(str, newest)) or "none",
                    remedy="Leave one out." if newest else f"cranpm fetch ghap --days {day} ...",
                )
            return Reading({PM25: window(newest[0], query.domain.fine)}, (), {"version": _version(newest[0].name)})

        return day_of

    def requests(self, query: FetchQuery) -> list[Request]:
        """Monthly ZIPs of the globe; the record says where they are and their checksums."""
        found = []
        for year, month in by_month(query.days):
            if year not in RECORDS:
                raise CranpmError(
                    expected=f"days of {min(RECORDS)}..{max(RECORDS)}, which GHAP has",
                    found=str(year),
                    remedy="Choose others.",
                )
            name = f"GHAP_PM2.5_D1K_{year}{month:02d}"
            ask = {"record": RECORDS[year], "pattern": rf"{re.escape(name)}_V(\d+)\.zip"}
            found.append(Request(self.name, f"{name}.zip", ask, GB_A_MONTH))
        return found

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        """The record says where the file is and what its checksum is; of several versions the newest is taken."""
        place = f"{self.service}/{request.ask['record']}"
        pattern = re.compile(request.ask["pattern"])
        try:
            files = {file["key"]: file for file in json.loads(text(place, wait))["files"]}
            found = [(int(match.group(1)), files[name]) for name in files if (match := pattern.fullmatch(name))]
        except (KeyError, TypeError, ValueError) as error:
            raise CranpmError(
                expected=f"a record of files at {place}", found=repr(error), remedy="Look at it."
            ) from None
        if not found:
            raise CranpmError(
                expected=f"a file {pattern.pattern} in {place}",
                found=", ".join(sorted(files)[:6]) or "no files",
                remedy="Look at the record: a new version may have another number.",
            )
        _, newest = max(found, key=lambda pair: pair[0])
        md5 = str(newest["checksum"]).removeprefix("md5:")
        download(newest["links"]["self"], target, wait, md5=md5, size=int(newest["size"]))
        return [target]


def day_in(name: str) -> date | None:
    """The day in a file's name, if there is one that the calendar has."""
    found = NAMED.search(name)
    try:
        return date(*(int(part) for part in found.groups()[:3])) if found else None
    except ValueError:
        return None


def _version(name: str) -> int:
    found = NAMED.search(name)
    return int(found.group(4)) if found else 0


def window(piece: Piece, grid: Grid) -> Array:
    """PM2.5 (ug m-3) on the fine grid; NaN where it is missing and where the file does not reach."""
    label = str(piece)
    with piece.local() as path, opened(path, label) as file:
        name = next((name for name in NAMES if name in file.variables), None)
        if name is None:
            raise CranpmError(expected=f"PM2.5 in {label}", found=", ".join(file.variables), remedy="Fetch it again.")
        file_grid, lat, lon = file_grid_of(file, label)
        source = file_grid.grid(label)
        found = same_points(source, grid)
        if found is None:
            raise CranpmError(
                expected=f"pixels of {grid.step:g} degrees around {grid.lat[0]:g}N {grid.lon[0]:g}E in {label}",
                found=f"pixels of {source.step:g} degrees around {source.lat[0]:g}N {source.lon[0]:g}E",
                remedy="Use GHAP's daily 1-km files.",
            )
        (rows, inside_rows), (cols, inside_cols) = (
            (part[inside], inside)
            for part, size in zip(found, source.shape, strict=True)
            for inside in [(part >= 0) & (part < size)]
        )
        values = np.full(grid.shape, np.nan, np.float32)
        if rows.size and cols.size:
            pixels = _pixels(file[name], (lat, lon), file_grid.rows[rows], file_grid.cols[cols], label)
            values[np.ix_(inside_rows, inside_cols)] = pixels
        return values


def _pixels(variable: "netCDF4.Variable[Any]", axes: tuple[str, str], rows: Array, cols: Array, label: str) -> Array:
    """The pixels of the file's own rows and columns, scaled and checked."""
    if set(variable.dimensions) != set(axes):
        raise CranpmError(
            expected=f"{variable.name} by {axes[0]} and {axes[1]} in {label}",
            found=", ".join(variable.dimensions),
            remedy="Use GHAP's daily 1-km files.",
        )
    if variable.dtype.kind in "iu" and "scale_factor" not in variable.ncattrs():
        raise CranpmError(
            expected=f"a scale_factor of the packed {variable.name} in {label}", found="none", remedy="Fetch it again."
        )
    unit = str(getattr(variable, "units", "ug m-3"))  # GHAP leaves it out
    upright = variable.dimensions == axes
    parts = [slice(int(part.min()), int(part.max()) + 1) for part in ((rows, cols) if upright else (cols, rows))]
    try:
        raw = variable[tuple(parts)]
    except (RuntimeError, OSError) as error:
        raise CranpmError(expected=f"PM2.5 whole in {label}", found=str(error), remedy="Fetch it again.") from None
    values = unpacked(variable, raw if upright else raw.T)[(rows - rows.min())[:, None], cols - cols.min()]
    values = values.astype(np.float32) * np.float32(factor(BY_NAME["pm25"], unit, label))
    check_range(
        values, 0, PM25_CEILING_UGM3, f"{label}, whose fill value 65535 decodes to 6553.5 if it is not declared"
    )
    return values
