"""Commands that measure speed on this machine, each figure beside a reference of the same run."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cranpm.cli.bench_results import Compare, show
from cranpm.cli.console import NETWORKS, AsJson, Overrides, app, err, out
from cranpm.cli.network import Preset, chosen
from cranpm.core.errors import CranpmError
from cranpm.core.machine import processor

if TYPE_CHECKING:
    from benchmarks.network import NetworkBench
    from cranpm.network.precision import Precision

bench_app = typer.Typer(
    help="Measure speed on this machine, beside what the machine can do at best.", no_args_is_help=True
)
app.add_typer(bench_app, name="bench", rich_help_panel=NETWORKS)


def _benchmarks() -> ModuleType:
    """The package `benchmarks` of the checkout that this cranpm runs from; it is not part of an installed package."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / "__init__.py").is_file():
        raise CranpmError(
            expected=f"the folder benchmarks in {checkout}",
            found="none: benchmarks are not installed with the package",
            remedy="Clone the project and run `make forecast` there once; then .venv/bin/cranpm bench works.",
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return import_module("benchmarks")


BenchDomain = Annotated[str, typer.Option(help="Domain to simulate.")]
Days = Annotated[int, typer.Option(help="How many days to simulate.", min=3)]


@bench_app.command()
def simulate(domain: BenchDomain = "alps", days: Days = 30, as_json: AsJson = False, compare: Compare = None) -> None:
    """Seconds per day to simulate and store."""
    bench = _benchmarks()

    with err.status("measuring simulate"):
        facts = bench.simulate(domain, days)
    show("simulate", facts, as_json, compare)


@bench_app.command()
def store(domain: BenchDomain = "alps", days: Days = 30, as_json: AsJson = False, compare: Compare = None) -> None:
    """Random training samples per second from the archive, against plain zarr."""
    bench = _benchmarks()

    with err.status("measuring store"):
        facts = bench.store(domain, days)
    show("store", facts, as_json, compare)


@bench_app.command()
def train(
    settings: Annotated[Path, typer.Option(help="Settings of the run whose steps are measured.")] = Path("alps.toml"),
    preset: Preset = "paper",
    tiles: Annotated[int, typer.Option(min=1, help="Tiles of a day, for the gain by grouping.")] = 4,
    override: Overrides = None,
    as_json: AsJson = False,
    compare: Compare = None,
) -> None:
    """Tiles per second of loader, step and both on two simulated months; and what encoding a day once saves."""
    bench = _benchmarks()
    from cranpm.training import load_settings

    with err.status("measuring training"):
        facts = bench.bench_training(load_settings(settings, override or ()))
    with err.status(f"measuring what grouping saves, {preset}"):
        grouping = bench.bench_grouping(chosen(preset, None), tiles)
    show(f"train {settings.name}; grouping by day, {preset}", facts | grouping, as_json, compare)


@bench_app.command()
def forecast(
    preset: Preset = "paper",
    domain: BenchDomain = "europe",
    override: Overrides = None,
    as_json: AsJson = False,
    compare: Compare = None,
) -> None:
    """Three leads over a domain, by stage, against fixed tiles with the coarse branch computed for each."""
    bench = _benchmarks()

    with err.status(f"simulating two days and forecasting with {preset}"):
        facts = bench.bench_forecast(chosen(preset, override), domain)
    show(f"forecast, {preset}", facts, as_json, compare)


@bench_app.command()
def verify(domain: BenchDomain = "europe", as_json: AsJson = False, compare: Compare = None) -> None:
    """One start day with all its statistics, with and without SSIM, against the plainest ones by numpy."""
    bench = _benchmarks()

    with err.status("simulating four days and verifying one"):
        facts = bench.bench_verify(domain)
    show("verify", facts, as_json, compare)


@bench_app.command()
def figures(
    domain: BenchDomain = "europe",
    archive: Annotated[str | None, typer.Option(help="Draw the last day of this archive instead.")] = None,
    as_json: AsJson = False,
    compare: Compare = None,
) -> None:
    """One map as PNG from all pixels of a domain, against one pass of numpy over them."""
    bench = _benchmarks()

    with err.status("drawing"):
        facts = bench.bench_figures(domain, archive)
    show("figures", facts, as_json, compare)


@bench_app.command()
def serve(domain: BenchDomain = "europe", as_json: AsJson = False, compare: Compare = None) -> None:
    """Tiles and points from a server on this machine, against what a tile costs without one."""
    bench = _benchmarks()

    with err.status("simulating a day, publishing a forecast and asking for tiles"):
        facts = bench.bench_serve(domain)
    show("serve", facts, as_json, compare)


@bench_app.command()
def ingest(domain: BenchDomain = "europe", as_json: AsJson = False, compare: Compare = None) -> None:
    """One day from providers' files to its commit; ERA5's decoding against a bare reading of the same bytes."""
    bench = _benchmarks()

    with err.status("simulating a day, writing its files and ingesting them"):
        facts = bench.bench_ingest(domain)
    show("ingest", facts, as_json, compare)


@bench_app.command()
def ahead(
    settings: Annotated[Path, typer.Option(help="Settings of the run whose steps are measured.")] = Path("alps.toml"),
    preset: Preset = "paper",
    domain: BenchDomain = "europe",
    as_json: AsJson = False,
    compare: Compare = None,
) -> None:
    """What forecasts of the days ahead cost: a training step and a forecast against those without, and ingestion."""
    bench = _benchmarks()
    from cranpm.training import load_settings

    with err.status("measuring steps of training"):
        facts = bench.bench_step(load_settings(settings))
    with err.status(f"forecasting with {preset}"):
        facts |= bench.bench_forecast_ahead(chosen(preset, None), domain)
    with err.status("writing forecasts of a start day as files and ingesting them"):
        facts |= bench.bench_ingest_ahead(domain)
    show("ahead", facts, as_json, compare)


@bench_app.command()
def scaling(
    preset: Preset = "paper",
    picture: Annotated[Path | None, typer.Option("--out", help="Draw it into this PNG.")] = None,
    override: Overrides = None,
) -> None:
    """Memory, operations and time over the size of the domain: full attention, windows only, and ours."""
    bench = _benchmarks()
    from cranpm.network import NetworkSettings

    settings = chosen(preset, override)
    if not isinstance(settings, NetworkSettings):
        raise CranpmError(expected="a preset of our network", found=preset, remedy="Name paper, small or tiny.")
    with err.status(f"measuring {preset}"):
        found = bench.bench_scaling(settings)
    out.print(bench.scaling_table(found).markdown(), markup=False, highlight=False)
    if picture:
        bench.draw_scaling(found, picture)
        print(picture)


@bench_app.command()
def model(
    preset: Preset = "paper",
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Tiles at a time; repeat for several. Default 1 2 4 8.")
    ] = None,
    precision: Annotated[
        list[str] | None, typer.Option(help="fp32 or bf16; repeat for both. Default: what the processor has.")
    ] = None,
    override: Overrides = None,
    as_json: AsJson = False,
    compare: Compare = None,
) -> None:
    """Milliseconds, GFLOP/s and share of the machine's GEMM peak, by part of the network, and peak memory."""
    bench = _benchmarks()

    settings = chosen(preset, override)
    with err.status(f"measuring {preset}"):
        result = bench.bench_network(settings, batch or (1, 2, 4, 8), bench.parse_precisions(precision or ()))
    if as_json or compare:
        show(f"model, {preset}", result.facts(), as_json, compare)
        return
    print("; ".join(processor().values()))
    for kind in result.peak_gflops:
        out.print(_speed_table(preset, kind, result))
    if result.left_out:
        print(f"left out: {result.left_out}")


