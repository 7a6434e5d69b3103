"""How fast the network forecasts: by part, against the matrix products of this machine measured in the same run."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cranpm.core.machine import forget_peak_memory, peak_memory
from cranpm.network import ForecastNetwork, ForecastSettings, build
from cranpm.network.cost import KEYS, Cost, cost, example, watch
from cranpm.network.precision import DTYPES, Precision, gemm_peak, has_bf16, parse_precision

ROUNDS = 3


@dataclass(frozen=True)
class Speed:
    """One part, or `total`, of one stage at one precision and batch."""

    precision: Precision
    batch: int
    stage: str
    part: str
    milliseconds: float
    """For the whole batch, best of the rounds."""
    gflops: float
    share: float
    """Of the machine's GEMM peak at this precision."""


@dataclass(frozen=True)
class NetworkBench:
    """Speeds, GEMM peaks (GFLOP/s) and peak resident memory (GB) by precision and batch."""

    speeds: tuple[Speed, ...]
    peak_gflops: dict[Precision, float]
    memory_gb: dict[tuple[Precision, int], float]
    left_out: str | None
    """Why a precision was not measured."""

    def best(self, precision: Precision) -> Speed:
        """The tile path at its best batch."""
        totals = [s for s in self.speeds if (s.precision, s.stage, s.part) == (precision, "tile", "total")]
        return max(totals, key=lambda speed: speed.gflops)

    def facts(self) -> dict[str, float | str]:
        """All figures by name."""
        found: dict[str, float | str] = {}
        for kind, peak in self.peak_gflops.items():
            found[f"{kind}, GEMM peak, GFLOP/s"] = peak
            for speed in self.speeds:
                if speed.precision == kind:
                    name = f"{kind}, {speed.batch} at a time, {speed.stage}: {speed.part}"
                    found |= {f"{name}, ms": speed.milliseconds, f"{name}, share of the peak": speed.share}
        for (kind, batch), memory in self.memory_gb.items():
            found[f"{kind}, {batch} at a time, peak resident memory, GB"] = memory
        return found | ({"left out": self.left_out} if self.left_out else {})


def parse_precisions(names: Sequence[str]) -> tuple[Precision, ...]:
    """Precisions by name."""
    wanted = {parse_precision(name) for name in names}
    return tuple(precision for precision in DTYPES if precision in wanted)


def bench_network(
    settings: ForecastSettings, batches: Sequence[int] = (1, 2, 4, 8), precisions: Sequence[Precision] = ()
) -> NetworkBench:
    """Measure the day and the tile path; without `precisions`, in all that the processor has."""
    left_out = None
    if not precisions:
        precisions = ("fp32", "bf16")
        if not has_bf16():
            precisions = ("fp32",)
            left_out = "bf16: this processor has no such arithmetic and only imitates it, slower than fp32"
    network, counts = build(settings).eval(), cost(settings)
    speeds: list[Speed] = []
    peaks: dict[Precision, float] = {}
    memory: dict[tuple[Precision, int], float] = {}
    for precision in precisions:
        before = gemm_peak(precision)
        seconds: dict[tuple[int, str, str], float] = {}
        with torch.inference_mode(), torch.autocast("cpu", DTYPES[precision], enabled=precision != "fp32"):
            for batch in batches:
                forget_peak_memory()
                seconds |= {(batch, *key): value for key, value in _time(network, batch).items()}
                memory[precision, batch] = peak_memory()
        peaks[precision] = max(before, gemm_peak(precision))
        speeds += [_speed(precision, *key, value, counts, peaks[precision]) for key, value in seconds.items()]
    return NetworkBench(tuple(speeds), peaks, memory, left_out)


def _time(network: ForecastNetwork, batch: int) -> dict[tuple[str, str], float]:
    """Seconds of each (stage, part) and of both totals: the fastest of some rounds."""
    day, tiles, lead = example(network, batch, "cpu")
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS + 1):
        with watch(network, time.perf_counter) as parts:
            start = time.perf_counter()
            context = network.encode_day(day)
            middle = time.perf_counter()
            network.forecast_tile(context, tiles, lead)
            end = time.perf_counter()
        totals = {("day", "total"): middle - start, ("tile", "total"): end - middle}
        parts["day", KEYS] = middle - start - sum(value for (stage, _), value in parts.items() if stage == "day")
        for key, value in (parts | totals).items():
            best[key] = min(value, best.get(key, value))
    return best


def _speed(precision: Precision, batch: int, stage: str, part: str, seconds: float, counts: Cost, peak: float) -> Speed:
    if part == "total":
        flops = counts.flops(stage)
    else:
        flops = next(row.flops for row in counts.parts if (row.stage, row.name) == (stage, part))
    gflops = flops * (1 if stage == "day" else batch) / seconds / 1e9
    return Speed(precision, batch, stage, part, 1000 * seconds, gflops, gflops / peak)
