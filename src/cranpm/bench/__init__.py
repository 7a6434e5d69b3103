"""Benchmarks: figures of this machine in one run, each beside a reference measured in the same run."""

from cranpm.bench.archive import simulate, store
from cranpm.bench.drawing import bench_figures
from cranpm.bench.forecasting import bench_forecast
from cranpm.bench.ingesting import bench_ingest
from cranpm.bench.network import NetworkBench, bench_network, parse_precisions
from cranpm.bench.scaling import bench_scaling, draw_scaling, scaling_table
from cranpm.bench.serving import bench_serve
from cranpm.bench.training import bench_grouping, bench_training
from cranpm.bench.verifying import bench_verify

__all__ = [
    "NetworkBench",
    "bench_figures",
    "bench_forecast",
    "bench_grouping",
    "bench_ingest",
    "bench_network",
    "bench_scaling",
    "bench_serve",
    "bench_training",
    "bench_verify",
    "draw_scaling",
    "parse_precisions",
    "scaling_table",
    "simulate",
    "store",
]
