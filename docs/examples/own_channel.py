"""An own channel and a provider that has it: ammonia at 25 km, one NetCDF file per day.

Put this module into a package whose entry points name it in the group `cranpm.plugins`. Then `cranpm ingest --channel
nh3` makes archives that have it, and networks that are trained on such an archive read it.
"""

from datetime import date

import netCDF4

from cranpm.core.channels import CHANNELS, Channel
from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS, Provider
from cranpm.providers.provider import FileSummary, Reading
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.files import sniff
from cranpm.providers.regrid import onto

AMMONIA = Channel("nh3", "nh3", "ug m-3", "ammonia", 0, 500, 3, 4, "ammonia at the surface, daily mean")
CHANNELS.add(AMMONIA.name, AMMONIA)


class Ammonia(Provider):
    """Daily means of ammonia."""

    name, title, provides = "ammonia", "Ammonia", (AMMONIA.name,)

    def recognise(self, piece):
        with piece.local() as path:
            if sniff(path) != "netcdf":
                return None
            with netCDF4.Dataset(path) as file:
                if "nh3" not in file.variables:
                    return None
                day = date.fromisoformat(file.day)
        return FileSummary(piece, self.name, self.provides, day, day)

    def open(self, pieces, query):
        days = {self.recognise(piece).first: piece for piece in pieces}

        def day_of(day):
            if day not in days:
                raise CranpmError(expected=f"ammonia for {day}", found="no file", remedy="Add its file.")
            with days[day].local() as path, netCDF4.Dataset(path) as file:
                grid = FileGrid.of(file["lat"][:], file["lon"][:], str(days[day]))
                values = grid.turn(file["nh3"][:].filled(float("nan")))
            return Reading({AMMONIA.name: onto(values, grid.grid(path.name), query.domain.coarse, path.name)})

        return day_of


PROVIDERS.add(Ammonia.name, Ammonia())
