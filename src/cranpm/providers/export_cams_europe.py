"""The CAMS European ensemble forecast as the Atmosphere Data Store sends it, made of an archive's forecast.

NetCDF 3, hourly to 96 hours, cells of 0.1 degrees with centres at x.x5, longitudes in 0..360, times in hours without an
epoch. Values differ within our cells of 0.25 degrees, whose area means are the archive's.
"""

from pathlib import Path

import netCDF4
import numpy as np

from cranpm.core.grid import Array, Domain, Grid
from cranpm.providers.forecast_run import ForecastRun
from cranpm.providers.made_up_hours import wave
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.regrid import average

CAMS_HOURS = 96
STEP = 0.1
MARGIN_CELLS = 5
AREA = (72, -25, 30, 45)
"""N, W, S, E of the European ensemble."""
SWING = 0.3
"""Share of the day's mean by which an hour may differ from it."""
FILL = -999.0
VARIABLES = {
    "pm25": ("pm2p5_conc", "PM2.5 Aerosol", "mass_concentration_of_pm2p5_ambient_aerosol_in_air"),
    "pm10": ("pm10_conc", "PM10 Aerosol", "mass_concentration_of_pm10_ambient_aerosol_in_air"),
    "no2": ("no2_conc", "Nitrogen Dioxide", "mass_concentration_of_nitrogen_dioxide_in_air"),
    "o3": ("o3_conc", "Ozone", "mass_concentration_of_ozone_in_air"),
    "co": ("co_conc", "Carbon Monoxide", "mass_concentration_of_carbon_monoxide_in_air"),
}
"""Name, species and standard name in the files."""


def cams_europe_grid(domain: Domain) -> Grid | None:
    """Cells of the European ensemble around a domain, with a margin; None where it does not cover the domain."""
    north, west, south, east = AREA
    if domain.north > north or domain.west < west or domain.south < south or domain.east > east:
        return None
    top = min(10 * north, int(np.ceil(10 * domain.north)) + MARGIN_CELLS)
    left = max(10 * west, int(np.floor(10 * domain.west)) - MARGIN_CELLS)
    bottom = max(10 * south, int(np.floor(10 * domain.south)) - MARGIN_CELLS)
    right = min(10 * east, int(np.ceil(10 * domain.east)) + MARGIN_CELLS)
    return Grid(top / 10, left / 10, STEP, top - bottom, right - left)


def spread(values: Array, coarse: Grid, fine: Grid) -> Array:
    """Values of finer cells whose area means over coarse cells are `values`; negative only where those are.

    A fine cell on a border takes the least of the coarse cells that it lies in; those in one coarse cell alone share
    what is then missing. Outside the coarse grid the nearest cell counts.
    """
    first_row, last_row = _touched(coarse.north - fine.lat, fine.step, coarse.step, coarse.rows)
    first_col, last_col = _touched(fine.lon - coarse.west, fine.step, coarse.step, coarse.cols)
    by_row = np.minimum(values[first_row], values[last_row])
    least = np.minimum(by_row[:, first_col], by_row[:, last_col])
    own = ((first_row == last_row)[:, None] & (first_col == last_col)).astype(float)
    missing = (values - average(least, fine, coarse)) / average(own, fine, coarse)
    return np.asarray(least + own * missing[np.ix_(first_row, first_col)])


def _touched(distance: Array, fine: float, coarse: float, count: int) -> tuple[Array, Array]:
    """First and last coarse cell under each fine one, whose centres are `distance` degrees from the first edge."""
    first = np.floor((distance - fine / 2) / coarse + 1e-6)
    last = np.ceil((distance + fine / 2) / coarse - 1e-6) - 1
    return np.clip(first, 0, count - 1).astype(int), np.clip(last, 0, count - 1).astype(int)


def write_cams_europe(run: ForecastRun, coarse: Grid, grid: Grid, folder: Path) -> None:
    """One file with all hours and species of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    hours = range(min(CAMS_HOURS, 24 * run.days) + 1)
    path = folder / f"cams-europe-forecast_{run.start}.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        _lay_out(file, run, grid, hours)
        for index, channel in enumerate(run.channels):
            daily = [spread(field, coarse, grid) for field in run.fields[:, index]]
            variable = file[VARIABLES[channel.quantity][0]]
            for hour in hours:
                variable[hour, 0] = daily[min(hour // 24, run.days - 1)] * (1 + SWING * wave(hour))


def _lay_out(file: netCDF4.Dataset, run: ForecastRun, grid: Grid, hours: range) -> None:
    """Attributes, axes and empty variables."""
    span = f"{run.start:%Y%m%d}+[0H_{hours[-1]}H]"
    file.setncatts(
        {
            "title": "Air Pollutant FORECAST at the Surface",
            "institution": MADE_UP,
            "source": "Data from ENSEMBLE model",
            "history": "Model ENSEMBLE FORECAST",
            "FORECAST": f"Europe, {span}",
            "summary": f"ENSEMBLE model hourly FORECAST of concentrations at the Surface from {span} on Europe",
        }
    )
    axes: dict[str, tuple[Array, str, str]] = {
        "longitude": (np.round(grid.lon, 2) % 360, "longitude", "degrees_east"),
        "latitude": (np.round(grid.lat, 2), "latitude", "degrees_north"),
        "level": (np.zeros(1), "level", "m"),
        "time": (np.array(hours), f"FORECAST time from {run.start:%Y%m%d}", "hours"),
    }
    for name, (values, long_name, unit) in axes.items():
        file.createDimension(name, None if name == "time" else len(values))
        axis = file.createVariable(name, "f4", (name,))
        axis.setncatts({"long_name": long_name, "units": unit})
        axis[:] = values
    for channel in run.channels:
        name, species, standard_name = VARIABLES[channel.quantity]
        variable = file.createVariable(name, "f4", ("time", "level", "latitude", "longitude"), fill_value=FILL)
        variable.setncatts({"species": species, "units": "µg/m3", "value": "hourly values"})
        variable.standard_name = standard_name
