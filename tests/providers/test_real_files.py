"""Real files of the providers: read as an independent reader reads them, or refused for the right reason."""

import csv
import gzip
import os
import zipfile
from collections import defaultdict
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import netCDF4
import numpy as np
import pyarrow.parquet as pq
import pytest

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain, Grid
from cranpm.providers import PROVIDERS, eea, eea_stations, quantities, sandbox
from cranpm.providers.cams import GAS_CONSTANT, VAPOUR, concentration, density
from cranpm.providers.elevation import read_elevation
from cranpm.providers.gridded import Gridded
from cranpm.providers.provider import FileSummary
from cranpm.providers.quantities import BY_ALIAS, Quantity
from cranpm.providers.readers import grib, netcdf
from cranpm.providers.readers.files import Piece
from cranpm.providers.timeline import Timeline

import eccodes  # isort: skip  after PROJ's other users

REAL = (Path(os.environ.get("CRANPM_SHARED", Path(__file__).parents[3] / "shared")) / "realdata").resolve()
pytestmark = pytest.mark.skipif(
    not REAL.is_dir(), reason=f"the providers' files are not at {REAL}; set CRANPM_SHARED to where they are"
)
GERMANY = "new-cds_germany_N51_5W6_5S51_0E9_0-20250601-20250604"
EPOCH = datetime(1970, 1, 1)


def plain(path, name):
    """Values and times as netCDF4 itself decodes them."""
    with netCDF4.Dataset(REAL / path) as file:
        clock = next(clock for clock in ("valid_time", "time") if clock in file.variables)
        times = netCDF4.num2date(file[clock][:], file[clock].units, only_use_cftime_datetimes=False)
        return np.ma.filled(file[name][:].astype(float), np.nan), list(times)


def one(path, name):
    return next(v for v in netcdf.variables(REAL / path, path) if v.quantity.name == name)


def everything(variable, level=0):
    return variable.read(np.arange(len(variable.times)), level)


def timeline(path, name, kind="surface", level=0.0):
    return Timeline(
        name, [v for v in netcdf.variables(REAL / path, path) if v.quantity.name == name and v.kind == kind], level
    )


def gridded(*paths):
    return Gridded([variable for path in paths for variable in netcdf.variables(REAL / path, path)])


def test_grib_and_netcdf_of_one_request_are_the_same():
    (message,) = grib.variables(REAL / f"era5/{GERMANY}.grib", "grib")
    field = one(f"era5/{GERMANY}-instant.nc", "t2m")
    assert np.array_equal(message.times, field.times)
    assert np.array_equal(message.file_grid.lat, field.file_grid.lat)
    assert np.allclose(message.file_grid.lon, field.file_grid.lon)
    assert np.array_equal(everything(message), everything(field))
    values, times = plain(f"era5/{GERMANY}-instant.nc", "t2m")
    assert np.array_equal(everything(field), values.astype(np.float32))
    assert [time.item() for time in field.times] == times
    assert set(field.versions) == set(message.versions) == {"0001"}


def test_packed_files_of_the_old_layout():
    for name in ("u10", "v10", "t2m", "sp"):
        field, (values, times) = one("era5/old-cds_berlin-2017.nc", name), plain("era5/old-cds_berlin-2017.nc", name)
        assert np.allclose(everything(field), values, rtol=1e-6)
        assert [time.item() for time in field.times[[0, -1]]] == [times[0], times[-1]]
    assert len(times) == 8760


def test_old_and_new_layouts_give_identical_days(tmp_path):
    """The same real hours, written as the old service wrote them."""
    values, times = plain("era5/new-cds_pair_instant.nc", "u10")
    with (
        netCDF4.Dataset(REAL / "era5/new-cds_pair_instant.nc") as new,
        netCDF4.Dataset(tmp_path / "old.nc", "w", format="NETCDF3_64BIT_OFFSET") as old,
    ):
        for name, kind in (("longitude", "f4"), ("latitude", "f4")):
            old.createDimension(name, len(new[name]))
            old.createVariable(name, kind, (name,))[:] = new[name][:]
        old.createDimension("time", None)
        clock = old.createVariable("time", "i4", ("time",))
        clock.units, clock.calendar = "hours since 1900-01-01 00:00:00.0", "gregorian"
        clock[:] = [(time - datetime(1900, 1, 1)).total_seconds() / 3600 for time in times]
        packed = old.createVariable("u10", "i2", ("time", "latitude", "longitude"), fill_value=-32767)
        packed.units, packed.missing_value = "m s**-1", np.int16(-32767)
        packed.scale_factor, packed.add_offset = np.ptp(values) / 65000, values.mean()
        packed[:] = values
    old, new = (
        Timeline("u10", [v for v in netcdf.variables(path, "x") if v.quantity.name == "u10"], 0.0)
        for path in (tmp_path / "old.nc", REAL / "era5/new-cds_pair_instant.nc")
    )
    for day in (date(2023, 9, 1), date(2023, 9, 7)):
        means = [line.fields(line.present(day, 1, False)[0]).mean(axis=0) for line in (old, new)]
        assert np.allclose(*means, atol=np.ptp(values) / 65000)
        mine = [index for index, time in enumerate(times) if time.date() == day]
        assert np.allclose(means[1], values[mine].mean(axis=0), atol=1e-5)


