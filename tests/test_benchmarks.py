import numpy as np
import pytest
from model_cases import TINY

from benchmarks import archive as bench
from benchmarks import (
    bench_forecast,
    bench_forecast_ahead,
    bench_grouping,
    bench_ingest_ahead,
    bench_network,
    bench_step,
    bench_training,
    network,
    parse_precisions,
    serving,
)
from benchmarks.ingesting import bench_ingest
from benchmarks.scaling import FULL, OURS, WINDOWS, bench_scaling, draw_scaling, scaling_table
from cranpm.core.errors import CranpmError
from cranpm.core.machine import forget_peak_memory, peak_memory
from cranpm.network import preset
from cranpm.network.cost import cost
from cranpm.training.recipe import SHIPPED, load_settings

BOX = "48,7,42.75,12.25"


@pytest.mark.long
def test_simulate_prints_its_figures():
    facts = bench.simulate(BOX, 3)
    assert facts["machine copy bandwidth, GB/s"] > 0.1
    assert 0 < facts["seconds a day after it, median"] < facts["seconds in all"]
    assert 0.05 < facts["peak resident memory, GB"] < 20


@pytest.mark.long
def test_store_compares_equal_reads():
    facts = bench.store(BOX, 4)
    assert set(facts) >= {"samples a second, archive", "samples a second, plain zarr"}
    assert facts["speed relative to plain zarr (median of rounds)"] > 0
    ours, plain = facts["samples a second, archive"], facts["samples a second, plain zarr"]
    assert min(ours, plain) > 0


def test_both_readers_read_the_same(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "FIRST", archive.days[0])
    group = bench._copy_to_zarr(archive, str(tmp_path / "plain.zarr"))
    for sample in bench._random_samples(archive)[:3]:
        pairs = zip(bench._from_archive(archive, *sample), bench._from_zarr(group, *sample), strict=True)
        assert all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def test_the_networks_speed_is_measured_by_part(monkeypatch):
    monkeypatch.setattr("cranpm.network.precision.SIDES", (256,))
    result = bench_network(preset("tiny"), batches=(1, 2), precisions=("fp32", "bf16"))
    by_key = {(s.precision, s.batch, s.stage, s.part): s for s in result.speeds}
    parts = {part for _, _, stage, part in by_key if stage == "tile"}
    assert parts == {"fine patches", "fine elevation block", "fine blocks", "bridge", "decoder", "total"}
    for precision in ("fp32", "bf16"):
        assert result.peak_gflops[precision] > 0
        assert 0.1 < result.memory_gb[precision, 1] < 20
        for batch in (1, 2):
            tile = [s for key, s in by_key.items() if key[:3] == (precision, batch, "tile")]
            total = by_key[precision, batch, "tile", "total"]
            assert all(s.milliseconds < 1.5 * total.milliseconds for s in tile)
            flops = cost(preset("tiny")).flops("tile")
            assert total.gflops == pytest.approx(batch * flops / total.milliseconds / 1e6)
            assert total.share == pytest.approx(total.gflops / result.peak_gflops[precision])
    best = result.best("fp32")
    assert best.gflops == max(
        s.gflops for s in result.speeds if (s.precision, s.part) == ("fp32", "total") and s.stage == "tile"
    )
    assert result.left_out is None


@pytest.mark.long
def test_training_is_measured_beside_its_parts(monkeypatch):
    facts = bench_training(load_settings(SHIPPED / "tiny.toml"), BOX, steps=8)
    assert facts["together / step alone (goal 0.9)"] == pytest.approx(
        facts["both together, tiles/s"] / facts["step alone, tiles/s"]
    )
    assert min(facts.values()) > 0
    assert facts["tiles a batch"] == 4


def test_grouping_by_day_saves_work():
    settings = preset("tiny").model_copy(update={"fine": preset("tiny").fine.model_copy(update={"shape": (32, 32)})})
    facts = bench_grouping(settings, tiles=8)
    assert facts["speed by grouping (goal 1.5 for paper, 4 tiles)"] == pytest.approx(
        facts["day encoded for every tile, s"] / facts["day encoded once, s"]
    )


