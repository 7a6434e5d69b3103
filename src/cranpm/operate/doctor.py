"""Is this machine fit, and what will a run cost: looked at before hours are spent."""

import itertools
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import requests
import torch

from cranpm import __version__
from cranpm.archive.store import Archive
from cranpm.core.machine import forget_peak_memory, peak_memory
from cranpm.network import FittedSettings
from cranpm.network.cost import size
from cranpm.network.precision import gemm_peak, has_bf16
from cranpm.providers import PROVIDERS
from cranpm.providers.datastore import find_key
from cranpm.training.fitting import FittingRun
from cranpm.training.loop import TrainingRun
from cranpm.training.recipe import TrainSettings
from cranpm.training.retention import disk_need_gb, free_disk_gb

STEPS = 3
TIGHT = 0.8
"""Share of free memory beyond which a run is a risk."""
LEAST_DISK_GB = 5.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    found: str
    verdict: Literal["good", "note", "bad"] = "good"
    remedy: str = ""


def machine_checks(folder: Path) -> list[Finding]:
    """What this machine has, whatever it is used for."""
    memory, disk = free_memory_gb(), free_disk_gb(folder)
    little = disk < LEAST_DISK_GB
    bf16 = has_bf16()
    return [
        Finding("versions", f"cranpm {__version__}, Python {platform.python_version()}, torch {torch.__version__}"),
        Finding("processor", f"{os.cpu_count()} cores, {gemm_peak('fp32'):.0f} GFLOP/s in matrix products (fp32)"),
        Finding("bf16", "yes" if bf16 else "imitated, slower than fp32", *(() if bf16 else ("note", "Use fp32 here."))),
        Finding("GPU", torch.cuda.get_device_name() if torch.cuda.is_available() else "none"),
        Finding("free memory", f"{memory:.1f} GB"),
        Finding(
            "free disk", f"{disk:.0f} GB", *(("note", "An archive of Europe takes 35 MB per day.") if little else ())
        ),
    ]


def source_checks() -> list[Finding]:
    """Whether providers can be reached, and whether there is a key for those that want one."""
    key = find_key()
    wanting = " and ".join(sorted(provider.title for provider in PROVIDERS.values() if provider.needs_key))
    checks = [
        Finding("key of the data stores", "found")
        if key
        else Finding("key of the data stores", "none", "note", f"For {wanting}: see docs/sources/README.md.")
    ]
    hosts = {name: url for provider in PROVIDERS.values() for name, url in provider.hosts.items()}
    for name, url in hosts.items():
        try:
            answer = requests.head(url, timeout=5, allow_redirects=True)
            checks.append(Finding(name, f"answers ({answer.status_code})"))
        except requests.RequestException as error:
            checks.append(Finding(name, type(error).__name__, "note", f"{url} cannot be reached from here."))
    return checks


def run_checks(settings: TrainSettings, archive: Archive, folder: Path) -> list[Finding]:
    """Begin a run in a temporary folder, take a few steps, and say what the whole would cost. Refusals are raised."""
    if isinstance(settings.model, FittedSettings):
        return _fitting_checks(settings, archive, folder)
    free = free_memory_gb()
    forget_peak_memory()
    with tempfile.TemporaryDirectory() as temporary:
        run = TrainingRun(settings, archive, Path(temporary) / "run", resume=False)
        reading, seconds = _speed(run)
    memory = peak_memory()
    in_memory = run.inputs.size_gb(len(archive.days))
    read = len(run.batches) * (1 if in_memory <= settings.samples.cache_gb else settings.optimiser.epochs)
    hours = (run.steps * seconds + read * reading) / 3600
    disk, room = disk_need_gb(run.network, settings), free_disk_gb(folder)
    kept = (1 + settings.machine.workers) * min(settings.samples.cache_gb, in_memory)
    tiles = settings.samples.days * settings.samples.tiles * settings.optimiser.accumulate
    emulated = settings.machine.precision == "bf16" and not has_bf16()
    return [
        _days(run),
        Finding("network", f"{size(run.network) / 1e6:.2f} M parameters"),
        Finding("one step", f"{tiles} tiles in {seconds:.2g} s; {reading:.2g} s to read a batch of new days"),
        Finding(
            "the run", f"{run.steps} steps: {_duration(hours)}, and the scores of {settings.optimiser.epochs} epochs"
        ),
        Finding(
            "precision",
            settings.machine.precision,
            *(("note", "Imitated here: --set machine.precision=fp32 is faster.") if emulated else ()),
        ),
        Finding(
            "memory",
            f"{memory:.1f} GB for steps and {kept:.1f} GB for days, of {free:.1f} GB free",
            *(
                ("bad", "Fewer tiles or days per batch, machine.recompute, or a smaller samples.cache_gb.")
                if memory + kept > TIGHT * free
                else ()
            ),
        ),
        _disk(disk, room),
    ]


def _fitting_checks(settings: TrainSettings, archive: Archive, folder: Path) -> list[Finding]:
    """What fitting at once would cost: pixels of all leads in memory, and those of one lead again in float64."""
    with tempfile.TemporaryDirectory() as temporary:
        run = FittingRun(settings, archive, Path(temporary) / "run", resume=False)
    pixels, free = len(run.days) * run.model.samples_a_day, free_memory_gb()
    held = 4 * pixels * run.model.features * (len(run.model.leads) + 2) / 1e9
    kept = min(settings.samples.cache_gb, run.inputs.size_gb(len(archive.days)))
    tight = held + kept > TIGHT * free
    return [
        _days(run),
        Finding("network", f"{size(run.network) / 1e6:.2f} M parameters, fitted at once"),
        Finding("the run", f"{pixels} pixels of {len(run.days)} start days for each of {len(run.model.leads)} leads"),
        Finding(
            "memory",
            f"{held:.1f} GB for pixels and {kept:.1f} GB for days, of {free:.1f} GB free",
            *(("bad", "Fewer samples, or a smaller samples.cache_gb.") if tight else ()),
        ),
        _disk(disk_need_gb(run.network, settings), free_disk_gb(folder)),
    ]


def _days(run: TrainingRun | FittingRun) -> Finding:
    names = ("train", "validation", "test")
    return Finding("days", ", ".join(f"{len(getattr(run.data, name))} {name}" for name in names))


def _disk(need: float, room: float) -> Finding:
    return Finding(
        "disk", f"{need:.2g} GB of {room:.2g} GB free", *(("bad", "Make room first.") if need > room else ())
    )


def _speed(run: TrainingRun) -> tuple[float, float]:
    """Seconds to read a batch whose days are new, and of a step of the optimiser; the first of each warms up."""
    accumulate, batches = run.settings.optimiser.accumulate, iter(run.loader())
    kept = list(itertools.islice(batches, 1))
    start = time.perf_counter()
    kept += itertools.islice(batches, STEPS)
    reading = (time.perf_counter() - start) / max(len(kept) - 1, 1)
    del batches  # stops the workers, which would go on reading
    run.step(kept[:1])
    start = time.perf_counter()
    for batch in kept:
        run.step([batch])
    return reading, accumulate * (time.perf_counter() - start) / len(kept)


def _duration(hours: float) -> str:
    return f"about {hours:.1f} hours" if hours >= 1 else f"about {60 * hours:.1f} minutes"


def free_memory_gb() -> float:
    """GB that can be had without swapping."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024 / 1e9
