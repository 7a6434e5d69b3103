from datetime import date, timedelta

import numpy as np
import pytest

from cranpm.core.geography import load_region
from cranpm.core.grid import DOMAINS, Grid
from cranpm.simulate.observe import place_stations, retrieve

DAY = date(2021, 1, 5)
GRID = Grid(48, 7, 0.01, 512, 512)


def test_retrieval_noise_has_the_asked_size_and_keeps_missing():
    truth = np.full(GRID.shape, 20.0, np.float32)
    truth[:50] = np.nan
    seen = retrieve(truth, GRID, 0.07, 11)
    error = np.log(seen[50:] / 20)
    assert np.isnan(seen[:50]).all()
    assert error.std() == pytest.approx(0.07, rel=0.15)
    assert abs(error.mean()) < 0.01
    # Smooth over some kilometres: neighbours agree, far pixels do not.
    assert np.corrcoef(error[:, 1:].ravel(), error[:, :-1].ravel())[0, 1] > 0.7
    assert abs(np.corrcoef(error[:, 40:].ravel(), error[:, :-40].ravel())[0, 1]) < 0.1


def test_retrieval_noise_is_fixed_to_place_and_day():
    truth = np.full(GRID.shape, 20.0, np.float32)
    whole = retrieve(truth, GRID, 0.07, 11)
    part = GRID.window(slice(101, 303), slice(57, 333))
    assert np.allclose(retrieve(truth[101:303, 57:333], part, 0.07, 11), whole[101:303, 57:333], rtol=1e-6)
    assert np.array_equal(retrieve(truth, GRID, 0.07, 11), whole)
    assert not np.array_equal(retrieve(truth, GRID, 0.07, 13), whole)
    assert retrieve(truth, GRID, 0.0, 11) is truth


@pytest.fixture(scope="module")
def europe():
    region, grid = load_region("europe"), DOMAINS["europe"].fine
    return place_stations(region, grid, region.land(grid), np.full(grid.shape, 5.0, np.float32), seed=0)


def test_about_three_thousand_stations_on_land(europe):
    stations = europe.stations
    assert 2700 < len(stations) <= 3000
    assert len(set(stations.ids)) == len(stations)
    assert set(stations.kind) == {"background", "traffic", "industrial"}
    assert set(stations.area) == {"urban", "suburban", "rural"}
    assert len(set(stations.country)) > 30


def test_a_smaller_domain_has_the_same_stations(europe):
    region, grid = load_region("europe"), DOMAINS["alps"].fine
    part = place_stations(region, grid, region.land(grid), np.full(grid.shape, 5.0, np.float32), seed=0)
    assert set(part.stations.ids) <= set(europe.stations.ids)
    assert 300 < len(part.stations) < 700


def test_readings_are_near_the_truth_with_outages(world):
    truth = np.where(world.statics.land, 30.0, np.nan).astype(np.float32)
    days = [DAY + timedelta(days=number) for number in range(0, 140, 7)]
    readings = np.array([world.network.report(truth, world.domain.fine, 0, day) for day in days])
    silent = np.isnan(readings).mean()
    assert 0.03 < silent < 0.12
    error = np.log(readings / 30)
    assert 0.12 < np.nanstd(error) < 0.35
    traffic = world.stations.kind == "traffic"
    assert np.nanmean(error[:, traffic]) > np.nanmean(error[:, ~traffic])
    again = world.network.report(truth, world.domain.fine, 0, days[0])
    assert np.array_equal(again, readings[0], equal_nan=True)


def test_altitude_is_that_of_the_pixel(world):
    rows, cols = (np.round(x).astype(int) for x in world.domain.fine.row_col(world.stations.lat, world.stations.lon))
    assert np.array_equal(world.stations.altitude_m, world.statics.elevation_m[rows, cols])
