"""Anybody's CF NetCDF can be verified: several layouts give the same numbers, and every refusal says what to add."""

from datetime import date, timedelta

import netCDF4
import numpy as np
import pytest
import xarray
from command import run_cli

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Grid
from cranpm.core.interpolation import refine
from cranpm.verification import CfForecasts, open_forecasts
from cranpm.verification.cf_layout import STANDARD_NAMES

START = date(2020, 2, 28)
FINE = Grid(46.0, 8.0, 0.01, 64, 96)
COARSE = Grid(46.5, 7.5, 0.1, 20, 25)
SPAN = slice(None)


def field(lead: int, grid: Grid = COARSE) -> np.ndarray:
    """A plane that tells north from south, east from west, and the leads apart; one gap."""
    values = 10.0 * lead + (grid.lat[:, None] - 44) * 2 + (grid.lon[None] - 7)
    values[10, 12] = np.nan
    return values


def dataset(leads=(1, 2), units="ug m-3", factor=1.0, **attributes) -> xarray.Dataset:
    """The plainest layout: valid times along `time`, one reference time."""
    values = np.stack([field(lead) for lead in leads]) / factor
    times = [np.datetime64(START + timedelta(days=lead), "ns") + np.timedelta64(12, "h") for lead in leads]
    found = xarray.Dataset(
        {"conc": (("time", "lat", "lon"), values, {"standard_name": STANDARD_NAMES[0], "units": units} | attributes)},
        coords={
            "time": ("time", times, {"standard_name": "time"}),
            "lat": ("lat", COARSE.lat, {"units": "degrees_north"}),
            "lon": ("lon", COARSE.lon, {"units": "degrees_east"}),
            "frt": ((), np.datetime64(START, "ns"), {"standard_name": "forecast_reference_time"}),
        },
    )
    return found


def by_period(found: xarray.Dataset) -> xarray.Dataset:
    """Reference time and period span the field; valid times are left to the reader."""
    period = ("period", [24, 48], {"standard_name": "forecast_period", "units": "hours"})
    moved = found.drop_vars("time").rename(time="period").assign_coords(period=period)
    return moved.expand_dims(frt=[np.datetime64(START, "ns")]).assign_coords(
        frt=("frt", [np.datetime64(START, "ns")], {"standard_name": "forecast_reference_time"})
    )


def by_valid_time_and_period(found: xarray.Dataset) -> xarray.Dataset:
    """The start is the valid time minus the period."""
    period = ("time", [36.0, 60.0], {"standard_name": "forecast_period", "units": "hours"})
    return found.drop_vars("frt").assign_coords(forecast_period=period)


def bounded(found: xarray.Dataset) -> xarray.Dataset:
    """Time stamps at the end of each day, which the bounds explain."""
    ends = found.time.values + np.timedelta64(12, "h")
    edges = np.stack([ends - np.timedelta64(1, "D"), ends], axis=1)
    found = found.assign_coords(time=("time", ends, {"standard_name": "time", "bounds": "time_bnds"}))
    found.time.encoding["units"] = "hours since 2020-01-01"
    return found.assign(time_bnds=(("time", "bnds"), edges))


LAYOUTS = {
    "plain": lambda found: found,
    "kilograms": lambda found: dataset(units="kg m-3", factor=1e9),
    "milligrams": lambda found: dataset(units="mg/m3", factor=1e3),
    "micro sign": lambda found: dataset(units="µg/m3"),
    "south to north": lambda found: found.isel(lat=slice(None, None, -1)),
    "longitude first": lambda found: found.transpose("time", "lon", "lat"),
    "a level of one": lambda found: found.expand_dims(level=[0.0], axis=1),
    "period": by_period,
    "valid time and period": by_valid_time_and_period,
    "bounds": bounded,
    "named": lambda found: found.rename(conc="PM25").map(lambda v: v.assign_attrs(standard_name=""), keep_attrs=True),
}
PACKED = {"conc": {"dtype": "int16", "scale_factor": 0.01, "add_offset": 5.0, "_FillValue": -9999}}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_numbers(tmp_path, name):
    LAYOUTS[name](dataset()).to_netcdf(tmp_path / "theirs.nc")
    theirs = open_forecasts("theirs", tmp_path / "theirs.nc", FINE)
    theirs.check(START, [1, 2])
    for lead in (1, 2):
        wanted = refine(field(lead), COARSE, FINE)
        rows = slice(16, 48)
        assert np.allclose(theirs.strip(START, lead, rows), wanted[rows], atol=1e-4, equal_nan=True)
    assert theirs.identity(START) is not None
    assert theirs.identity(START + timedelta(days=1)) is None