def test_rain_of_a_day_ends_at_midnight_of_the_next():
    line = timeline("era5/new-cds_pair_accum.nc", "tp")
    values, times = plain("era5/new-cds_pair_accum.nc", "tp")
    day = date(2023, 9, 3)
    found, _ = line.present(day, 1, False, ends=True)
    assert [time.item() for time in found] == [datetime(2023, 9, 3) + timedelta(hours=h) for h in range(1, 25)]
    total = sum(values[times.index(datetime(2023, 9, 3) + timedelta(hours=h))] for h in range(1, 25))
    assert np.allclose(line.fields(found).sum(axis=0), total, atol=1e-7)
    with pytest.raises(CranpmError, match="the last of them 00 UTC of 2023-09-08"):
        line.present(date(2023, 9, 7), 1, False, ends=True)


def test_final_and_preliminary_months_are_merged_without_loss(monkeypatch):
    monkeypatch.setitem(BY_ALIAS, "u100", Quantity("u100", ("u100",), {"m s**-1": 1.0}, -90, 90))
    field = one("era5/old-cds_expver-dimension.nc", "u100")
    values, _ = plain("era5/old-cds_expver-dimension.nc", "u100")
    first, second = values[:, 0], values[:, 1]
    assert np.isnan(first[-1]).all()
    assert np.isfinite(second[-1]).all()
    merged = everything(field)
    assert np.isfinite(merged).all()
    assert np.allclose(merged, np.where(np.isnan(first), second, first), rtol=1e-6)
    assert set(field.versions) == {"0001+0005"}


def test_the_european_analysis_keeps_its_epoch_in_a_name():
    field = one("cams/europe-analysis_poland_2022-02.nc", "pm25")
    assert {time.item().date() for time in field.times} == {date(2022, 2, day) for day in range(1, 29)}
    assert {time.item().hour for time in field.times} == {8}
    with netCDF4.Dataset(REAL / "cams/europe-analysis_poland_2022-02.nc") as file:
        assert np.array_equal(everything(field), np.ma.filled(file["pm2p5_conc"][:, 0], np.nan))
    with pytest.raises(CranpmError, match="24 times of pm25 for 2022-02-03"):
        timeline("cams/europe-analysis_poland_2022-02.nc", "pm25").present(date(2022, 2, 3), 1, True)


def test_cams_in_kilograms():
    values, _ = plain("cams/old-ads_global-forecast_pm10_kgm3.nc", "pm10")
    line = timeline("cams/old-ads_global-forecast_pm10_kgm3.nc", "pm10")
    assert np.allclose(line.fields(sorted(line.moments)), values * 1e9, rtol=1e-5)
    values, _ = plain("cams/new-ads_eac4_milan_pm10.nc", "pm10")
    line = timeline("cams/new-ads_eac4_milan_pm10.nc", "pm10")
    times, _ = line.present(date(2020, 1, 15), line.step(date(2020, 1, 15)), False)
    assert len(times) == 8
    first = (datetime(2020, 1, 15) - datetime(2018, 1, 1)).days * 8
    assert np.allclose(line.fields(times), values[first : first + 8] * 1e9, rtol=1e-5)


def test_a_mixing_ratio_needs_the_density_of_air():
    files = gridded("cams/new-ads_eac4_milan_no2.nc", "cams/new-ads_eac4_milan_temp.nc")
    line = files.lowest("no2")
    with pytest.raises(CranpmError, match="sp beside the mixing ratio"):
        concentration(files, line, sorted(line.moments)[:8])


