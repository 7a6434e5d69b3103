"""Benchmarks: figures of this machine in one run, each beside a reference measured in the same run."""

from cranpm.bench.archive import simulate, store
from cranpm.bench.network import NetworkBench, bench_network, parse_precisions

__all__ = ["NetworkBench", "bench_network", "parse_precisions", "simulate", "store"]
