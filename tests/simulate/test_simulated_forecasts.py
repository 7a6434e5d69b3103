"""Forecasts of the synthetic world: exact at lead 0, worse with every lead, and the same however they are made."""

from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import pytest
from command import run_cli
from sample_days import FIRST, SETTINGS, SMALL

from cranpm.archive.store import Archive
from cranpm.core.channels import PAPER_CHANNELS, channels_of, find_channel
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.simulate import SavedAir, World
from cranpm.simulate.forecast import _surface_means
from cranpm.simulate.forecast_realism import SCORED, ForecastScores
from cranpm.simulate.job import SimulationJob, days_ahead_in, sample, simulate_archive
from cranpm.simulate.waves import Waves, WaveSettings, hours_since_epoch

WEATHER = channels_of(PAPER_CHANNELS, "weather")
COMPOSITION = channels_of(PAPER_CHANNELS, "composition")


def after(days):
    return FIRST + timedelta(days=days)


@pytest.fixture(scope="module")
def three(world):
    """Three days, each with forecasts of two."""
    return list(world.days(DayRange(FIRST, after(2)), ahead=2))


def forecasts(data):
    return {(run.group, lead): run.fields[lead] for run in data.ahead for lead in run.leads}


def same_forecasts(one, other):
    ours, theirs = forecasts(one), forecasts(other)
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[key], theirs[key]) for key in ours)


def test_forecasts_come_as_two_runs_of_the_start_day(world, three):
    for data in three:
        data.check(SMALL, len(world.stations), world.channels)
        weather, composition = data.ahead
        assert (weather.group, weather.model) == ("weather", "simulation")
        assert (composition.group, composition.model) == ("composition", "simulation-cams")
        for run in data.ahead:
            assert run.reference == datetime(data.day.year, data.day.month, data.day.day)
            assert run.leads == (1, 2)
            assert run.provenance["forecast_version"] == 1


def test_nothing_is_wrong_at_lead_0(world):
    """The machinery, asked for the start day itself, gives what the instruments give on it."""
    ((day, air, _),) = world.air(DayRange(FIRST, FIRST))
    given = world.forecaster.forecast(day, 0, world.on_coarse(air))
    fields = np.stack([given[c.quantity, c.level_hpa] for c in world.channels]).astype(np.float32)
    assert np.array_equal(fields, world.coarse_channels(day, air))
    given = world.forecaster.forecast(day - timedelta(days=1), 1, world.on_coarse(air))
    for channel in world.channels:
        wrong = (
            given[channel.quantity, channel.level_hpa] - world.coarse_channels(day, air)[world.channels.index(channel)]
        )
        assert np.abs(wrong).max() > 0, channel.name


def test_base_days_keep_their_bits(world, three):
    for data, plain in zip(three, world.days(DayRange(FIRST, after(2))), strict=True):
        assert plain.ahead == []
        assert np.array_equal(data.coarse, plain.coarse)
        assert np.array_equal(data.pm25_ugm3, plain.pm25_ugm3, equal_nan=True)
        assert np.array_equal(data.stations_ugm3, plain.stations_ugm3, equal_nan=True)
        assert data.restart.keys() == plain.restart.keys()
        assert all(np.array_equal(data.restart[name], plain.restart[name]) for name in data.restart)


def test_any_way_to_a_day_gives_the_same_forecasts(world, three):
    """Some days only, after a stop, in a world built anew, and with more leads."""
    first, last = world.days([FIRST, after(2)], ahead=2)
    assert same_forecasts(first, three[0])
    assert same_forecasts(last, three[2])
    (stopped,) = world.days([after(1)], ahead=2)
    (resumed,) = World(SMALL, SETTINGS).days([after(2)], SavedAir.of(after(1), stopped.restart), ahead=2)
    assert same_forecasts(stopped, three[1])
    assert same_forecasts(resumed, three[2])
    (longer,) = world.days([FIRST], ahead=3)
    assert {key: fields.tobytes() for key, fields in forecasts(longer).items() if key[1] < 3} == {
        key: fields.tobytes() for key, fields in forecasts(three[0]).items()
    }


def test_start_days_have_errors_of_their_own(three):
    """Two runs see the same target day differently, and another seed's world has other forecasts."""
    target = three[2].coarse[[channel in WEATHER for channel in PAPER_CHANNELS]]
    old, new = three[0].ahead[0].fields[2] - target, three[1].ahead[0].fields[1] - target
    assert np.abs(old).mean() > 0
    assert np.abs(new).mean() > 0
    assert abs(np.corrcoef(old[0].ravel(), new[0].ravel())[0, 1]) < 0.98
    assert not np.allclose(old, new)


