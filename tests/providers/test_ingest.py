"""From files to an archive: the same days as were written, every fault refused or normalised, nothing half done."""

import gzip
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from datetime import date, timedelta
from pathlib import Path

import netCDF4
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from command import run_cli
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_channels import INDEX, NAMES

from cranpm.archive.day_data import Quality
from cranpm.archive.store import Archive
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain, Grid
from cranpm.forecasting.engine import predict
from cranpm.providers import PROVIDERS, eea, sandbox
from cranpm.providers.era5 import CHANNELS
from cranpm.providers.era5 import _day as era5_day
from cranpm.providers.ingest import ingest
from cranpm.providers.provider import FetchQuery, FileSummary, ReadQuery
from cranpm.providers.readers import grib
from cranpm.providers.readers.classic import needed_bytes
from cranpm.providers.readers.file_grid import FileGrid
from cranpm.providers.readers.files import Piece, pieces, sniff
from cranpm.providers.readers.variable import OPERATIONAL, PRELIMINARY
from cranpm.providers.regrid import onto
from cranpm.providers.scan import files_in, scan
from cranpm.providers.timeline import Timeline
from cranpm.providers.zarr_stores import ZarrStore

import eccodes  # isort: skip  after PROJ's other users

SHARED = Path(os.environ.get("CRANPM_SHARED", Path(__file__).parents[3] / "shared"))
REAL_STATIONS = SHARED / "realdata" / "stations" / "eea-parquet-cz"
GHAP = "GHAP_PM2.5_D1K_2020022{}_V1.nc"


def era5(folder):
    return [piece for path in sorted(folder.glob("era5*")) for piece in pieces(path)]


def pressure(folder):
    (path,) = folder.glob("era5-pressure*")
    return path


def change(path, name, alter):
    """Rewrite one variable of a NetCDF file."""
    with netCDF4.Dataset(path, "a") as file:
        file.set_auto_maskandscale(False)
        alter(file[name])


def day_of(name, found, day, domain, lenient=False):
    channels = [channel for channel in PROVIDERS[name].provides if channel in NAMES]
    return PROVIDERS[name].open(found, ReadQuery([day], domain, channels, lenient))(day)


# The whole way


def test_files_give_the_archive_that_they_were_made_of(filled, archive):
    made, report = filled
    assert report.refused_files == report.refused_days == report.notes == {}
    assert made.days == report.stored == archive.days
    order = np.argsort(archive.stations.ids)
    for day in archive.days:
        assert made.quality(day) is Quality.GOOD
        assert np.array_equal(made.packed_pm25(day), archive.packed_pm25(day))
        for name, one, other in zip(NAMES, made.coarse(day), archive.coarse(day), strict=True):
            assert np.allclose(one, other, rtol=1e-6, atol=2e-6 * np.abs(other).max()), name
        assert np.allclose(made.stations_pm25(day), archive.stations_pm25(day)[order], rtol=1e-6, equal_nan=True)
    assert np.array_equal(made.elevation(), archive.elevation())
    assert np.array_equal(made.land(), archive.land())
    for field in ("lat", "lon", "country", "kind", "area"):
        assert np.array_equal(getattr(made.stations, field), getattr(archive.stations, field)[order])
    told = made.provenance(archive.days[0])
    assert told["era5"]["versions"] == ["0001"]
    assert told["eea"]["dropped_values"]["not valid"] > 0
    assert [name for name, _ in told["files"]["ghap"]] == [f"GHAP_PM2.5_D1K_{archive.days[0]:%Y%m%d}_V1.nc"]


def test_a_forecast_runs_on_ingested_days(filled):
    made, _ = filled
    forecast = predict(made, made.days[1], None, (1,))
    assert np.isfinite(forecast.fields).any()
    assert made.source == "simulation, written as providers' files"


def test_what_is_there_is_not_made_again(here, filled, provider_files):
    made, _ = filled
    again = ingest([provider_files], made.location)
    assert again.stored == []
    assert again.unchanged == made.days
    assert Archive(made.location).snapshot == made.snapshot


def test_the_commands(here, provider_files, archive, tmp_path, monkeypatch, capsys):
    assert run_cli(monkeypatch, "validate", str(provider_files)) == 0
    told = {
        Path(one["file"]).name: one
        for one in run_json(monkeypatch, capsys, "validate", str(provider_files), "--json")["files"]
    }
    assert "u500" in told[pressure(provider_files).name]["holds"]
    (folder := tmp_path / "files").mkdir()
    for path in provider_files.iterdir():
        shutil.copy(path, folder)
    (folder / "notes.bin").write_bytes(b"\x00\x01")
    box = f"{archive.domain.north},{archive.domain.west},{archive.domain.south},{archive.domain.east}"
    line = [
        "ingest",
        str(folder),
        "--archive",
        str(tmp_path / "a"),
        "--domain",
        box,
        "--days",
        "2020-02-28..2020-03-04",
        "--jobs",
        "1",
    ]
    assert run_cli(monkeypatch, *line, "--report", str(tmp_path / "r.json"), "-q") == 1
    printed = capsys.readouterr().out
    assert "refused file" in printed
    assert "refused day: 2020-03-04: no PM2.5 at 1 km" in printed
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["stored"] == [str(day) for day in archive.days if day >= date(2020, 2, 28)]
    assert run_cli(monkeypatch, "validate", str(folder)) == 1


