"""What is verified: forecasts in files, and the simple baselines that the archive alone can make."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np

from cranpm.baselines import SimpleBaseline
from cranpm.core.days import LEADS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid
from cranpm.forecasting.publication import Publication, Run, find_product, names
from cranpm.verification.cf_forecasts import CfForecasts, netcdf_files


class Method(Protocol):
    """Anything that has forecasts for days, leads and strips of rows of the archive's fine grid."""

    name: str

    def facts(self, days: Sequence[date] = (), leads: Sequence[int] = ()) -> dict[str, Any]:
        """What tables say of it: kind, resolution, parameters; for these start days and days ahead, what it used."""
        ...

    def identity(self, day: date) -> str | None:
        """Changes when the forecast of a day does; None where there is none."""
        ...

    def leads(self, day: date) -> tuple[int, ...] | None:
        """Days ahead that it has from a start day; None where it has any."""
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

    def facts(self, days: Sequence[date] = (), leads: Sequence[int] = ()) -> dict[str, Any]:
        known = {"kind": self.name, "resolution": self.baseline.resolution, "parameters": None}
        return known | self.baseline.facts(days, leads)

    def identity(self, day: date) -> str | None:
        return self.baseline.identity(day)

    def leads(self, day: date) -> None:
        return None

    def check(self, day: date, leads: Sequence[int]) -> None:
        """It is made from the archive: it fits."""

    def strip(self, day: date, lead: int, rows: slice) -> Array:
        cols = slice(0, self.baseline.archive.domain.fine.cols)
        return self.baseline.forecast(day, lead, (rows, cols))


class Product:
    """Forecasts that `cranpm forecast --out` published: a folder of them, or one run."""

    def __init__(self, name: str, place: Path | str | Run, grid: Grid):
        self.name, self.grid = name, grid
        self._pinned: Run | None = place if isinstance(place, Run) else None
        self._only = self._pinned
        self.folder = place.folder if isinstance(place, Run) else Path(place)
        self._publication = Publication(self.folder)
        if self._only is None and not self._publication.days():
            raise CranpmError(
                expected=f"forecasts DAY/pm25_DAY.nc (or GeoTIFFs) in {place}",
                found="none" if self.folder.is_dir() else "no such folder",
                remedy="Make them with `cranpm forecast --format nc --out FOLDER`.",
            )

    def facts(self, days: Sequence[date] = (), leads: Sequence[int] = ()) -> dict[str, Any]:
        """What tables say of it, from the newest start day."""
        made = self._run(self._only.day if self._only else self._publication.days()[0]).provenance
        stated = ("weights_sha256", "resolution", "parameters", "stations_in_loss")
        perfect = {"made_of": "perfect prognosis, not forecasts"} if made.get("prognosis") == "perfect" else {}
        return {"kind": made["method"], **{name: made.get(name) for name in stated}, **perfect}

    def identity(self, day: date) -> str | None:
        if self._only is not None:
            return self._only.version if day == self._only.day else None
        return self._publication.identity(day)

    def leads(self, day: date) -> tuple[int, ...]:
        """By the names of GeoTIFFs where there are any: nothing is read for it."""
        if self._only is not None:
            return self._only.leads
        return names.leads_in(self._publication.folder / str(day), day, "tif") or self._run(day).leads

    def strip(self, day: date, lead: int, rows: slice) -> Array:
        return self._run(day).pm25(lead, (rows, slice(None)))

    def _run(self, day: date) -> Run:
        """The checked run of a day; the same version for as long as that day is read."""
        if self._pinned is None or self._pinned.day != day:
            self._pinned = self._publication.run(day)
        return self._pinned

    def __getstate__(self) -> dict[str, Any]:
        """Other processes open and check files for themselves."""
        return self.__dict__ | {"_pinned": self._only}

    def check(self, day: date, leads: Sequence[int]) -> None:
        """Refuse a run that is damaged, or of another grid, other weights or other leads."""
        first = self.facts()
        self._pinned = self._only
        run = self._run(day)
        if run.provenance.get("weights_sha256") != first["weights_sha256"]:
            made = run.provenance.get("weights_sha256")
            _refuse(run, f"a forecast by the weights {first['weights_sha256']}, as the others", f"one by {made}")
        if (run.provenance.get("prognosis") == "perfect") != ("made_of" in first):
            _refuse(run, "perfect prognosis for all start days or for none", "both in one folder")
        for name, own, found in (("lat", self.grid.lat, run.grid.lat), ("lon", self.grid.lon, run.grid.lon)):
            if found.shape != own.shape or np.abs(found - own).max() > 1e-6:
                _refuse(run, f"{len(own)} {name} from {own[0]:g} as in the archive", f"{len(found)} from {found[0]:g}")
        if missing := [lead for lead in leads if lead not in run.leads]:
            _refuse(run, f"leads {list(leads)}", f"no {missing}")


def _refuse(run: Run, expected: str, found: str) -> NoReturn:
    raise CranpmError(
        expected=f"{expected} in {run.folder}", found=found, remedy="Verify forecasts that were made from this archive."
    )


def common_leads(methods: Sequence[Method], days: Sequence[date]) -> tuple[int, ...]:
    """Days ahead that all methods have on every start day of all; the settings' default where they have any."""
    shared: set[int] | None = None
    for day in days:
        if all(method.identity(day) is not None for method in methods):
            for known in (leads for method in methods if (leads := method.leads(day)) is not None):
                shared = set(known) if shared is None else shared & set(known)
            if shared is not None and not shared:
                raise CranpmError(
                    expected=f"a lead that all forecasts from {day} have",
                    found="; ".join(f"{method.name}: {method.leads(day)}" for method in methods),
                    remedy="Verify forecasts of the same leads, or each alone.",
                )
    return LEADS if shared is None else tuple(sorted(shared))


def open_forecasts(name: str, place: Path | str, grid: Grid) -> "Product | CfForecasts":
    """Forecasts in files by any maker: a folder of `cranpm forecast`, or CF NetCDF (one file, or a folder of them)."""
    path = Path(place).absolute()
    if any(_is_ours(path / str(day), str(day)) for day in Publication(path).days()):
        return Product(name, path, grid)
    folder, day = (path.parent, names.day_of_file(path)) if path.is_file() else (path, path.name)
    if day and names.is_day(day) and folder.name == day and _is_ours(folder, day):
        return Product(name, find_product(path), grid)
    if path.is_file() or (path.is_dir() and netcdf_files(path)):
        return CfForecasts(name, path, grid)
    raise CranpmError(
        expected=f"forecasts in {place}: DAY/pm25_DAY.nc as `cranpm forecast --out` writes them, or CF NetCDF files",
        found="neither" if path.is_dir() else "no such file or folder",
        remedy="Name the folder of `cranpm forecast --out`, a .nc file, or a folder of .nc files.",
    )


def _is_ours(folder: Path, day: str) -> bool:
    """Whether the folder of a day is a link of a publication, or holds files that are called as ours."""
    linked = folder.is_symlink() and names.version_of(str(folder.readlink()), day) is not None
    return linked or any(folder.glob(f"{names.stem(day)}[._]*"))