def test_a_mixing_ratio_by_hand():
    """1e-8 kg kg-1 in dry air of 101325 Pa and 288.15 K: 101325 / (287.05 x 288.15) = 1.22500 kg m-3, 12.25 ug m-3."""
    assert (GAS_CONSTANT, VAPOUR) == (287.05, 0.608)
    files = gridded("cams/new-ads_eac4_milan_no2.nc")
    gas = files.lowest("no2")
    times = sorted(gas.moments)[:2]

    def constant(value):
        fields = np.full((2, 1, 1), value)
        return SimpleNamespace(moments=gas.moments, some=gas.some, fields=lambda _: fields)

    air = SimpleNamespace(
        timeline=lambda name, *_: {"sp": constant(101325.0), "t": constant(288.15), "q": constant(0.0)}[name]
    )
    assert density(air, gas, times) == pytest.approx(1.2250, rel=1e-4)
    stored = everything(gas.some)[:2]
    assert np.allclose(concentration(air, gas, times), stored * 1.2250e9, rtol=1e-4)


def test_days_of_eac4_in_micrograms():
    values, _ = plain("po-valley/eac4_milan_2013.nc", "pm2p5")
    line = timeline("po-valley/eac4_milan_2013.nc", "pm25")
    day = date(2013, 1, 20)
    times, _ = line.present(day, line.step(day), False)
    assert np.allclose(line.fields(times).mean(axis=0), values[19 * 8 : 20 * 8].mean(axis=0), rtol=1e-5)
    assert line.grid() == Grid(46.875, 8.625, 0.75, 3, 4)


def test_a_zip_as_the_old_service_sent_it():
    model, surface = sorted(sandbox.look([REAL / "cams/old-ads_eac4.zip"]), key=lambda seen: seen.piece.member)
    assert (model.provider, surface.provider) == ("cams", "cams")
    assert surface.holds == ("sp",)
    assert (model.first, model.last) == (date(2020, 7, 1), date(2020, 7, 2))
    assert "o3 on model level 60" in model.holds


def test_hours_that_are_missing_are_not_made_up():
    line = timeline("era5/new-cds_pressure-levels.nc", "t", "pressure", 850.0)
    with pytest.raises(CranpmError, match="24 times of t for 2020-07-02; found 4"):
        line.present(date(2020, 7, 2), 1, False)
    values, _ = plain("era5/new-cds_pressure-levels.nc", "t")
    found, _ = line.present(date(2020, 7, 2), line.step(date(2020, 7, 2)), True)
    assert np.allclose(line.fields(found), values[4:8, 2])
    assert len(found) == 4


def test_members_of_an_ensemble_are_no_reanalysis():
    with pytest.raises(CranpmError, match="members of an ensemble"):
        grib.variables(REAL / "era5/era5-levels-members.grib", "grib")


def test_grib_with_zeros_at_its_end():
    (field,) = grib.variables(REAL / "era5/era5-2mt-2019-03-uk.grib", "uk")
    assert len(field.times) == 744
    assert field.file_grid.grid("uk").shape == (33, 49)
    hour = everything(field)[0] if len(field.times) < 10 else field.read(np.array([0]))[0]
    assert 260 < hour.min() < hour.max() < 300


def test_the_whole_domain_of_the_european_analysis_wraps():
    """Longitudes 335..360 and 0..45: the Atlantic ends up west of Greenwich, pixel by pixel."""
    path = "cams/cams-europe-analysis_full-domain_lon0-360-wrap_20220322T00.nc"
    field = one(path, "pm25")
    grid = field.file_grid.grid(path)
    assert grid.shape == (420, 700)
    assert (grid.west, grid.east) == (-25, 45)
    assert field.times[0].item() == datetime(2022, 3, 22)
    with netCDF4.Dataset(REAL / path) as file:
        stored = np.ma.filled(np.squeeze(file["pm2p5_conc"][:]), np.nan)
        lat, lon = file["latitude"][:], file["longitude"][:]
    values = everything(field)[0]
    for here, there in ((48.85, 2.35), (38.75, 350.85), (52.55, 13.35)):
        row, col = np.argmin(np.abs(lat - here)), np.argmin(np.abs(lon - there))
        own_row, own_col = grid.row_col(here, there if there < 180 else there - 360)
        assert values[round(float(own_row)), round(float(own_col))] == stored[row, col]