def run_json(monkeypatch, capsys, *line):
    capsys.readouterr()
    run_cli(monkeypatch, *line)
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_a_killed_ingest_leaves_whole_days_and_goes_on(provider_files, archive, tmp_path, filled):
    place = tmp_path / "a"
    domain = archive.domain
    script = (
        "import os, signal\n"
        "from pathlib import Path\nfrom cranpm.core.grid import Domain\nfrom cranpm.providers.ingest import ingest\n"
        f"domain = Domain(**{domain.to_json()!r})\n"
        "seen = []\n"
        "def on_day(day, total):\n    seen.append(day)\n    if len(seen) == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"ingest([Path({str(provider_files)!r})], {str(place)!r}, domain, on_day=on_day)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -9
    assert len(Archive(str(place)).days) == 2
    report = ingest([provider_files], str(place))
    assert len(report.unchanged) == 2
    for day in archive.days:
        assert np.array_equal(Archive(str(place)).coarse(day), filled[0].coarse(day))


# What may be missing


def test_a_missing_provider_refuses_the_day_or_marks_it(here, copy, archive, tmp_path):
    (cams,) = copy.glob("cams*")
    cams.unlink()
    one_day = DayRange(archive.days[0], archive.days[0])
    report = ingest([copy], str(tmp_path / "strict"), archive.domain, one_day)
    assert report.stored == []
    assert set(report.refused_days) == {archive.days[0]}
    assert "no files of cams" in report.refused_days[archive.days[0]]
    report = ingest([copy], str(tmp_path / "lenient"), archive.domain, one_day, degrade=True)
    made = Archive(str(tmp_path / "lenient"))
    assert made.quality(archive.days[0]) is Quality.DEGRADED
    assert np.isnan(made.coarse(archive.days[0])[INDEX["cams_pm25"]]).all()
    assert np.isfinite(made.coarse(archive.days[0])[INDEX["t500"]]).all()
    assert "cams" in report.notes[archive.days[0]][0]


def test_stations_that_cannot_be_read_are_told(here, copy, archive, tmp_path):
    first, second = sorted(copy.glob("SIM*.parquet"))[:2]
    table = pq.read_table(first)
    wrong = table.set_column(table.schema.get_field_index("Unit"), "Unit", pa.array(["mg.m-3"] * len(table)))
    pq.write_table(wrong, first)
    report = ingest([copy], str(tmp_path / "a"), archive.domain, DayRange(archive.days[1], archive.days[1]))
    assert "mg.m-3" in "".join(report.station_problems)
    made = Archive(str(tmp_path / "a"))
    values = dict(zip(made.stations.ids, made.stations_pm25(archive.days[1]), strict=True))
    wanted = dict(zip(archive.stations.ids, archive.stations_pm25(archive.days[1]), strict=True))
    assert np.isnan(values[first.stem])
    assert values[second.stem] == pytest.approx(wanted[second.stem], rel=1e-6, nan_ok=True)


def test_fewer_folders_do_not_spoil_good_days(here, copy, archive, tmp_path):
    place, one_day = str(tmp_path / "a"), DayRange(archive.days[1], archive.days[1])
    ingest([copy], place, archive.domain, one_day)
    before = Archive(place)
    for path in [*copy.glob("SIM*.parquet"), *copy.glob("cams*")]:
        path.unlink()
    report = ingest([copy], place, None, one_day, degrade=True)
    assert report.unchanged == [archive.days[1]]
    path = copy / f"GHAP_PM2.5_D1K_{archive.days[1]:%Y%m%d}_V1.nc"
    path.rename(copy / path.name.replace("_V1", "_V2"))
    report = ingest([copy], place, None, one_day, degrade=True)
    assert report.kept == [archive.days[1]]
    after = Archive(place)
    assert after.quality(archive.days[1]) is Quality.GOOD
    assert np.array_equal(after.stations_pm25(archive.days[1]), before.stations_pm25(archive.days[1]), equal_nan=True)


def test_pm25_is_never_done_without(here, copy, archive, tmp_path):
    (copy / GHAP.format(8)).unlink()
    report = ingest([copy], str(tmp_path / "a"), archive.domain, DayRange(*archive.days[:2]), degrade=True)
    assert date(2020, 2, 28) not in report.stored
    assert "no PM2.5 at 1 km" in report.refused_days[date(2020, 2, 28)]


def test_a_missing_level_is_refused_or_noted(copy, archive):
    def gone(level):
        level[2] = 123.0

    change(pressure(copy), "pressure_level", gone)
    day = archive.days[1]
    with pytest.raises(CranpmError, match="850 for"):
        day_of("era5", era5(copy), day, archive.domain)
    reading = day_of("era5", era5(copy), day, archive.domain, lenient=True)
    assert set(reading.notes) == {f"{name}850 missing" for name in "uvtzq"}


def test_missing_hours_are_refused_or_noted(copy, archive):
    """An hour is taken out by moving it to another year."""

    def moved(time):
        time[30] = 0

    change(pressure(copy), "valid_time", moved)
    day = archive.days[1]
    with pytest.raises(CranpmError, match="24 times of u500"):
        day_of("era5", era5(copy), day, archive.domain)
    reading = day_of("era5", era5(copy), day, archive.domain, lenient=True)
    assert "u500: 23 of 24 times" in reading.notes
    assert day_of("era5", era5(copy), archive.days[0], archive.domain).notes == ()


def test_new_archives_need_a_domain_relief_and_stations(here, copy, archive, tmp_path):
    with pytest.raises(CranpmError, match="a domain for the new archive"):
        ingest([copy], str(tmp_path / "a"))
    (copy / "elevation.tif").rename(tmp_path / "elevation.tif")
    with pytest.raises(CranpmError, match="rasters of elevation"):
        ingest([copy], str(tmp_path / "a"), archive.domain)
    shutil.copy(tmp_path / "elevation.tif", copy)
    (copy / "DataExtract.csv").unlink()
    with pytest.raises(CranpmError, match="metadata of stations"):
        ingest([copy], str(tmp_path / "a"), archive.domain)
    with pytest.raises(CranpmError, match="nothing there"):
        files_in([tmp_path / "nowhere"])


def test_a_simulated_world_takes_no_real_days(here, provider_files, archive, filled):
    with pytest.raises(CranpmError, match="never mixed"):
        ingest([provider_files], archive.location)
    with pytest.raises(CranpmError, match="the archive's domain"):
        ingest([provider_files], filled[0].location, Domain("other", 60, 0, 50, 10))


# Wrong files


def test_a_cut_file_is_refused_at_any_length(here, provider_files, tmp_path):
    """HDF5, ZIP and Parquet: at twelve lengths each, by name."""
    for path in (
        pressure(provider_files),
        next(provider_files.glob("cams*")),
        provider_files / GHAP.format(8),
        next(provider_files.glob("SIM*.parquet")),
    ):
        whole = path.read_bytes()
        cut = [
            path_with(tmp_path / f"{number:02d} {path.name}", whole[: int(part * len(whole))])
            for number, part in enumerate(np.linspace(0.02, 0.98, 12))
        ]
        assert not [one for one in sandbox.look(cut) if isinstance(one, FileSummary)]


def test_a_cut_classic_file_does_not_read_as_zeros(here, tmp_path):
    path = tmp_path / "old.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        for name, values in (("latitude", [2.0, 1.0]), ("longitude", [1.0, 2.0, 3.0])):
            file.createDimension(name, len(values))
            file.createVariable(name, "f4", (name,))[:] = values
        clock = file.createVariable("time", "i4", ("time",))
        clock.units = "hours since 1900-01-01"
        clock[:] = np.arange(5)
        field = file.createVariable("u10", "f4", ("time", "latitude", "longitude"))
        field.units = "m s**-1"
        field[:] = 1.0
    size = path.stat().st_size
    assert needed_bytes(path) <= size
    assert isinstance(sandbox.look([path])[0], FileSummary)
    whole = path.read_bytes()
    for cut in (1, 4, 40, size // 2):
        path.write_bytes(whole[: needed_bytes_of(whole, tmp_path) - cut])
        (found,) = sandbox.look([path])
        assert not isinstance(found, FileSummary)


def needed_bytes_of(data, folder):
    (folder / "copy").write_bytes(data)
    return needed_bytes(folder / "copy")


UNITS = [("t", "degC"), ("u", "km h-1"), ("q", "g kg-1"), ("z", "m"), ("t", "")]


@pytest.mark.parametrize(("name", "unit"), UNITS)
def test_units_that_we_do_not_know_are_refused(copy, archive, name, unit):
    change(pressure(copy), name, lambda variable: setattr(variable, "units", unit))
    with pytest.raises(CranpmError, match=f"{name} in "):
        day_of("era5", era5(copy), archive.days[1], archive.domain)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("t", lambda v: v - 273.15),
        ("z", lambda v: v * 9.8),
        ("z", lambda v: v / 9.8),
        ("q", lambda v: v * 1000),
        ("q", lambda v: v / 1e6),
    ],
)
def test_values_that_cannot_be_are_refused(copy, archive, name, wrong):
    def alter(variable):
        variable[:] = wrong(variable[:])

    change(pressure(copy), name, alter)
    with pytest.raises(CranpmError, match="Check its unit"):
        day_of("era5", era5(copy), archive.days[1], archive.domain)


