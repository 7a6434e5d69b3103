"""What figures are drawn from, as the user gave it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from cranpm.archive.store import Archive
from cranpm.core.days import LEADS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Window
from cranpm.core.regions import inside, parse_region, regions
from cranpm.verification import CfForecasts, Product, common_leads
from cranpm.views.figures.maps import data_label


@dataclass(frozen=True)
class FigureInputs:
    """Inputs of figures; what is None was not given."""

    archive: Archive | None = None
    forecasts: tuple[Product | CfForecasts, ...] = ()
    verified: Path | None = None
    """Folder that `cranpm verify` wrote."""
    experiments: Path | None = None
    """Folder that `cranpm experiment` wrote."""
    day: date | None = None
    lead: int | None = None
    region: str | None = None
    """Name, or N,W,S,E."""
    methods: tuple[str, ...] = ()
    """Those of a verification to draw, in this order; none: all."""

    @property
    def ahead(self) -> int:
        """The lead to draw where one must be chosen: the one given, else the first that all forecasts have."""
        if self.lead is not None:
            return self.lead
        return common_leads(self.forecasts, [self.day])[0] if self.forecasts and self.day else LEADS[0]

    def held(self) -> Archive:
        """The archive, which must be there."""
        if self.archive is None:
            raise _lacking("--archive")
        return self.archive

    def start(self) -> date:
        if self.day is None:
            raise _lacking("--day")
        return self.day

    @property
    def valid(self) -> date:
        """The day that a forecast from the start day is for."""
        return self.start() + timedelta(days=self.ahead)

    def forecast(self, method: Product | CfForecasts) -> Array:
        """PM2.5 (ug m-3) of a method for the valid day, checked to fit the archive."""
        day = self.start()
        if method.identity(day) is None:
            raise CranpmError(
                expected=f"a forecast from {day} by {method.name}",
                found=f"none in {method.folder}",
                remedy="Choose another --day, or make it with `cranpm forecast`.",
            )
        method.check(day, [self.ahead])
        return method.strip(day, self.ahead, slice(0, method.grid.rows))

    def zooms(self, most: int) -> dict[str, Window]:
        """Windows to look at closely, by name: the region that was asked for, or the first ones inside the domain."""
        grid = self.held().domain.fine
        if self.region is not None:
            return {self.region: parse_region(self.region, grid)}
        names = [name for name, box in regions().items() if inside(box, grid)][:most]
        return {name: parse_region(name, grid) for name in names} or {"middle": _middle(grid.shape)}

    def notes(self) -> list[str]:
        """Sources of a figure that was drawn from the archive."""
        archive = self.held()
        return [data_label(archive), f"archive {archive.domain.name}, snapshot {archive.snapshot}"]


def _middle(shape: tuple[int, int]) -> Window:
    """The middle third, where no named region lies inside."""
    rows, cols = shape
    return slice(rows // 3, 2 * rows // 3), slice(cols // 3, 2 * cols // 3)


def _lacking(option: str) -> CranpmError:
    return CranpmError(expected=f"{option} for this figure", found="none", remedy=f"Add {option}.")


def overlap(fields: Sequence[Array]) -> list[Array]:
    """The fields where all of them have a value, NaN elsewhere: all are scored on the same pixels."""
    known = np.logical_and.reduce([np.isfinite(field) for field in fields])
    return [np.where(known, field, np.float32(np.nan)) for field in fields]