def test_a_forecast_is_measured_by_stage(monkeypatch):
    monkeypatch.setattr("cranpm.network.precision.SIDES", (256,))
    facts = bench_forecast(preset("tiny"), BOX)
    even, with_land, adaptive = map(int, facts["tiles: even / with land / adaptive"].split(" / "))
    assert even >= with_land >= adaptive > 0
    assert facts["reference / ours (goal 12)"] > 0


@pytest.mark.long
def test_ingest_is_measured_beside_a_bare_reading():
    facts = bench_ingest(BOX)
    assert facts["ours / bare (goal 1.5)"] == pytest.approx(
        facts["ERA5 decoded, averaged and regridded, s"] / facts["the same variables by netCDF4 alone, s"]
    )
    assert facts["a day from files to its commit, s (goal 20)"] > facts["ERA5 decoded, averaged and regridded, s"]


def test_cost_grows_as_attention_does(tmp_path):
    """Pairs of tokens by their square, windows and tiles with the area; ours needs the same memory for all."""
    shapes = ((256, 256), (512, 512))
    found = {(one.way, one.shape): one for one in bench_scaling(TINY, shapes)}
    small, large = ({way: found[way, shape] for way in (FULL, WINDOWS, OURS)} for shape in shapes)
    assert large[FULL].tokens == 4 * small[FULL].tokens == 32 * 32
    width, heads, blocks = TINY.fine.width, TINY.fine.heads, TINY.fine.depth + 1
    pairs = blocks * 2 * 2 * large[FULL].tokens ** 2 * width  # queries by keys, weights by values
    linear = blocks * large[FULL].tokens * 2 * (3 + 1 + 2 * TINY.mlp_ratio) * width**2
    assert large[FULL].tflop == pytest.approx((pairs + linear) / 1e12, rel=1e-6)
    assert large[FULL].gigabytes > heads * large[FULL].tokens ** 2 * 4 / 1e9
    assert large[WINDOWS].tflop == pytest.approx(4 * small[WINDOWS].tflop, rel=1e-6)
    assert large[OURS].gigabytes == small[OURS].gigabytes
    assert all(one.seconds is not None and one.seconds > 0 for one in found.values())
    draw_scaling(list(found.values()), tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    assert "1,024" in scaling_table(list(found.values())).markdown()


def test_an_imitated_precision_is_left_out_aloud(monkeypatch):
    monkeypatch.setattr(network, "has_bf16", lambda: False)
    monkeypatch.setattr("cranpm.network.precision.SIDES", (64,))
    result = bench_network(preset("tiny"), batches=(1,))
    assert set(result.peak_gflops) == {"fp32"}
    assert "bf16: this processor has no such arithmetic" in result.left_out


def test_precisions_are_known_by_name():
    assert parse_precisions(["bf16", "fp32"]) == ("fp32", "bf16")
    with pytest.raises(CranpmError, match="a precision: fp32, bf16; found fp8"):
        parse_precisions(["fp8"])


def test_peak_memory_can_be_forgotten():
    block = np.ones(2**26)
    assert peak_memory() > block.nbytes / 1e9
    before = peak_memory()
    del block
    forget_peak_memory()
    assert peak_memory() < before - 0.3


@pytest.mark.long
def test_the_server_is_measured_beside_a_bare_tile(monkeypatch):
    monkeypatch.setattr(serving, "TILES", 20)
    monkeypatch.setattr(serving, "POINTS", 10)
    facts = serving.bench_serve(BOX, 0.5)
    assert facts["pixels"] == 512 * 512
    assert facts["tiles asked for again, /s (goal 150)"] > 5
    assert facts["server's peak memory, GB"] > 0.05


@pytest.mark.long
def test_the_cost_of_the_days_ahead_is_measured_with_and_without_them_in_one_run():
    settings = load_settings(SHIPPED / "tiny.toml", ["network.leads=[1,2,3]"])
    step = bench_step(settings, BOX, steps=2)
    assert step["with / without (goal 1.25)"] == pytest.approx(
        step["a step with them, s"] / step["a step without the days ahead, s"]
    )
    both = bench_forecast_ahead(TINY, BOX)
    assert both["with / without (goal 1.05)"] > 0
    stored = bench_ingest_ahead(BOX)
    assert "'weather': (1, 2, 3, 4, 5)" in stored["leads stored, of those simulated"].split(" of ")[0]