def test_packed_numbers_and_fill_values_are_unpacked(tmp_path):
    dataset().to_netcdf(tmp_path / "theirs.nc", encoding=PACKED)
    theirs = CfForecasts("theirs", tmp_path / "theirs.nc", FINE)
    assert np.allclose(theirs.strip(START, 1, SPAN), refine(field(1), COARSE, FINE), atol=0.01, equal_nan=True)
    whole = CfForecasts("theirs", tmp_path / "theirs.nc", COARSE)
    assert np.isnan(whole.strip(START, 1, SPAN)).sum() == 1  # on their own grid nothing is interpolated


def test_longitudes_from_0_to_360_cross_greenwich(tmp_path):
    grid = Grid(50.0, -2.0, 0.5, 8, 8)
    values = np.broadcast_to(grid.lon + 10, (1, *grid.shape))
    found = dataset(leads=(1,)).isel(lat=slice(0, 8), lon=slice(0, 8))
    east = np.where(grid.lon < 0, grid.lon + 360, grid.lon)
    found = found.assign_coords(lat=found.lat.copy(data=grid.lat), lon=found.lon.copy(data=east))
    found["conc"] = found.conc.copy(data=values)
    found.sortby("lon").to_netcdf(tmp_path / "a.nc")
    theirs = CfForecasts("theirs", tmp_path / "a.nc", grid)
    assert np.allclose(theirs.strip(START, 1, SPAN), values[0])


def test_a_folder_of_files_named_by_start_day(tmp_path):
    for shift in (0, 1):
        found = dataset().drop_vars("frt")
        moved = found.assign_coords(time=found.time + np.timedelta64(shift, "D"))
        moved.time.attrs["standard_name"] = "time"
        moved.to_netcdf(tmp_path / f"model_{START + timedelta(days=shift):%Y%m%d}00.nc".replace("00.nc", ".nc"))
    theirs = open_forecasts("theirs", tmp_path, FINE)
    for day in (START, START + timedelta(days=1)):
        theirs.check(day, [1, 2])
    assert theirs.facts()["resolution"] == "0.1 degrees"


def hourly(found: xarray.Dataset) -> xarray.Dataset:
    times = found.time.values[0] + np.array([0, 3], "timedelta64[h]")
    return found.assign_coords(time=("time", times, {"standard_name": "time"}))


def with_attributes(found: xarray.Dataset, **attributes) -> xarray.Dataset:
    """PM2.5 with other attributes, and no others."""
    return found.assign(conc=found.conc.drop_attrs().assign_attrs(attributes))


def with_bounds(found: xarray.Dataset, dimensions, values) -> xarray.Dataset:
    """Bounds as bare numbers, in the unit of the times."""
    found.time.attrs["bounds"] = "edges"
    found.time.encoding["units"] = "hours since 2020-01-01"
    return found.assign(edges=(dimensions, values))


