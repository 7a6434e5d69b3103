"""What is verified: forecasts in files, and the simple opponents that the archive alone can make."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import netCDF4
import numpy as np

from cranpm.baselines import SimpleBaseline
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid

UNITS = "ug m-3"


class Method(Protocol):
    """Anything that has forecasts for days, leads and strips of rows of the archive's fine grid."""

    name: str

    def facts(self) -> dict[str, Any]:
        """What tables say of it: kind, resolution, parameters."""
        ...

    def identity(self, day: date) -> str | None:
        """Changes when the forecast of a day does; None where there is none."""
        ...

    def check(self, day: date, leads: Sequence[int]) -> None:
        """Refuse a forecast that does not fit the archive."""
        ...

    def strip(self, day: date, lead: int, rows: slice) -> Array:
        """PM2.5 (ug m-3) in rows of the fine grid."""
        ...


@dataclass
class Simple:
    """A baseline computed from the archive."""

    name: str
    baseline: SimpleBaseline

    def facts(self) -> dict[str, Any]:
        return {"kind": self.name, "resolution": self.baseline.resolution, "parameters": None}

    def identity(self, day: date) -> str | None:
        return self.baseline.identity

    def check(self, day: date, leads: Sequence[int]) -> None:
        """It is made from the archive: it fits."""

    def strip(self, day: date, lead: int, rows: slice) -> Array:
        cols = slice(0, self.baseline.archive.domain.fine.cols)
        return self.baseline.forecast(day, lead, (rows, cols))


class Product:
    """A folder that `cranpm forecast --out` wrote: DAY/pm25_DAY.nc."""

    def __init__(self, name: str, folder: Path | str, grid: Grid):
        self.name, self.folder, self.grid = name, Path(folder), grid
        self._open: tuple[date, netCDF4.Dataset] | None = None
        if not self.folder.is_dir() or not any(self.folder.glob("*/pm25_*.nc")):
            raise CranpmError(
                expected=f"forecasts DAY/pm25_DAY.nc in {folder}",
                found="none" if self.folder.is_dir() else "no such folder",
                remedy="Make them with `cranpm forecast --format nc --out FOLDER`.",
            )

    def _path(self, day: date) -> Path:
        return self.folder / str(day) / f"pm25_{day}.nc"

    def facts(self) -> dict[str, Any]:
        made = self._provenance(min(self.folder.glob("*/pm25_*.nc")))
        told = ("weights_sha256", "resolution", "parameters", "stations_in_loss")
        return {"kind": made["method"], **{name: made.get(name) for name in told}}

    @staticmethod
    def _provenance(path: Path) -> dict[str, Any]:
        with netCDF4.Dataset(path) as file:
            return dict(json.loads(getattr(file, "provenance", '{"method": "not stated"}')))

    def identity(self, day: date) -> str | None:
        path = self._path(day)
        if not path.is_file():
            return None
        state = path.stat()
        return f"{path.resolve()} {state.st_size} {state.st_mtime_ns}"

    def strip(self, day: date, lead: int, rows: slice) -> Array:
        file = self._dataset(day)
        leads = np.asarray(file["forecast_period"][:]).tolist()
        packed = file["pm2p5"][leads.index(lead), rows]
        values = packed.astype(np.float32) * np.float32(file["pm2p5"].scale_factor)
        values[packed == file["pm2p5"]._FillValue] = np.nan
        return values

    def _dataset(self, day: date) -> netCDF4.Dataset:
        if self._open is None or self._open[0] != day:
            if self._open:
                self._open[1].close()
            file = netCDF4.Dataset(self._path(day))
            file.set_auto_maskandscale(False)
            self._open = (day, file)
        return self._open[1]

    def __getstate__(self) -> dict[str, Any]:
        """Other processes open files for themselves."""
        return self.__dict__ | {"_open": None}

    def check(self, day: date, leads: Sequence[int]) -> None:
        """Refuse a file of another grid, unit, start day, weights or packing, or of other leads."""
        file, path = self._dataset(day), self._path(day)
        made, first = self._provenance(path).get("weights_sha256"), self.facts()["weights_sha256"]
        if made != first:
            _refuse(path, f"a forecast by the weights {first}, as the others", f"one by {made}")
        packing = set(file["pm2p5"].ncattrs()) & {"scale_factor", "_FillValue", "add_offset"}
        if packing != {"scale_factor", "_FillValue"}:
            _refuse(path, "pm2p5 packed by scale_factor with a _FillValue", ", ".join(sorted(packing)) or "neither")
        units = getattr(file["pm2p5"], "units", "none")
        if units != UNITS:
            _refuse(path, f"PM2.5 in {UNITS}", units)
        for name, own in (("lat", self.grid.lat), ("lon", self.grid.lon)):
            found = np.asarray(file[name][:], np.float64)
            if found.shape != own.shape or np.abs(found - own).max() > 1e-6:
                _refuse(path, f"{len(own)} {name} from {own[0]:g} as in the archive", f"{len(found)} from {found[0]:g}")
        start = datetime(1970, 1, 1) + timedelta(hours=int(file["forecast_reference_time"][...]))
        if start.date() != day:
            _refuse(path, f"a forecast from {day}", f"one from {start.date()}")
        found_leads = np.asarray(file["forecast_period"][:]).tolist()
        if missing := [lead for lead in leads if lead not in found_leads]:
            _refuse(path, f"leads {list(leads)}", f"no {missing}")


def _refuse(path: Path, expected: str, found: str) -> None:
    raise CranpmError(
        expected=f"{expected} in {path}", found=found, remedy="Verify forecasts that were made from this archive."
    )
