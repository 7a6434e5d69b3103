"""A small world around the Po Valley that all tests share; built once."""

from datetime import date
from pathlib import Path

import pytest
from sample_days import FIRST, SMALL

from cranpm.days import DayRange
from cranpm.fill import simulate_archive
from cranpm.simulate import SimulationSettings, World
from cranpm.store import Archive

SETTINGS = SimulationSettings(first_day=FIRST, spin_up_days=2)


@pytest.fixture(scope="session")
def world() -> World:
    return World(SMALL, SETTINGS)


@pytest.fixture(scope="session")
def archive_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five simulated days, leap day included. Treat as read-only."""
    path = tmp_path_factory.mktemp("shared") / "archive"
    simulate_archive(str(path), SMALL, DayRange(FIRST, date(2020, 3, 2)), SETTINGS)
    return path


@pytest.fixture(scope="session")
def archive(archive_path: Path) -> Archive:
    return Archive(str(archive_path))
