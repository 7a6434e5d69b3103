"""Many start days: the same products for any number of workers, also with one killed; published days are kept."""

import hashlib
import os
import pickle
import signal
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import torch
from command import run_cli
from model_cases import TINY

from cranpm.core.cluster import Pool, open_pool
from cranpm.core.errors import CranpmError
from cranpm.forecasting.engine import default_leads, predict
from cranpm.forecasting.hindcast import Job, forecast_day
from cranpm.forecasting.publication import open_publication, publish
from cranpm.network import build
from cranpm.weights import card_for, load_weights, save_weights


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder of tiny random weights."""
    torch.manual_seed(0)
    network = build(TINY).eval()
    torch.nn.init.normal_(network.decoder.head.weight, std=0.3)
    folder = tmp_path_factory.mktemp("weights") / "tiny"
    save_weights(folder, network, card_for(network))
    return folder


def job_for(archive, weights, folder, **changes) -> Job:
    found = load_weights(weights)
    plain = {"leads": (1, 2), "formats": ("tif",), "precision": "fp32", "keep": True}
    return Job(archive, str(weights), found.sha256, Path(folder), **(plain | changes))


def die_once(day, job, mark):
    """The first worker that is given this day dies before it publishes."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return forecast_day(day, job).path


def digests(folder: Path) -> dict[str, str]:
    """Checksums of the pixels of all products: the files also hold the time at which they were made."""
    found = {}
    for day in open_publication(folder).days():
        run = open_publication(folder).run(day)
        found |= {f"{day} T+{n}": hashlib.sha256(run.steps(n).tobytes()).hexdigest() for n in run.leads}
    return found


def test_products_are_the_same_for_any_number_of_workers_also_with_one_killed(archive, weights, tmp_path):
    days, threads = archive.days[1:4], torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        list(Pool().each(partial(forecast_day), days, job_for(archive, weights, tmp_path / "one")))
    finally:
        torch.set_num_threads(threads)
    with open_pool(2, threads=1) as pool:
        job = job_for(archive, weights, tmp_path / "two")
        done = dict(pool.each(die_once, days, job, str(tmp_path / "died")))
    assert sorted(done) == days
    assert (tmp_path / "died").exists()
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert len(digests(tmp_path / "one")) == 6


def test_published_days_are_kept_unless_something_differs(archive, weights, tmp_path):
    day = archive.days[1]
    job = job_for(archive, weights, tmp_path)
    assert forecast_day(day, job).forecast is not None
    version = os.readlink(tmp_path / str(day))
    assert forecast_day(day, job).forecast is None
    assert os.readlink(tmp_path / str(day)) == version
    for changes in ({"leads": (1,)}, {"formats": ("tif", "nc")}, {"precision": "bf16"}, {"keep": False}):
        before = os.readlink(tmp_path / str(day))
        assert forecast_day(day, job_for(archive, weights, tmp_path, **changes)).forecast is not None
        assert os.readlink(tmp_path / str(day)) != before
    raster = next((tmp_path / str(day)).glob("*.tif"))
    raster.write_bytes(raster.read_bytes()[:-1])
    assert forecast_day(day, job_for(archive, weights, tmp_path, keep=True)).forecast is not None  # it was damaged
    with pytest.raises(CranpmError, match="All workers must find the same weights"):
        forecast_day(day, Job(archive, str(weights), "0" * 64, tmp_path / "x", (1,), ("nc",)))


def test_the_command_shares_days_and_says_what_it_keeps(archive, tmp_path, monkeypatch, capsys):
    days = f"{archive.days[1]}..{archive.days[3]}"
    line = [
        "forecast",
        "--archive",
        archive.location,
        "--day",
        days,
        "--weights",
        "persistence",
        "--format",
        "nc",
        "-q",
    ]
    assert run_cli(monkeypatch, *line, "--every", "2", "--out", str(tmp_path)) == 0
    assert open_publication(tmp_path).days() == [archive.days[3], archive.days[1]]
    capsys.readouterr()
    assert run_cli(monkeypatch, *line, "--jobs", "2", "--out", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert printed.count("kept: published before") == 2
    assert f"forecast from {archive.days[2]}" in printed
    assert len(open_publication(tmp_path).runs()[0]) == 3


def test_all_leads_of_the_weights_are_forecast(archive, tmp_path, monkeypatch):
    """Five leads, without anybody naming them; persistence goes as far as it is asked to."""
    torch.manual_seed(0)
    network = build(TINY.model_copy(update={"leads": (1, 2, 3, 4, 5)})).eval()
    save_weights(tmp_path / "w", network, card_for(network))
    found = load_weights(tmp_path / "w")
    assert default_leads(found) == (1, 2, 3, 4, 5)
    assert predict(archive, archive.days[1], found, region=(slice(0, 64), slice(0, 64))).leads == (1, 2, 3, 4, 5)
    line = ["forecast", "--archive", archive.location, "--day", str(archive.days[1]), "--weights", "persistence"]
    assert run_cli(monkeypatch, *line, "--leads", "1,10,11", "--format", "tif", "--out", str(tmp_path / "p"), "-q") == 0
    run = open_publication(tmp_path / "p").newest()
    assert run.leads == (1, 10, 11)
    assert run.valid(11) - run.day == timedelta(days=11)


def test_torchrun_is_refused(archive, tmp_path, monkeypatch, capsys):
    """Its processes would all make the same forecasts; the days of a range are shared by --jobs or --cluster."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    line = ["forecast", "--archive", archive.location, "--day", str(archive.days[1]), "--out", str(tmp_path / "out")]
    assert run_cli(monkeypatch, *line) == 1
    assert "--jobs" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_degraded_or_compiled_product_is_kept_only_if_the_same_would_be_made(archive, weights, tmp_path):
    day = archive.days[1]
    job = job_for(archive, weights, tmp_path)
    made = forecast_day(day, job).forecast
    publish(replace(made, degraded=("yesterday is missing",)), archive, tmp_path, ("tif",))
    assert forecast_day(day, replace(job, degrade=True)).forecast is None
    assert forecast_day(day, job).forecast is not None
    publish(replace(made, provenance={**made.provenance, "compiled": True}), archive, tmp_path, ("tif",))
    assert forecast_day(day, replace(job, compiled=True)).forecast is None
    assert forecast_day(day, job).forecast is not None


def test_the_precision_is_chosen_where_the_job_is_made(archive, weights, tmp_path, monkeypatch):
    """A worker whose processor has another best one computes in that of the job."""
    for here in ("bf16", "fp32"):
        monkeypatch.setattr("cranpm.network.precision.has_bf16", lambda here=here: here == "bf16")
        sha256, region = load_weights(weights).sha256, (slice(0, 64), slice(0, 64))
        job = Job(archive, str(weights), sha256, tmp_path, (1,), ("tif",), region)
        monkeypatch.setattr("cranpm.network.precision.has_bf16", lambda here=here: here != "bf16")
        done = forecast_day(archive.days[1], pickle.loads(pickle.dumps(job))).forecast
        assert done.provenance["precision"] == here
