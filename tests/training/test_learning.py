"""The shipped recipe learns on the embedded Europe: ahead of persistence and damped persistence on a new year."""

import os

import pytest

from cranpm.archive.store import Archive
from cranpm.core.days import parse_days
from cranpm.core.grid import DOMAINS
from cranpm.simulate import SimulationSettings
from cranpm.simulate.job import simulate_archive
from cranpm.training import load_settings, train
from cranpm.training.recipe import SHIPPED

MARGIN = {1: 0.05, 2: 0.05, 3: 0.05}
"""Skill against damped persistence that must be exceeded; seed 0."""


@pytest.mark.long
def test_alps_beats_both_references_at_every_lead(tmp_path):
    """Simulates eight years first, unless CRANPM_ALPS names an archive of them: half an hour on two cores."""
    place = os.environ.get("CRANPM_ALPS")
    if place is None:
        place = str(tmp_path / "archive")
        simulate_archive(place, DOMAINS["alps"], parse_days("2019-01-01..2026-12-31"), SimulationSettings())
    scores = train(load_settings(SHIPPED / "alps.toml"), Archive(place), tmp_path / "run")
    for lead, margin in MARGIN.items():
        assert scores.skill(lead, "damped") > margin
        assert scores.skill(lead, "persistence") > margin
