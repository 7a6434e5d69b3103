"""The files of a forecast: they follow the conventions, hold the same numbers, and appear whole or not at all."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import rasterio
import xarray

from cranpm.core import files as core_files
from cranpm.core.errors import CranpmError
from cranpm.core.packing import PUBLISHED
from cranpm.forecasting.engine import predict
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.publication import find_product, publish
from cranpm.forecasting.publication.dataset import to_dataset
from cranpm.forecasting.publication.points import point
from cranpm.views.figures import product_maps  # noqa: F401  registers png

ALL = ("nc", "zarr", "tif", "png")


@pytest.fixture(scope="module")
def forecast(archive) -> Forecast:
    """Three different leads, one of them with a value that a step of 0.1 cannot hold."""
    today = predict(archive, archive.days[2], None)
    fields = np.stack([today.fields[0], today.fields[0] * 0.7 + 3.033, today.fields[0] * 1.3])
    return replace(today, fields=fields)


@pytest.fixture(scope="module")
def product(forecast, archive, tmp_path_factory):
    return publish(forecast, archive, tmp_path_factory.mktemp("products"), ALL)


def files(product, suffix: str) -> list:
    return sorted(product.glob(f"*.{suffix}"))


@pytest.mark.filterwarnings("ignore")  # of the checker about itself
@pytest.mark.parametrize("standard", ["cf:1.11", "acdd:1.3"])
def test_the_conventions_are_kept(product, standard, tmp_path):
    from compliance_checker.runner import CheckSuite, ComplianceChecker

    CheckSuite.load_all_available_checkers()
    report = tmp_path / "report.json"
    ComplianceChecker.run_checker(
        str(files(product, "nc")[0]), [standard], 0, "normal", output_filename=str(report), output_format="json"
    )
    found = json.loads(report.read_text())[standard]
    problems = [
        f"{group['name']}: {group['msgs']}"
        for group in found["high_priorities"]
        if group["value"][0] < group["value"][1]
    ]
    assert not problems


def test_xarray_reads_times_and_numbers(product, forecast):
    with xarray.open_dataset(files(product, "nc")[0], decode_timedelta=False) as dataset:
        assert dataset.time.values.astype("datetime64[h]").astype(str).tolist() == [
            f"{forecast.valid(lead)}T12" for lead in (1, 2, 3)
        ]
        assert str(dataset.forecast_reference_time.values)[:13] == f"{forecast.day}T12"
        periods = (dataset.time - dataset.forecast_reference_time).values / np.timedelta64(1, "D")
        assert periods.tolist() == dataset.forecast_period.values.tolist() == [1, 2, 3]
        assert dataset.pm2p5.dtype == np.float32
        bounds = dataset.time_bnds.values.astype("datetime64[D]").astype(str)
        assert bounds[0].tolist() == [str(forecast.valid(1)), str(forecast.valid(2))]
        assert dataset.pm2p5.dims == ("time", "lat", "lon")
        assert np.allclose(
            dataset.pm2p5[1], PUBLISHED.unpack(PUBLISHED.pack(forecast.of(2))), atol=1e-4, equal_nan=True
        )
        assert np.nanmax(np.abs(dataset.pm2p5[1].values - forecast.of(2))) <= 0.0501
        assert dataset.lat[0] > dataset.lat[-1]
        provenance = json.loads(dataset.attrs["provenance"])
        assert provenance == {**forecast.provenance, "checksums": "SHA256SUMS", "leads": [1, 2, 3]}
        sea = np.isnan(forecast.of(1))
        assert set(np.unique(dataset.quality[0].values[sea])) == {2}
        assert set(np.unique(dataset.quality[0].values[~sea])) == {0}


def test_degraded_forecasts_are_labelled(forecast):
    dataset = to_dataset(replace(forecast, degraded=("yesterday is missing",)))
    assert dataset.attrs["degraded"] == "yesterday is missing"
    assert dataset.quality.attrs["comment"] == "yesterday is missing"
    assert set(np.unique(dataset.quality)) == {1, 2}


def test_geotiffs_are_cloud_optimised(product, forecast):
    from rio_cogeo.cogeo import cog_validate

    found = files(product, "tif")
    assert len(found) == 3
    for path in found:
        sound, errors, warnings = cog_validate(path, quiet=True)
        assert sound, errors
        assert not warnings
    with rasterio.open(found[2]) as raster:
        assert raster.crs.to_epsg() == 4326
        grid = forecast.grid
        assert tuple(raster.bounds) == pytest.approx((grid.west, grid.south, grid.east, grid.north))
        assert raster.tags()["Conventions"].startswith("CF")


def test_all_formats_hold_the_same_numbers(product):
    with (
        xarray.open_dataset(files(product, "nc")[0], decode_timedelta=False) as netcdf,
        xarray.open_zarr(files(product, "zarr")[0], consolidated=False, decode_timedelta=False) as zarr,
    ):
        assert np.allclose(netcdf.pm2p5.values, zarr.pm2p5.values, atol=1e-4, equal_nan=True)
        for index, path in enumerate(files(product, "tif")):
            with rasterio.open(path) as raster:
                values = raster.read(1, masked=True).filled(PUBLISHED.missing)
                values = np.where(values == PUBLISHED.missing, np.nan, values * raster.scales[0])
            assert np.allclose(values, netcdf.pm2p5[index].values, atol=1e-4, equal_nan=True)


def test_a_point_is_the_pixel_that_holds_it(product, forecast):
    row, col = np.argwhere(np.isfinite(forecast.of(1)))[1000]
    lat, lon = forecast.grid.lat[row], forecast.grid.lon[col]
    for place in (files(product, "nc")[0], product, product.parent):
        found = point(find_product(place), lat + 0.004, lon - 0.004).forecast
        assert [entry.lead for entry in found] == [1, 2, 3]
        assert found[1].pm25 == pytest.approx(PUBLISHED.unpack(PUBLISHED.pack(forecast.of(2)))[row, col], abs=1e-3)
        assert found[1].valid == forecast.valid(2)


def test_a_new_product_replaces_the_old_one_whole(forecast, archive, tmp_path):
    first = publish(forecast, archive, tmp_path, ("nc",))
    held = first.resolve()
    second = publish(replace(forecast, fields=forecast.fields + 1), archive, tmp_path, ("nc",))
    assert first == second
    assert not held.exists()
    assert len(list(tmp_path.iterdir())) == 2  # the name and what it points to


def test_a_folder_of_somebody_else_is_left_alone(forecast, archive, tmp_path):
    mine, place = tmp_path / "mine", tmp_path / "out" / str(forecast.day)
    mine.mkdir()
    place.mkdir(parents=True)
    for _ in range(2):
        with pytest.raises(CranpmError, match="free, or a product of ours"):
            publish(forecast, archive, place.parent, ("nc",))
        place.rmdir() if not place.is_symlink() else None
        if not place.exists():
            place.symlink_to(mine)
    assert mine.exists()
    assert [path.name for path in place.parent.iterdir()] == [str(forecast.day)]
    with pytest.raises(CranpmError, match="formats among"):
        publish(forecast, archive, tmp_path, ("xls",))


WRITER = """
import sys, time
from pathlib import Path
from cranpm.forecasting.publication import publish
from cranpm.forecasting.engine import predict
from cranpm.archive.store import Archive
archive = Archive(sys.argv[1])
def slowly(name):
    print(name, flush=True)
    if name.startswith("GeoTIFF"):
        time.sleep(60)