def test_open_data_of_ecmwf():
    """CCSDS packing, the globe from 180 degrees on; rain is the sum of all hours since the run began."""
    (rain,) = grib.variables(next((REAL / "ifs").glob("*_tp_*")), "tp")
    assert (rain.accumulated, rain.unit, set(rain.versions)) == (True, "m", {"oper"})
    assert (rain.model, rain.start.item()) == ("ifs", datetime(2026, 7, 16, 12))
    assert rain.file_grid.grid("tp").shape == (721, 1440)
    assert rain.file_grid.lon[0] == -180
    total = everything(rain)[0]
    assert 0 <= total.min() < 1e-4 < 0.05 < total.max() < 1
    (warmth,) = grib.variables(next((REAL / "ifs").glob("*2t*")), "2t")
    assert (warmth.times[0].item(), warmth.leads[0]) == (datetime(2025, 1, 16, 18), 24)
    values = everything(warmth)[0]
    rows = {name: round((90 - lat) / 0.25) for name, lat in (("equator", 0), ("pole", 80))}
    assert values[rows["equator"]].mean() > 295 > 265 > values[rows["pole"]].mean()


@pytest.mark.parametrize(("pattern", "name"), [("*_tp_*", "tp"), ("*2t*", "2t")])
def test_open_data_value_by_value_as_eccodes_reads_them(pattern, name):
    """Point by point with the coordinates that eccodes gives each value: no row, column or longitude is off."""
    path = next((REAL / "ifs").glob(pattern))
    (found,) = grib.variables(path, name)
    mine = dict(zip(("lat", "lon"), np.meshgrid(found.file_grid.lat, found.file_grid.lon, indexing="ij"), strict=True))
    values = everything(found)[0]
    with path.open("rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            if eccodes.codes_get(message, "shortName") == name:
                lat, lon, wanted = (
                    np.array(eccodes.codes_get_array(message, key)) for key in ("latitudes", "longitudes", "values")
                )
            eccodes.codes_release(message)
    assert lon[0] in (180, -180)  # as eccodes of this or that version says it
    order = np.lexsort((np.where(lon >= 180, lon - 360, lon), -lat))
    assert np.allclose(mine["lat"].ravel(), lat[order])
    assert np.allclose(mine["lon"].ravel(), np.where(lon >= 180, lon - 360, lon)[order])
    assert np.allclose(values.ravel(), wanted[order], rtol=1e-6, atol=1e-9)
    near = replace(found, file_grid=found.file_grid.cut(Domain("alps", 50, 4, 42, 16)))
    rows, cols = (
        np.flatnonzero(np.isin(all_, part))
        for all_, part in ((found.file_grid.lat, near.file_grid.lat), (found.file_grid.lon, near.file_grid.lon))
    )
    assert (len(rows), len(cols)) == (37, 53)
    assert np.array_equal(everything(near)[0], values[np.ix_(rows, cols)])


# Stations


def points():
    return sorted((REAL / "stations/eea-parquet-cz").glob("*.parquet"))


def test_station_means_by_plain_arithmetic(monkeypatch):
    """Decimals to the last digit, UTC from UTC+1, at least 18 hours, no sentinel anywhere."""
    monkeypatch.setattr(eea, "STUCK_HOURS", 10**6)
    lowest = []
    for path in points():
        rows = [row for row in pq.read_table(path).to_pylist() if row["Value"] is not None]
        hours = defaultdict(dict)
        for row in rows:
            if row["Validity"] in (1, 2, 3, 4) and Decimal(-5) <= row["Value"] <= 2000:
                utc = row["Start"].to_pydatetime() - timedelta(hours=1)
                hours[utc.date()].setdefault(utc, row["Value"])
        dropped = {}
        (name,) = found = eea.daily_means(pq.read_table(path), path.name, dropped)
        assert name == path.stem
        full = {day: list(of_day.values()) for day, of_day in hours.items() if len(of_day) >= 18}
        assert set(found[name]) == set(full)
        for day, values in full.items():
            assert found[name][day] == pytest.approx(float(sum(values) / len(values)), rel=1e-12)
        assert len(full) > 250
        lowest.append(min(row["Value"] for row in rows))
        invalid = sum(row["Validity"] not in (1, 2, 3, 4) for row in pq.read_table(path).to_pylist())
        assert dropped["not valid"] == invalid
    assert min(lowest) < -5000


def test_stations_are_found_by_the_part_after_the_country():
    czech = Domain("cz", 52, 11, 46.5, 19)
    metadata = REAL / "stations/eea-parquet-cz/DataExtract.csv.gz"
    stations = eea_stations.read_stations([Piece(metadata)], czech)
    assert {path.stem for path in points()} <= set(stations.ids)
    with gzip.open(metadata, "rt", encoding="utf-8-sig") as file:
        rows = {row["Sampling Point Id"]: row for row in csv.DictReader(file)}
    number = list(stations.ids).index("SPO.CZ_ALIBA_PM2_5_40288")
    row = rows["SPO.CZ_ALIBA_PM2_5_40288"]
    assert (stations.lat[number], stations.lon[number]) == (float(row["Latitude"]), float(row["Longitude"]))
    assert (stations.kind[number], stations.area[number], stations.country[number]) == ("background", "suburban", "CZ")
    assert len(set(stations.ids)) == len(stations)
    assert {rows[name]["Air Pollutant"] for name in stations.ids} == {"PM2.5"}


def test_the_pan_european_metadata():
    archive = REAL / "stations/eea_PanEuropean_metadata.zip"
    stations = eea_stations.read_stations(
        [Piece(archive, "PanEuropean_metadata.csv")], Domain("europe", 72, -25, 30, 45)
    )
    with zipfile.ZipFile(archive) as packed, packed.open("PanEuropean_metadata.csv") as file:
        rows = list(csv.DictReader((line.decode() for line in file), dialect="excel-tab"))
    wanted = {
        row["SamplingPoint"]
        for row in rows
        if row["AirPollutantCode"].endswith("/6001")
        and 30.08 < float(row["Latitude"]) < 72
        and -25 < float(row["Longitude"]) < 44.92
    }
    assert set(stations.ids) == wanted
    assert len(stations) > 2000


# Elevation


def test_a_tile_of_heights():
    with zipfile.ZipFile(REAL / "elevation/N45E012.zip") as packed:
        heights = np.frombuffer(packed.read("N45E012.hgt"), ">i2").reshape(3601, 3601).astype(float)
    grid = Grid(45.9, 12.1, 0.01, 40, 40)
    land = np.ones(grid.shape, bool)
    mean, spread = read_elevation([Piece(REAL / "elevation/N45E012.zip", "N45E012.hgt")], grid, land)
    rows, cols = 360 + 36 * 10, 360 + 36 * 20  # nodes lie on the edges of the degree
    block = heights[rows : rows + 37, cols : cols + 37]
    assert mean[10, 20] == pytest.approx(block.mean(), abs=1.0)
    assert spread[10, 20] == pytest.approx(block.std(), abs=1.0)


def test_heights_in_another_projection():
    """Italy in UTM, against an independent relief of 1/12 degree."""
    grid = Grid(46.0, 10.0, 0.01, 100, 100)
    mean, _ = read_elevation([Piece(REAL / "elevation/italy_1km_epsg32632.tif")], grid, np.ones(grid.shape, bool))
    with np.load(REAL / "elevation/p1511_v2_topo_europe.npz") as stored:
        rows = np.flatnonzero((stored["lat"] < 46.0) & (stored["lat"] > 45.0))
        cols = np.flatnonzero((stored["lon"] > 10.0) & (stored["lon"] < 11.0))
        other = stored["topo_m"][np.ix_(rows, cols)].astype(float)
    assert mean.mean() == pytest.approx(other.mean(), rel=0.1)
    north, south = mean[:30].mean(), mean[-30:].mean()
    assert north > 4 * south  # the Alps above the plain


# At a glance


def test_every_real_file_is_known_or_refused():
    files = sorted(path for path in REAL.rglob("*") if path.is_file())
    found = sandbox.look(files)
    seen = {str(one.piece.path.relative_to(REAL)): one.provider for one in found if isinstance(one, FileSummary)}
    refused = {
        str(piece.path.relative_to(REAL)): reason
        for piece, reason in (o for o in found if not isinstance(o, FileSummary))
    }
    assert set(seen.values()) == {"era5", "ifs", "cams", "ghap", "elevation", "eea"}
    assert {name for name, provider in seen.items() if provider == "ifs"} == {
        f"ifs/{path.name}" for path in (REAL / "ifs").iterdir()
    }
    unknown = {name for name, reason in refused.items() if reason == sandbox.UNKNOWN}
    assert unknown == {
        "MANIFEST.md",
        "elevation/p1511_v2_topo_europe.npz",
        "era5/old-cds_expver-dimension.nc",
        f"era5/{GERMANY}-accum.nc",
        "po-valley/agrimonia_daily_51stations_2016-2019.parquet",
        "po-valley/agrimonia_stations_141.csv",
        "po-valley/italy_pm25_daily_2013-2018.parquet",
        "po-valley/italy_stations.csv",
        "po-valley/pulvirus_era5_at_stations_2013-2019.parquet",
    }
    assert set(refused) - unknown == {"era5/era5-levels-members.grib"}
    assert set(PROVIDERS) > set(seen.values())
    assert quantities.BY_NAME["sp"].units == {"Pa": 1.0}