def test_gaps_in_a_field_are_refused(copy, archive):
    def hole(variable):
        variable[24:48, 0, 3, 4] = np.nan

    change(pressure(copy), "t", hole)
    with pytest.raises(CranpmError, match="everywhere"):
        day_of("era5", era5(copy), archive.days[1], archive.domain)


def turned(path, out, flip_lat=False, swap=False):
    """The same file with its rows upside down, or rows and columns exchanged."""
    with netCDF4.Dataset(path) as old, netCDF4.Dataset(out, "w") as new:
        for name, size in old.dimensions.items():
            new.createDimension(name, len(size))
        for name, variable in old.variables.items():
            if variable.dtype is str:
                continue
            dimensions = variable.dimensions
            values = variable[...]
            if flip_lat and "latitude" in dimensions:
                values = np.flip(values, dimensions.index("latitude"))
            if swap and dimensions[-2:] == ("latitude", "longitude"):
                dimensions, values = (*dimensions[:-2], "longitude", "latitude"), np.swapaxes(values, -1, -2)
            copied = new.createVariable(name, variable.dtype, dimensions)
            copied.setncatts({key: variable.getncattr(key) for key in variable.ncattrs() if key != "_FillValue"})
            copied[...] = values


@pytest.mark.parametrize("how", [{"flip_lat": True}, {"swap": True}, {"flip_lat": True, "swap": True}])
def test_coordinates_tell_how_a_file_is_turned(copy, provider_files, archive, how, tmp_path):
    turned(pressure(provider_files), tmp_path / "turned.nc", **how)
    shutil.move(tmp_path / "turned.nc", pressure(copy))
    day = archive.days[1]
    one, other = (day_of("era5", era5(folder), day, archive.domain).fields for folder in (provider_files, copy))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_time_twice_is_refused_unless_it_says_the_same(copy, archive):
    shutil.copy(pressure(copy), copy / "era5-pressure-again.nc")
    assert day_of("era5", era5(copy), archive.days[1], archive.domain)

    def alter(variable):
        variable[:] = variable[:] + np.float32(0.5)

    change(copy / "era5-pressure-again.nc", "t", alter)
    with pytest.raises(CranpmError, match="different ones in"):
        day_of("era5", era5(copy), archive.days[1], archive.domain)


