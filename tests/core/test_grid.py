import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Domain, Grid, check_point, coarsen, parse_box, parse_domain
from cranpm.core.interpolation import refine
from cranpm.core.regions import parse_region

ALPS = DOMAINS["alps"]


def linear(grid, per_lat=2.0, per_lon=-0.5):
    return 3 + per_lat * grid.lat[:, None] + per_lon * grid.lon[None, :]


def test_shapes_of_the_named_domains():
    assert DOMAINS["europe"].fine.shape == (4192, 6992)
    assert DOMAINS["europe"].coarse.shape == (168, 280)
    assert ALPS.fine.shape == (800, 1200)
    assert ALPS.coarse.shape == (32, 48)
    for domain in DOMAINS.values():
        assert domain.fine.rows % 16 == domain.fine.cols % 16 == 0


def test_rows_run_south_and_columns_east():
    grid = ALPS.fine
    assert grid.lat[0] == pytest.approx(49.995)
    assert grid.lon[0] == pytest.approx(4.005)
    assert (np.diff(grid.lat) < 0).all()
    assert (np.diff(grid.lon) > 0).all()
    assert (grid.south, grid.east) == (42, 16)


@given(lat=st.floats(-89, 89), lon=st.floats(-179, 179))
def test_pixel_and_position_are_inverse(lat, lon):
    grid = DOMAINS["europe"].fine
    assert grid.lat_lon(*grid.row_col(lat, lon)) == pytest.approx((lat, lon), abs=1e-9)


def test_pixel_centres_are_whole_numbers_and_cells_nest():
    fine, coarse = ALPS.fine, ALPS.coarse
    assert fine.row_col(fine.lat[7], fine.lon[11]) == pytest.approx((7, 11))
    # The 25 fine rows of one coarse cell have their middle at the cell's centre.
    assert fine.lat[12] == pytest.approx(coarse.lat[0])


def test_area_of_the_globe():
    globe = Grid(90, -180, 0.25, 720, 1440)
    assert globe.row_area_km2.sum() * 1440 == pytest.approx(4 * np.pi * 6371.0**2)


def test_windows_and_slices_agree_with_coordinates():
    rows, cols = ALPS.fine.slices(46, 8, 45, 9)
    part = ALPS.fine.window(rows, cols)
    assert part.shape == (100, 100)
    assert np.allclose(part.lat, ALPS.fine.lat[rows])
    assert np.allclose(part.lon, ALPS.fine.lon[cols])
    with pytest.raises(CranpmError, match="overlaps the grid"):
        ALPS.fine.window(slice(900, 950), slice(0, 5))
    assert ALPS.fine.slices(10, 0, 5, 1) == (slice(0, 0), slice(0, 0))


def test_widen_keeps_the_lattice():
    wide = ALPS.coarse.widen(2)
    assert wide.shape == (48, 64)
    assert np.allclose(wide.lat[8:-8], ALPS.coarse.lat)


def test_coarsening_keeps_constants_and_means():
    fine, coarse = ALPS.fine, ALPS.coarse
    assert np.allclose(coarsen(np.full(fine.shape, 7.0), fine, coarse), 7)
    means = coarsen(linear(fine), fine, coarse)
    # Longitude is averaged exactly; latitude leans south by the growing area of the rows.
    assert np.allclose(means, linear(coarse), atol=2e-3)
    assert (means < linear(coarse)).all()


def test_coarsening_conserves_the_area_integral():
    fine, coarse = ALPS.fine, ALPS.coarse
    field = np.random.default_rng(0).gamma(2, 5, fine.shape)
    whole = (field * fine.row_area_km2[:, None]).sum()
    assert (coarsen(field, fine, coarse) * coarse.row_area_km2[:, None]).sum() == pytest.approx(whole, rel=1e-12)


def test_coarsening_uses_valid_pixels_only():
    fine, coarse = ALPS.fine, ALPS.coarse
    field = np.full(fine.shape, 4.0)
    field[:25, :13] = np.nan
    field[25:50, :25] = np.nan
    means = coarsen(field, fine, coarse)
    assert means[0, 0] == 4
    assert np.isnan(means[1, 0])


def test_coarsening_by_hand():
    fine, coarse = Grid(0.25, 0, 0.125, 2, 2), Grid(0.25, 0, 0.25, 1, 1)
    area = fine.row_area_km2
    expected = (area[0] * (1 + 2) + area[1] * 3) / (2 * area[0] + area[1])
    assert coarsen(np.array([[1.0, 2.0], [3.0, np.nan]]), fine, coarse)[0, 0] == pytest.approx(expected)


def test_trimmed_edges_are_covered_in_part():
    domain = DOMAINS["europe"]
    means = coarsen(np.ones(domain.fine.shape, np.float32), domain.fine, domain.coarse)
    assert means.shape == (168, 280)
    assert np.allclose(means, 1)


