"""How fast days are simulated and read."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import ZstdCodec

from cranpm.archive.repository import Group
from cranpm.archive.store import Archive
from cranpm.core.days import DayRange
from cranpm.core.grid import TILE, Window, parse_domain
from cranpm.core.machine import copy_bandwidth, peak_memory, timed
from cranpm.core.packing import ARCHIVED
from cranpm.simulate import SimulationSettings
from cranpm.simulate.job import simulate_archive

FIRST = date(2021, 1, 1)
SAMPLES = 60
ROUNDS = 5


@contextmanager
def passing_archive(domain: str, days: DayRange, ahead: int = 0) -> Iterator[Archive]:
    """A simulated archive that is gone afterwards, with forecasts of so many days ahead."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "archive")
        simulate_archive(place, parse_domain(domain), days, SimulationSettings(), ahead=ahead)
        yield Archive(place)


def simulate(domain: str, days: int) -> dict[str, Any]:
    """Seconds a day to simulate and store, and the memory it took; compilation and spin-up are in the first day."""
    stamps = [time.perf_counter()]
    with tempfile.TemporaryDirectory() as folder:
        wanted = DayRange(FIRST, FIRST + timedelta(days=days - 1))
        place = str(Path(folder) / "archive")
        simulate_archive(
            place, parse_domain(domain), wanted, SimulationSettings(), lambda _: stamps.append(time.perf_counter())
        )
    each = float(np.median(np.diff(stamps[1:])))
    return {
        "machine copy bandwidth, GB/s": copy_bandwidth(),
        "domain": domain,
        "days": days,
        "seconds to the first day (set-up, compilation, spin-up)": stamps[1] - stamps[0],
        "seconds a day after it, median": each,
        "seconds in all": stamps[-1] - stamps[0],
        "seconds for 730 days at this rate": stamps[1] - stamps[0] + 729 * (stamps[-1] - stamps[1]) / (days - 1),
        "peak resident memory, GB": peak_memory(),
    }


def store(domain: str, days: int) -> dict[str, Any]:
    """Random samples (two days, target, statics) from the archive against the same reads from plain zarr."""
    span = DayRange(FIRST, FIRST + timedelta(days=days - 1))
    with passing_archive(domain, span) as archive, tempfile.TemporaryDirectory() as folder:
        group = _copy_to_zarr(archive, str(Path(folder) / "plain.zarr"))
        samples = _random_samples(archive)
        ours, reference = [], []
        for _ in range(ROUNDS):
            ours.append(timed(lambda: [_from_archive(archive, *sample) for sample in samples]))
            reference.append(timed(lambda: [_from_zarr(group, *sample) for sample in samples]))
    ratio = float(np.median(np.array(reference) / np.array(ours)))
    return {
        "machine copy bandwidth, GB/s": copy_bandwidth(),
        "domain": domain,
        "samples a second, archive": SAMPLES / min(ours),
        "samples a second, plain zarr": SAMPLES / min(reference),
        "speed relative to plain zarr (median of rounds)": ratio,
    }


def _copy_to_zarr(archive: Archive, path: str) -> Group:
    """The same numbers in a plain zarr folder: same chunks, same codec."""
    group = zarr.open_group(path, mode="w")
    days, shape = archive.days, archive.domain.fine.shape
    codec: dict[str, Any] = {"compressors": [ZstdCodec(level=3, checksum=True)]}
    pm25 = group.create_array(
        "pm25", shape=(len(days), *shape), chunks=(1, 512, 512), dtype="uint16", fill_value=65535, **codec
    )
    for index, day in enumerate(days):
        pm25[index] = archive.packed_pm25(day)
    statics = archive.statics()
    for name, values in (
        ("elevation", statics.elevation_m),
        ("spread", statics.spread_m),
        ("land", statics.land.astype(np.uint8)),
    ):
        group.create_array(name, shape=shape, chunks=(512, 512), dtype=values.dtype, **codec)[...] = values
    return zarr.open_group(path, mode="r")


def _random_samples(archive: Archive) -> list[tuple[int, Window]]:
    rng = np.random.default_rng(0)
    rows, cols = archive.domain.fine.shape
    corners = rng.integers((1, 0, 0), (len(archive.days) - 1, rows - TILE + 1, cols - TILE + 1), (SAMPLES, 3))
    return [(int(day), (slice(row, row + TILE), slice(col, col + TILE))) for day, row, col in corners]


def _from_archive(archive: Archive, index: int, window: Window) -> list[Any]:
    days = [FIRST + timedelta(days=index + step) for step in (-1, 0, 1)]
    statics = archive.statics(window)
    return [*(archive.pm25(day, window) for day in days), statics.elevation_m, statics.spread_m, statics.land]


def _from_zarr(group: Group, index: int, window: Window) -> list[Any]:
    fields = [ARCHIVED.unpack(np.asarray(group["pm25"][(index + step, *window)])) for step in (-1, 0, 1)]
    elevation, spread, land = (np.asarray(group[name][window]) for name in ("elevation", "spread", "land"))
    return [*fields, elevation, spread, land.astype(bool)]
