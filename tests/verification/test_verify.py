"""Forecasts against the archive: the same pixels for all, refusals, resuming, any number of processes, the tables."""

import os
import shutil
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from types import SimpleNamespace

import netCDF4
import numpy as np
import pytest
from command import run_cli

from cranpm.archive.day_data import held_out
from cranpm.baselines import fit_damped, simple
from cranpm.core.cluster import open_pool
from cranpm.core.errors import CranpmError
from cranpm.core.files import write_sums
from cranpm.core.grid import coarsen
from cranpm.core.interpolation import at_points
from cranpm.core.packing import PUBLISHED
from cranpm.core.regions import regions
from cranpm.forecasting.engine import predict
from cranpm.forecasting.publication import publish
from cranpm.verification import (
    Plan,
    Product,
    Simple,
    all_tables,
    common_leads,
    mean_maps,
    means_table,
    read_scores,
    run,
    score,
    summarise,
    verify,
    write_means,
)
from cranpm.verification.day import STRIP, Geometry, measure
from cranpm.verification.run import _measure as measure_day
from cranpm.verification.run import load_days
from cranpm.verification.stations import groups, roughness_m
from cranpm.verification.statistics import SCALES, STATISTICS
from cranpm.verification.structure import similarity_sums
from cranpm.verification.summary import station_scores
from cranpm.verification.tally import Tally

LEADS = (1, 2)


@pytest.fixture(scope="module")
def products(archive, tmp_path_factory):
    """Forecasts of two start days: today's PM2.5, 2 too high and 5 % off."""
    folder = tmp_path_factory.mktemp("forecasts") / "ours"
    for day in archive.days[1:3]:
        sound = predict(archive, day, None, LEADS)
        publish(replace(sound, fields=sound.fields * np.float32(1.05) + np.float32(2)), archive, folder, ("nc",))
    return folder


@pytest.fixture(scope="module")
def plan(archive, products):
    methods = [Simple("persistence", simple("persistence", archive)), Product("ours", products, archive.domain.fine)]
    return Plan(archive, methods, LEADS)


@pytest.fixture(scope="module")
def done(plan, tmp_path_factory):
    """A verified folder, its days and what was left out."""
    folder = tmp_path_factory.mktemp("verified")
    return folder, *verify(plan, plan.archive.days, folder)


@pytest.fixture(scope="module")
def scores(plan, done):
    return score(plan, plan.archive.days, done[0])


def test_days_that_one_lacks_are_left_out_for_all(done, archive):
    _, kept, left_out = done
    assert kept == archive.days[1:3]
    assert left_out[archive.days[0]] == "no forecast by ours"
    assert left_out[archive.days[3]] == f"{archive.days[4] + timedelta(days=1)} is not in the archive"


