"""Products are read through one door: a flipped bit, another grid or a foreign file is refused; old ones say so."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import rasterio
from command import run_cli

from cranpm.core import files as core_files
from cranpm.core.errors import CranpmError
from cranpm.core.files import SUMS, write_sums
from cranpm.core.grid import Grid
from cranpm.core.packing import PUBLISHED
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.publication import (
    FORMATS,
    AbsentError,
    DamagedError,
    Format,
    Publication,
    open_publication,
    publish,
    reader,
    watch,
    writer,
)
from cranpm.forecasting.publication import points as reading
from cranpm.forecasting.publication.geotiff import write_cog
from cranpm.forecasting.publication.watch import Watch
from cranpm.views.figures import product_maps  # noqa: F401  registers png

ALL = ("nc", "zarr", "tif", "png")
LEADS = (1, 2, 10)
FLIPS = 12


@pytest.fixture(scope="module")
def small(archive) -> Forecast:
    """Leads of one and two digits on a small part of the domain, so that files are small."""
    rows, cols = slice(100, 196), slice(200, 296)
    today = archive.pm25(archive.days[2], (rows, cols))
    fields = np.stack([today, today * 0.5 + 2, today * 1.5])
    made = {"method": "persistence", "archive_source": "simulation", "archive_snapshot": archive.snapshot}
    return Forecast(archive.days[2], LEADS, fields, archive.domain.fine.window(rows, cols), (), made)


@pytest.fixture
def product(small, archive, tmp_path):
    return publish(small, archive, tmp_path, ("nc", "tif"))


@pytest.fixture
def old_product(small, archive, tmp_path, monkeypatch):
    """As written by old versions: no checksums, and the provenance states neither them nor the leads."""
    monkeypatch.setattr(writer, "_with_contents", lambda forecast: forecast)
    product = publish(small, archive, tmp_path, ("nc", "tif"))
    (product / SUMS).unlink()
    return product


def flip(path: Path, place: int, bit: int) -> None:
    """Flip one bit in place; size, name and time stay."""
    state = path.stat()
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ (1 << bit)]))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_one_flipped_bit_in_any_file_is_refused(small, archive, tmp_path):
    """At least 100 flips over all formats and the checksums themselves; none is read as a number."""
    product = publish(small, archive, tmp_path, ALL)
    rng, tried = np.random.default_rng(0), 0
    for path in sorted(product.resolve().rglob("*")):
        if not path.is_file():
            continue
        for _ in range(FLIPS):
            place, bit = int(rng.integers(path.stat().st_size)), int(rng.integers(8))
            flip(path, place, bit)
            with pytest.raises(DamagedError, match=r"expected .*; found .*Make the forecast again"):
                open_publication(tmp_path).run(small.day)
            flip(path, place, bit)
            tried += 1
    assert tried >= 100
    assert open_publication(tmp_path).run(small.day).checked


def test_every_bit_of_the_checksums_counts(product, small):
    path = product.resolve() / SUMS
    line = path.read_text().index("\n") + 1
    for place in range(line):
        for bit in range(8):
            flip(path, place, bit)
            with pytest.raises(DamagedError):
                Publication(product.parent).run(small.day)
            flip(path, place, bit)


def test_leads_of_two_digits_are_read_back(product, small):
    run = open_publication(product.parent).run(small.day)
    assert run.leads == LEADS
    assert np.nanmax(np.abs(run.pm25(10) - small.of(10))) <= 0.0501
    here = (slice(3, 5), slice(7, 11))
    assert np.array_equal(run.pm25(10, here), run.pm25(10)[here], equal_nan=True)
    with pytest.raises(AbsentError, match="a lead among 1, 2, 10"):
        run.pm25(3)


@pytest.mark.parametrize("form", ["nc", "zarr", "tif"])
def test_every_format_gives_the_same_numbers(small, archive, tmp_path, form):
    publish(small, archive, tmp_path, (form,))
    run = open_publication(tmp_path).newest()
    assert run.formats == {form}
    assert (run.leads, run.grid, run.checked, run.simulated) == (LEADS, small.grid, True, True)
    assert np.array_equal(run.pm25(2), PUBLISHED.unpack(PUBLISHED.pack(small.of(2))), equal_nan=True)
    lat, lon = small.grid.lat[5], small.grid.lon[7]
    wanted = [None if np.isnan(f[5, 7]) else pytest.approx(f[5, 7], abs=0.051) for f in small.fields]
    assert [lead.pm25 for lead in reading.point(run, lat, lon).forecast] == wanted


def test_products_without_checksums_are_read_and_labelled(old_product, small, monkeypatch, capsys):
    product = old_product
    run = open_publication(product.parent).run(small.day)
    assert not run.checked
    point = ["point", str(product), "--lat", str(small.grid.lat[5]), "--lon", str(small.grid.lon[7])]
    assert run_cli(monkeypatch, *point) == 0
    assert "without checksums" in capsys.readouterr().out
    assert run_cli(monkeypatch, *point, "--json") == 0
    assert json.loads(capsys.readouterr().out)["checked"] is False


@pytest.mark.parametrize("with_sums", [True, False])
def test_impossible_values_are_refused(small, old_product, with_sums):
    """Also where they were published with checksums by whatever wrote them."""
    product = old_product
    path = next(product.glob("*T+2.tif"))
    with rasterio.open(path) as raster:
        tags, what = raster.tags(), raster.descriptions[0]
    write_cog(np.full(small.grid.shape, -536.9, np.float32), small.grid, path, what, tags)
    if with_sums:
        write_sums(product)
    with pytest.raises(DamagedError, match=r"0\.\.2000 ug m-3 at T\+2"):
        Publication(product.parent).run(small.day)


def test_impossible_values_are_not_published(small, archive, tmp_path):
    for value in (-1.0, 2001.0):
        spoiled = small.fields.copy()
        spoiled[1, 0, 0] = value
        with pytest.raises(CranpmError, match=r"0\.\.2000 ug m-3 to publish"):
            publish(replace(small, fields=spoiled), archive, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_lead_on_another_grid_or_under_another_name_is_refused(small, old_product):
    product = old_product
    first, second = (product / f"pm25_{small.day}_T+{lead}.tif" for lead in (1, 2))
    kept = second.read_bytes()
    second.write_bytes(first.read_bytes())
    with pytest.raises(DamagedError, match=r"T\+2 from .* found .*T\+1 from"):
        Publication(product.parent).run(small.day)
    second.write_bytes(kept)
    with rasterio.open(second) as raster:
        tags, what = raster.tags(), raster.descriptions[0]
    other = Grid(round(small.grid.north + 1, 9), small.grid.west, 0.01, *small.grid.shape)
    write_cog(small.of(2), other, second, what, tags)
    with pytest.raises(DamagedError, match=r"T\+2 of .* on the grid of T\+1"):
        Publication(product.parent).run(small.day)


def test_a_raster_that_names_other_files_is_not_opened(small, old_product, tmp_path_factory):
    """A VRT under the name of a GeoTIFF could read any file or address."""
    product = old_product
    path = product / f"pm25_{small.day}_T+2.tif"
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret.tif"
    elsewhere.write_bytes(path.read_bytes())
    rasterio.shutil.copy(elsewhere, str(path), driver="VRT")
    assert b"secret.tif" in path.read_bytes()
    with pytest.raises(DamagedError, match="products that cranpm wrote"):
        Publication(product.parent).run(small.day)


def test_files_beside_a_raster_change_nothing(small, old_product):
    """GDAL would read scales and missing values from a file beside it; a viewer may have left one."""
    product = old_product
    wanted = open_publication(product.parent).run(small.day).pm25(1)
    beside = product / f"pm25_{small.day}_T+1.tif.aux.xml"
    beside.write_text('<PAMDataset><PAMRasterBand band="1"><Scale>9</Scale></PAMRasterBand></PAMDataset>')
    assert np.array_equal(open_publication(product.parent).run(small.day).pm25(1), wanted, equal_nan=True)


def test_a_file_that_was_added_is_refused(small, product):
    (product / f"pm25_{small.day}_T+3.tif").write_bytes((product / f"pm25_{small.day}_T+2.tif").read_bytes())
    with pytest.raises(DamagedError, match="only files that SHA256SUMS lists"):
        Publication(product.parent).run(small.day)


def test_a_copy_without_links_can_be_read(small, product, tmp_path):
    shutil.copytree(product, tmp_path / "copied" / str(small.day))
    run = open_publication(tmp_path / "copied").run(small.day)
    assert run.checked
    assert len(run.version) == 8


def test_what_changed_is_checked_again_and_what_did_not_is_not(small, product, monkeypatch):
    publication, hashed = Publication(product.parent), []
    honest = core_files.sha256
    monkeypatch.setattr(core_files, "sha256", lambda path: hashed.append(path) or honest(path))
    publication.run(small.day)
    count = len(hashed)
    assert count == 4
    publication.run(small.day)
    assert len(hashed) == count
    path = product / f"pm25_{small.day}_T+2.tif"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedError):
        publication.run(small.day)
    again = len(hashed)
    with pytest.raises(DamagedError):
        publication.run(small.day)
    assert len(hashed) == again  # a damaged run is not read again for every request


def test_a_bit_that_is_lost_while_serving_is_found_in_the_background(small, product, monkeypatch):
    publication = Publication(product.parent)
    assert publication.run(small.day).checked
    path = product.resolve() / f"pm25_{small.day}_T+2.tif"
    flip(path, path.stat().st_size // 2, 3)
    assert publication.run(small.day).checked  # nothing shows it yet
    Watch(publication).check()
    with pytest.raises(DamagedError, match="with the checksum that SHA256SUMS states"):
        publication.run(small.day)
    assert list(publication.runs()[1]) == [small.day]


def test_the_background_thread_works_and_ends(small, product, monkeypatch):
    monkeypatch.setattr("cranpm.forecasting.publication.watch.EVERY_SECONDS", 0.01)
    publication = Publication(product.parent)
    publication.run(small.day)
    path = product.resolve() / f"pm25_{small.day}.nc"
    flip(path, 100, 0)
    watch = Watch(publication)
    watch.start()
    try:
        for _ in range(2000):
            if publication.runs()[1]:
                break
            time.sleep(0.01)
    finally:
        watch.close()
    assert list(publication.runs()[1]) == [small.day]
    assert not watch.alive


def test_the_folder_of_a_run_that_is_gone_is_named(small, product):
    publication = Publication(product.parent)
    publication.run(small.day)
    shutil.rmtree(product.resolve())
    with pytest.raises(DamagedError, match="no folder"):
        publication.run(small.day)


def test_everything_is_on_disk_before_the_pointer_moves(small, archive, tmp_path, monkeypatch):
    """After a power cut the link names a whole product."""
    events, fsync, move = [], os.fsync, os.replace

    def synced(handle):
        events.append(("sync", os.path.realpath(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def moved(source, target):
        events.append(("move", str(target)))
        move(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", moved)
    product = publish(small, archive, tmp_path, ("nc", "zarr", "tif"))
    pointed = events.index(("move", str(product)))
    before = {path for kind, path in events[:pointed] if kind == "sync"}
    version = product.resolve()
    assert {str(path) for path in (*version.rglob("*"), version, tmp_path)} <= before
    assert ("sync", str(tmp_path)) in events[pointed:]


def test_only_folders_of_ours_are_removed(small, archive, tmp_path):
    """A user's folder that merely looks alike stays, whatever its age; an old unfinished one of ours goes."""
    day = small.day
    alike = [
        tmp_path / name for name in (f".{day}.mine", f".{day}.deadbee", f".{day}.DEADBEEF", f".{day}.deadbeef.bak")
    ]
    thesis, ours, young = (tmp_path / f".{day}.{version}" for version in ("deadbeef", "0123abcd", "0123abce"))
    for folder in (*alike, thesis, ours, young):
        folder.mkdir()
    (thesis / "thesis.doc").write_text("years of work")
    for folder in (ours, young):
        (folder / f"pm25_{day}.nc").write_bytes(b"half")
    for folder in (*alike, thesis, ours):
        os.utime(folder, (0, 0))
    stray = tmp_path / f".{day}.0a0b0c0d.link"
    stray.symlink_to("nowhere")
    os.utime(stray, (0, 0), follow_symlinks=False)
    publish(small, archive, tmp_path, ("nc",))
    assert all(folder.is_dir() for folder in (*alike, thesis, young))
    assert not ours.exists()
    assert not stray.is_symlink()