UNIT, NAME = "ncatted -a units", "ncatted -a standard_name"
FAULTS = {
    "no unit": (lambda f: with_attributes(f, standard_name=STANDARD_NAMES[0]), f"or ug m-3 .*; found none.*{UNIT}"),
    "another unit": (lambda f: dataset(units="ppb"), f"found ppb.*{UNIT}"),
    "no PM2.5": (lambda f: with_attributes(f, units="ug m-3"), f"one variable with the standard name.*{NAME}"),
    "two of them": (lambda f: f.assign(other=f.conc), "found conc, other"),
    "no start": (lambda f: f.drop_vars("frt"), "a forecast_reference_time.*no date in the name.*assign_coords"),
    "hourly": (hourly, "one field per start day and valid day.*cdo daymean"),
    "levels": (lambda f: xarray.concat([f, f], "level"), "2 steps of level.*ncks -d level"),
    "members without a time": (lambda f: f.drop_vars("time").rename(time="member"), "steps of member"),
    "uneven": (lambda f: f.isel(lat=[0, 1, 3, 4, 7]), "in even steps.*cdo remapbil"),
    "curvilinear": (lambda f: f.rename(lat="y", lon="x").drop_vars(["x", "y"]), "a one-dimensional latitude.*remapbil"),
    "kilograms called micrograms": (lambda f: dataset(factor=1e9), f"by its units.*{UNIT}"),
    "micrograms called kilograms": (lambda f: dataset(units="kg m-3"), f"by its units.*{UNIT}"),
    "a small box": (lambda f: f.isel(lat=slice(3, 6)), "a grid that covers N 46"),
    "only today": (lambda f: f.assign_coords(frt=f.frt + np.timedelta64(5, "D")), "days after the start day"),
    "a period that contradicts": (
        lambda f: f.assign_coords(forecast_period=("time", [5, 6], {"units": "days"})),
        "a forecast_period of 1 day, 12:00:00.*found 5 days",
    ),
    "maxima": (lambda f: f.assign(conc=f.conc.assign_attrs(cell_methods="time: maximum")), "found time: maximum"),
    "points": (lambda f: f.assign(conc=f.conc.assign_attrs(cell_methods="area: mean time: point")), "daily means"),
    "two times": (
        lambda f: f.assign_coords(other=("time", f.time.values, {"standard_name": "time"})),
        "one coordinate with the standard name time.*found time, other",
    ),
    "a missing period": (
        lambda f: f.assign_coords(forecast_period=("time", [1, np.nan], {"units": "days"})),
        "missing or impossible",
    ),
    "an endless period": (
        lambda f: f.assign_coords(forecast_period=("time", [1, 1e30], {"units": "days"})),
        "missing or impossible",
    ),
    "missing bounds": (lambda f: with_bounds(f, ("time", "bnds"), [[0.0, np.nan]] * 2), "two bounds.*missing values"),
    "flat bounds": (lambda f: with_bounds(f, ("time",), [0.0, 1.0]), r"two bounds of every time.*shape \(2,\)"),
    "nothing but gaps": (lambda f: f.assign(conc=f.conc.copy(data=f.conc * np.nan)), "values in every field"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_refusal_says_what_is_needed(tmp_path, name):
    spoil, message = FAULTS[name]
    spoil(dataset()).to_netcdf(tmp_path / "theirs.nc")
    with pytest.raises(CranpmError, match=message):
        open_forecasts("theirs", tmp_path / "theirs.nc", FINE).check(START, [1])


def test_times_without_an_epoch_or_of_another_calendar_are_refused(tmp_path):
    for attribute, value in (("units", "days"), ("calendar", "360_day")):
        dataset().to_netcdf(tmp_path / "theirs.nc")
        with netCDF4.Dataset(tmp_path / "theirs.nc", "a") as file:
            file["time"].setncattr(attribute, value)
        with pytest.raises(CranpmError, match="of the standard calendar"):
            CfForecasts("theirs", tmp_path / "theirs.nc", FINE)


def test_files_that_are_none_and_leads_that_are_missing_are_refused(tmp_path):
    with pytest.raises(CranpmError, match="no such file or folder"):
        open_forecasts("theirs", tmp_path / "none", FINE)
    with pytest.raises(CranpmError, match="CF NetCDF files; found neither"):
        open_forecasts("theirs", tmp_path, FINE)
    (tmp_path / "text.nc").write_text("not NetCDF")
    with pytest.raises(CranpmError, match="a NetCDF file"):
        open_forecasts("theirs", tmp_path / "text.nc", FINE)
    dataset().to_netcdf(tmp_path / "text.nc")
    with pytest.raises(CranpmError, match=r"T\+3 from 2020-02-28 .*leads \[1, 2\]"):
        open_forecasts("theirs", tmp_path / "text.nc", FINE).check(START, [3])
    dataset().to_netcdf(tmp_path / "again.nc")
    with pytest.raises(CranpmError, match="each start day and lead once"):
        open_forecasts("theirs", tmp_path, FINE)


def test_the_command_verifies_it_beside_persistence(archive, tmp_path, monkeypatch, capsys):
    """The archive's own days as somebody's forecast: no error at all, by the same tables."""
    day, grid = archive.days[1], archive.domain.fine
    truth = np.stack([archive.pm25(archive.days[n]) for n in (2, 3)])
    times = [np.datetime64(archive.days[n], "ns") for n in (2, 3)]
    found = xarray.Dataset(
        {"pm25": (("time", "latitude", "longitude"), truth * 1e-9, {"units": "kg m-3"})},
        coords={"time": times, "latitude": grid.lat, "longitude": grid.lon},
    )
    found.to_netcdf(tmp_path / f"model_{day}.nc")
    line = ["verify", "--archive", archive.location, "--days", str(day), "--leads", "1,2", "--no-ssim", "-q"]
    line += ["--forecasts", f"theirs={tmp_path / f'model_{day}.nc'}", "--out", str(tmp_path / "out")]
    assert run_cli(monkeypatch, *line) == 0
    row = next(row for row in (tmp_path / "out/table1-1km.csv").read_text().splitlines() if row.startswith("theirs"))
    assert "0.00" in row.split(",")


def test_a_folder_per_day_by_others_is_not_taken_for_ours(tmp_path):
    (tmp_path / str(START)).mkdir()
    dataset().to_netcdf(tmp_path / str(START) / "f.nc")
    assert isinstance(open_forecasts("theirs", tmp_path, FINE), CfForecasts)


def test_a_file_by_cranpm_is_read_as_any_other(tmp_path):
    dataset().assign_attrs(source="persistence, cranpm 1", provenance="{}").to_netcdf(tmp_path / "x.nc")
    assert open_forecasts("ours", tmp_path / "x.nc", FINE).leads(START) == (1, 2)
