"""How fast a map is drawn, against one pass of numpy over its pixels."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.archive import passing_archive
from cranpm.archive.store import Archive
from cranpm.core.days import DayRange
from cranpm.core.machine import forget_peak_memory, peak_memory, timed
from cranpm.views.figures.catalogue import draw_figure
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.maps import draw, pm25_layer

DAY = date(2022, 1, 25)
ROUNDS = 3


def bench_figures(domain: str = "europe", location: str | None = None) -> dict[str, Any]:
    """Seconds, best of three; an untimed first map loads fonts. The last day of an archive, or a simulated one."""
    with _archive(domain, location) as archive, tempfile.TemporaryDirectory() as folder:
        day, path = archive.days[-1], Path(folder) / "map.png"
        field, observed = archive.pm25(day), archive.stations_pm25(day)
        layer = pm25_layer(field, archive.domain.fine)
        draw(layer, archive, str(day), path)
        forget_peak_memory()
        plain = _best(lambda: np.nansum(field))
        one = _best(lambda: draw(layer, archive, str(day), path, circles=observed))
        overview = _best(lambda: draw_figure("overview", FigureInputs(archive, day=day), path))
        memory = peak_memory()
    return {
        "domain": archive.domain.name,
        "pixels": field.size,
        "map as PNG from these pixels, s (goal 5)": one,
        "overview with close views, read from the archive, s": overview,
        "sum of the valid pixels by numpy, s": plain,
        "map / sum": one / plain,
        "peak resident memory, GB": memory,
    }


@contextmanager
def _archive(domain: str, location: str | None) -> Iterator[Archive]:
    if location is not None:
        yield Archive(location)
        return
    with passing_archive(domain, DayRange(DAY, DAY)) as archive:
        yield archive


def _best(work: Any) -> float:
    return min(timed(work) for _ in range(ROUNDS))