def test_a_replaced_product_with_a_users_file_in_it_is_left(small, archive, tmp_path):
    old = publish(small, archive, tmp_path, ("nc",)).resolve()
    (old / "notes.txt").write_text("mine")
    publish(small, archive, tmp_path, ("nc",))
    assert (old / "notes.txt").exists()


def test_a_format_can_be_added(small, archive, tmp_path):
    def write(forecast, archive, folder, on_file):
        (folder / f"pm25_{forecast.day}.txt").write_text(f"{np.nanmean(forecast.fields):.1f}")

    FORMATS.add("txt", Format("one number", write))
    try:
        product = publish(small, archive, tmp_path, ("nc", "txt"))
    finally:
        FORMATS._things.pop("txt")
    assert f"pm25_{small.day}.txt" in (product / SUMS).read_text()


@pytest.mark.parametrize("place", ["nan,9", "45,nan", "inf,9", "45,-inf", "1e308,9", "91,9", "45,-181", "45,361"])
def test_coordinates_that_are_no_place_are_refused(small, product, monkeypatch, capsys, place):
    lat, lon = place.split(",")
    with pytest.raises(CranpmError, match=r"a finite latitude in -90\.\.90"):
        reading.point(open_publication(product.parent).newest(), float(lat), float(lon))
    assert run_cli(monkeypatch, "point", str(product), f"--lat={lat}", f"--lon={lon}") == 1
    assert "a finite latitude in -90..90" in capsys.readouterr().err
    with pytest.raises(CranpmError, match=r"a finite latitude in -90\.\.90"):
        reading.box(open_publication(product.parent).newest(), float(lat), 8.0, 44.0, float(lon))


