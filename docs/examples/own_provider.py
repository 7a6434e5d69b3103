"""An own provider in one module: PM2.5 at 1 km of a laboratory, one NetCDF file per day.

The package that holds this module names it among its entry points; nothing else changes anywhere:

    [project.entry-points."cranpm.plugins"]
    laboratory = "own_provider"
"""

from collections.abc import Sequence
from datetime import date

import netCDF4
import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid
from cranpm.providers import PROVIDERS, Provider
from cranpm.providers.provider import PM25, DayReader, FetchQuery, FileSummary, Reading, ReadQuery
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.files import Piece, sniff
from cranpm.providers.regrid import check_covers
from cranpm.providers.request import Request

TITLE = "PM2.5 of the laboratory"


class Laboratory(Provider):
    """PM2.5 of a day."""

    name, title = "laboratory", "Laboratory"
    provides = (PM25,)
    required = "always"
    hosts = {"laboratory": "https://laboratory.example"}  # noqa: RUF012
    licence = "https://laboratory.example/licence"

    def requests(self, query: FetchQuery) -> list[Request]:
        """One file per day, at a plain address; another service would override `fetch`, too."""
        names = {day: f"laboratory_{day}.nc" for day in query.days}
        return [
            Request(self.name, name, {"url": f"https://laboratory.example/{name}"}, 0.02) for name in names.values()
        ]

    def recognise(self, piece: Piece) -> FileSummary | None:
        """A file is known by what it states, not by its name."""
        with piece.local() as path:
            if sniff(path) != "netcdf":
                return None
            with netCDF4.Dataset(path) as file:
                if getattr(file, "title", "") != TITLE:
                    return None
                day = date.fromisoformat(file.day)
        return FileSummary(piece, self.name, ("PM2.5 at 1 km",), day, day)

    def open(self, pieces: Sequence[Piece], query: ReadQuery) -> DayReader:
        """PM2.5 (ug m-3) on the fine grid, NaN where it is missing."""

        def day_of(day: date) -> Reading:
            for piece in pieces:
                summary = self.recognise(piece)
                if summary is not None and summary.first == day:
                    return Reading({PM25: _on_grid(piece, query.domain.fine)})
            raise CranpmError(expected=f"a file for {day}", found="none", remedy="Fetch it.")

        return day_of


def _on_grid(piece: Piece, grid: Grid) -> Array:
    """The nearest pixels."""
    with piece.local() as path, netCDF4.Dataset(path) as file:
        file_grid = FileGrid.of(file["lat"][:], file["lon"][:], str(piece))
        values = file_grid.turn(np.ma.filled(file["pm25"][:], np.nan))
    source = file_grid.grid(str(piece))
    check_covers(source, grid, str(piece))
    rows, cols = (np.round(part).astype(int) for part in source.row_col(grid.lat, grid.lon))
    return values[np.ix_(rows, cols)]


PROVIDERS.add(Laboratory.name, Laboratory())
