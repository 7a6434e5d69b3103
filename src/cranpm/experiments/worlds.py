"""Counterfactual worlds: the days of a test, simulated again with one cause changed."""

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from cranpm.archive.repository import exists
from cranpm.archive.store import SIMULATION, Archive
from cranpm.core.days import reach, usable
from cranpm.core.errors import CranpmError
from cranpm.experiments.spec import Experiment, Job
from cranpm.simulate import SimulationSettings
from cranpm.simulate.job import days_ahead_in, simulate_archive
from cranpm.training.recipe import TrainSettings
from cranpm.training.tile_scores import spread_days

SIMULATED = frozenset(SimulationSettings.model_fields) - {"world", "first_day"}
"""What counterfactual worlds have in common with the factual one."""


def world_place(world: str, work: Path) -> Path:
    """Where the archive of a world lies."""
    return work / "worlds" / f"{world.replace(':', '-').replace(',', '_')}.archive"


def make_worlds(
    experiment: Experiment,
    jobs: Sequence[Job],
    archive: Archive,
    days: Sequence[date],
    work: Path,
    on_day: Callable[[date], None] = lambda _: None,
) -> None:
    """Simulate counterfactual archives of days, by the settings and the seed of the factual one.

    They hold forecasts of the days ahead if one of the jobs reads them.
    """
    if experiment.worlds and archive.source != SIMULATION:
        raise CranpmError(
            expected="a simulated archive, for worlds with one cause changed",
            found=archive.source,
            remedy="Leave `worlds` out of the experiment.",
        )
    made = {name: value for name, value in archive.attributes["producer"].items() if name in SIMULATED}
    reads = any(job.settings.model.days_ahead.groups for job in jobs)
    for world in experiment.worlds:
        settings = SimulationSettings.model_validate(made | {"world": world})
        place = str(world_place(world, work))
        there = days_ahead_in(Archive(place)) if exists(place) else None
        if reads and there == 0:
            raise CranpmError(
                expected=f"forecasts of the days ahead in the world {place}, for networks that read them",
                found="none: it was simulated for networks that do not",
                remedy="Remove that folder, or name another with --work; the world is simulated again.",
            )
        ahead = None if there is not None else days_ahead_in(archive) if reads else 0
        simulate_archive(place, archive.domain, days, settings, on_day, ahead=ahead)


def scored_days(
    experiment: Experiment, archive: Archive, settings: TrainSettings, leads: Sequence[int] | None = None
) -> list[date]:
    """The days that the test of an experiment reads: its start days, the days before and the days ahead.

    `leads` are those of all rows; unless given, those of `settings`.
    """
    leads = leads or settings.network.leads
    found = usable(archive.days, settings.splits.test, leads)
    if not found:
        raise CranpmError(
            expected=f"test days in the archive: {settings.splits.test}",
            found="none",
            remedy="Simulate them, or --set splits.test=FIRST..LAST.",
        )
    starts = spread_days(found, experiment.score_days)
    return sorted({day for start in starts for day in reach(start, leads)})
