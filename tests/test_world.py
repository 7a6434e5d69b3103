from datetime import date, timedelta

import numpy as np
import pytest
from conftest import SETTINGS
from sample_days import FIRST, SMALL

from cranpm.channels import COARSE, INDEX
from cranpm.days import DayRange
from cranpm.errors import CranpmError
from cranpm.fields import Quality
from cranpm.simulate import SavedAir, SimulationSettings, World


@pytest.fixture(scope="module")
def three(world):
    return list(world.days(DayRange(FIRST, FIRST + timedelta(days=2))))


def same(one, other):
    pairs = ((one.coarse, other.coarse), (one.pm25_ugm3, other.pm25_ugm3), (one.stations_ugm3, other.stations_ugm3))
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def test_days_pass_their_own_checks(world, three):
    assert [fields.day for fields in three] == [FIRST + timedelta(days=number) for number in range(3)]
    for fields in three:
        fields.check(SMALL, len(world.stations))
        assert fields.quality is Quality.GOOD
        assert np.isfinite(fields.coarse).all()
        assert fields.provenance["source"] == "simulation"


def test_every_channel_varies_in_space_and_time(three):
    for channel in COARSE:
        one, two = (fields.coarse[INDEX[channel.name]] for fields in (three[0], three[2]))
        assert one.std() > 0, channel.name
        assert not np.array_equal(one, two), channel.name


def test_extending_later_is_one_long_run(world, three):
    saved = SavedAir.of(
        FIRST + timedelta(days=1), list(world.days(DayRange(FIRST, FIRST + timedelta(days=1))))[-1].carry
    )
    (later,) = world.days(DayRange(FIRST + timedelta(days=2), FIRST + timedelta(days=2)), saved)
    assert same(later, three[2])
    # A state that lies too late is of no use: the days are run again from the start.
    (again,) = world.days(DayRange(FIRST + timedelta(days=1), FIRST + timedelta(days=1)), saved)
    assert same(again, three[1])


def test_the_last_day_carries_the_state(three):
    assert three[-1].carry["pm25"].dtype == np.float32
    assert [bool(fields.carry) for fields in three[:-1]] == [fields.day.toordinal() % 10 == 0 for fields in three[:-1]]


def test_seeds_differ_and_repeat(three):
    day = DayRange(FIRST, FIRST)
    (again,) = World(SMALL, SETTINGS).days(day)
    (other,) = World(SMALL, SETTINGS.model_copy(update={"seed": 1})).days(day)
    assert same(again, three[0])
    assert not same(other, three[0])


def test_days_before_the_first_are_refused(world):
    with pytest.raises(CranpmError, match="where this world starts"):
        next(world.days(DayRange(date(2019, 1, 1), FIRST)))
    with pytest.raises(CranpmError, match="a first day"):
        World(SMALL, SimulationSettings())


def other_world(name):
    return World(SMALL, SETTINGS.model_copy(update={"world": name}))


def test_reverse_wind_moves_plumes_to_the_other_side(three):
    (other,) = other_world("reverse-wind").days(DayRange(FIRST, FIRST))
    for name in ("u10", "v10", "u500", "v850"):
        assert np.allclose(other.coarse[INDEX[name]], -three[0].coarse[INDEX[name]], atol=1e-4)
    assert np.allclose(other.coarse[INDEX["t850"]], three[0].coarse[INDEX["t850"]])
    assert np.nanmean(np.abs(other.pm25_ugm3 - three[0].pm25_ugm3)) > 0.5


def test_flat_relief_has_no_blocking_and_the_same_coast(world, three):
    flat = other_world("flat-relief")
    assert not flat.statics.elevation_m.any()
    assert np.array_equal(flat.statics.land, world.statics.land)
    (other,) = flat.days(DayRange(FIRST, FIRST))
    speeds = [np.hypot(fields.coarse[0], fields.coarse[1]).mean() for fields in (other, three[0])]
    assert speeds[0] > 1.1 * speeds[1]
    assert other.coarse[INDEX["sp"]].min() > 9.4e4


def test_no_emissions_cleans_the_box_most(world, three):
    (other,) = other_world("no-emissions:46,8,44.75,11").days(DayRange(FIRST, FIRST))
    drop = three[0].pm25_ugm3 - other.pm25_ugm3
    inside = world.domain.fine.slices(45.75, 8.5, 45, 10.5)
    assert np.nanmean(drop[inside]) > 3 * np.nanmean(drop[:100, :100])
    # The transport's limiter is not linear, so a few pixels near the box's rim differ a little the other way.
    assert np.nanmin(drop) > -0.1 * np.nanmax(drop)


def test_truth_without_retrieval_noise(three):
    (truth,) = World(SMALL, SETTINGS.model_copy(update={"retrieval_noise": 0.0})).days(DayRange(FIRST, FIRST))
    ratio = three[0].pm25_ugm3 / truth.pm25_ugm3
    assert np.nanstd(np.log(ratio)) == pytest.approx(0.07, rel=0.2)
    assert np.array_equal(truth.stations_ugm3, three[0].stations_ugm3, equal_nan=True)