def test_waves_are_lost_by_the_share_that_the_settings_say():
    waves = Waves(WaveSettings(4000, 500, 1000, 100, 4, 1.0, run_error=0.1, run_growth=0.5), 0, "test", 45)
    start = hours_since_epoch(FIRST)
    assert np.array_equal(waves.amplitude(start + 23, start), waves.amplitude(start + 23))
    errors = []
    for lead in (1, 3, 5):
        true, wrong = waves.amplitude(start + 24 * lead + 5), waves.amplitude(start + 24 * lead + 5, start)
        correlation = np.vdot(true, wrong).real / np.linalg.norm(true) / np.linalg.norm(wrong)
        assert correlation == pytest.approx(1 / (1 + 0.1 * (np.exp(0.5 * lead) - 1)), abs=0.05)
        assert np.linalg.norm(wrong) == pytest.approx(np.linalg.norm(true), rel=0.1)
        errors.append(wrong - true)
    assert np.linalg.norm(errors[0]) < np.linalg.norm(errors[1]) < np.linalg.norm(errors[2])


@pytest.fixture(scope="module")
def errors(world):
    """(start day, lead, quantity, row, col): errors near the ground, and the truth, on forty days of a year."""
    grid, names = world.coarse_weather, ("u10", "v10", "t2m", "rain_mm")
    wrong, truth = [], []
    for start in (date(2021, 1, 3) + timedelta(days=9 * number) for number in range(40)):
        run = grid.forecast(hours_since_epoch(start))
        for lead in (1, 2, 3, 4, 5):
            true, forecast = (_surface_means(weather, start + timedelta(days=lead)) for weather in (grid, run))
            truth.append([true[name] for name in names])
            wrong.append([forecast[name] for name in names])
    shape = (40, 5, 4, *SMALL.coarse.shape)
    return np.array(wrong).reshape(shape), np.array(truth).reshape(shape)


def correlations(errors, own):
    forecast, truth = (x[:, :, own] - x[:, :, own].mean(0) for x in errors)
    axes = (0, 2, 3, 4)
    return (forecast * truth).sum(axes) / np.sqrt((forecast**2).sum(axes) * (truth**2).sum(axes))


def test_forecasts_get_worse_with_lead_as_real_ones_do(errors):
    """The wanted figures within 0.06 and 0.5 K: wider than the report's ranges, for forty days of a small box."""
    wind, rain = correlations(errors, [0, 1]), correlations(errors, [3])
    assert np.abs(wind - [0.97, 0.94, 0.90, 0.84, 0.76]).max() < 0.06
    warmth = np.sqrt(((errors[0] - errors[1])[:, :, 2] ** 2).mean((0, 2, 3)))
    assert np.abs(warmth - [1.0, 1.33, 1.65, 1.98, 2.3]).max() < 0.5
    assert (np.diff(wind) < 0).all()
    assert (np.diff(warmth) > 0).all()
    assert rain[0] > rain[2] > rain[4]
    assert (rain < wind).all()


def test_errors_of_consecutive_leads_are_alike(errors):
    wrong = (errors[0] - errors[1])[:, :, :3]
    near, far = (np.corrcoef(wrong[:, a].ravel(), wrong[:, b].ravel())[0, 1] for a, b in ((1, 2), (0, 4)))
    assert 0.5 < near < 0.98
    assert far < near


def test_a_reversed_world_forecasts_reversed_winds(three):
    reversed_world = World(SMALL, SETTINGS.model_copy(update={"world": "reverse-wind"}))
    (other,) = reversed_world.days([FIRST], ahead=2)
    for lead in (1, 2):
        ours, theirs = (data.ahead[0].fields[lead] for data in (three[0], other))
        for index, channel in enumerate(WEATHER):
            if channel.quantity in ("wind_u", "wind_v"):
                assert np.allclose(theirs[index], -ours[index], atol=1e-4), channel.name
        warmth = find_channel(WEATHER, "temperature", 850)
        assert np.allclose(theirs[warmth], ours[warmth])


def test_a_flat_world_forecasts_its_own_pressure(three):
    (flat,) = World(SMALL, SETTINGS.model_copy(update={"world": "flat-relief"})).days([FIRST], ahead=1)
    pressure = find_channel(WEATHER, "surface_pressure")
    assert flat.ahead[0].fields[1][pressure].min() > 9.3e4 > three[0].ahead[0].fields[1][pressure].min()