@pytest.mark.parametrize("version", [PRELIMINARY, OPERATIONAL])
def test_final_data_win_over_preliminary_and_forecast_ones(copy, archive, version):
    again = copy / "era5-pressure-again.nc"
    shutil.copy(pressure(copy), again)
    change(again, "t", lambda v: v.__setitem__(slice(None), v[:] + np.float32(0.5)))
    change(again, "expver", lambda v: v.__setitem__(slice(None), np.array([version] * len(v), object)))
    day = archive.days[1]
    reading = day_of("era5", era5(copy), day, archive.domain)
    assert np.allclose(reading.fields["t850"], archive.coarse(day)[INDEX["t850"]], rtol=1e-5)
    assert reading.facts["versions"] == ["0001"]
    assert reading.notes == ()


def test_a_file_that_covers_too_little_is_refused(provider_files, archive):
    larger = Domain("larger", 49, 7, 42.75, 12.25)
    with pytest.raises(CranpmError, match="to cover N 49"):
        day_of("era5", era5(provider_files), archive.days[1], larger)


def test_a_fill_value_that_is_not_declared_is_no_smog(copy, archive):
    path = copy / GHAP.format(8)
    with netCDF4.Dataset(path, "a") as file:
        raw = file["PM2.5"]
        raw.set_auto_maskandscale(False)
        raw[:3, :3] = 65534  # as if 65535 were not declared
    with pytest.raises(CranpmError, match="fill value"):
        day_of("ghap", [Piece(path)], date(2020, 2, 28), archive.domain)


def test_ghap_is_indexed_by_coordinates(provider_files, archive, tmp_path):
    """A file of a larger area gives the same pixels; one shifted by half a pixel is refused."""
    day, grid = archive.days[1], archive.domain.fine
    larger = Grid(grid.north + 0.3, grid.west - 0.5, 0.01, grid.rows + 60, grid.cols + 100)
    values = np.full(larger.shape, 777, np.uint16)
    values[30 : 30 + grid.rows, 50 : 50 + grid.cols] = archive.packed_pm25(day)
    for shift, name in ((0.0, "whole"), (0.005, "shifted")):
        folder = tmp_path / name
        folder.mkdir()
        path = folder / f"GHAP_PM2.5_D1K_{day:%Y%m%d}_V1.nc"
        with netCDF4.Dataset(path, "w") as file:
            for axis, centres in (("lat", larger.lat[::-1]), ("lon", larger.lon + shift)):
                file.createDimension(axis, len(centres))
                file.createVariable(axis, "f8", (axis,))[:] = centres
            variable = file.createVariable("PM2.5", "u2", ("lat", "lon"), fill_value=65535)
            variable.set_auto_maskandscale(False)
            variable.scale_factor = 0.1
            variable[:] = values[::-1]
        if shift:
            with pytest.raises(CranpmError, match=r"pixels of 0\.01 degrees"):
                day_of("ghap", [Piece(path)], day, archive.domain)
        else:
            found = day_of("ghap", [Piece(path)], day, archive.domain).fields["pm25"]
            assert np.allclose(found, archive.pm25(day), equal_nan=True)


def test_ghap_from_inside_a_zip(here, provider_files, archive, tmp_path):
    day = archive.days[1]
    name = f"GHAP_PM2.5_D1K_{day:%Y%m%d}_V1.nc"
    packed = tmp_path / f"GHAP_PM2.5_D1K_{day:%Y%m}_V1.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive_file:
        archive_file.write(provider_files / name, f"daily/{name}")
    (seen,) = sandbox.look([packed])
    assert (seen.provider, seen.first) == ("ghap", day)
    found = day_of("ghap", [seen.piece], day, archive.domain).fields["pm25"]
    assert np.array_equal(np.isnan(found), np.isnan(archive.pm25(day)))


def test_days_in_the_future_are_left_aside(here, copy, archive, tmp_path):
    (copy / GHAP.format(8)).rename(copy / "GHAP_PM2.5_D1K_20990228_V1.nc")
    for path in copy.glob("GHAP*_202*"):
        path.unlink()
    report = ingest([copy], str(tmp_path / "a"), archive.domain)
    assert report.refused_days[date(2099, 2, 28)] == "in the future: left aside"


def test_wrong_suffixes_and_strange_bytes(here, tmp_path, provider_files):
    path = tmp_path / "really.zip"
    shutil.copy(pressure(provider_files), path)
    assert sniff(path) == "netcdf"
    assert sandbox.look([path])[0].provider == "era5"
    for content in (
        b"",
        b"\x89HDF\r\n\x1a\n" + b"\x00" * 100,
        b"GRIB" + b"\xff" * 60,
        b"PAR1",
        b"CDF\x01" + b"\xff" * 40,
        b"\x00",
    ):
        path.write_bytes(content)
        (found,) = sandbox.look([path])
        assert not isinstance(found, FileSummary)


