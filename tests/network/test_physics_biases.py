"""Elevation bias, wind bias and wind scan: analytic cases, double loops, and every input."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cranpm.network.elevation_attention import ElevationAttention, elevation_bias, highest_between
from cranpm.network.token_geometry import sample, token_centres
from cranpm.network.wind import SECTORS, WindScan, scan_orders, sector, unit_wind, upwind, upwind_on_grid

ONE = torch.tensor(1.0)
anything = st.floats(width=32, allow_nan=True, allow_infinity=True)


def test_level_ground_has_no_bias():
    assert torch.equal(elevation_bias(torch.full((1, 4), 700.0), 1000.0, ONE), torch.zeros(1, 4, 4))


def test_looking_uphill_costs_and_downhill_is_free():
    bias = elevation_bias(torch.tensor([[0.0, 500.0]]), 1000.0, torch.tensor(2.0))[0]
    assert bias.tolist() == [[0, -1], [0, 0]]  # query at 0 m looks up at 500 m


def test_the_bias_ends_at_minus_ten():
    assert elevation_bias(torch.tensor([[-400.0, 8000.0]]), 500.0, ONE)[0, 0, 1] == -10


def test_elevation_bias_against_a_double_loop():
    random = torch.Generator().manual_seed(0)
    height = 6000 * torch.rand(2, 9, generator=random) - 400
    bias = elevation_bias(height, 500.0, torch.tensor(1.5))
    for b in range(2):
        for i in range(9):
            for j in range(9):
                rise = max(0.0, (float(height[b, j]) - float(height[b, i])) / 500)
                assert bias[b, i, j] == pytest.approx(max(-10.0, -1.5 * rise), abs=1e-5)


@given(height=st.lists(anything, min_size=2, max_size=5), alpha=st.floats(0, 100, width=32))
@settings(deadline=None)
def test_elevation_bias_is_always_between_its_limits(height, alpha):
    bias = elevation_bias(torch.tensor([height]), 500.0, torch.tensor(alpha))
    assert ((bias >= -10) & (bias <= 0)).all()


def test_a_ridge_hides_what_lies_behind_it_and_nothing_else():
    """Plain, ridge, plain: from one plain to the other the way leads over 2000 m, along the plain it does not."""
    ground = torch.tensor([[[0.0, 0, 2000, 0, 100]] * 3])
    highest = highest_between(ground)[0].unflatten(0, (3, 5)).unflatten(2, (3, 5))
    assert highest[1, 0, 1, 4] == highest[1, 4, 1, 0] == highest[0, 1, 2, 3] == 2000
    assert highest[0, 0, 2, 0] == highest[0, 0, 2, 1] == 0
    assert highest[0, 4, 2, 4] == 100
    assert highest[1, 2, 1, 0] == 2000  # the query's own height: looking down is free
    bias = elevation_bias(ground.flatten(1), 1000.0, ONE, highest_between(ground))[0]
    assert bias[5, 9] == -2  # where the paper's has nothing to say but 0.1
    assert bias[7, 5] == 0


def test_the_highest_ground_is_at_least_that_of_both_ends():
    ground = 3000 * torch.rand(2, 4, 6, generator=torch.Generator().manual_seed(1))
    highest, flat = highest_between(ground), ground.flatten(1)
    assert (highest >= torch.maximum(flat[:, None, :], flat[:, :, None])).all()
    assert highest.shape == (2, 24, 24)
    assert highest_between(ground[:1].expand(3, -1, -1)).shape == (1, 24, 24)
    straight = highest[:, 0, 5]  # along the first row
    assert torch.equal(straight, ground[:, 0].amax(dim=1))


def test_alpha_starts_at_one_and_is_never_negative():
    attention = ElevationAttention(8, 2, (2, 2), 1000.0)
    assert attention.strength == 1
    with torch.no_grad():
        attention.alpha.fill_(-0.5)
    assert attention.strength == 0.5


DIRECTIONS = {"westerly": (1, 0), "southerly": (0, 1), "southwesterly": (1, 1), "northeasterly": (-1, -1)}


@pytest.mark.parametrize("lat", [35.0, 70.0])
@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize("speed", [0.2, 8.0])
def test_upwind_is_plus_one(lat, name, speed):
    """A westerly blows from the west, so the token to the west is upwind; on the ground, not on the map."""
    u, v = DIRECTIONS[name]
    here = torch.tensor([[[lat, 10.0]]])
    length = math.hypot(u, v)
    east, north = 0.5 / math.cos(math.radians(lat)), 0.5  # equal distances in km
    there = torch.tensor(
        [
            [
                [lat - v * north, 10 - u * east],  # upwind
                [lat + v * north, 10 + u * east],  # downwind
                [lat + u * north, 10 - v * east],  # to the left
                [lat, 10.0],
            ]
        ]
    )
    wind = torch.tensor([[[u * speed / length, v * speed / length]]])
    assert upwind(here, there, wind)[0, 0].tolist() == pytest.approx([1, -1, 0, 0], abs=2e-5)


def test_upwind_against_a_double_loop():
    random = torch.Generator().manual_seed(1)
    here = torch.tensor([30.0, -25.0]) + torch.rand(1, 5, 2, generator=random) * torch.tensor([42, 70])
    there = torch.tensor([30.0, -25.0]) + torch.rand(1, 7, 2, generator=random) * torch.tensor([42, 70])
    wind = 10 * torch.randn(1, 5, 2, generator=random)
    got = upwind(here, there, wind)[0]
    for i in range(5):
        for j in range(7):
            lat, lon = here[0, i].tolist()
            north = (lat - float(there[0, j, 0])) * 111.2
            east = (lon - float(there[0, j, 1])) * 111.2 * math.cos(math.radians(lat))
            u, v = wind[0, i].tolist()
            expected = (east * u + north * v) / math.hypot(east, north) / math.hypot(u, v)
            assert got[i, j] == pytest.approx(expected, abs=1e-5)


def test_calm_air_has_no_direction():
    here, there = torch.tensor([[[45.0, 9.0]]]), torch.tensor([[[44.0, 9.0]]])
    assert upwind(here, there, torch.tensor([[[0.05, 0.05]]])).item() == 0
    assert upwind(here, there, torch.tensor([[[0.0, 0.11]]])).item() == pytest.approx(1)


@given(
    wind=st.tuples(anything, anything),
    lat=st.floats(-90, 90, width=32),
    other=st.floats(-90, 90, width=32),
    lon=st.floats(-180, 180, width=32),
)
@settings(deadline=None)
def test_wind_bias_is_finite_for_every_input(wind, lat, other, lon):
    here, there = torch.tensor([[[lat, 0.0]]]), torch.tensor([[[other, lon], [lat, 0.0]]])
    gamma = upwind(here, there, torch.tensor([[wind]]))
    assert (gamma.abs() <= 1 + 1e-5).all()
    assert gamma[0, 0, 1] == 0


def test_the_wind_is_taken_from_where_the_token_lies():
    """A field that is linear in latitude and longitude is read exactly; beyond the last centres it stays."""
    corner, step = torch.tensor([[50.0, 4.0]]), 0.25
    centres = token_centres(corner, 8, 12, step)
    field = centres.transpose(1, 2).unflatten(2, (8, 12))
    places = torch.tensor([[[49.3, 5.2], [48.9, 6.6]], [[49.875, 4.125], [49.99, 4.01]]])
    got = sample(field, corner, step, places)
    assert torch.allclose(got[0], places[0], atol=1e-5)
    assert torch.allclose(got[1], torch.tensor([49.875, 4.125]), atol=1e-5)


def test_tiles_read_the_field_of_their_own_day():
    field = torch.tensor([1.0, 2.0]).view(2, 1, 1, 1).expand(2, 1, 3, 3)
    places = torch.tensor([45.0, 9.0]).expand(4, 1, 2)
    got = sample(field, torch.tensor([[46.0, 8.0]] * 2), 0.25, places)
    assert got.flatten().tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("number", range(SECTORS))
def test_each_sector_is_scanned_upwind_first(number):
    angle = math.radians(22.5 * number)
    wind = torch.tensor([math.cos(angle), math.sin(angle)])
    assert sector(5 * wind) == number
    order = torch.tensor(scan_orders(7)[number])
    east, north = order % 7, -(order // 7)
    along = east * wind[0] + north * wind[1]
    assert (along.diff() > -1e-5).all()
    ties = along.diff().abs() < 1e-5
    across = north * wind[0] - east * wind[1]
    assert (across.diff()[ties] > 0).all()


def test_sectors_are_centred_and_calm_is_apart():
    for degrees, expected in ((11, 0), (12, 1), (-11, 0), (-12, 15), (180, 8), (-180, 8), (90, 4)):
        angle = math.radians(degrees)
        assert sector(torch.tensor([math.cos(angle), math.sin(angle)])) == expected
    assert sector(torch.tensor([0.05, 0.0])) == SECTORS
    assert sector(torch.tensor([math.nan, 0.0])) == SECTORS
    assert scan_orders(7)[SECTORS] == tuple(range(49))


def test_named_winds_are_scanned_from_their_side():
    westerly, southerly = scan_orders(3)[0], scan_orders(3)[4]
    assert westerly == (6, 3, 0, 7, 4, 1, 8, 5, 2)  # the west column first
    assert southerly[:3] == (8, 7, 6)  # the south row first


@given(seed=st.integers(0, 1000), window=st.integers(1, 7), groups=st.tuples(st.integers(1, 3), st.integers(1, 3)))
@settings(deadline=None, max_examples=40)
def test_unscan_undoes_scan(seed, window, groups):
    torch.manual_seed(seed)
    patch, (rows, cols) = 2, (window * groups[0], window * groups[1])
    wind = 5 * torch.randn(2, 2, rows * patch, cols * patch)
    scan = WindScan.along(wind, patch, window)
    grid = torch.randn(2, rows, cols, 3)
    assert torch.equal(scan.unscan(scan.scan(grid)), grid)
    assert torch.equal(scan.scan(grid[..., 0]), scan.scan(grid)[..., 0])


def test_each_group_follows_its_own_wind():
    wind = torch.zeros(1, 2, 4, 8)
    wind[:, 0, :, :4], wind[:, 0, :, 4:] = 3.0, -3.0  # westerly in the west, easterly in the east
    scan = WindScan.along(wind, patch=1, window=4)
    columns = torch.arange(8.0).expand(1, 4, 8)
    scanned = scan.scan(columns)
    assert scanned[0, 0, :4].tolist() == [0, 0, 0, 0]
    assert scanned[0, 0, 4:].tolist() == [7, 7, 7, 7]


def test_unit_wind_has_length_one_or_zero():
    wind = torch.tensor([[3.0, 4.0], [0.01, 0.0], [math.inf, 1.0], [math.nan, 1.0], [3e38, 3e38]])
    assert unit_wind(wind).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0], [0, 0], [0, 0], [0, 0]]


def test_pairs_follow_the_scan():
    """A matrix made of the tokens' numbers is, after the scan, made of the scanned numbers."""
    wind = torch.tensor([[3.0, 4.0], [-5.0, 1.0]])[:, :, None, None].expand(2, 2, 4, 8)
    scan = WindScan.along(wind, 1, 4)
    number = torch.arange(32.0)
    pairs = scan.scan_pairs((number[:, None] + 100 * number)[None], (4, 8))
    order = scan.scan(number.view(1, 4, 8).expand(2, 4, 8)).flatten(1)
    assert torch.equal(pairs, order[:, :, None] + 100 * order[:, None, :])
    assert not torch.equal(order[0], order[1])


def test_upwind_among_the_tokens_of_a_grid():
    """In a westerly the token to the west is upwind."""
    wind = torch.tensor([5.0, 0.0])[None, :, None, None].expand(1, 2, 2, 3)
    gamma = upwind_on_grid(wind, torch.tensor([[48.0, 4.0]]), 0.5)[0]
    assert gamma[1, 0] == pytest.approx(1, abs=1e-4)
    assert gamma[1, 2] == pytest.approx(-1, abs=1e-4)
    assert gamma[1, 4] == pytest.approx(0, abs=1e-4)
    assert gamma[1, 1] == 0
