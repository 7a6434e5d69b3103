"""What this machine can do at best: the references that benchmarks are measured against."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cranpm.core.allocator import give_back

STATUS = Path("/proc/self/status")


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def copy_bandwidth() -> float:
    """GB moved per second by a plain copy: bytes read plus bytes written, best of five."""
    source = np.ones(2**25)
    target = np.empty_like(source)
    best = min(timed(lambda: np.copyto(target, source)) for _ in range(5))
    return 2 * source.nbytes / best / 1e9


def forget_peak_memory() -> None:
    """Let the peak count from now on, without what was freed before."""
    give_back()
    Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> float:
    """GB of resident memory at most, since the start or since it was forgotten."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e9
