"""From the archive's forecasts to inputs, training, forecasts: what is read, hidden, refused and labelled."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_train import settings

from cranpm.archive import repository
from cranpm.archive.days_ahead import DaysAhead
from cranpm.archive.layout import axis_index
from cranpm.archive.store import Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.channels import GROUPS, find_channel
from cranpm.core.errors import CranpmError
from cranpm.experiments.intervene import INTERVENTIONS, Intervened
from cranpm.experiments.spec import known_days
from cranpm.forecasting.engine import predict
from cranpm.network import preset
from cranpm.simulate.job import simulate_archive
from cranpm.training import train
from cranpm.training.batches import Batches
from cranpm.training.days_ahead import PERFECT, check_runs, models_of
from cranpm.training.inputs import Inputs
from cranpm.training.training_data import gather
from cranpm.weights import load_weights

TINY = preset("tiny")
AHEAD = TINY.model_copy(update={"ahead": "weather+composition"})
SLOTS = AHEAD.model_copy(update={"way": "slots"})
READS = ("network.ahead=weather+composition",)


@pytest.fixture(scope="module")
def weights(month, tmp_path_factory):
    """Of a short training that hides groups often."""
    folder = tmp_path_factory.mktemp("ahead") / "run"
    train(settings(*READS, "samples.hidden_groups=0.4", "optimiser.epochs=2"), month, folder)
    return load_weights(folder / "last")


def test_target_day_mean_of_the_way_and_its_wind(month):
    inputs, day = Inputs.of(AHEAD, month), month.days[4]
    fields = {lead: np.concatenate([month.ahead.fields(day, lead, group) for group in GROUPS]) for lead in (1, 2, 3)}
    found = inputs.day(day, 3)
    assert np.array_equal(found.ahead[0, 0], fields[3])
    assert np.allclose(found.ahead[0, 1], np.mean(list(fields.values()), axis=0), rtol=1e-5)
    assert found.known.tolist() == [[[1, 1], [1, 1]]]
    assert found.lead.tolist() == [3]
    u = find_channel(month.channels, "wind_u")
    way = (month.coarse(day)[u] / 2 + fields[1][u] + fields[2][u] + fields[3][u] / 2) / 3
    assert np.allclose(found.wind[0, 0], way, atol=1e-5)
    assert not np.allclose(found.wind[0, 0], month.coarse(day)[u], atol=0.5)
    plain = Inputs(month).day(day)
    assert torch.equal(found.coarse, plain.coarse)


def test_slots_count_back_from_the_target(month):
    inputs, day = Inputs.of(SLOTS, month), month.days[4]
    found = inputs.day(day, 2)
    for slot, lead in ((0, 2), (1, 1)):
        assert np.array_equal(found.ahead[0, slot, :30], month.ahead.fields(day, lead, "weather"))
    assert found.known[0].tolist() == [[1, 1], [1, 1], [0, 0]]


def test_what_is_hidden_or_not_stored_is_masked_and_the_wind_is_todays(month):
    inputs, day = Inputs.of(AHEAD, month), month.days[4]
    hidden = inputs.day(day, 2, hidden=["weather"])
    assert hidden.known.tolist() == [[[0, 1], [0, 1]]]
    assert np.array_equal(hidden.wind[0], month.coarse(day)[inputs.wind])
    beyond = inputs.day(day, 6)  # five days are stored
    assert beyond.known.sum() == 0
    with pytest.raises(CranpmError, match="a lead, for a network that reads the days ahead"):
        inputs.day(day)


def test_perfect_prognosis_reads_the_analyses_of_the_days_themselves(month):
    inputs, day = Inputs.of(AHEAD, month, prognosis="perfect"), month.days[4]
    found = inputs.day(day, 2)
    assert np.array_equal(found.ahead[0, 0], month.coarse(day + timedelta(days=2)))
    assert Inputs.of(AHEAD, month, prognosis="perfect").day(month.days[-2], 2).known.sum() == 0


def test_batches_have_one_lead_a_day_and_hide_groups_as_often_as_asked(month):
    wanted = settings(*READS, "samples.hidden_groups=0.5", "samples.days=4")
    days = month.days[1:-3]
    batches = Batches(month, days, wanted.model.for_channels(month.channels), wanted.samples)
    seen = [batches[epoch, number] for epoch in range(12) for number in range(len(batches))]
    for one in seen:
        assert torch.equal(one.lead, one.day.lead.repeat_interleave(wanted.samples.tiles))
    assert {int(lead) for one in seen for lead in one.lead} == set(wanted.model.leads)
    known = torch.cat([one.day.known[:, 0] for one in seen])
    shares = known.mean(dim=0)
    assert ((shares - 0.5 * 0.75).abs() < 0.12).all()
    assert {tuple(row) for row in known.tolist()} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    again = Batches(month, days, wanted.model.for_channels(month.channels), wanted.samples)[3, 1]
    pairs = zip(again.inputs, batches[3, 1].inputs, strict=True)
    assert all(torch.equal(one.nan_to_num(), other.nan_to_num()) for one, other in pairs)


def test_scales_of_the_days_ahead_are_fitted_on_forecasts(month):
    found = gather(month, settings(*READS)).scales
    assert len(found.ahead_mean) == 35
    t2m = find_channel(month.channels, "temperature")
    assert abs(found.ahead_mean[t2m] - found.mean[t2m]) < 5
    assert gather(month, settings()).scales.ahead_mean == ()
    assert len(gather(month, settings("network.ahead=weather")).scales.ahead_mean) == 30


def test_a_trained_network_does_with_every_subset_of_groups(month, weights):
    inputs, day = Inputs.of(weights.network.settings, month), month.days[10]
    window, found = (slice(0, 64), slice(0, 64)), {}
    network = weights.network.eval()
    for count in range(3):
        for hidden in combinations(GROUPS, count):
            with torch.inference_mode():
                context = network.encode_day(inputs.day(day, 2, hidden))
                found[hidden] = network.forecast_tile(context, inputs.tile(day, window), torch.tensor([2]))
            today = inputs.tile(day, window).fine[:, 0]
            assert torch.equal(found[hidden].isnan(), today.isnan())
            assert found[hidden].nan_to_num().abs().max() < 500
    assert len({round(float(field.nansum()), 2) for field in found.values()}) == 4


def test_a_forecast_names_its_runs_and_missing_groups_are_labelled(month, weights, tmp_path):
    day = month.days[10]
    whole = predict(month, day, weights, precision="fp32")
    assert whole.degraded == ()
    assert whole.provenance["days_ahead"]["weather"] == f"simulation of {day} 00 UTC"
    assert weights.card.ahead == {"weather": ("simulation",), "composition": ("simulation-cams",)}
    bare = tmp_path / "bare"
    simulate_like(month, bare)
    other = Archive(str(bare))
    with pytest.raises(CranpmError, match=r"no forecast of the weather ahead for T\+1, T\+2, T\+3: .*--degrade"):
        predict(other, day, weights)
    without = predict(other, day, weights, degrade=True, precision="fp32")
    assert without.provenance["days_ahead"] == {"weather": "none", "composition": "none"}
    assert sum("the weights do without" in fault for fault in without.degraded) == 2
    assert np.isfinite(without.fields[:, np.isfinite(other.pm25(day))]).all()
    hidden = {"weather": ("weather",), "composition": ("composition",)}
    with ArchiveWriter(str(bare)) as writer:
        for group in hidden:
            fields = {lead: month.ahead.fields(day, lead, group) for lead in (1, 2)}
            model, reference = month.ahead.run(day, group).model, datetime(day.year, day.month, day.day)
            if group == "weather":
                model, reference = "aifs", reference - timedelta(days=1)
            writer.put_ahead(day, [DaysAhead(group, model, reference, fields)])
    partly = predict(Archive(str(bare)), day, weights, degrade=True, precision="fp32")
    said = "; ".join(partly.degraded)
    assert "the weather ahead is from aifs, the weights learned from simulation" in said
    assert "the weather ahead is from an older run: aifs of" in said
    assert "no forecast of the composition ahead for T+3" in said
    assert np.array_equal(partly.of(3), without.of(3), equal_nan=True)
    assert not np.array_equal(partly.of(2), without.of(2), equal_nan=True)


def simulate_like(archive, path):
    """The same days without any forecast."""
    from sample_days import SMALL

    from cranpm.core.days import DayRange
    from cranpm.simulate import SimulationSettings

    made = archive.attributes["producer"]
    known = {name: made[name] for name in ("first_day", "spin_up_days")}
    days = DayRange(archive.days[9], archive.days[14])
    simulate_archive(str(path), SMALL, days, SimulationSettings.model_validate(known), ahead=0)


def test_perfect_prognosis_is_labelled(month, weights):
    day = month.days[10]
    with pytest.raises(CranpmError, match="not a forecast: perfect prognosis"):
        predict(month, day, weights, prognosis="perfect")
    found = predict(month, day, weights, prognosis="perfect", degrade=True, precision="fp32")
    assert any("perfect prognosis" in fault for fault in found.degraded)
    assert "perfect prognosis" in found.provenance["days_ahead"]["weather"]
    plain = predict(month, day, weights, precision="fp32")
    assert not np.array_equal(found.fields, plain.fields, equal_nan=True)


def test_training_refuses_forecasts_from_after_the_start_day_and_archives_without(month, tmp_path):
    path = tmp_path / "late"
    simulate_like(month, path)
    short = settings(*READS)
    with repository.commit(str(month_copy(month, tmp_path)), "tampered", {}) as root:
        hours = root["ahead/reference"][:]
        root["ahead/reference"][:] = np.where(hours > 0, hours + 48, hours)
    with pytest.raises(CranpmError, match=r"a run that began by .*samples.prognosis=perfect"):
        gather(Archive(str(tmp_path / "copy")), short)
    gather(Archive(str(tmp_path / "copy")), settings(*READS, "samples.prognosis=perfect"))
    with repository.commit(str(tmp_path / "copy"), "emptied", {}) as root:
        root["ahead/held"][:] = 0
    with pytest.raises(CranpmError, match=r"forecasts of the weather ahead.*found none.*network.ahead=none"):
        gather(Archive(str(tmp_path / "copy")), short)


def month_copy(archive, folder):
    import shutil

    shutil.copytree(archive.location, folder / "copy")
    return folder / "copy"


def test_interventions_hide_groups(month):
    scales = gather(month, settings(*READS)).scales
    day = month.days[8]
    for name, groups in (("weather ahead missing", [0]), ("all days ahead missing", [0, 1])):
        changed = Intervened.of(AHEAD, month, scales=scales, intervention=name).day(day, 2)
        assert changed.known[0, 0].tolist() == [0.0 if group in groups else 1.0 for group in (0, 1)]
        assert np.array_equal(changed.wind[0], month.coarse(day)[Inputs(month).wind])
    assert INTERVENTIONS["composition ahead missing"].hidden == ("composition",)
    reversed_wind = Intervened.of(AHEAD, month, scales=scales, intervention="wind reversed in scan and bias alone")
    assert torch.equal(reversed_wind.day(day, 2).wind, -Inputs.of(AHEAD, month).day(day, 2).wind)


def test_runs_are_identified_by_the_forecasts_that_they_read(month):
    plain, ahead = (json.dumps(known_days(month, settings(*changes))) for changes in ((), READS))
    assert ahead.startswith(plain[:-1])
    assert "simulation-cams" in ahead
    assert "simulation-cams" not in plain


def test_old_cards_without_days_ahead_are_read(weights):
    card = weights.card.model_dump(mode="json")
    card["network"]["settings"] |= {"ahead": "none"}
    card["scales"] |= {"ahead_mean": [], "ahead_spread": []}
    for table, names in ((card["network"]["settings"], ("ahead", "way", "group_sizes", "carried")), (card, ("ahead",))):
        for name in names:
            table.pop(name)
    for name in ("ahead_mean", "ahead_spread"):
        card["scales"].pop(name)
    assert type(weights.card).model_validate(card).network.settings.ahead == "none"


def test_days_with_known_and_unknown_groups_join(month):
    inputs = Inputs.of(AHEAD, month)
    day = month.days[5]
    joined = inputs.leads(day, (1, 2, 6))
    assert joined.lead.tolist() == [1, 2, 6]
    assert joined.known[:, 0, 0].tolist() == [1, 1, 0]
    assert replace(joined, lead=None).ahead.shape[0] == 3


def test_states_of_runs_from_before_the_days_ahead_can_be_resumed():
    from cranpm.training.checkpoints import _current

    wanted = settings()
    before = wanted.to_json() | {"begun_from": None, "processes": 1}
    old = {"mean": [0.0], "spread": [1.0], "pm25_mean": 15.0, "pm25_spread": 20.0}
    assert _current(before | {"scales": old})["scales"] == old | {"ahead_mean": [], "ahead_spread": []}


def test_the_card_names_the_models_of_the_training_days_and_what_tuned_weights_had_read(month, tmp_path):
    form, days = AHEAD.days_ahead, month.days[1:5]
    copy = month_copy(month, tmp_path)
    with ArchiveWriter(str(copy)) as writer:
        late = month.days[-1]
        fields = {1: month.ahead.fields(late, 1, "weather")}
        writer.put_ahead(late, [DaysAhead("weather", "aifs", datetime(late.year, late.month, late.day), fields)])
    archive = Archive(str(copy))
    assert archive.ahead.models("weather") == ("simulation", "aifs")
    found = models_of(archive, form, days, "forecast", {"weather": ["ifs"]})
    assert found == {"weather": ("ifs", "simulation"), "composition": ("simulation-cams",)}
    perfect = models_of(archive, form, days, "perfect", {})
    assert perfect == {"weather": (PERFECT,), "composition": (PERFECT,)}
    assert models_of(archive, form, days, "forecast", perfect)["weather"] == (PERFECT, "simulation")


def test_perfect_prognosis_masks_days_ahead_that_are_degraded(month, tmp_path):
    copy = month_copy(month, tmp_path)
    with repository.commit(str(copy), "degraded", {}) as root:
        root["quality"][axis_index(month.days[6])] = 2
    inputs = Inputs.of(AHEAD, Archive(str(copy)), prognosis="perfect")
    assert inputs.day(month.days[4], 1).known.all()
    assert inputs.day(month.days[4], 2).known.sum() == 0


def test_a_network_that_cannot_read_the_days_ahead_is_refused_with_them():
    from cranpm.network import ReleasedSettings
    from cranpm.network.interface import GridSettings

    for kind in (GridSettings, ReleasedSettings):
        with pytest.raises(ValueError, match="reads no days ahead"):
            kind(kind="released", ahead="weather")


def test_leads_beyond_what_is_forecast_are_masked_and_leads_all_beyond_it_are_refused(month):
    splits = ("train=2021-01-01..2021-01-14", "validation=2021-01-15..2021-01-24", "test=2021-01-25..2021-02-03")
    longer = (*READS, *(f"splits.{split}" for split in splits))
    scales = gather(month, settings(*longer, "network.leads=[1,6]")).scales
    assert len(scales.ahead_mean) == 35
    with pytest.raises(CranpmError, match=r"up to T\+6, for network.ahead; found none beyond T\+5"):
        gather(month, settings(*longer, "network.leads=[6]"))


def test_forecasts_without_their_first_day_are_no_forecasts(month):
    """All days up to a lead are needed: an archive that has only the later ones is refused, not read masked."""

    class Gappy:
        location = month.location
        ahead = SimpleNamespace(leads=lambda *_: (2, 3), check_references=lambda *_: None)

    form = AHEAD.for_channels(month.channels).days_ahead
    with pytest.raises(CranpmError, match=r"up to T\+1, for network.ahead; found none for the 2 start days"):
        check_runs(Gappy(), form, month.days[:2], 1, "forecast")


def test_a_folder_with_another_run_is_refused(month, tmp_path):
    (tmp_path / "run" / "state").mkdir(parents=True)
    for changes, resume, found in (((), False, "a run"), (("baseline.kind=boosting",), True, "trained in steps")):
        with pytest.raises(CranpmError, match=f"a new folder .*found .*{found}"):
            train(settings(*changes), month, tmp_path / "run", resume=resume)