def test_composition_does_not_tell_the_true_weather(world):
    """Ozone follows the forecast's temperature, not the target day's own."""
    ((_, air, _),) = world.air([after(1)])
    truth = world.on_coarse(air)
    given = world.forecaster.forecast(FIRST, 1, truth)
    seen = world.cams.composition(replace(truth, t2m=given["temperature", None]), after(1), FIRST)
    assert np.allclose(given["o3", None], seen["o3", None])
    assert not np.allclose(given["o3", None], world.cams.composition(truth, after(1), FIRST)["o3", None])


def test_archives_hold_what_the_world_forecasts(archive, three):
    assert archive.ahead.days("weather") == archive.days
    count = days_ahead_in(archive)
    assert count >= 3
    for data in three:
        for group, lead in forecasts(data):
            assert np.array_equal(archive.ahead.fields(data.day, lead, group), forecasts(data)[group, lead])
        assert archive.ahead.leads(data.day, "composition") == tuple(range(1, count + 1))
    assert "ahead" not in archive.attributes["producer"]


def test_an_archive_keeps_its_number_of_days_ahead(tmp_path):
    path = str(tmp_path / "with")
    assert simulate_archive(path, SMALL, [FIRST], SETTINGS, ahead=1) == 1
    with pytest.raises(CranpmError, match=r"forecasts of 1 days ahead, .* found 2 days ahead asked for"):
        simulate_archive(path, SMALL, [after(1)], SETTINGS, ahead=2)
    assert simulate_archive(path, SMALL, [after(1)], SETTINGS) == 1
    assert Archive(path).ahead.leads(after(1), "weather") == (1,)


def test_an_archive_without_forecasts_stays_without(tmp_path, monkeypatch):
    path = str(tmp_path / "without")
    line = ["simulate", path, "--domain", "48,7,42.75,12.25", "--quiet", "--set", "simulation.spin_up_days=2"]
    assert run_cli(monkeypatch, *line, "--days", "2020-02-27", "--ahead", "0") == 0
    assert run_cli(monkeypatch, *line, "--days", "2020-02-28") == 0
    assert Archive(path).days == [FIRST, after(1)]
    assert Archive(path).ahead.days("weather") == []
    assert not Archive(path).has("ahead")
    with pytest.raises(CranpmError, match="forecasts of 0 days ahead"):
        simulate_archive(path, SMALL, [after(2)], SETTINGS, ahead=5)


def test_reports_of_an_archive_and_of_the_world_agree(archive, archive_path):
    job = SimulationJob(domain=SMALL, days=DayRange(FIRST, after(4)), simulation=SETTINGS, ahead=days_ahead_in(archive))
    stored, run = (sample(job, place).forecasts.checks() for place in (str(archive_path), None))
    assert [check.name for check in stored] == [check.name for check in run]
    assert any("wind at 10 m, correlation at T+3" in check.name for check in stored)
    assert np.allclose([check.value for check in stored], [check.value for check in run], rtol=2e-3)
    without = sample(job.model_copy(update={"ahead": 0}), None)
    assert without.forecasts.checks() == []


def test_scores_of_forecasts_have_known_answers():
    """Temperature wrong by 2 K then 4 K in one direction, wind by 1 m/s, PM2.5 by twice the analysis' error."""
    scores, rng = ForecastScores(), np.random.default_rng(0)
    days = {after(n): rng.standard_normal((len(SCORED), 3, 4)) for n in range(12)}
    for number, (day, truth) in enumerate(days.items()):
        sign = (-1) ** number
        made = {lead: days.get(day + timedelta(days=lead), truth).copy() for lead in (1, 2)}
        for lead, fields in made.items():
            fields[:2] += 1
            fields[2] += sign * 2 * lead
            fields[3] = rng.standard_normal((3, 4))
            fields[4] += 3
        scores.add(day, truth[4] - 3, truth, made)
    found = {check.name.removeprefix("forecast of "): check.value for check in scores.checks()}
    assert found["temperature at 2 m, RMSE, K at T+1"] == pytest.approx(2)
    assert found["temperature at 2 m, RMSE, K at T+2"] == pytest.approx(4)
    assert found["wind at 10 m, correlation at T+2"] == pytest.approx(1)
    assert abs(found["rain, correlation (below the wind's) at T+1"]) < 0.4
    assert found["temperature: correlation of errors of consecutive leads"] == pytest.approx(1)
    assert found["CAMS-like PM2.5, RMSE relative to the analysis' at T+1"] == pytest.approx(2)
