"""Somebody else's forecasts: daily PM2.5 in NetCDF files that follow the CF conventions.

Needed: one PM2.5 variable with units on regular latitudes and longitudes, valid times, and the start of the forecast.
docs/verification.md has the rules.
"""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.core.grid import Array, Grid
from cranpm.core.interpolation import refine
from cranpm.core.regions import part_of
from cranpm.providers.readers.netcdf import opened_as_is as opened
from cranpm.verification.cf_layout import Layout, read_layout
from cranpm.verification.cf_times import refuse

HIGHEST_UGM3, LOWEST_UGM3, LEAST_MAXIMUM_UGM3 = 5000.0, -1.0, 0.01
"""Beyond these the units attribute cannot be right; the last is the least that a day's highest value may be."""


def netcdf_files(folder: Path) -> list[Path]:
    """All .nc and .nc4 files below a folder, by name."""
    return sorted(path for path in folder.rglob("*.nc*") if path.suffix in (".nc", ".nc4") and path.is_file())


class CfForecasts:
    """Daily PM2.5 by start day and lead from CF NetCDF: one file, or all below a folder."""

    def __init__(self, name: str, place: Path | str, grid: Grid):
        self.name, self.folder, self.grid = name, Path(place).absolute(), grid
        files = [self.folder] if self.folder.is_file() else netcdf_files(self.folder)
        self._layouts = [read_layout(path) for path in files]
        self._found: dict[tuple[date, int], tuple[Layout, tuple[int, ...]]] = {}
        for layout in self._layouts:
            for key, index in layout.fields.items():
                if key in self._found:
                    refuse(
                        layout.path,
                        "each start day and lead once",
                        f"T+{key[1]} from {key[0]} also in {self._found[key][0].path}",
                        "Name one of the files, or move the other away.",
                    )
                self._found[key] = (layout, index)
        self._last: tuple[tuple[date, int], Array] | None = None
        """The field that was read last: strips of one field follow each other."""

    def facts(self, days: Sequence[date] = (), leads: Sequence[int] = ()) -> dict[str, Any]:
        """What tables say of it: what the first file states, and its step in degrees."""
        first = self._layouts[0]
        return {"kind": first.source, "resolution": f"{first.place.grid(str(first.path)).step:g} degrees"}

    def identity(self, day: date) -> str | None:
        """Changes when a file with a forecast from that day does; None where there is none."""
        paths = sorted({layout.path for (start, _), (layout, _) in self._found.items() if start == day})
        states = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
        return repr(states) if states else None

    def leads(self, day: date) -> tuple[int, ...]:
        """Days ahead that the files have from a start day."""
        return tuple(sorted(lead for start, lead in self._found if start == day))

    def check(self, day: date, leads: Sequence[int]) -> None:
        """Refuse leads that are not there, a grid that does not cover the archive's, and impossible values."""
        self._last = None  # the file may have changed since
        for lead in leads:
            if (day, lead) not in self._found:
                refuse(
                    self.folder,
                    f"T+{lead} from {day}",
                    f"leads {list(self.leads(day))} of that start day",
                    "Verify with --leads that the files have; T+1 is the day after the day of the reference time.",
                )
            layout = self._found[day, lead][0]
            if not self._source(layout).holds_centres(self.grid):
                refuse(
                    layout.path,
                    f"a grid that covers {_edges(self.grid)}",
                    _edges(self._source(layout)),
                    "Verify on an archive of a smaller domain.",
                )
            self._field(day, lead)

    def strip(self, day: date, lead: int, rows: slice) -> Array:
        """PM2.5 (ug m-3) in rows of the archive's fine grid, bilinear where the files have another grid."""
        field, source = self._field(day, lead), self._source(self._found[day, lead][0])
        same = part_of(self.grid, source) if abs(source.step - self.grid.step) < 1e-9 else None
        target = self.grid.window(rows, slice(None))
        return field[same][rows] if same else refine(field, source, target)

    def _source(self, layout: Layout) -> Grid:
        return layout.place.grid(str(layout.path))

    def _field(self, day: date, lead: int) -> Array:
        """(row, column) float32 ug m-3 on the grid of the files, NaN where missing."""
        if self._last is None or self._last[0] != (day, lead):
            self._last = ((day, lead), _read(*self._found[day, lead]))
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        """Other processes read for themselves."""
        return self.__dict__ | {"_last": None}


def _read(layout: Layout, index: tuple[int, ...]) -> Array:
    with opened(layout.path, str(layout.path)) as file:
        file.set_auto_maskandscale(True)
        stored = file[layout.variable]
        part = np.ma.filled(np.ma.masked_invalid(np.ma.asarray(stored[index]).astype(np.float64)), np.nan)
    if layout.transposed:
        part = part.T
    values = layout.place.turn(part) * layout.factor
    present = values[np.isfinite(values)]
    if not present.size:
        refuse(layout.path, "values in every field", "one without any", "Leave that time out of the file.")
    low, high = float(present.min()), float(present.max())
    if low < LOWEST_UGM3 or not LEAST_MAXIMUM_UGM3 <= high <= HIGHEST_UGM3:
        refuse(
            layout.path,
            f"PM2.5 of {LOWEST_UGM3:g}..{HIGHEST_UGM3:g} ug m-3 in {layout.variable}",
            f"{low:g} to {high:g} by its units",
            f"Correct the units: ncatted -a units,{layout.variable},o,c,'kg m-3' FILE.nc (or ug m-3).",
        )
    return values.astype(np.float32)


def _edges(grid: Grid) -> str:
    return f"N {grid.north:g}, W {grid.west:g}, S {grid.south:g}, E {grid.east:g}"
