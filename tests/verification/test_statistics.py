"""Every statistic against arithmetic done here, against other packages, and the same however the work is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.metrics import structural_similarity

from cranpm.core.interpolation import at_points
from cranpm.verification.agency import Exceedance, fairmode, index_agreement, ninetieth, uncertainty
from cranpm.verification.bootstrap import interval, resample_days
from cranpm.verification.structure import (
    C1,
    C2,
    RANGE_UGM3,
    SQUARE,
    WAVELENGTHS_PX,
    pair_similarity,
    power_sums,
    similarity_sums,
    squares,
)
from cranpm.verification.tally import BINS, EDGES_UGM3, Tally

NAN = np.nan


def random_fields(seed: int, rows: int = 60, cols: int = 80):
    """PM2.5 of a forecast and a truth with gaps, float32 as in files."""
    random = np.random.default_rng(seed)
    truth = random.gamma(2, 8, (rows, cols)).astype(np.float32)
    forecast = (0.7 * truth + random.gamma(1, 6, (rows, cols))).astype(np.float32)
    forecast[random.random(truth.shape) < 0.05] = NAN
    truth[random.random(truth.shape) < 0.1] = NAN
    return forecast, truth


def test_by_hand():
    """Errors 2, -1, 3 with weights 1, 2, 1; the missing pair does not count."""
    tally = Tally.of(np.array([[12.0, 9, 33, NAN]]), np.array([[10.0, 10, 30, 5]]), np.array([[1.0, 2, 1, 7]]))
    assert tally.weight == 4
    assert tally.rmse == pytest.approx(np.sqrt((1 * 4 + 2 * 1 + 1 * 9) / 4))
    assert tally.mae == pytest.approx((1 * 2 + 2 * 1 + 1 * 3) / 4)
    assert tally.bias == pytest.approx((2 - 2 + 3) / 4)
    mean_f, mean_t = (12 + 18 + 33) / 4, (10 + 20 + 30) / 4
    cov = (12 * 10 + 2 * 9 * 10 + 33 * 30) / 4 - mean_f * mean_t
    var_f, var_t = (144 + 2 * 81 + 1089) / 4 - mean_f**2, (100 + 200 + 900) / 4 - mean_t**2
    assert tally.correlation == pytest.approx(cov / np.sqrt(var_f * var_t))
    assert tally.r2 == pytest.approx(1 - (15 / 4) / var_t)
    low = 1  # a truth of 10 lies in the bin from 5 to 10: a border belongs to the bin below it
    assert tally.moments[low, 0] == 3
    assert tally.bin_rmse[low] == pytest.approx(np.sqrt((4 + 2) / 3))
    assert tally.bin_bias[low] == pytest.approx((2 - 2) / 3)
    assert tally.bin_share.sum() == pytest.approx(1)
    assert np.isnan(tally.bin_rmse[0])


def test_against_other_packages():
    scores = pytest.importorskip("scores")
    xarray = pytest.importorskip("xarray")
    forecast, truth = random_fields(0)
    tally = Tally.of(forecast, truth)
    f, o = (xarray.DataArray(field.astype(np.float64), dims=("y", "x")) for field in (forecast, truth))
    assert tally.rmse == pytest.approx(float(scores.continuous.rmse(f, o)), rel=1e-12)
    assert tally.mae == pytest.approx(float(scores.continuous.mae(f, o)), rel=1e-12)
    assert tally.bias == pytest.approx(float(scores.continuous.additive_bias(f, o)), rel=1e-9)
    assert tally.correlation == pytest.approx(float(scores.continuous.correlation.pearsonr(f, o)), rel=1e-9)
    both = np.isfinite(forecast) & np.isfinite(truth)
    event = Exceedance.of(tally, 15.0)
    hits = (forecast > 15) & (truth > 15) & both
    false = (forecast > 15) & ~(truth > 15) & both
    misses = ~(forecast > 15) & (truth > 15) & both
    assert event.pod == pytest.approx(hits.sum() / (hits.sum() + misses.sum()))
    assert event.far == pytest.approx(false.sum() / (hits.sum() + false.sum()))
    assert event.csi == pytest.approx(hits.sum() / (hits | false | misses).sum())
    chance = (hits.sum() + misses.sum()) * (hits.sum() + false.sum()) / both.sum()
    assert event.ets == pytest.approx((hits.sum() - chance) / ((hits | false | misses).sum() - chance))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 59), max_size=6), st.randoms())
@settings(max_examples=40, deadline=None)
def test_parts_in_any_order_add_up_to_the_whole(seed, cuts, shuffle):
    forecast, truth = random_fields(seed)
    weight = np.linspace(1, 2, 60)[:, None]
    whole = Tally.of(forecast, truth, weight)
    edges = sorted({0, 60, *cuts})
    parts = [Tally.of(forecast[low:high], truth[low:high], weight[low:high]) for low, high in pairwise(edges)]
    left = [Tally.of(forecast[:, :33], truth[:, :33], weight), Tally.of(forecast[:, 33:], truth[:, 33:], weight)]
    shuffle.shuffle(parts)
    for pieces in (parts, left):
        total = sum(pieces, start=Tally.zero())
        assert total.moments == pytest.approx(whole.moments, rel=1e-12)
        assert total.joint == pytest.approx(whole.joint, rel=1e-12)


def test_a_perfect_forecast_has_no_error_at_all():
    _, truth = random_fields(3)
    tally = Tally.of(truth, truth)
    assert tally.rmse == 0
    assert tally.mae == 0
    assert tally.bias == 0
    assert tally.correlation == pytest.approx(1)
    assert np.count_nonzero(tally.joint - np.diag(np.diag(tally.joint))) == 0
    assert Exceedance.of(tally, 25.0).csi == 1
    assert index_agreement(tally) == (1, 1)


def test_categories_of_the_index():
    """Bands end at 10, 20, 25, 50, 75: 8 and 12 are one apart, 8 and 22 two, 16 and 19 the same."""
    tally = Tally.of(np.array([8.0, 8, 16, 80]), np.array([12.0, 22, 19, 90]))
    assert index_agreement(tally) == (pytest.approx(2 / 4), pytest.approx(3 / 4))
    assert len(EDGES_UGM3) + 1 == BINS


def test_similarity_is_that_of_scikit_image():
    forecast, truth = (np.nan_to_num(field, nan=9.0).astype(np.float64) for field in random_fields(5))
    theirs, field = structural_similarity(forecast, truth, win_size=7, data_range=RANGE_UGM3, full=True)
    total, count = similarity_sums(forecast, truth)
    assert count == (60 - 6) * (80 - 6)
    assert total / count == pytest.approx(field[3:-3, 3:-3].mean(), rel=1e-9)
    assert total / count == pytest.approx(theirs, rel=1e-9)


def test_similarity_leaves_out_windows_with_gaps_and_adds_up_over_strips():
    forecast, truth = (np.nan_to_num(field, nan=9.0) for field in random_fields(6))
    truth[20:23, 30:33] = NAN
    total, count = similarity_sums(forecast, truth)
    assert count == 54 * 74 - 9 * 9
    first = similarity_sums(forecast[:28], truth[:28], slice(0, 25))
    second = similarity_sums(forecast[22:], truth[22:], slice(3, None))
    assert first + second == pytest.approx(np.array([total, count]), rel=1e-12)


def test_rows_of_a_similarity_can_weigh_more():
    forecast, truth = (np.nan_to_num(field, nan=9.0) for field in random_fields(7, 8, 30))
    rows = [similarity_sums(forecast, truth, slice(row, row + 1)) for row in (3, 4)]
    weighted = similarity_sums(forecast, truth, row_weight=np.array([9, 9, 9, 1.0, 3.0, 9, 9, 9]))
    assert weighted == pytest.approx(rows[0] + 3 * rows[1])


def test_shapes_that_differ_are_refused():
    with pytest.raises(ValueError, match="against a truth of"):
        Tally.of(np.ones((3, 4)), np.ones((4, 3)))


def test_similarity_of_pairs_by_hand():
    f, t = np.array([1.0, 3, NAN]), np.array([2.0, 6, 1])
    expected = (2 * 2 * 4 + C1) * (2 * 4 + C2) / ((4 + 16 + C1) * (2 + 8 + C2))
    assert pair_similarity(f, t) == pytest.approx(expected)
    assert np.isnan(pair_similarity(f[:1], t[:1]))


def test_power_falls_where_structure_is_blurred():
    """A wave of 10 pixels has its power in the band from 8 to 16; half the amplitude leaves a quarter of it."""
    wave = 10 + np.sin(2 * np.pi * np.arange(SQUARE) / 10)[None] * np.ones((SQUARE, 1))
    band = WAVELENGTHS_PX.index(8)
    power = power_sums(10 + 0.5 * (wave - 10), wave)
    assert power[band, 0] / power[band, 1] == pytest.approx(0.25, rel=1e-6)
    assert power[band, 1] / power[:, 1].sum() > 0.95
    land = np.ones((600, 600), dtype=bool)
    land[:100] = False
    assert squares(land) == [(256, 0), (256, 256)]


def test_bilinear_at_stations():
    """Exact on a plane; beside the sea, land alone counts."""
    plane = np.add.outer(2.0 * np.arange(10), 3.0 * np.arange(12))
    row, col = np.array([1.25, 7.5, 0.0]), np.array([3.5, 2.0, 11.0])
    assert at_points(plane, row, col) == pytest.approx(2 * row + 3 * col)
    plane[1, 3] = NAN
    weights = {(1, 4): 0.75 * 0.5, (2, 3): 0.25 * 0.5, (2, 4): 0.25 * 0.5}
    expected = sum(w * (2 * r + 3 * c) for (r, c), w in weights.items()) / sum(weights.values())
    assert at_points(plane, row[:1], col[:1]) == pytest.approx([expected])
    assert np.isnan(at_points(np.full((4, 4), NAN), np.array([1.5]), np.array([1.5])))
    edge = at_points(np.ones((4, 4)), np.array([3.5, 3.6, 1, -0.5]), np.array([1, 1, -0.6, 3.5]))
    assert np.isfinite(edge).tolist() == [True, False, False, True]


def test_fairmode_by_hand():
    """Two stations, four days; one station reports too rarely."""
    observed = np.array([[10.0, 30], [20, NAN], [30, NAN], [40, 10]])
    forecast = np.array([[12.0, 30], [18, 1], [33, 1], [40, 10]])
    start = np.array([[8.0, 1], [10, 1], [20, 1], [30, 1]])
    quality = fairmode(forecast, observed, start)
    u = 0.36 * np.sqrt(0.75 * observed[:, 0] ** 2 + 0.25 * 25**2)
    assert uncertainty(observed)[:, 0] == pytest.approx(u)
    rmse = np.sqrt((4 + 4 + 9 + 0) / 4)
    assert quality.mqi[0] == pytest.approx(rmse / (2 * np.sqrt((u**2).mean())))
    bias = (2 - 2 + 3 + 0) / 4
    yearly = 0.36 * np.sqrt(0.75 / 20 * 25**2 + 0.25 * 25**2 / 1.5)
    assert quality.mqi_year[0] == pytest.approx(bias / (2 * yearly))
    u_start = 0.36 * np.sqrt(0.75 * start[:, 0] ** 2 + 0.25 * 25**2)
    stale = np.abs(start[:, 0] - observed[:, 0]) + u_start
    assert quality.mqi_forecast[0] == pytest.approx(rmse / np.sqrt((stale**2).mean()))
    assert np.hypot(quality.target_x[0], quality.target_y[0]) == pytest.approx(quality.mqi[0])
    assert np.isnan(quality.mqi[1])
    rare = np.where(np.arange(4)[:, None] < 2, start, NAN)
    assert np.isnan(fairmode(forecast, observed, rare).mqi_forecast[0])


def test_the_ninetieth_percentile_as_fairmode_takes_it():
    values = np.arange(1.0, 16)  # 15 stations: between the 13th and the 14th, half way
    assert ninetieth(values) == pytest.approx(13.5)
    assert np.isnan(ninetieth(np.array([1.0])))


def test_fairmode_as_evaltools_has_it():
    evaltools = pytest.importorskip("evaltools", reason="atmo-evaltools is not installed: it needs a C compiler")
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    observed, forecast = random.gamma(3, 6, (60, 12)), random.gamma(3, 6, (60, 12))
    observed[random.random(observed.shape) < 0.1] = NAN
    quality = fairmode(forecast, observed, observed)
    days = pandas.date_range("2021-01-01", periods=60)
    names = [f"s{number}" for number in range(12)]
    frames = [pandas.DataFrame(values, index=days, columns=names) for values in (observed, forecast)]

    class Held:
        """What its functions read from an evaluator."""

        def __init__(self):
            sizes = {"u95r": 0.36, "alpha": 0.5, "RV": 25, "Np": 20.0, "Nnp": 1.5, "beta": 2.0}
            self._fairmode_params = sizes | {"obj": self}

        def get_obs(self, forecast_day):
            return frames[0]

        def get_sim(self, forecast_day):
            return frames[1]

    held = Held()
    held.rmsu = lambda **how: evaltools.fairmode.rmsu(held, **how)
    held.mqi = lambda **how: evaltools.fairmode.mqi(held, **how)
    held.mqi_y = lambda **how: evaltools.fairmode.mqi_y(held, **how)
    assert quality.mqi == pytest.approx(held.mqi(threshold=0.75).to_numpy(), rel=1e-9)
    assert quality.mqi_year == pytest.approx(held.mqi_y().to_numpy(), rel=1e-9)
    assert quality.mqi_90 == pytest.approx(evaltools.fairmode.mqi90(held), rel=1e-9)


def test_days_are_drawn_in_blocks():
    draws = resample_days(50, block=7, draws=300)
    assert draws.counts.shape == (300, 50)
    assert (draws.counts.sum(axis=1) == 50).all()
    assert np.array_equal(draws.counts, resample_days(50, block=7, draws=300).counts)
    inner = np.diff(draws.counts[:, 10:40], axis=1) == 0  # neighbours come together
    assert inner.mean() > 0.6 > (np.diff(draws.short_counts[:, 10:40], axis=1) == 0).mean()


@pytest.mark.parametrize("days", [1, 2, 7, 20])
def test_few_days_say_nothing_about_certainty(days):
    """Blocks of a week from less than four weeks."""
    errors = np.stack([np.arange(1.0, days + 1), np.ones(days)], axis=1)
    found = interval(errors, lambda sums: sums[..., 0] - sums[..., 1], resample_days(days))
    assert found.value == pytest.approx(days * (days + 1) / 2 - days)
    assert np.isnan(found.low)
    assert not found.significant


def test_equal_forecasts_never_differ():
    errors = np.random.default_rng(0).gamma(1, 1, (80, 1))
    same = interval(np.repeat(errors[:, None], 2, axis=1), lambda s: s[..., 0, 0] - s[..., 1, 0], resample_days(80))
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert not same.significant
    worse = interval(np.stack([errors + 0.5, errors], axis=1), lambda s: s[..., 0, 0] - s[..., 1, 0], resample_days(80))
    assert worse.significant
    assert worse.low > 0


def coverage(memory: float, days: int, trials: int) -> float:
    """How often the interval of a mean holds the truth when errors follow an AR(1) process."""
    random = np.random.default_rng(1)
    draws = resample_days(days)
    held = 0
    for _ in range(trials):
        noise = random.normal(size=days + 50)
        for index in range(1, len(noise)):
            noise[index] += memory * noise[index - 1]
        found = interval(noise[50:, None], lambda sums: sums[..., 0] / days, draws)
        held += found.low <= 0 <= found.high
    return held / trials


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say():
    share = coverage(memory=0.3, days=365, trials=1000)
    print(f"coverage with a memory of 0.3: {100 * share:.1f} %; of 0.6: {100 * coverage(0.6, 365, 1000):.1f} %")
    assert share == pytest.approx(0.95, abs=0.02)
