import os
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from sample_days import FIRST, SETTINGS, SMALL

from cranpm.archive.day_data import Quality
from cranpm.core.channels import CHANNELS, PAPER_CHANNELS, Channel
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.simulate import SavedAir, SimulationSettings, World

INDEX = {channel.name: index for index, channel in enumerate(PAPER_CHANNELS)}


@pytest.fixture(scope="module")
def three(world):
    return list(world.days(DayRange(FIRST, FIRST + timedelta(days=2))))


def same(one, other):
    pairs = ((one.coarse, other.coarse), (one.pm25_ugm3, other.pm25_ugm3), (one.stations_ugm3, other.stations_ugm3))
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def test_days_pass_their_own_checks(world, three):
    assert [fields.day for fields in three] == [FIRST + timedelta(days=number) for number in range(3)]
    for fields in three:
        fields.check(SMALL, len(world.stations), world.channels)
        assert fields.quality is Quality.GOOD
        assert np.isfinite(fields.coarse).all()
        assert fields.provenance["source"] == "simulation"


def test_the_worst_imaginable_day_is_still_a_day(world):
    """Fifty times the pollution saturates the instruments; the archive's checks do not stop the run."""
    ((day, air, _),) = world.air(DayRange(FIRST, FIRST))
    worst = replace(air, pm25_ugm3=50 * air.pm25_ugm3 + 1000, fresh_ugm3=50 * air.fresh_ugm3)
    fields = world.observed(day, worst, {})
    fields.check(SMALL, len(world.stations), world.channels)
    assert np.nanmax(fields.pm25_ugm3) > 1400


def test_every_channel_varies_in_space_and_time(three):
    for channel in PAPER_CHANNELS:
        one, two = (fields.coarse[INDEX[channel.name]] for fields in (three[0], three[2]))
        assert one.std() > 0, channel.name
        assert not np.array_equal(one, two), channel.name


SENSIBLE = {
    # channel: winter mean, summer mean (ranges), least spread in space and time
    "u10": ((-3, 6), (-3, 6), 0.5),
    "v10": ((-5, 5), (-5, 5), 0.5),
    "t2m": ((262, 284), (284, 303), 3),
    "sp": ((8.6e4, 1.0e5), (8.6e4, 1.0e5), 3000),
    "tp": ((2e-4, 1e-2), (2e-4, 1e-2), 1e-4),
    "u500": ((4, 35), (-5, 25), 1),
    "v500": ((-25, 25), (-25, 25), 1),
    "t500": ((238, 258), (250, 270), 0.5),
    "t700": ((250, 275), (262, 288), 0.5),
    "t850": ((258, 284), (272, 298), 0.5),
    "t925": ((262, 288), (276, 302), 0.5),
    "t1000": ((266, 292), (280, 305), 0.5),
    "z500": ((5.1e4, 5.6e4), (5.3e4, 5.9e4), 100),
    "z850": ((1.2e4, 1.6e4), (1.25e4, 1.65e4), 50),
    "z1000": ((-1500, 2500), (-1500, 2500), 30),
    "q500": ((5e-5, 2e-3), (2e-4, 4e-3), 1e-5),
    "q850": ((8e-4, 6e-3), (3e-3, 1.2e-2), 1e-4),
    "q1000": ((1.5e-3, 9e-3), (5e-3, 1.8e-2), 1e-4),
    "cams_pm25": ((8, 70), (4, 40), 2),
    "cams_pm10": ((12, 100), (8, 60), 2),
    "cams_no2": ((3, 80), (1.5, 50), 1),
    "cams_o3": ((15, 75), (60, 140), 2),
    "cams_co": ((150, 700), (130, 450), 10),
}


def test_channels_have_the_means_and_spreads_of_the_season():
    for season, first in enumerate((date(2021, 1, 10), date(2021, 7, 10))):
        settings = SimulationSettings(first_day=first, spin_up_days=4)
        days = list(World(SMALL, settings).days(DayRange(first, first + timedelta(days=7))))
        fields = np.array([fields.coarse for fields in days])
        for name, bounds in SENSIBLE.items():
            low, high = bounds[season]
            values = fields[:, INDEX[name]]
            assert low < values.mean() < high, (name, first, values.mean())
            assert values.std() > bounds[2], (name, first, values.std())


