"""Benchmarks: figures of this machine in one run, each beside a reference measured in the same run."""

from benchmarks.ahead import bench_forecast_ahead, bench_ingest_ahead, bench_step
from benchmarks.archive import simulate, store
from benchmarks.drawing import bench_figures
from benchmarks.forecasting import bench_forecast
from benchmarks.ingesting import bench_ingest
from benchmarks.network import NetworkBench, bench_network, parse_precisions
from benchmarks.scaling import bench_scaling, draw_scaling, scaling_table
from benchmarks.serving import bench_serve
from benchmarks.training import bench_grouping, bench_training
from benchmarks.verifying import bench_verify

__all__ = [
    "NetworkBench",
    "bench_figures",
    "bench_forecast",
    "bench_forecast_ahead",
    "bench_grouping",
    "bench_ingest",
    "bench_ingest_ahead",
    "bench_network",
    "bench_scaling",
    "bench_serve",
    "bench_step",
    "bench_training",
    "bench_verify",
    "draw_scaling",
    "parse_precisions",
    "scaling_table",
    "simulate",
    "store",
]