def test_a_record_holds_the_definition(plan, scores, archive):
    """RMSE weighted by area at 1 km; at 25 km of the means over the land of cells, weighted by that land."""
    day, lead = scores.days[0], 1
    truth = archive.pm25(day + timedelta(days=LEADS[lead]))
    ours = PUBLISHED.unpack(PUBLISHED.pack(archive.pm25(day) * np.float32(1.05) + np.float32(2)))
    area = np.broadcast_to(archive.domain.fine.row_area_km2[:, None], truth.shape)
    here = np.isfinite(truth)
    found = scores.tally[0]
    assert found[1, lead, 0, 0].rmse == pytest.approx(
        np.sqrt(np.average((ours - truth)[here] ** 2, weights=area[here])), rel=1e-5
    )
    fine, coarse = archive.domain.fine, archive.domain.coarse
    means = [coarsen(np.where(here, field, np.nan), fine, coarse) for field in (ours, truth)]
    cells = np.isfinite(means[1])
    rows, cols = ((np.arange(size) // 25) for size in fine.shape)
    weight = np.zeros(coarse.shape)
    np.add.at(weight, (rows[:, None], cols[None]), area * here)
    expected = np.sqrt(np.average((means[0] - means[1])[cells] ** 2, weights=weight[cells]))
    assert found[1, lead, 1, 0].rmse == pytest.approx(expected, rel=1e-5)
    expected = similarity_sums(ours, truth, row_weight=fine.row_area_km2)
    assert scores.by_day[0].statistics["ssim"][1, lead, 0, 0] == pytest.approx(expected, rel=1e-9)


def test_regions_inside_the_domain_have_sums_of_their_own(plan, archive, monkeypatch):
    box = (46.0, 8.0, 45.0, 10.5)
    monkeypatch.setattr("cranpm.verification.day.regions", lambda: {"Lombardy": box, "Iberia": (43.9, -9.6, 36.0, 3.4)})
    geometry, day = Geometry(archive, ("errors",)), archive.days[1]
    assert geometry.places == ["all", "Lombardy"]
    found = Tally.unpacked(measure(geometry, plan.methods, day, LEADS).statistics["errors"])
    window = archive.domain.fine.slices(*box)
    weight = archive.domain.fine.row_area_km2[window[0], None]
    expected = Tally.of(archive.pm25(day)[window], archive.pm25(day + timedelta(days=1))[window], weight)
    assert found.moments[0, 0, 0, 1] == pytest.approx(expected.moments, rel=1e-12)
    assert "Po Valley" in regions()


def test_stations_of_a_record(scores, archive):
    day = scores.days[1]
    stations = archive.stations
    sampled = at_points(archive.pm25(day), *archive.domain.fine.row_col(stations.lat, stations.lon))
    assert scores.sampled[1, 0, 0] == pytest.approx(sampled, nan_ok=True, abs=1e-4)
    observed = archive.stations_pm25(day + timedelta(days=1))
    both = np.isfinite(observed) & np.isfinite(scores.sampled[1, :, 0]).all(axis=0)
    assert np.isfinite(scores.pairs(0, 0)[1][1]).tolist() == both.tolist()


def test_a_domain_of_several_strips_gives_the_sums_of_one(plan, monkeypatch):
    assert plan.archive.domain.fine.rows <= STRIP
    geometry, day = Geometry(plan.archive, tuple(STATISTICS)), plan.archive.days[1]
    assert geometry.statistics["spectra"].squares
    whole = measure(geometry, plan.methods, day, LEADS)
    monkeypatch.setattr("cranpm.verification.day.STRIP", 256)
    cut = measure(geometry, plan.methods, day, LEADS)
    for name, values in whole.arrays().items():
        assert cut.arrays()[name] == pytest.approx(values, rel=1e-12, nan_ok=True), name


def test_processes_and_restarts_change_nothing(plan, done, tmp_path):
    folder, kept, _ = done
    with open_pool(2) as pool:
        verify(plan, kept, tmp_path, pool)
    for day in kept:
        with np.load(folder / "days" / f"{day}.npz") as one, np.load(tmp_path / "days" / f"{day}.npz") as two:
            assert all(
                np.array_equal(one[name], two[name], equal_nan=one[name].dtype.kind == "f") for name in one.files
            )
    counted = []
    verify(plan, kept, tmp_path, on_day=lambda finished, total: counted.append((finished, total)))
    assert counted == [(2, 2)]
    shorter = replace(plan, leads=(1,))
    verify(shorter, kept, tmp_path, on_day=lambda finished, total: counted.append((finished, total)))
    assert counted[1:] == [(0, 2), (1, 2), (2, 2)]


def kill_once(day, plan, marker):
    """Measures a day; the first of all workers to do so dies in the middle."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return measure_day(day, plan)
    os._exit(9)


@pytest.mark.long
def test_a_killed_worker_changes_nothing(plan, done, tmp_path, monkeypatch):
    folder, kept, _ = done
    monkeypatch.setattr(run, "_measure", partial(kill_once, marker=tmp_path / "killed"))
    with open_pool(2) as pool:
        verify(plan, kept, tmp_path, pool)
    assert (tmp_path / "killed").exists()
    for one, two in zip(load_days(folder, kept), load_days(tmp_path, kept), strict=True):
        for name, values in one.arrays().items():
            assert np.array_equal(values, two.arrays()[name], equal_nan=True), name


def test_metrics_have_the_intervals_of_their_definition(scores):
    """The metric table is made of shared draws; RMSE by the plain function gives the same."""
    found = {(one.metric, one.method, one.lead, one.at): one for one in summarise(scores, "persistence").metrics}
    total = scores.tally.sum()
    for index, name in enumerate(scores.names):
        assert found["rmse", name, 1, "1 km"].value == pytest.approx(float(total[index, 0, 0, 0].rmse))
        assert found["ssim", name, 2, "25 km"].value == pytest.approx(scores.similarity[index, 1, 1])
        assert found["mae", name, 1, "stations"].value == pytest.approx(station_scores(scores, index, 0).mae)
    ours, theirs = (found["rmse", name, 1, "1 km"] for name in ("ours", "persistence"))
    assert ours.difference == pytest.approx(ours.value - theirs.value)
    assert theirs.difference_interval == (0, 0)
    assert ("ssim", "ours", 1, "stations") not in found


def test_persistence_has_no_skill_against_itself(archive, tmp_path):
    methods = [Simple(name, simple("persistence", archive)) for name in ("persistence", "again")]
    plan = Plan(archive, methods, LEADS, statistics=("errors",))
    scores = score(plan, archive.days[:3], tmp_path)
    for scale in range(len(SCALES)):
        change = scores.rmse_change(1, 0, 0, scale)
        assert (change.value, change.low, change.high, change.significant) == (0, 0, 0, False)
    assert scores.station_change(1, 0, 1).value == 0
    assert np.isnan(scores.similarity).all()


def test_pixels_that_one_method_lacks_count_for_none(archive, tmp_path):
    class Holed:
        name = "holed"

        def facts(self):
            return {"kind": "holed"}

        def identity(self, day):
            return "holed"

        def check(self, day, leads):
            assert leads == (1,)

        def strip(self, day, lead, rows):
            field = archive.pm25(day).copy()
            field[:, :300] = np.nan
            return field[rows]

    plan = Plan(archive, [Simple("persistence", simple("persistence", archive)), Holed()], (1,), statistics=("errors",))
    kept, _ = verify(plan, archive.days[1:2], tmp_path)
    sums = load_days(tmp_path, kept)[0]
    truth = archive.pm25(archive.days[2])
    assert sums.uncovered[:, 0].tolist() == [0, int(np.isfinite(truth[:, :300]).sum())]
    assert np.array_equal(sums.statistics["errors"][0], sums.statistics["errors"][1])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: file["pm2p5"].setncattr("units", "kg m-3"), "PM2.5 in ug m-3"),
        (lambda file: file["lat"].__setitem__(slice(None), file["lat"][:] + 0.01), "lat from"),
        (lambda file: file["forecast_reference_time"].__setitem__(..., 12), "a forecast from"),
        (lambda file: file["forecast_period"].__setitem__(slice(None), [1, 5]), r"leads \[1, 2\]"),
        (lambda file: file["pm2p5"].setncattr("add_offset", 1.0), "packed by scale_factor"),
        (lambda file: file.setncattr("provenance", '{"method": "x", "weights_sha256": "1"}'), "by the weights"),
    ],
)
def test_what_does_not_fit_is_refused(archive, products, tmp_path, spoil, message):
    folder = tmp_path / "spoiled"
    shutil.copytree(products, folder)
    day = archive.days[1]
    with netCDF4.Dataset(folder / str(day) / f"pm25_{day}.nc", "a") as file:
        file.set_auto_maskandscale(False)
        spoil(file)
    write_sums(folder / str(day))
    plan = Plan(archive, [Product("spoiled", folder, archive.domain.fine)], LEADS)
    with pytest.raises(CranpmError, match=message):
        verify(plan, [day], tmp_path / "out")


def test_other_refusals(archive, plan, tmp_path):
    with pytest.raises(CranpmError, match="forecasts DAY"):
        Product("none", tmp_path, archive.domain.fine)
    with pytest.raises(CranpmError, match="different names"):
        verify(replace(plan, methods=[plan.methods[0], plan.methods[0]]), archive.days, tmp_path)
    with pytest.raises(CranpmError, match=r"days to verify.*2031-01-01 is not in the archive"):
        verify(plan, [date(2031, 1, 1)], tmp_path)


def test_terrain_and_groups(archive):
    rough = roughness_m(archive)
    stations, grid = archive.stations, archive.domain.fine
    index = int(np.nanargmax(rough))
    lat, lon = np.meshgrid(grid.lat, grid.lon, indexing="ij")
    km = 6371 * np.radians(1)
    distance = np.hypot(
        (lat - stations.lat[index]) * km, (lon - stations.lon[index]) * km * np.cos(np.radians(stations.lat[index]))
    )
    near = (distance <= 25) & archive.land()
    assert rough[index] == pytest.approx(archive.elevation()[near].std(), rel=0.02)
    unseen = np.arange(len(stations)) % 2 == 0
    found = groups(stations, rough, unseen)
    assert (found["flat"] ^ found["complex"]).all()
    assert found["held out"].tolist() == unseen.tolist()
    assert sum(members.astype(int) for name, members in found.items() if name.startswith("country")).tolist() == [
        1
    ] * len(stations)
    assert sum(members.astype(int) for name, members in found.items() if name.startswith("altitude")).tolist() == [
        1
    ] * len(stations)


def test_stations_of_a_loss_are_told_apart(scores):
    """As far as that can be known: weights of another archive saw other stations."""
    count = len(scores.archive.stations)
    assert scores.unseen.all()
    assert "in the loss" not in scores.groups

    def told(used):
        return replace(scores, facts={"persistence": {}, "ours": {"stations_in_loss": used}})

    known = told({"stations": count, "held_out": 0.2, "seed": 3})
    assert known.unseen.tolist() == held_out(count, 0.2, 3).tolist()
    assert known.groups["in the loss"].sum() == count - round(0.2 * count)
    for used in ("unknown", {"stations": count + 1, "held_out": 0.2, "seed": 3}):
        assert told(used).unseen is None
        assert "held out" not in told(used).groups


def test_refusals_come_through_from_other_processes(archive, products, tmp_path):
    folder = tmp_path / "spoiled"
    shutil.copytree(products, folder)
    for day in archive.days[1:3]:
        with netCDF4.Dataset(folder / str(day) / f"pm25_{day}.nc", "a") as file:
            file["pm2p5"].setncattr("units", "kg m-3")
        write_sums(folder / str(day))
    plan = Plan(archive, [Product("spoiled", folder, archive.domain.fine)], LEADS)
    with open_pool(2) as pool, pytest.raises(CranpmError, match=r"PM2.5 in ug m-3"):
        verify(plan, archive.days[1:3], tmp_path / "out", pool)


def test_records_are_made_again_when_something_changed(month, tmp_path):
    """Another fit, a damaged record; and nothing otherwise."""

    def counted(*fit):
        plan = Plan(
            month, [Simple("damped", simple("damped", month, fit_damped(month, fit)))], (1,), statistics=("errors",)
        )
        seen = []
        verify(plan, month.days[25:27], tmp_path, on_day=lambda done, total: seen.append(done))
        return len(seen) - 1

    assert counted(*month.days[1:10]) == 2
    assert counted(*month.days[1:10]) == 0
    assert counted(*month.days[1:20]) == 2
    (tmp_path / "days" / f"{month.days[25]}.npz").write_bytes(b"cut")
    assert counted(*month.days[1:20]) == 1


def test_sums_with_a_flipped_bit_are_made_again(plan, done, tmp_path):
    folder, kept, _ = done
    shutil.copytree(folder / "days", tmp_path / "days")
    path = tmp_path / "days" / f"{kept[0]}.npz"
    damaged = bytearray(path.read_bytes())
    with np.load(path) as stored:
        sampled = stored["sampled"].tobytes()
    damaged[damaged.index(sampled) + len(sampled) // 2] ^= 1
    path.write_bytes(damaged)
    verify(plan, kept, tmp_path)
    assert np.array_equal(load_days(tmp_path, kept)[0].sampled, load_days(folder, kept)[0].sampled, equal_nan=True)


def test_a_day_published_again_while_it_is_measured_is_measured_again(archive, tmp_path, monkeypatch):
    """Sums are stored with the identity of the forecast that they are of."""
    day, folder, measured = archive.days[1], tmp_path / "ours", []
    sound = predict(archive, day, None, (1,))
    publish(sound, archive, folder, ("nc",))

    def measure_and_publish(day, plan, *rest):
        sums = measure_day(day, plan, *rest)
        if not measured:
            publish(replace(sound, fields=sound.fields + np.float32(3)), archive, folder, ("nc",))
        measured.append(sums)
        return sums

    monkeypatch.setattr(run, "_measure", measure_and_publish)
    plan = Plan(archive, [Product("ours", folder, archive.domain.fine)], (1,), statistics=("errors",))
    verify(plan, [day], tmp_path / "out")
    assert len(measured) == 2
    stored = load_days(tmp_path / "out", [day])[0].sampled
    assert np.nanmean(stored - measured[0].sampled) == pytest.approx(3, abs=0.01)


@pytest.mark.parametrize("leads", [(), (1, 1), (0,), (31,)])
def test_leads_of_a_plan_are_checked(plan, tmp_path, leads):
    with pytest.raises(CranpmError, match="leads in days from 1 to 30, each once"):
        verify(replace(plan, leads=leads), plan.archive.days[1:3], tmp_path)


def test_scores_hold_what_reliability_needs(scores):
    """Shares of bins over all pixels, means of the truth by its bin, and pairs at stations by the forecast's bin."""
    found = summarise(scores, "persistence").of(scores.names[0], 1)
    pixels = found.fields["1 km"]["all"]
    assert np.sum(pixels.joint) == pytest.approx(1)
    assert np.sum(pixels.joint, axis=0) == pytest.approx(pixels.bins.share)  # summed over forecasts
    present = np.array(pixels.bins.share) > 0
    means = np.array(pixels.bin_truth, dtype=float)
    assert np.dot(means[present], np.array(pixels.bins.share)[present]) == pytest.approx(pixels.mean_truth)
    forecast, observed = (part.ravel() for part in scores.pairs(0, 0))
    inside = np.isfinite(forecast) & np.isfinite(observed) & (forecast > 10) & (forecast <= 15)
    pairs = found.pairs_by_forecast
    assert pairs.pairs[2] == inside.sum() > 0
    assert pairs.forecast[2] == pytest.approx(forecast[inside].mean(dtype=float))
    assert pairs.truth[2] == pytest.approx(observed[inside].mean(dtype=float))


def test_tables_say_what_scores_say(scores):
    tables = {table.name: table for table in all_tables(scores, summarise(scores, "persistence"), with_paper=True)}
    assert set(tables) == {
        *("table1-1km", "table1-25km", "table2", "differences", "stations"),
        *("regions", "bins", "exceedances", "fairmode", "spectra", "metrics"),
    }
    total = scores.tally.sum()
    row = dict(zip(tables["table1-1km"].header, tables["table1-1km"].rows[1], strict=False))
    assert row["method"] == "ours"
    assert row["T+1 RMSE"] == f"{total[1, 0, 0, 0].rmse:.2f}"
    change = scores.rmse_change(1, 0, 0, 0)
    assert row["T+1 change against persistence"] == f"{change.value:+.1f} % (too few days)"
    assert len(set(tables["table1-1km"].header)) == len(tables["table1-1km"].header)
    for table in tables.values():
        assert all(len(row) == len(table.header) for row in table.rows), table.name
        assert table.markdown().count("\n|") >= len(table.rows) + 1
        assert table.csv().splitlines()[0].startswith(table.header[0])
    stations = tables["table2"]
    assert f"(N = {len(scores.archive.stations)})" in stations.header[1]
    assert f"{station_scores(scores, 1, 0).rmse:.2f}" in stations.rows[1]


def test_the_command_writes_scores_and_tables(archive, products, tmp_path, monkeypatch, capsys):
    line = [
        "verify",
        "--archive",
        archive.location,
        "--days",
        f"{archive.days[1]}..{archive.days[2]}",
        "--leads",
        "1,2",
    ]
    line += ["--forecasts", f"mine={products}", "--out", str(tmp_path / "v"), "-q"]
    assert run_cli(monkeypatch, *line, "--baselines", "persistence,cams", "--paper") == 0
    printed = capsys.readouterr().out
    assert "2 start days" in printed
    found = read_scores(tmp_path / "v")
    assert list(found.methods) == ["persistence", "cams", "mine"]
    first = found.of("mine", 1)
    assert first.fields["1 km"]["all"].rmse > 0
    assert list(first.fairmode.target) == archive.stations.ids.tolist()
    text = (tmp_path / "v" / "tables.md").read_text()
    assert "12.35" in text  # CAMS in the paper
    assert (tmp_path / "v" / "table2.csv").is_file()
    series = (tmp_path / "v" / "series.csv").read_text().splitlines()
    assert series[0] == "place,start,valid,lead,truth,persistence,cams,mine"
    assert len(series) == 1 + 2 * 2
    assert run_cli(monkeypatch, *line, "--reference", "nobody") == 1
    assert "--reference among" in capsys.readouterr().err
    assert run_cli(monkeypatch, *line, "--baselines", "damped") == 1
    assert "days to fit them on" in capsys.readouterr().err
    assert run_cli(monkeypatch, *line, "--baselines", "damped", "--fit-days", "2031") == 1
    assert "none in 2031" in capsys.readouterr().err
    fit = f"{archive.days[0]}..{archive.days[4]}"
    assert run_cli(monkeypatch, *line, "--leads", "1", "--baselines", "damped", "--fit-days", fit) == 1
    assert "no day shared by learning and scoring" in capsys.readouterr().err


def test_mean_maps_are_means_of_days(plan, archive, products, tmp_path):
    days = archive.days[1:3]
    means = mean_maps(plan, days, 1)
    truth = np.mean([archive.pm25(day + timedelta(days=1)) for day in days], axis=0)
    today = np.mean([archive.pm25(day) for day in days], axis=0)
    assert np.allclose(means.truth, truth, equal_nan=True, atol=1e-4)
    assert np.allclose(means.forecasts["persistence"], today, equal_nan=True, atol=1e-4)
    known = np.isfinite(truth)
    area = np.broadcast_to(archive.domain.fine.row_area_km2[:, None], truth.shape)[known]
    slope = np.cov(truth[known], today[known], aweights=area)
    assert float(means.tally("persistence").slope) == pytest.approx(slope[0, 1] / slope[0, 0], rel=1e-3)
    assert float(means.tally("ours").slope) == pytest.approx(1.05 * slope[0, 1] / slope[0, 0], rel=1e-3)
    row = next(row for row in means_table(means).rows if row[0] == "ours")
    bias = np.average((1.05 * today + 2 - truth)[known], weights=area)
    assert float(row[2]) == pytest.approx(bias, abs=0.01)  # products are packed
    write_means(means, tmp_path / "means.nc")
    with netCDF4.Dataset(tmp_path / "means.nc") as file:
        assert np.allclose(np.ma.filled(file["ours"][:], np.nan), means.forecasts["ours"], equal_nan=True)
        assert file["truth"].units == "ug m-3"


def test_without_leads_those_count_that_all_forecasts_have():
    day = date(2022, 1, 1)

    def method(name, *leads):
        return SimpleNamespace(name=name, identity=lambda day: name, leads=lambda day: leads or None)

    assert common_leads([method("a", 1, 2, 4, 12), method("b", 4, 12, 5), method("simple")], [day]) == (4, 12)
    assert common_leads([method("simple")], [day]) == (1, 2, 3)
    fewer = SimpleNamespace(name="f", identity=lambda day: "f", leads=lambda at: (1, 2) if at == day else (2, 3))
    assert common_leads([fewer], [day, date(2022, 1, 2)]) == (2,)
    with pytest.raises(
        CranpmError, match=r"a lead that all forecasts from 2022-01-01 have; found a: \(1,\); b: \(2,\)"
    ):
        common_leads([method("a", 1), method("b", 2)], [day])
