"""Maps of the mean over days, forecast against truth: the paper's figure S4, and how little it says of skill."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import netCDF4
import numpy as np

from cranpm.core.grid import Array, Grid
from cranpm.verification.run import Plan
from cranpm.verification.table import TextTable
from cranpm.verification.tally import Tally


@dataclass(frozen=True)
class Means:
    """Mean PM2.5 over the valid days; a pixel counts on days on which the truth and every method have it."""

    lead: int
    days: int
    grid: Grid
    truth: Array
    forecasts: dict[str, Array]

    def tally(self, name: str) -> Tally:
        """Of the pixels' means, weighted by area."""
        return Tally.of(self.forecasts[name], self.truth, self.grid.row_area_km2[:, None])


def mean_maps(
    plan: Plan,
    days: Sequence[date],
    lead: int,
    on_day: Callable[[int, int], None] = lambda done, total: None,
) -> Means:
    """Over the days that all methods have."""
    grid = plan.archive.domain.fine
    whole = (slice(0, grid.rows), slice(0, grid.cols))
    sums = np.zeros((len(plan.methods) + 1, *grid.shape), np.float32)
    count = np.zeros(grid.shape, np.int16)
    for number, day in enumerate(days, start=1):
        for method in plan.methods:
            method.check(day, plan.leads)
        fields = [plan.archive.pm25(day + timedelta(days=lead), whole)]
        fields += [method.strip(day, lead, whole[0]) for method in plan.methods]
        known = np.logical_and.reduce([np.isfinite(field) for field in fields])
        count += known
        for total, field in zip(sums, fields, strict=True):
            np.add(total, field, out=total, where=known)
        on_day(number, len(days))
    means = np.divide(sums, count, out=np.full_like(sums, np.nan), where=count > 0)
    names = [method.name for method in plan.methods]
    return Means(lead, len(days), grid, means[0], dict(zip(names, means[1:], strict=True)))


def means_table(means: Means) -> TextTable:
    """Scatter of the pixels' means in numbers."""
    rows = []
    for name in means.forecasts:
        tally = means.tally(name)
        figures = (tally.rmse, tally.bias, tally.slope, tally.r2, tally.correlation**2)
        rows.append((name, *(f"{float(figure):.3f}" for figure in figures)))
    header = ("method", "RMSE", "bias", "slope", "R² (explained)", "r²")
    notes = (
        f"Mean of {means.days} forecasts T+{means.lead} in every pixel of 1 km against the mean truth (ug m-3).",
        "A mean over days hides what happens from day to day: persistence is nearly perfect here by construction.",
    )
    return TextTable("means", f"Mean maps, T+{means.lead}", header, rows, notes)


def write_means(means: Means, path: Path) -> None:
    """NetCDF with the mean maps."""
    with netCDF4.Dataset(path, "w") as file:
        for name, values in (("lat", means.grid.lat), ("lon", means.grid.lon)):
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", (name,))[:] = values
        file.setncatts({"lead_days": means.lead, "days": means.days, "title": "PM2.5, mean over days"})
        for name, values in {"truth": means.truth, **means.forecasts}.items():
            label = name.replace("/", "-")
            variable = file.createVariable(label, "f4", ("lat", "lon"), zlib=True, complevel=1, fill_value=np.nan)
            variable.units = "ug m-3"
            variable[:] = values
