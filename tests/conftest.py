"""A small world around the Po Valley that all tests share; built once."""

from datetime import date
from pathlib import Path

import pytest
from sample_days import FIRST, SETTINGS, SMALL

from cranpm.archive.store import Archive
from cranpm.core.days import DayRange
from cranpm.simulate import SimulationSettings, World
from cranpm.simulate.job import simulate_archive


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


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """January 2021 and three more days, for training. Treat as read-only."""
    path = tmp_path_factory.mktemp("month") / "archive"
    settings = SimulationSettings(first_day=date(2021, 1, 1), spin_up_days=2)
    simulate_archive(str(path), SMALL, DayRange(date(2021, 1, 1), date(2021, 2, 3)), settings)
    return Archive(str(path))
