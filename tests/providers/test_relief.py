"""Relief is that of this place, in metres; what states that it is something else is refused; so are our products."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import rasterio
from command import run_cli
from rasterio.transform import from_origin

from cranpm.archive.store import Archive
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.core.geography import find_region, region_of
from cranpm.core.grid import Domain, Grid
from cranpm.providers import PROVIDERS, sandbox
from cranpm.providers.elevation import read_elevation
from cranpm.providers.gridded import label
from cranpm.providers.ingest import ingest
from cranpm.providers.provider import FileSummary
from cranpm.providers.quantities import BY_NAME
from cranpm.providers.readers.files import Piece
from cranpm.providers.relief import check_heights, check_relief, possible_heights

REAL = Path(os.environ.get("CRANPM_SHARED", Path(__file__).parents[3] / "shared")) / "realdata" / "elevation"
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"real rasters are not at {REAL}; set CRANPM_SHARED")
ITALY, TILE = ("italy_1km_epsg32632.tif", ""), ("N45E012.zip", "N45E012.hgt")
PLACES = [
    (ITALY, Grid(46.0, 10.0, 0.01, 100, 100)),
    (ITALY, Grid(45.3, 10.0, 0.01, 60, 200)),
    (ITALY, Grid(41.0, 15.5, 0.01, 250, 200)),
    (TILE, Grid(45.99, 12.01, 0.01, 98, 98)),
]


def true_relief(file, grid):
    land = region_of(grid).land(grid)
    return read_elevation([Piece(REAL / file[0], file[1])], grid, land)[0], land


def zeroed(heights):
    out = heights.copy()
    out[: out.shape[0] // 4, : out.shape[1] // 4] = 0
    return out


def pm25_like(heights):
    rows, cols = (np.arange(size) for size in heights.shape)
    return 15 + 5 * np.sin(rows / 50)[:, None] * np.cos(cols / 70) - 0.003 * heights


FAULTS = {
    "all zero": np.zeros_like,
    "feet": lambda heights: heights * np.float32(3.28084),
    "upside down": lambda heights: heights[::-1],
    "mirrored": lambda heights: heights[:, ::-1],
    "zeroed block": zeroed,
    "PM2.5": pm25_like,
    "another place": lambda heights: region_of(Grid(58, 8, 0.01, *heights.shape)).elevation(
        Grid(58, 8, 0.01, *heights.shape)
    )[0],
}


@real
@pytest.mark.parametrize(("file", "grid"), PLACES)
def test_real_rasters_are_accepted(file, grid):
    heights, land = true_relief(file, grid)
    check_relief(heights, land, grid, region_of(grid))


@real
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("file", "grid"), [PLACES[0], PLACES[2]])
def test_faults_of_real_rasters_are_refused(file, grid, fault):
    heights, land = true_relief(file, grid)
    with pytest.raises(CranpmError, match="cranpm fetch elevation"):
        check_relief(FAULTS[fault](heights), land, grid, region_of(grid))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("domain", [Domain("alps", 48, 7, 42.75, 12.25), Domain("north", 55, 8, 49.75, 14)])
def test_the_packaged_relief_is_accepted_and_its_faults_are_not(domain, fault):
    grid = domain.fine
    region = region_of(grid)
    heights, land = region.elevation(grid)[0], region.land(grid)
    check_relief(heights, land, grid, region)
    with pytest.raises(CranpmError, match="cranpm fetch elevation"):
        check_relief(FAULTS[fault](heights), land, grid, region)


COAST, ISLAND = Domain("coast", 57.75, 2, 52.5, 7.25), Domain("island", 36, -20, 30, -13)


@pytest.mark.parametrize("domain", [COAST, ISLAND])
def test_flat_coasts_and_islands_are_compared_or_noted(domain):
    grid = domain.fine
    region = region_of(grid)
    heights, land = region.elevation(grid)[0], region.land(grid)
    note = check_relief(heights, land, grid, region)
    assert ("too flat" in note) == (domain is COAST)
    for fault in ("feet", "PM2.5") if domain is ISLAND else ():
        with pytest.raises(CranpmError, match="packaged relief"):
            check_relief(FAULTS[fault](heights), land, grid, region)
    with pytest.raises(CranpmError, match="differ from place to place; found 10 m everywhere"):
        check_relief(np.where(land, 10.0, 0.0), land, grid, region)


def test_heights_of_any_provider_are_checked():
    grid = Domain("alps", 48, 7, 42.75, 12.25).fine
    heights, land = region_of(grid).elevation(grid)[0], region_of(grid).land(grid)
    assert check_heights(heights, heights, grid, land) == ""
    for wrong in (heights[::-1], heights[1:], np.full(grid.shape, np.nan)):
        with pytest.raises(CranpmError, match="cranpm fetch elevation"):
            check_heights(wrong, heights, grid, land)
    nowhere = Domain("nowhere", -20, 120, -25.25, 125.25).fine
    with pytest.raises(CranpmError, match="10 m everywhere"):
        check_heights(np.full(nowhere.shape, 10.0), np.zeros(nowhere.shape), nowhere, None)


def test_another_unit_shows_in_the_range():
    assert np.isnan(possible_heights(np.array([-9999, -32768, 3.4e38]), "x")).all()
    assert possible_heights(np.array([8848, -400]), "x").tolist() == [8848, -400]
    with pytest.raises(CranpmError, match=r"at most 8900 m in x; found 14000\. Convert feet"):
        possible_heights(np.array([14000, 3]), "x")


def write_raster(path, values, grid, unit="", description=""):
    shape = {"height": grid.rows, "width": grid.cols, "count": 1, "dtype": "float32"}
    where = {"crs": "EPSG:4326", "transform": from_origin(grid.west, grid.north, grid.step, grid.step)}
    with rasterio.open(path, "w", driver="GTiff", **shape, **where) as raster:
        raster.write(values.astype(np.float32), 1)
        if unit:
            raster.units = (unit,)
        if description:
            raster.set_band_description(1, description)


@pytest.mark.parametrize(
    ("unit", "description", "found"),
    [("ft", "", "unit 'ft'"), ("ug m-3", "", "unit 'ug m-3'"), ("", "daily mean PM2.5", "'PM2.5' in what it states")],
)
def test_a_raster_that_states_something_else_is_no_elevation(here, tmp_path, unit, description, found):
    write_raster(tmp_path / "a.tif", np.ones((20, 20)), Grid(48, 7, 0.01, 20, 20), unit, description)
    ((_, reason),) = sandbox.look([tmp_path / "a.tif"])
    assert "expected heights in metres" in reason
    assert found in reason
    write_raster(tmp_path / "a.tif", np.ones((20, 20)), Grid(48, 7, 0.01, 20, 20), "m", "height above the geoid")
    assert sandbox.look([tmp_path / "a.tif"])[0].provider == "elevation"


def test_a_raster_is_never_opened_as_a_list_of_other_files(here, tmp_path):
    (tmp_path / "a.hgt").write_text('<VRTDataset rasterXSize="1" rasterYSize="1"></VRTDataset>')
    ((_, reason),) = sandbox.look([tmp_path / "a.hgt"])
    assert "expected a raster" in reason


def test_pm25_lying_where_elevation_is_expected_becomes_no_relief(here, copy, archive, tmp_path):
    day = archive.days[0]
    write_raster(copy / "elevation.tif", np.nan_to_num(archive.pm25(day)), archive.domain.fine)
    with pytest.raises(CranpmError, match="cranpm fetch elevation"):
        ingest([copy], str(tmp_path / "a"), archive.domain, DayRange(day, day))
    assert not (tmp_path / "a").exists()


def test_outside_the_packaged_geography_the_report_says_what_was_not_checked(here, copy, archive, tmp_path):
    nowhere = Domain("nowhere", -20, 120, -25.25, 125.25)
    assert find_region(nowhere.fine) is None
    heights = np.full(nowhere.fine.shape, 300.0)
    heights[:, :50] = 0
    write_raster(copy / "elevation.tif", heights, nowhere.fine)
    table = (copy / "DataExtract.csv").read_text().splitlines()
    (copy / "DataExtract.csv").write_text("\n".join([table[0], "P,PM2.5,AU0001A,122.5,-22.5,300,urban,traffic"]) + "\n")
    report = ingest([copy], str(tmp_path / "a"), nowhere, DayRange(archive.days[0], archive.days[0]))
    assert "only unit and range were checked" in report.unchecked[0]
    land = Archive(str(tmp_path / "a")).land()
    assert not land[:, :50].any()
    assert land[:, 50:].all()


def test_our_own_products_are_no_inputs(here, filled, tmp_path, monkeypatch):
    made, _ = filled
    line = ["forecast", "--archive", made.location, "--day", str(made.days[1]), "--weights", "persistence"]
    assert run_cli(monkeypatch, *line, "--format", "nc", "--format", "tif", "--out", str(tmp_path)) == 0
    products = sorted(path for path in tmp_path.rglob("*") if path.suffix in (".nc", ".tif") and not path.is_symlink())
    assert {path.suffix for path in products} == {".nc", ".tif"}
    for path in products:
        ((_, reason),) = sandbox.look([path.resolve()])
        assert "a forecast made by cranpm: not an input" in reason


def test_levels_cannot_be_mistaken_for_heights():
    class Level:
        def __init__(self, name, kind):
            self.quantity, self.kind = BY_NAME[name], kind

    assert label(Level("u10", "surface"), 0.0) == "u10"
    assert label(Level("u", "pressure"), 10.0) == "u at 10 hPa"
    assert label(Level("v", "pressure"), 10.0) == "v at 10 hPa"
    assert label(Level("u", "pressure"), 850.0) == "u850"
    assert label(Level("t", "pressure"), 2.0) == "t at 2 hPa"
    assert label(Level("o3", "model"), 60.0) == "o3 on model level 60"


def test_a_file_of_many_levels_lists_channels_first(here, copy):
    """The 10-hPa level of a 37-level file is not wind at 10 m."""
    import netCDF4

    (path,) = copy.glob("era5-pressure*")
    shutil.copy(path, copy / "levels.nc")
    with netCDF4.Dataset(copy / "levels.nc", "a") as file:
        file["pressure_level"][0] = 10.0
    (seen,) = sandbox.look([copy / "levels.nc"])
    assert isinstance(seen, FileSummary)
    assert "u10" not in seen.holds
    assert "u at 10 hPa" in seen.holds
    assert [" " in name for name in seen.holds] == sorted(" " in name for name in seen.holds)
    assert PROVIDERS[seen.provider].name == "era5"
