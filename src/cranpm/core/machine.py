"""What this machine is and can do at best: the references that benchmarks are measured against."""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cranpm.core.allocator import give_back

STATUS, CPUINFO = Path("/proc/self/status"), Path("/proc/cpuinfo")
VECTOR_UNITS = (
    *("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni", "amx_bf16", "amx_int8"),
    *("asimd", "sve", "bf16", "i8mm"),
)
"""Of x86 and of ARM, as Linux calls them: those that decide how fast matrix products are."""


def processor_flags() -> frozenset[str]:
    """What the processor can do, as Linux calls it; nothing where that cannot be read."""
    return frozenset(_cpuinfo().split())


def processor() -> dict[str, str]:
    """The processor's name, its cores and its vector units, for figures that others will read."""
    names = [line.split(":", 1)[1].strip() for line in _cpuinfo().splitlines() if line.startswith("model name")]
    flags = processor_flags()
    return {
        "processor": f"{len(os.sched_getaffinity(0))} x {names[0] if names else platform.machine()}",
        "vector units": ", ".join(unit for unit in VECTOR_UNITS if unit in flags) or "unknown",
    }


def _cpuinfo() -> str:
    return CPUINFO.read_text() if CPUINFO.is_file() else ""


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