def test_extending_later_is_one_long_run(world, three):
    saved = SavedAir.of(
        FIRST + timedelta(days=1), list(world.days(DayRange(FIRST, FIRST + timedelta(days=1))))[-1].restart
    )
    (later,) = world.days(DayRange(FIRST + timedelta(days=2), FIRST + timedelta(days=2)), saved)
    assert same(later, three[2])
    # A state that lies too late is of no use: the days are run again from the start.
    (again,) = world.days(DayRange(FIRST + timedelta(days=1), FIRST + timedelta(days=1)), saved)
    assert same(again, three[1])


def test_the_last_day_holds_the_state(three):
    assert three[-1].restart["pm25"].dtype == np.float32
    assert [bool(fields.restart) for fields in three[:-1]] == [
        fields.day.toordinal() % 10 == 0 for fields in three[:-1]
    ]


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


def test_worlds_differ_only_in_the_cause_that_was_changed(world):
    for name in ("reverse-wind", "flat-relief"):
        other = other_world(name)
        for field in ("always", "heating", "farmland", "allowed"):
            assert np.array_equal(getattr(other.emissions, field), getattr(world.emissions, field))
        assert np.array_equal(other.downscaler.textures, world.downscaler.textures)
    silent = other_world("no-emissions:46,8,44.75,11")
    assert np.array_equal(silent.emissions.always, world.emissions.always)
    assert np.array_equal(silent.downscaler.textures[:, :50, :50], world.downscaler.textures[:, :50, :50])
    with pytest.raises(CranpmError, match="overlaps the domain"):
        other_world("no-emissions:10,0,5,1")


THREADS = """
import sys, hashlib
sys.path.insert(0, sys.argv[1])
from sample_days import SETTINGS
from sample_days import FIRST, SMALL
from cranpm.core.days import DayRange
from cranpm.simulate import World
(day,) = World(SMALL, SETTINGS).days(DayRange(FIRST, FIRST))
parts = (day.coarse, day.pm25_ugm3, day.stations_ugm3, day.restart["pm25"])
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


def test_the_number_of_threads_changes_no_bit():
    digests = set()
    for threads in ("1", "2"):
        names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, threads)
        arguments = [sys.executable, "-c", THREADS, str(Path(__file__).parents[1])]
        result = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
        digests.add(result.stdout.strip())
    assert len(digests) == 1


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


def test_a_world_gives_the_channels_that_it_was_asked_for(world, three):
    """Fewer, in another order, and the height of the mixed layer, which is not among the paper's."""
    names = ("cams_o3", "blh", "t850")
    (day,) = World(SMALL, SETTINGS, [CHANNELS[name] for name in names]).days(DayRange(FIRST, FIRST))
    day.check(SMALL, len(world.stations), [CHANNELS[name] for name in names])
    assert day.coarse.shape == (3, *SMALL.coarse.shape)
    assert np.array_equal(day.coarse[0], three[0].coarse[INDEX["cams_o3"]])
    assert np.array_equal(day.coarse[2], three[0].coarse[INDEX["t850"]])
    assert 120 <= day.coarse[1].min() < day.coarse[1].max() <= 2500


@pytest.mark.parametrize(("quantity", "level"), [("pollen", None), ("temperature", 300), ("pm25", 850)])
def test_what_the_simulator_cannot_give_is_refused(quantity, level):
    channel = Channel("x", quantity, "1", "era5", 0, 1, 0, 1, "made up", level)
    with pytest.raises(CranpmError, match=f"the simulator can give: .* found x, which is {quantity}"):
        World(SMALL, SETTINGS, [channel])


@pytest.mark.parametrize("box", ["nan,8,45,11", "46,8,45,inf", "1,2,3", "95,8,45,11"])
def test_boxes_that_are_nowhere_are_refused(box):
    with pytest.raises(CranpmError, match="N,W,S,E"):
        SimulationSettings(world=f"no-emissions:{box}")
