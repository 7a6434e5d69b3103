"""Channels are found by name, and nothing assumes how many leads there are or that they have one digit."""

from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pytest
from model_cases import TINY
from test_train import settings

from cranpm.archive.store import Archive
from cranpm.baselines import fit_damped, simple
from cranpm.core.errors import CranpmError
from cranpm.experiments.run import conditions
from cranpm.forecasting.engine import predict
from cranpm.network import build
from cranpm.training import train
from cranpm.training.inputs import Inputs
from cranpm.training.records import TrainingLog, scored_leads
from cranpm.training.training_data import gather
from cranpm.weights import Weights, card_for, load_weights

LEFT_OUT = "cams_pm25"
LONG_LEADS = (1, 2, 3, 4, 5, 12)


class Reversed(Archive):
    """The same archive with its channels in the opposite order, and one left out."""

    @cached_property
    def channels(self):
        return tuple(channel for channel in Archive(self.location).channels[::-1] if channel.name != LEFT_OUT)

    @cached_property
    def channel_names(self):
        return tuple(channel.name for channel in self.channels)

    def coarse(self, day):
        own = Archive(self.location).channel_names
        return super().coarse(day)[[own.index(name) for name in self.channel_names]]


def test_channels_are_picked_by_name(archive):
    names = ("t2m", "v10", "u10", "cams_o3")
    day = archive.days[1]
    one, other = (Inputs(opened, channels=names).day(day) for opened in (archive, Reversed(archive.location)))
    for index, name in enumerate(names):
        field = archive.coarse(day)[archive.channel_names.index(name)]
        assert np.array_equal(one.coarse[0, index], field)
    assert one.coarse.equal(other.coarse)
    assert one.wind.equal(other.wind)
    assert np.array_equal(one.wind[0, 0], archive.coarse(day)[archive.channel_names.index("u10")])


def test_channels_that_an_archive_lacks_are_refused_by_name(archive):
    with pytest.raises(CranpmError, match=f"expected the channels {LEFT_OUT}, no2 in .*; found cams_co, cams_o3"):
        Inputs(Reversed(archive.location), channels=("u10", "v10", LEFT_OUT, "no2"))
    with pytest.raises(CranpmError, match="a channel with wind_v at the surface; found u10, t2m"):
        Inputs(archive, channels=("u10", "t2m"))
    network = build(TINY)
    with pytest.raises(CranpmError, match=f"expected the channels {LEFT_OUT}, which the weights were made for"):
        predict(Reversed(archive.location), archive.days[2], Weights(network, card_for(network), ""))


def test_training_takes_the_channels_of_the_archive(month, tmp_path):
    """Without CAMS's PM2.5, hotspots are drawn by the day's own; the weights then forecast from any order."""
    opened = Reversed(month.location)
    train(settings("optimiser.epochs=1", "samples.hotspot_ratio=1.0"), opened, tmp_path / "run")
    weights = load_weights(tmp_path / "run" / "best")
    assert weights.card.channel_names == opened.channel_names
    assert weights.network.settings.channels == len(opened.channel_names) == 34
    one, other = (predict(each, month.days[5], weights, precision="fp32").fields for each in (opened, month))
    assert np.array_equal(one, other, equal_nan=True)


def test_a_stated_number_of_channels_is_that_of_the_archive(month):
    opened = Reversed(month.location)
    assert len(gather(opened, settings()).channels) == 34
    for stated in (35, 36):
        with pytest.raises(CranpmError, match=f"an archive of {stated} coarse channels .*; found 34 in .* Leave"):
            gather(opened, settings(f"network.channels={stated}"))


def test_an_experiment_scores_with_the_channels_of_the_weights(archive):
    """Though the archive has one more, and in another order."""
    names = Reversed(archive.location).channel_names
    network = build(TINY.with_channels(34))
    card = card_for(network, Reversed(archive.location).channels)
    job = SimpleNamespace(settings=settings())
    task = SimpleNamespace(job=job, experiment=SimpleNamespace(interventions=("wind zero",), worlds=("here",)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cranpm.experiments.run.world_place", lambda world, work: archive.location)
        found = dict(conditions(task, archive, None, card))
    assert len(found) == 3
    for inputs in found.values():
        assert tuple(channel.name for channel in inputs.channels) == names
        assert inputs.day(archive.days[1]).coarse.shape[1] == 2 * 34


@pytest.mark.parametrize("model", [(), ("baseline.kind=convlstm",)], ids=["cran-pm", "convlstm"])
def test_five_leads_are_trained_and_forecast(month, tmp_path, model):
    train(settings("network.leads=[1,2,3,4,5]", "optimiser.epochs=1", *model), month, tmp_path / "run")
    weights = load_weights(tmp_path / "run" / "best")
    assert set(weights.card.changes) == set(weights.card.leads) == {1, 2, 3, 4, 5}
    got = predict(month, month.days[5], weights, (2, 5), precision="fp32")
    assert got.leads == (2, 5)
    assert np.isfinite(got.of(5)).sum() == np.isfinite(month.pm25(month.days[5])).sum()


def test_a_lead_may_have_two_digits(month, tmp_path):
    network = build(TINY.model_copy(update={"leads": LONG_LEADS})).eval()
    got = predict(month, month.days[5], Weights(network, card_for(network), ""), LONG_LEADS, precision="fp32")
    today = month.pm25(month.days[5])  # which an untrained network forecasts; blending tiles rounds
    assert np.allclose(got.of(12), today, rtol=0, atol=1e-4, equal_nan=True)
    damped = fit_damped(month, month.days[1:15], LONG_LEADS)
    assert set(damped.rho) == set(damped.changes) == set(LONG_LEADS)
    log = TrainingLog(tmp_path, 0, 0)
    log.step({"step": 0, "loss": 1.0})
    row = {f"skill_{name}_t{lead}": lead / 100 for name in ("damped", "persistence") for lead in LONG_LEADS}
    log.epoch({"epoch": 0, "step": 1, **row})
    assert scored_leads(row) == list(LONG_LEADS)
    assert (tmp_path / "curves.png").is_file()


def test_the_cams_baseline_says_that_there_is_no_cams(archive):
    with pytest.raises(CranpmError, match=r"a channel with pm25 at the surface in .*; found cams_co.* Leave cams out"):
        simple("cams", Reversed(archive.location)).forecast(archive.days[1], 1)
