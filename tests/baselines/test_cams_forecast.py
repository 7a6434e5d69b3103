"""The CAMS row is CAMS's forecast of the lead where the archive has one, and says what it is made of."""

import shutil
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from paper_channels import INDEX

from cranpm.archive.days_ahead import DaysAhead
from cranpm.archive.store import Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.baselines import simple
from cranpm.baselines.simple.cams import ANALYSIS
from cranpm.core.interpolation import refine
from cranpm.verification import Plan, Simple, all_tables, score, summarise

LEADS = (1, 2)


def run_of(archive, day, leads, model="cams-global", shift=0.0):
    """A forecast of the composition: the analysis of the target day, all values raised by `shift`."""
    fields = {lead: archive.coarse(day + timedelta(days=lead))[30:] + np.float32(shift) for lead in leads}
    return DaysAhead("composition", model, datetime(day.year, day.month, day.day), fields)


@pytest.fixture
def changed(archive_path, tmp_path):
    """Puts forecasts into a copy of the archive."""

    def made(runs):
        place = tmp_path / "copy"
        if not place.exists():
            shutil.copytree(archive_path, place)
        with ArchiveWriter(str(place)) as writer:
            for day, run in runs.items():
                writer.put_ahead(day, [run])
        return Archive(str(place))

    return made


class NoForecasts:
    """The forecasts of an archive, of some days only."""

    def __init__(self, reader, days):
        self._reader, self._days = reader, days

    def __getattr__(self, name):
        return getattr(self._reader, name)

    def leads(self, day, group):
        return self._reader.leads(day, group) if day in self._days else ()

    def run(self, day, group):
        return self._reader.run(day, group) if day in self._days else None


def only(archive, days):
    """The archive as if only these start days had forecasts."""
    opened = Archive(archive.location, archive.snapshot)
    opened.__dict__["ahead"] = NoForecasts(archive.ahead, set(days))
    return opened


def test_forecast_of_the_lead_or_the_analysis_of_the_start_day(archive):
    day = archive.days[1]
    coarse, fine = archive.domain.coarse, archive.domain.fine
    for lead in LEADS:
        ahead = archive.ahead.fields(day, lead, "composition")[0]
        expected = np.where(np.isfinite(archive.pm25(day)), np.maximum(refine(ahead, coarse, fine), 0), np.nan)
        assert np.array_equal(simple("cams", archive).forecast(day, lead), expected, equal_nan=True)
        today = refine(archive.coarse(day)[INDEX["cams_pm25"]], coarse, fine)
        found = simple("cams", only(archive, [])).forecast(day, lead)
        there = np.isfinite(found)
        assert np.array_equal(found[there], np.maximum(today, 0)[there])
        assert not np.array_equal(found[there], expected[there])


def test_facts_tell_which_was_used_and_on_how_many_days(archive):
    days = archive.days[:3]
    models = ", ".join(archive.ahead.models("composition"))
    whole = simple("cams", archive).facts(days, LEADS)
    assert whole == {"made_of": f"CAMS forecast ({models})"}
    assert simple("cams", only(archive, [])).facts(days, LEADS) == {"made_of": ANALYSIS}
    mixed = simple("cams", only(archive, days[:2])).facts(days, LEADS)["made_of"]
    assert mixed == f"CAMS forecast ({models}) for T+1 on 2, T+2 on 2 of 3 start days; {ANALYSIS}, on the others"
    assert simple("persistence", archive).facts(days, LEADS) == {}


def test_identity_changes_with_the_forecast(archive, changed):
    day = archive.days[1]
    first = changed({day: run_of(archive, day, LEADS)})
    second = changed({day: run_of(archive, day, LEADS, "cams-europe", shift=1)})
    identities = {simple("cams", one).identity(day) for one in (archive, only(archive, []), first, second)}
    assert len(identities) == 4
    assert len({simple("persistence", one).identity(day) for one in (first, second)}) == 1
    change = simple("cams", second).forecast(day, 1) - simple("cams", first).forecast(day, 1)
    assert np.nanmean(change) == pytest.approx(1, abs=0.01)


def test_a_lead_that_the_run_lacks_is_the_analysis(archive, changed):
    day = archive.days[1]
    short = changed({day: run_of(archive, day, (1,))})
    found = simple("cams", short).forecast(day, 2)
    assert np.array_equal(found, simple("cams", only(archive, [])).forecast(day, 2), equal_nan=True)
    told = simple("cams", short).facts([day], LEADS)["made_of"]
    assert "for T+1 on 1, T+2 on 0 of 1 start days" in told


def test_tables_and_scores_say_what_the_row_is_made_of(archive, tmp_path):
    methods = [Simple(name, simple(name, archive)) for name in ("persistence", "cams")]
    plan = Plan(archive, methods, (1,), statistics=("errors",))
    scores = score(plan, archive.days[:2], tmp_path)
    summary = summarise(scores, "persistence")
    told = f"CAMS forecast ({', '.join(archive.ahead.models('composition'))})"
    assert summary.methods["cams"].facts["made_of"] == told
    assert "made_of" not in summary.methods["persistence"].facts
    notes = {table.name: table.notes for table in all_tables(scores, summary)}
    for name in ("table1-1km", "table1-25km", "table2"):
        assert f"cams: {told}." in notes[name]
    nothing = replace(scores, facts={**scores.facts, "cams": {**scores.facts["cams"], "made_of": ANALYSIS}})
    assert f"cams: {ANALYSIS}." in all_tables(nothing, summary)[0].notes