def test_grids_that_do_not_nest_are_refused():
    with pytest.raises(CranpmError, match="nests"):
        coarsen(np.zeros((10, 10)), Grid(50.003, 4, 0.01, 10, 10), ALPS.coarse)


def test_refining_is_exact_on_linear_fields():
    fine, coarse = ALPS.fine, ALPS.coarse
    assert np.allclose(refine(linear(coarse), coarse, fine), linear(fine), atol=1e-4)
    assert (refine(np.full(coarse.shape, 5.0), coarse, fine) == 5).all()


def test_refining_shares_the_weight_of_missing_neighbours():
    fine, coarse = ALPS.fine, ALPS.coarse
    field = np.full(coarse.shape, 9.0)
    field[10, 10] = np.nan
    field[20:23, 20:23] = np.nan
    fine_field = refine(field, coarse, fine)
    assert np.nanmax(np.abs(fine_field - 9)) < 1e-4
    assert np.isnan(fine_field[21 * 25 + 12, 21 * 25 + 12])
    # The pixel at the centre of the missing cell has no valid neighbour with weight.
    assert np.isnan(fine_field[10 * 25 + 12, 10 * 25 + 12])
    assert np.isfinite(fine_field[10 * 25 + 14, 10 * 25 + 14])


def test_refining_beyond_the_source_is_refused():
    with pytest.raises(CranpmError, match="a target with its centres inside"):
        refine(np.zeros(ALPS.coarse.shape), ALPS.coarse, ALPS.fine.widen(0.5))


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((42, 4, 50, 16), "north above south"),
        ((50, 16, 42, 4), "east beyond west"),
        ((95, 4, 42, 16), r"latitude in -90\.\.90 .* found latitude 95, longitude 4"),
        ((50, 4, 42, 190), r"longitude in -180\.\.180.* longitude 190"),
        ((50, 4, 47, 16), "at least one tile"),
        ((50.1, 4, 42, 16), "multiples of 0.25"),
        ((float("nan"), 4, 42, 16), "finite"),
    ],
)
def test_bad_boxes_are_refused(box, message):
    with pytest.raises(CranpmError, match=message):
        Domain("bad", *box)


def test_parsing_a_domain():
    assert parse_domain("alps") is DOMAINS["alps"]
    assert parse_domain("50,4,42,16").coarse == ALPS.coarse
    with pytest.raises(CranpmError, match="a domain name"):
        parse_domain("atlantis")


NOWHERE = [(float("nan"), 5), (5, float("nan")), (float("inf"), 5), (5, -float("inf")), (90.001, 5), (5, -180.5)]


@pytest.mark.parametrize(("lat", "lon"), NOWHERE)
def test_points_that_are_nowhere_are_refused(lat, lon):
    with pytest.raises(CranpmError, match="a finite latitude in"):
        check_point(lat, lon)
    with pytest.raises(CranpmError, match="a finite latitude in"):
        parse_box(f"{lat},{lon},44,13", "a region", "--region x")
    with pytest.raises(CranpmError, match="a finite latitude in"):
        parse_box(f"46,7,{lat},{lon}", "a region", "--region x")


@given(lat=st.floats(-90, 90), lon=st.floats(-180, 180))
def test_points_on_the_globe_are_given_back(lat, lon):
    assert check_point(lat, lon) == (lat, lon)


@pytest.mark.parametrize(
    "numbers", [(float("nan"), 4, 0.1), (50, float("inf"), 0.1), (50, 4, 0), (50, 4, float("nan"))]
)
def test_grids_that_are_nowhere_are_refused(numbers):
    with pytest.raises(CranpmError, match="a grid with a finite north-west edge"):
        Grid(*numbers, 4, 4)


@pytest.mark.parametrize("text", ["nan,7,44,13", "46,inf,44,13", "1e308,7,44,13", "91,7,44,13", "46,-181,44,13"])
def test_boxes_of_no_place_are_refused(text):
    with pytest.raises(CranpmError, match=r"a finite latitude in -90\.\.90"):
        parse_region(text, DOMAINS["alps"].fine)
    with pytest.raises(CranpmError, match="a finite latitude in"):
        parse_domain(text)


@pytest.mark.parametrize("point", [(np.nan, 9), (45, np.nan), (np.inf, 9), (1e308, 9), (91, 9), (45, -181), (45, 181)])
def test_points_of_no_place_are_refused(point):
    with pytest.raises(CranpmError, match=r"a finite latitude in -90\.\.90 and a finite longitude in -180\.\.180"):
        check_point(*point)


def test_points_on_the_edges_of_the_earth_are_places():
    for point in ((90, 0), (-90, 180), (0, -180)):
        check_point(*point)