def test_reading_and_writing_products_needs_no_torch():
    modules = "cranpm.forecasting.publication, cranpm.forecasting.forecast, cranpm.forecasting.publication.points"
    code = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "cranpm.forecasting.publication.points" in loaded
    assert not {"torch", "cranpm.views", "cranpm.network"} & set(loaded)


def test_no_folder_is_refused(tmp_path):
    with pytest.raises(CranpmError, match="a folder of forecasts"):
        open_publication(tmp_path / "none")
    with pytest.raises(AbsentError, match="forecasts in"):
        open_publication(tmp_path).newest()


@pytest.mark.parametrize("form", ["nc", "zarr", "tif"])
def test_a_product_that_lost_its_checksums_or_a_lead_is_refused(small, archive, tmp_path, form):
    product = publish(small, archive, tmp_path, (form,))
    kept = (product / SUMS).read_text()
    (product / SUMS).unlink()
    with pytest.raises(DamagedError, match="SHA256SUMS beside the"):
        Publication(tmp_path).run(small.day)
    (product / SUMS).write_text(kept)
    assert Publication(tmp_path).run(small.day).checked
    if form == "tif":
        (product / f"pm25_{small.day}_T+2.tif").unlink()
        write_sums(product)
        with pytest.raises(DamagedError, match=r"the leads \[1, 2, 10\] in the tif"):
            Publication(tmp_path).run(small.day)


