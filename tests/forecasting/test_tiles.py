"""Plans reach all land, weights add up to 1, seams are measured."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cranpm.core.errors import CranpmError
from cranpm.core.geography import region_of
from cranpm.core.grid import DOMAINS
from cranpm.forecasting.tiles import Mosaic, Plan, adaptive_plan, even_plan, facts, land_plan, seam_excess

side = st.integers(40, 260)


@given(side, side, st.integers(17, 40), st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_weights_add_up_to_one_and_edges_are_anchored(rows, cols, size, overlap):
    plan = even_plan((rows, cols), size, overlap)
    mosaic = Mosaic(plan, overlap=overlap)
    for window in plan.windows():
        mosaic.add(window, np.ones((size, size), np.float32))
    assert np.abs(mosaic.field() - 1).max() <= 1e-6
    starts = sorted({row for row, _ in plan.corners})
    assert starts[0] == 0
    assert starts[-1] == rows - size
    assert all(second <= first + size - overlap for first, second in itertools.pairwise(starts))


def neighbours_share_a_tile(plan: Plan, land) -> bool:
    """Whether every two neighbouring land pixels lie together in some tile, so that no border cuts between them."""
    across, down = (np.zeros(plan.shape, dtype=bool) for _ in range(2))
    for rows, cols in plan.windows():
        across[rows, cols.start : cols.stop - 1] = True
        down[rows.start : rows.stop - 1, cols] = True
    return bool(across[:, :-1][land[:, :-1] & land[:, 1:]].all() and down[:-1][land[:-1] & land[1:]].all())


def shallow_overlaps_with_land(plan: Plan, land, overlap: int) -> list[tuple[slice, slice]]:
    """Where two tiles of a strip, or two strips, overlap by less than they should and more than nothing, on land.

    At sea it does no harm: no share of a tile changes on land. It happens at the far edge of the grid, where the last
    strip cannot begin later.
    """
    if plan.across:
        turned = Plan(plan.shape[::-1], plan.size, tuple((col, row) for row, col in plan.corners))
        return shallow_overlaps_with_land(turned, land.T, overlap)
    strips = sorted({row for row, _ in plan.corners})
    bands = [(band, slice(None)) for band in _shallow(strips, plan.size, overlap)]
    for strip in strips:
        starts = sorted(col for row, col in plan.corners if row == strip)
        bands += [(slice(strip, strip + plan.size), band) for band in _shallow(starts, plan.size, overlap)]
    return [band for band in bands if land[band].any()]


def _shallow(starts: list[int], size: int, overlap: int) -> list[slice]:
    pairs = itertools.pairwise(starts)
    return [slice(second, first + size) for first, second in pairs if size - overlap < second - first < size]


def test_shares_change_slowly_along_coasts():
    """Where tiles begin at a coast and strips meet, no tile may take over from one pixel to the next."""
    worst = 0.0
    for seed in range(20):
        random = np.random.default_rng(seed)
        land = np.zeros((200, 300), dtype=bool)
        for _ in range(12):
            row, col = random.integers(0, 190), random.integers(0, 290)
            land[row : row + random.integers(10, 90), col : col + random.integers(10, 90)] = True
        plan = adaptive_plan(land, 64, 16)
        mosaic = Mosaic(plan, overlap=16)
        for window in plan.windows():
            share = np.zeros(plan.shape)
            share[window] = mosaic.share(window)
            for axis in (0, 1):
                both = np.take(land, range(land.shape[axis] - 1), axis) & np.take(
                    land, range(1, land.shape[axis]), axis
                )
                worst = max(worst, float(np.abs(np.diff(share, axis=axis))[both].max(initial=0)))
    assert worst < 0.25


@given(st.integers(0, 2**32 - 1), side, side, st.integers(17, 40), st.integers(1, 8))
@example(1899, 40, 248, 17, 5)  # the last strip overlaps the one before by two pixels, at sea
@settings(max_examples=60, deadline=None)
def test_every_plan_reaches_all_land(seed, rows, cols, size, overlap):
    random = np.random.default_rng(seed)
    land = np.zeros((rows, cols), dtype=bool)
    for _ in range(random.integers(1, 12)):  # islands
        row, col = random.integers(0, rows), random.integers(0, cols)
        land[row : row + random.integers(1, 60), col : col + random.integers(1, 60)] = True
    plans = {plan: plan(land, size, overlap) for plan in (land_plan, adaptive_plan)}
    for plan in plans.values():
        assert facts(plan, land).land_covered == 1
        mosaic = Mosaic(plan, overlap=overlap)
        for window in plan.windows():
            mosaic.add(window, np.ones((size, size), np.float32))
        assert np.abs(mosaic.field()[land] - 1).max() <= 1e-6
        assert neighbours_share_a_tile(plan, land)
    assert shallow_overlaps_with_land(plans[adaptive_plan], land, overlap) == []
    assert len(plans[adaptive_plan]) <= len(plans[land_plan])


def test_a_shallow_overlap_on_land_would_be_seen():
    land = np.ones((17, 40), dtype=bool)
    shallow = Plan(land.shape, 17, ((0, 0), (0, 15), (0, 23)))
    assert shallow_overlaps_with_land(shallow, land, 5) == [(slice(0, 17), slice(15, 17))]
    land[:, 15:17] = False
    assert shallow_overlaps_with_land(shallow, land, 5) == []


def test_tiles_overlap_where_land_goes_on():
    land = np.ones((64, 300), dtype=bool)
    starts = [col for _, col in adaptive_plan(land, 64, 16).corners]
    assert starts[0] == 0
    assert starts[-1] == 300 - 64
    assert all(second <= first + 64 - 16 for first, second in itertools.pairwise(starts))


def test_two_far_islands_need_two_tiles():
    land = np.zeros((128, 400), dtype=bool)
    land[60:70, 30:60] = land[60:70, 350:390] = True
    assert len(adaptive_plan(land, 64, 16)) == 2
    assert len(even_plan(land.shape, 64, 16)) > 20


def test_europe_needs_fewer_tiles():
    grid = DOMAINS["europe"].fine
    land = region_of(grid).land(grid)
    assert len(adaptive_plan(land, 512)) < len(land_plan(land, 512)) < len(even_plan(grid.shape, 512))


def test_a_linear_field_survives():
    shape = (150, 210)
    field = (np.arange(shape[0])[:, None] + 2 * np.arange(shape[1])).astype(np.float32)
    plan = even_plan(shape, 64, 16)
    mosaic = Mosaic(plan, overlap=16)
    for window in plan.windows():
        mosaic.add(window, field[window])
    assert np.abs(mosaic.field() - field).max() <= 1e-6 * field.max()


def test_no_tile_leaves_nan():
    plan = Plan((64, 200), 64, ((0, 0),))
    mosaic = Mosaic(plan)
    mosaic.add(plan.windows()[0], np.ones((64, 64), np.float32))
    assert np.isnan(mosaic.field()[:, 64:]).all()
    assert np.isfinite(mosaic.field()[:, :64]).all()


def test_the_seam_metric_sees_cut_tiles_and_not_blended_ones():
    """Smooth tiles that disagree with each other, as those of a network do."""
    random = np.random.default_rng(0)
    plan = even_plan((400, 400), 128, 64)
    smooth = np.sin(np.arange(400) / 5)[:, None] * np.cos(np.arange(400) / 5)
    tiles = [(smooth[window] + random.normal(0, 0.5)).astype(np.float32) for window in plan.windows()]
    blended, cut = Mosaic(plan), np.zeros(plan.shape, np.float32)
    for window, tile in zip(plan.windows(), tiles, strict=True):
        blended.add(window, tile)
        cut[window] = tile
    assert seam_excess(blended.field(), plan) == pytest.approx(1, abs=0.1)
    assert seam_excess(cut, plan) > 1.5


def test_tiles_larger_than_the_grid_are_refused():
    with pytest.raises(CranpmError, match="tiles of at most 30 pixels"):
        even_plan((30, 50), 32)