def _speed_table(preset: str, precision: "Precision", result: "NetworkBench") -> Table:
    """One section for each batch: the parts of a day, the parts of its tiles, the memory they took."""
    best = result.best(precision)
    table = Table(
        title=f"{preset}, {precision}: GEMM peak {result.peak_gflops[precision]:.0f} GFLOP/s",
        caption=f"tile path at its best batch, {best.batch}: {100 * best.share:.0f} % of the GEMM peak, "
        f"{best.milliseconds / best.batch:.0f} ms a tile",
    )
    for column in ("tiles", "part", "ms", "GFLOP/s", "share of peak"):
        table.add_column(column, justify="left" if column == "part" else "right", no_wrap=True)
    labels = {("day", "total"): "a day, in all", ("tile", "total"): "tiles, in all"}
    for batch in sorted({speed.batch for speed in result.speeds}):
        for stage in ("day", "tile"):
            for speed in result.speeds:
                if (speed.precision, speed.batch, speed.stage) == (precision, batch, stage):
                    table.add_row(
                        str(batch),
                        labels.get((stage, speed.part), speed.part),
                        f"{speed.milliseconds:.0f}",
                        f"{speed.gflops:.0f}",
                        f"{100 * speed.share:.0f} %",
                        style="bold" if speed.part == "total" else None,
                    )
        table.add_row(str(batch), f"peak resident memory {result.memory_gb[precision, batch]:.2f} GB", end_section=True)
    return table