def test_a_version_that_had_checksums_is_never_read_without_them(small, old_product):
    """Also one of an old version, which does not state that it has them."""
    write_sums(old_product)
    publication = Publication(old_product.parent)
    assert publication.run(small.day).checked
    (old_product / SUMS).unlink()
    for _ in range(2):
        with pytest.raises(DamagedError, match="as before"):
            publication.run(small.day)
        (old_product / "notes.txt").touch()


@pytest.mark.parametrize("error", [RuntimeError("NetCDF: HDF error"), OverflowError("too large")])
def test_whatever_a_library_says_of_a_damaged_file_is_one_sentence(small, product, monkeypatch, error):
    def fail(path):
        raise error

    monkeypatch.setattr("cranpm.forecasting.publication.stacks.opened", fail)
    with pytest.raises(DamagedError, match=str(error)):
        Publication(product.parent).run(small.day)


@pytest.mark.parametrize("form", ["nc", "zarr", "tif"])
def test_a_run_that_is_published_again_while_it_is_read_says_so(small, archive, tmp_path, form):
    publish(small, archive, tmp_path, (form,))
    run = open_publication(tmp_path).newest()
    run.pm25(1)
    publish(small, archive, tmp_path, (form,))
    with pytest.raises(AbsentError, match=r"published again while it was read.*Give the command again"):
        run.pm25(1)


def test_another_file_under_the_same_path_is_read_anew(small, archive, tmp_path):
    """A folder without links, as copies are, may be replaced in place."""
    copied = tmp_path / "copied" / str(small.day)
    for added in (0, 5):
        product = publish(replace(small, fields=small.fields + added), archive, tmp_path / "made", ("tif",))
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(product, copied)
        found = open_publication(copied.parent).run(small.day).pm25(1)
        assert np.nanmax(np.abs(found - small.of(1) - added)) <= 0.0501


def days_of(small, archive, folder, count):
    """Runs of some start days, newest first."""
    days = [small.day - timedelta(days=n) for n in range(count)]
    for day in days:
        publish(replace(small, day=day), archive, folder, ("tif",))
    return days


def test_the_newest_run_is_found_without_reading_the_others(small, archive, tmp_path, monkeypatch):
    days, opened = days_of(small, archive, tmp_path, 3), []
    honest = reader.open_run
    monkeypatch.setattr(reader, "open_run", lambda *given: opened.append(given[1]) or honest(*given))
    next((tmp_path / str(days[0])).glob("*.tif")).unlink()
    assert Publication(tmp_path).newest().day == days[1]
    assert opened == [str(day) for day in days[:2]]


def test_all_runs_are_compared_in_turn_and_none_stops_the_others(small, archive, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "AT_A_TIME", 2)
    days, compared = days_of(small, archive, tmp_path, 3), []
    publication = Publication(tmp_path)

    def recheck(run, pause):
        compared.append(run.day)
        raise RuntimeError("something unforeseen")

    monkeypatch.setattr(publication, "recheck", recheck)
    watching = Watch(publication)
    for _ in range(3):
        watching.check()
    assert compared == [*days, *days[:2]]
