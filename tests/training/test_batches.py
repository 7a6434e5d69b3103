"""Batches: the same for ever, shared by processes, over land, with the right day behind every number."""

import pickle
from datetime import date, timedelta

import numpy as np
import pytest
import torch
from model_cases import TINY, random_network

from cranpm.archive.day_data import held_out
from cranpm.core.days import usable
from cranpm.core.errors import CranpmError
from cranpm.training.batches import Batches, BatchOrder, SampleSettings, land_corners
from cranpm.training.inputs import Inputs

SETTINGS = SampleSettings(days=2, tiles=3, held_out_stations=0.5)
NETWORK = TINY.model_copy(update={"fine": TINY.fine.model_copy(update={"shape": (96, 96)})})
ONE_LEAD = NETWORK.model_copy(update={"leads": (1,)})


@pytest.fixture(scope="module")
def batches(month):
    return Batches(month, usable(month.days, month_range(month)), NETWORK, SETTINGS)


def month_range(archive):
    from cranpm.core.days import DayRange

    return DayRange(archive.days[0], archive.days[-1])


def parsed(name):
    """Day, lead, row and column from a tile's name."""
    day, lead, _, row, _, col = name.replace("..", "").split()
    return date.fromisoformat(day), int(lead[2:]), int(row), int(col)


def test_a_place_always_gives_the_same_batch(batches, month):
    again = Batches(month, batches.days, NETWORK, SETTINGS)
    one, two = batches[1, 3], pickle.loads(pickle.dumps(again))[1, 3]
    assert one.names == two.names
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(one.inputs, two.inputs, strict=True))
    assert batches[1, 4].names != one.names
    assert batches[2, 3].names != one.names


def test_an_epoch_sees_every_day_once(batches):
    seen = [parsed(name)[0] for number in range(len(batches)) for name in batches[0, number].names[::3]]
    assert len(set(seen)) == len(seen) == 2 * len(batches)


def test_an_epoch_may_see_some_days_or_all_of_them_again(batches, month):
    """The order begins as that of a whole epoch does."""

    def seen(days):
        some = Batches(month, batches.days, NETWORK, SETTINGS.model_copy(update={"epoch_days": days}))
        return [parsed(name)[0] for number in range(len(some)) for name in some[0, number].names[::3]]

    whole, count = seen(None), len(batches.days)
    assert seen(6) == whole[:6]
    twice = seen(2 * count)
    assert {twice.count(day) for day in batches.days} == {2}
    assert twice[:count] != twice[count:]


def test_numbers_are_those_of_the_archive(batches, month):
    batch = batches[0, 1]
    for tile, name in enumerate(batch.names):
        day, lead, row, col = parsed(name)
        window = (slice(row, row + 96), slice(col, col + 96))
        grid = month.domain.fine.window(*window)
        yesterday, valid = day - timedelta(days=1), day + timedelta(days=lead)
        assert int(batch.lead[tile]) == lead
        expected = [month.pm25(day, window), month.elevation(window), None, None, month.pm25(yesterday, window)]
        for channel, field in enumerate(expected):
            if field is not None:
                assert np.array_equal(batch.tiles.fine[tile, channel].numpy(), field, equal_nan=True)
        assert np.allclose(batch.tiles.fine[tile, 2, :, 0], grid.lat)
        assert np.allclose(batch.tiles.fine[tile, 3, 0], grid.lon)
        target = np.where(np.isnan(expected[0]), np.nan, month.pm25(valid, window))
        assert np.array_equal(batch.target[tile].numpy(), target, equal_nan=True)
        assert batch.tiles.position[tile].tolist() == pytest.approx([grid.north, grid.west])
        assert np.array_equal(batch.day.coarse[tile // 3, :35], month.coarse(day))
        assert np.array_equal(batch.day.coarse[tile // 3, 35:], month.coarse(yesterday))
    assert torch.equal(batch.day.wind, batch.day.coarse[:, :2])


def test_stations_lie_in_their_tile_and_some_are_never_seen(batches, month):
    hidden = held_out(len(month.stations), 0.5, 0)
    row, col = month.domain.fine.row_col(month.stations.lat, month.stations.lon)
    assert abs(hidden.mean() - 0.5) < 0.1
    seen = 0
    for number in range(3):
        batch = batches[0, number]
        for tile, name in enumerate(batch.names):
            day, lead, top, left = parsed(name)
            values = month.stations_pm25(day + timedelta(days=lead))
            for r, c, value in batch.stations[tile].tolist():
                if np.isnan(r):
                    continue
                which = np.flatnonzero((np.abs(row - top - r) < 1e-3) & (np.abs(col - left - c) < 1e-3))
                assert any(np.float32(values[i]) == np.float32(value) or np.isnan(value) for i in which)
                assert not hidden[which].all()
                seen += 1
    assert seen > 0


def test_processes_share_a_batch_by_days(batches, month):
    parts = [Batches(month, batches.days, NETWORK, SETTINGS, rank, 2)[0, 2] for rank in range(2)]
    assert parts[0].names + parts[1].names == batches[0, 2].names


def test_hotspots_are_drawn_more_often(month):
    def mean_pm25(ratio):
        settings = SETTINGS.model_copy(update={"hotspot_ratio": ratio, "tiles": 20})
        drawn = Batches(month, batches_days(month), ONE_LEAD, settings)
        return np.mean([float(np.nanmean(drawn[0, number].tiles.fine[:, 0])) for number in range(4)])

    assert mean_pm25(1.0) > mean_pm25(0.0) + 0.5


def batches_days(archive):
    return usable(archive.days, month_range(archive))


def test_tiles_lie_over_land():
    land = np.zeros((400, 600), bool)
    land[300:, 500:] = True
    corners, share = land_corners(land, 128)
    assert (share >= 0.05).all()
    for (row, col), part in zip(corners, share, strict=True):
        assert land[row : row + 128, col : col + 128].mean() == pytest.approx(part)
    assert [272, 472] in corners.tolist()  # the last tile ends at the far edge
    with pytest.raises(CranpmError, match="a domain with land; found none"):
        land_corners(~land & False, 128)
    with pytest.raises(CranpmError, match="tiles no larger than the domain, 400 x 600 pixels; found 512 x 512"):
        land_corners(land, 512)


def test_too_few_days_and_uneven_processes_are_refused(month):
    with pytest.raises(CranpmError, match=r"at least 2 usable training days \(one batch\); found 1"):
        Batches(month, month.days[1:2], ONE_LEAD, SETTINGS)
    with pytest.raises(CranpmError, match=r"samples\.days that 3 processes can share evenly; found 2"):
        Batches(month, month.days, ONE_LEAD, SETTINGS, 0, 3)


def test_the_order_of_batches_goes_on_from_anywhere():
    every = list(BatchOrder(3, 2))
    assert every == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert list(BatchOrder(3, 2, start=4)) == every[4:]
    assert len(BatchOrder(3, 2, start=4)) == 2


def test_a_small_memory_changes_nothing(month):
    window = (slice(100, 164), slice(200, 264))
    for day in month.days[:3]:
        plenty, none = Inputs(month, 1.0).pm25(day, window), Inputs(month, 0.0).pm25(day, window)
        assert np.array_equal(plenty, none, equal_nan=True)


def test_a_batch_runs_through_the_network(batches):
    with torch.inference_mode():
        assert random_network()(*batches[0, 0].inputs).shape == batches[0, 0].target.shape
