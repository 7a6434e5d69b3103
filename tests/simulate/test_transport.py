"""Analytic cases: a puff goes where the wind blows, keeps its mass, and comes back when the wind turns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranpm.core.grid import Grid
from cranpm.simulate.transport import move, step

ROWS, COLS = 80, 120
ROW, COL = np.mgrid[:ROWS, :COLS]
FLAT = np.ones(ROWS)


def puff(row=40.0, col=50.0, width=4.0):
    return np.exp(-((ROW - row) ** 2 + (COL - col) ** 2) / (2 * width**2))


def centre(field):
    return (field * ROW).sum() / field.sum(), (field * COL).sum() / field.sum()


def run(field, east, south, steps, inflow=0.0):
    for number in range(steps):
        field = move(field, east, south, FLAT, inflow, x_first=number % 2 == 0).field
    return field


@settings(deadline=None, max_examples=20)
@given(east=st.floats(-2.5, 2.5), south=st.floats(-1.5, 1.5))
def test_a_puff_arrives_where_the_wind_takes_it(east, south):
    steps = 10
    there = run(puff(40, 60), np.full((ROWS, COLS), east), np.full((ROWS, COLS), south), steps)
    assert centre(there) == pytest.approx((40 + steps * south, 60 + steps * east), abs=0.05)
    assert there.sum() == pytest.approx(puff(40, 60).sum(), rel=1e-6)
    assert there.min() >= 0
    assert there.max() <= 1


def test_many_cells_a_step_are_exact():
    there = run(puff(40, 20), np.full((ROWS, COLS), 23.0), np.zeros((ROWS, COLS)), 3)
    assert np.allclose(there, puff(40, 89), atol=1e-5)


def test_reversing_the_wind_mirrors_the_plume():
    source = puff(40, 59.5, 2)
    plumes = []
    for sign in (1, -1):
        field = np.zeros((ROWS, COLS))
        for number in range(15):
            east = np.full((ROWS, COLS), sign * 1.3)
            field = move(field + source, east, np.zeros((ROWS, COLS)), FLAT, 0.0, x_first=number % 2 == 0).field
        plumes.append(field)
    assert np.allclose(plumes[0], plumes[1][:, ::-1], atol=1e-9)
    assert plumes[0][:, 62:].sum() > 10 * plumes[0][:, :57].sum()


def test_solid_body_rotation_returns_the_puff():
    turn = 2 * np.pi / 60
    east, south = -turn * (ROW - 39.5), turn * (COL - 59.5)
    start = puff(25, 59.5, 4)
    back = run(start, east, south, 60)
    assert centre(back) == pytest.approx(centre(start), abs=0.3)
    assert back.sum() == pytest.approx(start.sum(), rel=1e-3)
    assert np.corrcoef(back.ravel(), start.ravel())[0, 1] > 0.98


def test_constants_stay_and_nothing_overshoots_in_any_flow():
    rng = np.random.default_rng(3)
    east, south = (np.cumsum(np.cumsum(rng.normal(0, 0.02, (ROWS, COLS)), 0), 1) * 0.05 for _ in range(2))
    assert np.allclose(run(np.full((ROWS, COLS), 4.0), east, south, 5, inflow=4.0), 4)
    rough = rng.uniform(2, 9, (ROWS, COLS))
    moved = run(rough, east, south, 5, inflow=5.0)
    assert moved.min() >= 2 - 1e-9
    assert moved.max() <= 9 + 1e-9


def test_what_enters_leaves_or_is_exchanged_adds_up():
    rng = np.random.default_rng(5)
    field = rng.uniform(0, 10, (ROWS, COLS))
    east = 1.5 + 0.02 * (COL - 60)
    south = -0.8 + 0.01 * (ROW - 40)
    weight = np.linspace(0.4, 0.9, ROWS)
    moved = move(field, east, south, weight, 3.0, x_first=True)
    change = ((moved.field - field) * weight[:, None]).sum()
    assert change == pytest.approx(moved.inflow + moved.exchange, rel=1e-9)
    # The flow diverges, so air comes down from above.
    assert moved.exchange > 0


def test_outflow_is_what_crosses_the_border():
    field = np.zeros((ROWS, COLS))
    field[:, -3:] = 7.0
    moved = move(field, np.full((ROWS, COLS), 2.0), np.zeros((ROWS, COLS)), FLAT, 0.0, x_first=True)
    assert moved.inflow == pytest.approx(-7.0 * 2 * ROWS)
    assert moved.exchange == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("u", "v", "towards"), [(10, 0, (0, 1)), (-10, 0, (0, -1)), (0, 10, (-1, 0)), (0, -10, (1, 0))]
)
def test_u_is_eastward_and_v_northward(u, v, towards):
    grid = Grid(60, 0, 0.1, ROWS, COLS)
    wind = (np.full((ROWS, COLS), float(u)), np.full((ROWS, COLS), float(v)))
    moved = step(puff(40, 60, 3), *wind, grid, 3600, 0.0, x_first=True)
    row, col = centre(moved.field)
    degrees = 36 / 111.195
    cells = degrees / 0.1 / (np.cos(np.radians(grid.lat[40])) if u else 1)
    assert (row - 40, col - 60) == pytest.approx((towards[0] * cells, towards[1] * cells), abs=0.05)
