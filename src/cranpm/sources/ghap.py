"""GHAP: daily PM2.5 at 1 km, one NetCDF a day, from Zenodo in monthly ZIPs; and ACAG's files, which look alike.

Its grid is our fine grid: pixels are found by their coordinates. A fill value that was not declared decodes to 6553.5.
"""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

import netCDF4
import numpy as np

from cranpm.errors import CranpmError
from cranpm.fields import PM25_CEILING_UGM3
from cranpm.grid import Array, Domain, Grid
from cranpm.sources.base import DayReader, Reading, Request, Seen
from cranpm.sources.era5 import by_month
from cranpm.sources.files import Piece, sniff
from cranpm.sources.names import BY_ALIAS, factor
from cranpm.sources.netcdf import opened, place_of, unpacked
from cranpm.sources.regrid import check_covers

NAMED = re.compile(r"GHAP_PM2\.5_D1K_(\d{4})(\d{2})(\d{2})_V(\d+)\.nc$")
NAMES = ("PM2.5", "PM25", "GWRPM25")
RECORDS = {2017: 10801181, 2018: 10795801, 2019: 10799037, 2020: 10800555, 2021: 10799203, 2022: 10795662}
"""Of Zenodo, by year."""
GB_A_MONTH = 3.0


class Ghap:
    """PM2.5 of a day."""

    name = "ghap"
    gives = ("pm25",)

    def look(self, piece: Piece) -> Seen | None:
        with piece.local() as path:
            if sniff(path) != "netcdf":
                return None
            with opened(path, str(piece)) as file:
                held = [name for name in NAMES if name in file.variables]
                if not held:
                    return None
                place, _, _ = place_of(file, str(piece))
        step = place.grid(str(piece)).step
        day = day_in(piece.name)
        notes = () if day else ("no day GHAP_PM2.5_D1K_YYYYMMDD_Vn.nc in its name: of no use for days",)
        return Seen(piece, self.name, (f"{held[0]} at {step:g} degrees",), day, day, notes)

    def open(self, pieces: Sequence[Piece], domain: Domain, lenient: bool) -> DayReader:
        by_day: dict[date, list[Piece]] = {}
        for piece in pieces:
            if day := day_in(piece.name):
                by_day.setdefault(day, []).append(piece)

        def day_of(day: date) -> Reading:
            found = by_day.get(day, [])
            if not found:
                raise CranpmError(
                    expected=f"a file of GHAP for {day}", found="none", remedy=f"cranpm fetch ghap --days {day} ..."
                )
            newest = max(found, key=lambda piece: _version(piece.name))
            if sum(_version(piece.name) == _version(newest.name) for piece in found) > 1:
                raise CranpmError(
                    expected=f"one file of GHAP for {day}", found=", ".join(map(str, found)), remedy="Leave one out."
                )
            return Reading({"pm25": window(newest, domain.fine)}, (), {"version": _version(newest.name)})

        return day_of

    def requests(self, days: Sequence[date], domain: Domain) -> list[Request]:
        """Monthly ZIPs of the globe; the record says where they are and their checksums."""
        found = []
        for year, month in by_month(days):
            if year not in RECORDS:
                raise CranpmError(
                    expected=f"days of {min(RECORDS)}..{max(RECORDS)}, which GHAP has",
                    found=str(year),
                    remedy="Choose others.",
                )
            found.append(
                Request(
                    source=self.name,
                    name=f"GHAP_PM2.5_D1K_{year}{month:02d}_V1.zip",
                    ask={"zenodo": RECORDS[year], "pattern": rf"GHAP_PM2\.5_D1K_{year}{month:02d}_V\d+\.zip"},
                    gigabytes=GB_A_MONTH,
                )
            )
        return found


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
    """PM2.5 (ug m-3) on the fine grid, NaN missing; only that part of the file is read."""
    label = str(piece)
    with piece.local() as path, opened(path, label) as file:
        name = next((name for name in NAMES if name in file.variables), None)
        if name is None:
            raise CranpmError(expected=f"PM2.5 in {label}", found=", ".join(file.variables), remedy="Fetch it again.")
        place, lat, lon = place_of(file, label)
        source = place.grid(label)
        check_covers(source, grid, label)
        rows, cols = source.row_col(grid.lat, grid.lon)
        beside = max(np.abs(part - part.round()).max() for part in (rows, cols))
        if abs(source.step - grid.step) > 1e-6 or beside > 0.05:
            raise CranpmError(
                expected=f"pixels of {grid.step:g} degrees around {grid.lat[0]:g}N {grid.lon[0]:g}E in {label}",
                found=f"pixels of {source.step:g} degrees around {source.lat[0]:g}N {source.lon[0]:g}E",
                remedy="Use GHAP's daily 1-km files.",
            )
        return _values(
            file[name],
            (lat, lon),
            place.rows[rows.round().astype(int)],
            place.cols[cols.round().astype(int)],
            label,
        )


def _values(variable: "netCDF4.Variable[Any]", axes: tuple[str, str], rows: Array, cols: Array, label: str) -> Array:
    """The pixels of the file's own rows and columns, scaled and checked."""
    if "PM" in variable.name and not getattr(variable, "units", ""):
        unit = 1.0  # GHAP leaves it out
    else:
        unit = factor(BY_ALIAS["pm2p5"], str(variable.units), label)
    try:
        raw = variable[
            tuple(
                slice(int(part.min()), int(part.max()) + 1)
                for part in ((rows, cols) if variable.dimensions == axes else (cols, rows))
            )
        ]
    except (RuntimeError, OSError) as error:
        raise CranpmError(expected=f"PM2.5 whole in {label}", found=str(error), remedy="Fetch it again.") from None
    raw = raw if variable.dimensions == axes else raw.T
    values = unpacked(variable, raw)[(rows - rows.min())[:, None], cols - cols.min()].astype(np.float32) * np.float32(
        unit
    )
    if np.isfinite(values).any() and (np.nanmax(values) > PM25_CEILING_UGM3 or np.nanmin(values) < 0):
        raise CranpmError(
            expected=f"0..{PM25_CEILING_UGM3:g} ug m-3 in {label}",
            found=f"{np.nanmin(values):g}..{np.nanmax(values):g}",
            remedy="Its fill value (65535, which decodes to 6553.5) is probably not declared: fetch it again.",
        )
    return values