forecast = predict(archive, archive.days[2], None)
publish(forecast, archive, Path(sys.argv[2]), ("nc", "tif"), slowly)
"""


def test_kill_nine_while_writing_leaves_the_old_product(forecast, archive, tmp_path):
    old = publish(forecast, archive, tmp_path, ("nc",))
    before = files(old, "nc")[0].read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, archive.location, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and "GeoTIFF" not in process.stdout.readline():
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert files(old, "nc")[0].read_bytes() == before
    assert not files(old, "tif")
    left = [path for path in tmp_path.iterdir() if path.name.startswith(".") and path != old.resolve()]
    assert len(left) == 1
    publish(forecast, archive, tmp_path, ("nc",))
    assert left[0].exists()  # perhaps somebody is still writing it
    os.utime(left[0], (0, 0))
    publish(forecast, archive, tmp_path, ("nc",))
    assert not left[0].exists()


@pytest.mark.parametrize(("kind", "spare"), [("nc", 0.9), ("tif", 0.9), ("tif", 0.1), ("tif", 0.999)])
def test_a_full_disk_is_a_clear_error(forecast, archive, tmp_path, kind, spare):
    """Also where all but the last bytes fit."""
    old = publish(forecast, archive, tmp_path, (kind,))
    before = old.resolve()
    limit = int(spare * min(path.stat().st_size for path in files(old, kind)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(CranpmError, match="to write the product in"):
            publish(forecast, archive, tmp_path, (kind,))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert old.resolve() == before
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "Input/output error")])
def test_a_failure_after_the_link_moved_leaves_the_new_product(forecast, archive, tmp_path, monkeypatch, error):
    publish(forecast, archive, tmp_path, ("tif",))
    sync, before = core_files.sync, os.readlink(tmp_path / str(forecast.day))

    def fail_once_moved(path):
        if path == tmp_path and os.readlink(path / str(forecast.day)) != before:
            raise error
        sync(path)

    monkeypatch.setattr(core_files, "sync", fail_once_moved)
    with pytest.raises((KeyboardInterrupt, CranpmError)):
        publish(forecast, archive, tmp_path, ("tif",))
    assert os.readlink(tmp_path / str(forecast.day)) != before
    assert find_product(tmp_path).checked
