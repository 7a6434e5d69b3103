"""A statistic that a stranger adds is computed, kept, summed, bootstrapped and printed with no other change."""

import json
from itertools import pairwise

import numpy as np
import pytest
from plugins import EXAMPLES, install, run_with_plugins

from cranpm.verification.statistics import STATISTICS, Pixels


def command(month, folder, *more):
    days = f"{month.days[1]}..{month.days[29]}"
    return [
        *("verify", "--archive", month.location, "--days", days, "--leads", "1", "--no-ssim", "-q"),
        *("--baselines", "persistence,cams", "--out", str(folder), *more),
    ]


def test_it_appears_everywhere_with_an_interval(month, tmp_path):
    install(tmp_path, "own_statistic")
    out = tmp_path / "verified"
    done = run_with_plugins(tmp_path, *command(month, out, "--jobs", "2"))
    assert done.returncode == 0, done.stderr
    found = json.loads((out / "scores.json").read_text())
    mine = [row for row in found["metrics"] if row["statistic"] == "fac2"]
    assert [(row["method"], row["at"]) for row in mine] == [
        (method, at) for at in ("1 km", "25 km", "stations") for method in ("persistence", "cams")
    ]
    for row in mine:
        low, high = row["interval"]
        assert 0 < low < row["value"] < high
    assert mine[0]["difference_interval"] == [0, 0]
    low, high = mine[1]["difference_interval"]
    assert low < mine[1]["difference"] < high
    text = (out / "tables.md").read_text()
    assert f"| share within a factor of two | cams | T+1 | 1 km | {mine[1]['value']:.3f} | [" in text
    with np.load(out / "days" / f"{month.days[1]}.npz") as stored:
        assert stored["statistic.fac2"].shape[-1] == 2
    day, today, truth = month.days[1], month.pm25(month.days[1]), month.pm25(month.days[2])
    known = np.isfinite(today) & np.isfinite(truth)
    area = np.broadcast_to(month.domain.fine.row_area_km2[:, None], truth.shape)
    near = known & (today >= truth / 2) & (today <= 2 * truth)
    with np.load(out / "days" / f"{day}.npz") as stored:
        assert stored["statistic.fac2"][0, 0, 0, 0] == pytest.approx([area[known].sum(), area[near].sum()], rel=1e-9)
    report = run_with_plugins(tmp_path, "report", str(out), "--out", str(tmp_path / "report.html"))
    assert report.returncode == 0, report.stderr
    assert "share within a factor of two" in (tmp_path / "report.html").read_text()


@pytest.fixture
def example():
    """The class of the documentation, without registering it for the other tests."""
    scope: dict = {}
    exec((EXAMPLES / "own_statistic.py").read_text(), scope)
    STATISTICS._things.pop("fac2")
    return scope["WithinFactorTwo"]


def test_sums_of_parts_add_up(example):
    random = np.random.default_rng(0)
    truth = random.gamma(2, 8, (40, 30))
    forecast = truth * random.uniform(0.3, 3, truth.shape)
    truth[3:5], weight = np.nan, random.uniform(1, 2, truth.shape)
    made = example(None)
    whole = made.pixels(Pixels(forecast, truth, weight))
    parts = [Pixels(forecast, truth, weight, slice(*rows)) for rows in pairwise((0, 7, 21, 40))]
    assert sum(made.pixels(part) for part in reversed(parts)) == pytest.approx(whole, rel=1e-12)
    assert example.metrics["fac2"].of(np.array([[4.0, 1.0], [0.0, 0.0]])) == pytest.approx([0.25, np.nan], nan_ok=True)


def test_by_hand(example):
    forecast, observed = np.array([10.0, 4.9, 21.0, np.nan]), np.array([10.0, 10.0, 10.0, 10.0])
    assert example(None).pairs(forecast, observed).tolist() == [3, 1]