# Hostile files


def zipped(path, name, data=b"x", mode=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED
        if mode:
            info.external_attr = mode << 16
        file.writestr(info, data)
    return path


def test_hostile_zips(tmp_path):
    for name in ("../out.nc", "/etc/out.nc", "a/../../b.nc", "c:\\out.nc"):
        with pytest.raises(CranpmError, match="members that stay inside"):
            pieces(zipped(tmp_path / "a.zip", name))
    with pytest.raises(CranpmError, match="plain files"):
        pieces(zipped(tmp_path / "a.zip", "link.nc", b"/etc/passwd", stat.S_IFLNK | 0o777))
    with pytest.raises(CranpmError, match="a bomb"):
        pieces(zipped(tmp_path / "a.zip", "bomb.nc", b"\x00" * 2**24))
    with pytest.raises(CranpmError, match="a whole ZIP"):
        pieces(path_with(tmp_path / "a.zip", b"PK\x03\x04 nothing"))


def path_with(path, data):
    path.write_bytes(data)
    return path


def test_a_reader_that_dies_takes_nobody_with_it(tmp_path, monkeypatch, provider_files):
    """Of many files the one that kills is singled out; the others are seen."""
    killer = path_with(tmp_path / "killer.nc", b"\x89HDF\r\n\x1a\n" + b"\x00" * 64)
    real = sandbox._ask

    def deadly(job):
        if job["job"] == "look" and str(killer) in job["paths"]:
            raise sandbox.CrashError("its reader ended with signal 11")
        return real(job)

    monkeypatch.setattr(sandbox, "_ask", deadly)
    good = [provider_files / GHAP.format(8), next(provider_files.glob("SIM*.parquet"))]
    found = sandbox.look([good[0], killer, good[1]])
    assert [isinstance(one, FileSummary) for one in found] == [True, False, True]
    assert "signal 11" in found[1][1]


def test_a_reader_without_memory_or_time_is_reported(monkeypatch, archive, provider_files):
    """Real children, with real limits."""
    piece, days = Piece(provider_files / GHAP.format(8)), archive.days[1:2]
    monkeypatch.setattr(sandbox, "MEMORY_BYTES", 2**27)
    refused = sandbox.read_days("ghap", [piece], ReadQuery(days, archive.domain, []))[days[0]]
    assert isinstance(refused, str)  # each library has its own words for it
    monkeypatch.setattr(sandbox, "MEMORY_BYTES", 2**34)
    monkeypatch.setattr(sandbox, "SECONDS", 0)
    assert "its reader" in sandbox.read_days("ghap", [piece], ReadQuery(days, archive.domain, []))[days[0]]


def test_a_reader_does_not_import_what_lies_around(provider_files, tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise SystemExit('taken over')\n")
    monkeypatch.chdir(tmp_path)
    assert isinstance(sandbox.look([provider_files / GHAP.format(8)])[0], FileSummary)


@pytest.mark.long
def test_damaged_headers_never_crash_us(provider_files, tmp_path):
    """Three hundred files with bytes of their first kilobytes changed: refused, or read as something plausible."""
    random = np.random.default_rng(0)
    sources = [
        pressure(provider_files),
        provider_files / GHAP.format(8),
        next(provider_files.glob("SIM*.parquet")),
        next(provider_files.glob("cams*")),
    ]
    paths = []
    for number in range(300):
        data = bytearray(sources[number % 4].read_bytes())
        for place in random.integers(0, min(len(data), 4096), random.integers(1, 20)):
            data[place] = random.integers(256)
        paths.append(path_with(tmp_path / f"{number}.bin", bytes(data)))
    found = sandbox.look(paths)
    assert len({(one.piece if isinstance(one, FileSummary) else one[0]).path for one in found}) == 300


# Parts


@given(st.integers(1, 6), st.integers(2, 8), st.booleans(), st.booleans(), st.sampled_from([0.0, 360.0]))
@settings(max_examples=40, deadline=None)
def test_places_are_turned_north_up(rows, cols, upside, mirrored, shift):
    lat, lon = 50.0 - 0.25 * np.arange(rows), -10 + 0.25 * np.arange(cols)
    values = np.arange(rows * cols, dtype=float).reshape(rows, cols)
    raw_lat, raw_lon, raw = lat, np.where(lon < 0, lon + shift, lon), values
    if upside:
        raw_lat, raw = raw_lat[::-1], raw[::-1]
    if mirrored:
        raw_lon, raw = raw_lon[::-1], raw[:, ::-1]
    place = FileGrid.of(raw_lat, raw_lon, "file")
    assert np.array_equal(place.lat, lat)
    assert np.allclose(place.lon, lon)
    assert np.array_equal(place.turn(raw), values)


@pytest.mark.parametrize(
    ("lat", "lon", "reason"),
    [
        ([10, 95], [0, 1], "latitude -90..90"),
        ([10, 10], [0, 1], "every latitude once"),
        ([10, 9, 7], [0, 1], "even steps"),
        ([10, np.nan], [0, 1], "numbers"),
        ([[1, 2]], [0, 1], "one-dimensional"),
    ],
)
def test_places_that_are_none(lat, lon, reason):
    with pytest.raises(CranpmError, match=reason):
        FileGrid.of(np.array(lat, float), np.array(lon, float), "file")


def test_averages_keep_what_there_is():
    """Area-weighted, by hand: two rows of a source under one of the target."""
    source, target = Grid(50, 0, 0.5, 4, 4), Grid(50, 0, 1.0, 2, 2)
    values = np.arange(16, dtype=float).reshape(4, 4)
    weights = source.row_area_km2
    first = (values[0, :2].sum() * weights[0] + values[1, :2].sum() * weights[1]) / (2 * (weights[0] + weights[1]))
    found = onto(values, source, target, "x")
    assert found[0, 0] == pytest.approx(first)
    assert (found * target.row_area_km2[:, None]).sum() == pytest.approx((values * weights[:, None]).sum(), rel=1e-9)


@pytest.mark.parametrize("step", [0.1, 0.25, 0.75])
def test_a_gap_is_never_closed_by_regridding(step):
    """Finer, as fine and half a cell beside, coarser: one missing value inside is refused, one far away is not."""
    target = Domain("box", 48, 7, 42.75, 12.25).coarse
    rows, cols = (round(8.25 / step), round(8.25 / step))
    source = Grid(49.5 + step / 2, 5.5 - step / 2, step, rows, cols)
    values = np.ones(source.shape)
    values[rows // 2, cols // 2] = np.nan
    with pytest.raises(CranpmError, match="everywhere"):
        onto(values, source, target, "x")
    values[rows // 2, cols // 2] = 1
    values[0, 0] = np.nan
    assert np.isfinite(onto(values, source, target, "x")).all()


def test_nodes_beside_our_cells_are_interpolated():
    """ERA5's points lie on the corners of our cells: a linear field comes out exact."""
    target = Domain("box", 48, 7, 42.75, 12.25).coarse
    for rows, cols in ((22, 22), (21, 21)):  # as the store gives for the box, and without the last row and column
        source = Grid(48.125, 6.875, 0.25, rows, cols)
        values = 3 * source.lat[:, None] - 2 * source.lon
        assert np.allclose(onto(values, source, target, "era5"), 3 * target.lat[:, None] - 2 * target.lon, atol=1e-4)
    with pytest.raises(CranpmError, match="to cover"):
        onto(np.zeros((20, 22)), Grid(48.125, 6.875, 0.25, 20, 22), target, "era5")


def test_stuck_and_doubled_hours_of_a_station():
    start = np.datetime64("2021-01-01T01:00:00")
    values = [10.0 + hour for hour in range(24)] + [7.0] * 24
    table = pa.table(
        {
            "Samplingpoint": ["X/P"] * 49,
            "Pollutant": pa.array([6001] * 49, pa.int32()),
            "Start": [(start + np.timedelta64(hour, "h")).item() for hour in [*range(48), 0]],
            "End": [(start + np.timedelta64(hour + 1, "h")).item() for hour in [*range(48), 0]],
            "Value": [*values, 10.0],
            "Unit": ["ug.m-3"] * 49,
            "AggType": ["hour"] * 49,
            "Validity": pa.array([1] * 49, pa.int32()),
        }
    )
    dropped = {}
    found = eea.daily_means(table, "x", dropped)
    assert found == {"P": {date(2021, 1, 1): pytest.approx(21.5)}}
    below = table.set_column(7, "Validity", pa.array([3] * 49, pa.int32()))
    assert eea.daily_means(below, "x", {})["P"][date(2021, 1, 2)] == pytest.approx(7.0)
    assert (dropped["stuck"], dropped["a time twice"]) == (24, 1)
    with pytest.raises(CranpmError, match=r"PM2\.5 in ug\.m-3"):
        eea.daily_means(table.set_column(5, "Unit", pa.array(["mg.m-3"] * 49)), "x", {})


def test_openaq(here, tmp_path, archive):
    lines = ["location_id,sensors_id,location,datetime,lat,lon,parameter,units,value"]
    for hour in range(24):
        utc = f"2021-01-0{1 if hour < 23 else 2}T{(hour + 1) % 24:02d}:00:00+00:00"
        lines.append(f"2178,1,There,{utc},28.6,77.2,pm25,µg/m³,{100 + hour}")
    lines.append("2178,1,There,2021-01-01T05:30:00+05:30,28.6,77.2,pm25,µg/m³,-999")
    path = tmp_path / "location-2178-20210101.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    (seen,) = sandbox.look([path])
    assert (seen.provider, seen.holds) == ("openaq", ("openaq-2178",))
    reading = day_of("openaq", [Piece(path)], date(2021, 1, 1), archive.domain)
    assert reading.fields["stations"].tolist() == [pytest.approx(111.5)]


def test_requests_say_exactly_what_is_asked():
    days = [date(2021, 12, 31) + timedelta(days=n) for n in range(3)]
    europe = Domain("europe", 72, -25, 30, 45)
    asked = PROVIDERS["era5"].requests(FetchQuery(days, europe))
    assert [request.ask["collection"] for request in asked] == [
        *["reanalysis-era5-single-levels", "reanalysis-era5-pressure-levels"] * 2,
        "reanalysis-era5-single-levels",
    ]
    assert asked[0].ask["request"]["area"] == [72, -25, 30, 45]
    assert asked[2].ask["request"]["day"] == ["01", "02"]
    assert asked[1].ask["request"]["pressure_level"] == ["500", "700", "850", "925", "1000"]
    midnight = asked[4].ask["request"]
    assert (midnight["day"], midnight["time"], midnight["variable"]) == (["03"], ["00:00"], ["total_precipitation"])
    assert asked[0].name != PROVIDERS["era5"].requests(FetchQuery(days, Domain("alps", 50, 4, 42, 16)))[0].name
    (cams,) = PROVIDERS["cams"].requests(FetchQuery(days[1:], europe))
    assert cams.ask["request"]["date"] == ["2022-01-01/2022-01-02"]
    assert cams.ask["request"]["area"] == [72.75, -26.25, 29.25, 45.75]
    ghap = PROVIDERS["ghap"].requests(FetchQuery(days, europe))
    assert [request.ask["record"] for request in ghap] == [10799203, 10795662]
    with pytest.raises(CranpmError, match="which GHAP has"):
        PROVIDERS["ghap"].requests(FetchQuery([date(2031, 1, 1)], europe))
    tiles = PROVIDERS["elevation"].requests(FetchQuery([], Domain("box", 48, -2, 42, 4)))
    assert len(tiles) == 36
    assert tiles[0].name == "Copernicus_DSM_COG_30_N42_00_W002_00_DEM.tif"


def test_a_scan_lists_what_is_of_no_use(here, provider_files, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "half.nc.part").write_bytes(b"x")
    (tmp_path / "a" / ".hidden").write_bytes(b"x")
    (tmp_path / "a" / "readme.txt").write_text("hello\n")
    found = scan([tmp_path / "a", provider_files / GHAP.format(8)])
    assert [one.provider for one in found.files] == ["ghap"]
    assert list(found.refused) == [str(tmp_path / "a" / "readme.txt")]


def test_parquet_of_others_is_not_ours(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    assert PROVIDERS["eea"].recognise(Piece(tmp_path / "a.parquet")) is None


def grib_message(name, level, step, value, day=20210105):
    """One field of 3 x 4 points as ECMWF's open data have it."""
    message = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2" if level else "regular_ll_sfc_grib2")
    keys = {
        "Ni": 4,
        "Nj": 3,
        "latitudeOfFirstGridPointInDegrees": 50.0,
        "latitudeOfLastGridPointInDegrees": 49.5,
        "longitudeOfFirstGridPointInDegrees": 355.0,
        "longitudeOfLastGridPointInDegrees": 355.75,
        "iDirectionIncrementInDegrees": 0.25,
        "jDirectionIncrementInDegrees": 0.25,
        "dataDate": day,
        "dataTime": 0,
    }
    eccodes.codes_set(message, "setLocalDefinition", 1)
    eccodes.codes_set(message, "class", "od")
    for key, setting in keys.items():
        eccodes.codes_set(message, key, setting)
    eccodes.codes_set(message, "shortName", name)
    if level:
        eccodes.codes_set(message, "level", level)
    eccodes.codes_set(message, "stepRange", f"0-{step}" if name == "tp" else str(step))
    eccodes.codes_set_values(message, np.full(12, float(value)))
    return eccodes.codes_get_message(message)


def test_open_data_of_the_forecast(tmp_path):
    """Heights become geopotential; rain, which counts from the start, is what a day adds; three hours will do."""
    steps = range(0, 49, 3)
    data = b"".join(grib_message("gh", 500, step, 5500 + step) for step in steps)
    data += b"".join(grib_message("tp", 0, step, step**2 / 1e5) for step in steps if step)
    found = grib.variables(path_with(tmp_path / "ifs.grib2", data), "ifs")
    height, rain = (
        Timeline(name, [v for v in found if v.quantity.name == name], level)
        for name, level in (("gh", 500.0), ("tp", 0.0))
    )
    assert set(found[0].versions) == {OPERATIONAL}
    assert [(v.model, v.start.item().day, v.accumulated) for v in found] == [("ifs", 5, False), ("ifs", 5, True)]
    assert np.allclose(found[0].file_grid.lon, [-5, -4.75, -4.5, -4.25])
    for day, begin in ((date(2021, 1, 5), 0), (date(2021, 1, 6), 24)):
        mean, _, note = era5_day(height, CHANNELS["z500"], day, False)
        assert note == ""
        assert np.allclose(mean, 9.80665 * (5500 + begin + np.mean(range(0, 24, 3))))
        total, _, _ = era5_day(rain, CHANNELS["tp"], day, False)
        assert np.allclose(total, ((begin + 24) ** 2 - begin**2) / 1e5, atol=1e-6)


def test_forecasts_of_two_days_are_two_variables(tmp_path):
    """Step 24 of one run and step 0 of the next are for the same hour, and stay apart, also within a file."""
    data = b"".join(
        grib_message("gh", 500, step, 5500 + step + day % 10, day)
        for day in (20210105, 20210106)
        for step in range(0, 25, 3)
    )
    one, other = grib.variables(path_with(tmp_path / "both.grib2", data), "both")
    assert (one.times[-1], one.leads[-1]) == (other.times[0], 24) == (np.datetime64("2021-01-06T00:00:00"), 24)
    assert one.read(np.array([8]))[0, 0, 0] == pytest.approx(5529, rel=1e-5)
    assert other.read(np.array([0]))[0, 0, 0] == pytest.approx(5506, rel=1e-5)


def test_a_day_out_of_a_zarr_of_the_globe(tmp_path):
    """As ARCO-ERA5 is laid out: hours since 1900, all levels, longitudes 0 to 360, units in attributes."""
    lat, lon, levels = 50 - 0.25 * np.arange(30), 0.25 * np.arange(40), [300, 500, 700, 850, 925, 1000]
    group = zarr.create_group(tmp_path / "globe.zarr")
    first = (date(2021, 1, 4) - date(1900, 1, 1)).days * 24
    axes = {"latitude": lat, "longitude": lon, "level": np.array(levels), "time": first + np.arange(72)}
    for name, values in axes.items():
        group.create_array(name, data=values)
    group["time"].attrs["units"] = "hours since 1900-01-01"
    hours = np.arange(72)[:, None, None]
    base = np.broadcast_to(lat[:, None] + lon / 10, (72, 30, 40))
    surface = {
        "10m_u_component_of_wind": ("m s**-1", base / 10),
        "10m_v_component_of_wind": ("m s**-1", base / 20),
        "2m_temperature": ("K", 230 + base + hours / 10),
        "surface_pressure": ("Pa", 9e4 + base),
        "total_precipitation": ("m", np.broadcast_to(hours / 1e4, base.shape)),
    }
    for name, (unit, values) in surface.items():
        group.create_array(name, data=values.astype(np.float32)).attrs["units"] = unit
    height = np.array(levels)[None, :, None, None] / 1000
    aloft = {
        "u_component_of_wind": ("m s**-1", base[:, None] / 10 * height),
        "v_component_of_wind": ("m s**-1", base[:, None] / 10 * height),
        "temperature": ("K", 200 + base[:, None] * height),
        "geopotential": ("m**2 s**-2", 1e5 * (1 - height) + base[:, None]),
        "specific_humidity": ("kg kg**-1", 1e-5 * base[:, None] * height),
    }
    for name, (unit, values) in aloft.items():
        group.create_array(name, data=values.astype(np.float32)).attrs["units"] = unit
    cloud = ZarrStore("arco", "ARCO-ERA5", "bucket", "prefix", 1, "total_precipitation", 0.0)
    domain = Domain("box", 49, 2, 43.75, 7.25)
    day = date(2021, 1, 5)
    cloud.copy(group, day, domain, tmp_path / "arco.nc")
    reading = day_of("era5", [Piece(tmp_path / "arco.nc")], day, domain)
    centre = domain.coarse.lat[:, None] + domain.coarse.lon / 10
    assert np.allclose(reading.fields["t2m"], 230 + centre + np.mean(range(24, 48)) / 10, atol=1e-3)
    assert np.allclose(reading.fields["tp"], sum(range(25, 49)) / 1e4, rtol=1e-5)
    assert np.allclose(reading.fields["t850"], 200 + centre * 0.85, atol=1e-3)
    with pytest.raises(CranpmError, match="times up to"):
        cloud.copy(group, date(2021, 1, 7), domain, tmp_path / "late.nc")
    assert cloud.requests(FetchQuery([day], domain))[0].ask["zarr"] == "gs://bucket/prefix"
    six = ZarrStore("weatherbench2", "WeatherBench 2", "bucket", "prefix", 6, "total_precipitation", 0.0)
    six.copy(group, day, domain, tmp_path / "six.nc")
    with pytest.raises(CranpmError, match="24 times"):
        day_of("era5", [Piece(tmp_path / "six.nc")], day, domain)
    reading = day_of("era5", [Piece(tmp_path / "six.nc")], day, domain, lenient=True)
    assert "u10: 6-hourly" in reading.notes
    assert np.allclose(reading.fields["tp"], sum(range(30, 49, 6)) / 1e4, rtol=1e-5)


def test_real_stations_among_simulated_fields(here, tmp_path, monkeypatch, capsys):
    """One winter's days of Bohemia: the stations are EEA's own files, what is missing is simulated; then a forecast."""
    if not REAL_STATIONS.is_dir():
        pytest.skip(f"the providers' files are not at {REAL_STATIONS}; set CRANPM_SHARED to where they are")
    box, files = "52,11,46.75,17", str(tmp_path / "files")
    world = [str(tmp_path / "world"), "--set", "simulation.spin_up_days=1"]
    line = ["simulate", "--domain", box, "--days", "2023-01-10..2023-01-12", *world, "-q"]
    assert run_cli(monkeypatch, *line) == 0
    assert run_cli(monkeypatch, "export", str(tmp_path / "world"), "--to", files) == 0
    for path in [*(tmp_path / "files").glob("*.parquet"), tmp_path / "files" / "DataExtract.csv"]:
        path.unlink()
    line = ["ingest", files, str(REAL_STATIONS), "--archive", str(tmp_path / "a"), "--domain", box, "--jobs", "1", "-q"]
    assert run_cli(monkeypatch, *line) == 0
    made = Archive(str(tmp_path / "a"))
    assert len(made.days) == 3
    measured = dict(zip(made.stations.ids, made.stations_pm25(date(2023, 1, 11)), strict=True))
    point = "SPO.CZ_ALIBA_PM2_5_40288"
    hours = [
        float(row["Value"])
        for row in pq.read_table(REAL_STATIONS / f"{point}.parquet").to_pylist()
        if (row["Start"].to_pydatetime() - timedelta(hours=1)).date() == date(2023, 1, 11) and row["Validity"] > 0
    ]
    assert measured[point] == pytest.approx(np.mean(hours), rel=1e-6)
    line = ["forecast", "--archive", str(tmp_path / "a"), "--day", "2023-01-11", "--weights", "persistence"]
    assert run_cli(monkeypatch, *line, "--format", "nc", "--out", str(tmp_path / "products")) == 0
    with netCDF4.Dataset(tmp_path / "products" / "2023-01-11" / "pm25_2023-01-11.nc") as file:
        assert "simulated data" in file.summary  # one simulated file is enough
