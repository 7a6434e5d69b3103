"""The report measures what it says: known answers on made-up samples, and the synthetic worlds in the long tests."""

from datetime import date, timedelta

import numpy as np
import pytest

from cranpm.core.days import parse_days
from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Grid
from cranpm.simulate.job import SimulationJob, sample
from cranpm.simulate.realism import PREDICTORS, Check, Sample, judge

GRID = Grid(50, 4, 0.25, 10, 14)


def made_up(days=600, memory=0.7, signal=0.0, seed=0):
    """AR(1) pollution whose innovations are announced, by `signal`, by yesterday's u850."""
    rng = np.random.default_rng(seed)
    hint, noise = rng.standard_normal((2, days, *GRID.shape))
    departure = np.zeros((days, *GRID.shape))
    for day in range(1, days):
        push = signal * hint[day - 1] + np.sqrt(1 - signal**2) * noise[day]
        departure[day] = memory * departure[day - 1] + np.sqrt(1 - memory**2) * push
    weather = rng.standard_normal((days, len(PREDICTORS), *GRID.shape)).astype(np.float32)
    weather[:, PREDICTORS.index("u850")] = hint
    weather[:, PREDICTORS.index("tp")] = 0.001 * np.abs(weather[:, PREDICTORS.index("tp")])
    pm25 = 30 + 6 * departure
    first = date(2021, 1, 1)
    return Sample([first + timedelta(days=n) for n in range(days)], GRID, pm25, pm25 + 9, weather)


def values(checks):
    return {check.name: check.value for check in checks}


def test_known_answers():
    found = values(judge(made_up()))
    assert found["median PM2.5, ug m-3"] == pytest.approx(30, abs=0.2)
    assert found["lag-1 autocorrelation of daily PM2.5"] == pytest.approx(0.7, abs=0.02)
    assert found["persistence RMSE at T+1, ug m-3"] == pytest.approx(6 * np.sqrt(2 * (1 - 0.7)), rel=0.02)
    assert found["persistence RMSE at T+2, ug m-3"] == pytest.approx(6 * np.sqrt(2 * (1 - 0.49)), rel=0.03)
    assert found["CAMS-like RMSE at 1 km, ug m-3 (above persistence)"] == pytest.approx(9)


def test_skill_is_found_where_it_is_and_only_there():
    """With signal s, the best regression leaves sqrt(1 - s^2) of the damped error at T+1."""
    name = "regression on weather against damped persistence at T+1, % RMSE"
    assert values(judge(made_up(signal=0.0)))[name] == pytest.approx(0, abs=1.5)
    assert values(judge(made_up(signal=0.6)))[name] == pytest.approx(20, abs=3)


def test_short_samples_say_nothing_of_skill_and_summers_nothing_of_winter():
    short = made_up(days=40)
    assert not any("regression" in name for name in values(judge(short)))
    summer = Sample(
        [day + timedelta(days=180) for day in short.days], GRID, short.pm25_ugm3, short.cams_ugm3, short.weather
    )
    assert not any("winter" in name for name in values(judge(summer)))


def test_too_few_days_are_refused():
    with pytest.raises(CranpmError, match="at least 5 days to report on; found 4"):
        judge(made_up(days=4))


def test_leads_are_those_asked_for():
    found = values(judge(made_up(days=40), leads=(2, 5)))
    assert "persistence RMSE at T+3, ug m-3" not in found
    assert found["persistence RMSE at T+5, ug m-3"] == pytest.approx(6 * np.sqrt(2 * (1 - 0.7**5)), rel=0.1)
    with pytest.raises(CranpmError, match="at least 14 days to report on; found 12"):
        judge(made_up(days=12), leads=(12,))


def test_checks_have_two_sides():
    assert Check("x", 5, 4, 6).holds
    assert not Check("x", 3, 4, 6).holds
    assert not Check("x", 7, None, 6).holds
    assert Check("x", 7).holds


@pytest.mark.long
@pytest.mark.parametrize("domain", ["alps", "europe"])
def test_the_synthetic_world_is_realistic(domain):
    """Two years: every figure of the report inside its wanted range."""
    job = SimulationJob(domain=DOMAINS[domain], days=parse_days("2021-01-01..2022-12-31"))
    checks = judge(sample(job, None))
    assert len(checks) >= 14
    assert [check for check in checks if not check.holds] == []
