"""What networks cost: the paper's parameter count and shapes, operations counted by hand, memory of known tensors."""

import pytest
import torch

from cranpm.network import NetworkSettings, build, preset
from cranpm.network.cost import LiveMemory, cost, example, size


@pytest.fixture(scope="module")
def paper():
    return cost(preset("paper"))


def part(result, name):
    return next(row for row in result.parts if row.name == name)


def test_the_papers_parameters(paper):
    assert abs(paper.parameters / 96e6 - 1) < 0.03
    counts = {row.name: row.parameters for row in paper.parts}
    attention_and_mlp = 12 * 768**2 + 13 * 768  # weights, biases and norms of one block
    assert counts["coarse patches"] == 70 * 64 * 768 + 768
    assert counts["coarse elevation block"] == attention_and_mlp + 41 * 69 * 12 + 1
    assert counts["coarse blocks"] == 7 * (attention_and_mlp + 13 * 13 * 12) + 2 * 768
    attention_and_mlp = 12 * 512**2 + 13 * 512
    assert counts["fine patches"] == 5 * 256 * 512 + 512
    assert counts["fine elevation block"] == attention_and_mlp + 63 * 63 * 8 + 1
    assert counts["fine blocks"] == 5 * (attention_and_mlp + 15 * 15 * 8) + 2 * 512
    assert counts["bridge"] == 768 * 512 + 2 * (attention_and_mlp + 2 * 512 + 8)
    doublings = ((512, 256), (256, 128), (128, 64), (64, 32))
    assert counts["decoder"] == 33 + sum(
        9 * ins * 4 * outs + 4 * outs + 2 * (9 * outs * outs + outs) for ins, outs in doublings
    )
    assert counts["embeddings"] == 3 * 512
    assert sum(counts.values()) == paper.parameters


def test_shapes_of_table_s1(paper):
    shapes = {row.name: (row.takes, row.gives) for row in paper.parts}
    assert shapes["coarse patches"] == ((70, 168, 280), (21, 35, 768))  # 735 tokens
    assert shapes["coarse elevation block"] == shapes["coarse blocks"] == ((21, 35, 768), (21, 35, 768))
    assert shapes["bridge keys and values"] == ((735, 768), (8, 735, 64))
    assert shapes["fine patches"] == ((5, 512, 512), (32, 32, 512))  # 1024 tokens
    assert shapes["fine elevation block"] == shapes["fine blocks"] == ((32, 32, 512), (32, 32, 512))
    assert shapes["bridge"] == ((1024, 512), (1024, 512))
    assert shapes["decoder"] == ((32, 32, 512), (512, 512))


def test_the_decoder_doubles_four_times():
    with torch.device("meta"):
        stages = build(preset("paper")).decoder.stages
        x, shapes = torch.zeros(1, 512, 32, 32), []
        for stage in stages:
            x = stage(x)
            shapes.append(tuple(x.shape[1:]))
    assert shapes == [(256, 64, 64), (128, 128, 128), (64, 256, 256), (32, 512, 512)]


def test_operations_counted_by_hand(paper):
    tokens, width = 735, 768
    assert part(paper, "coarse patches").flops == 2 * tokens * 70 * 64 * width
    assert part(paper, "coarse elevation block").flops == 2 * tokens * 12 * width**2 + 4 * tokens**2 * width
    window = 49
    assert part(paper, "coarse blocks").flops == 7 * (2 * tokens * 12 * width**2 + 4 * tokens * window * width)
    assert paper.flops("day") / (paper.flops("day") + paper.flops("tile")) == pytest.approx(0.41, abs=0.005)


def test_presets_keep_their_size():
    assert cost(preset("small")).parameters <= 6e6
    assert cost(preset("tiny")).parameters <= 4e5
    small, paper = preset("small"), preset("paper")
    assert (small.coarse_shape, small.tile_shape) == (paper.coarse_shape, paper.tile_shape)


def test_without_fusion_there_is_no_coarse_branch():
    without = cost(NetworkSettings(fusion="none"))
    assert without.flops("day") == 0
    assert without.parameters < cost(preset("paper")).parameters - 60e6


def test_live_memory_follows_storages():
    with LiveMemory() as memory:
        one = torch.zeros(1000)
        two = one + 1
        view = two.view(10, 100)
        del two
        assert memory.live == 8000
        del view
        assert (memory.live, memory.peak) == (4000, 8000)


def test_estimates_against_a_real_run():
    """The meta device counts the bytes that a real forward pass holds, give or take the kernels of attention."""
    settings = preset("tiny")
    network = build(settings).eval()
    day, tile, lead = example(network, 1, "cpu")
    with torch.no_grad():
        context = network.encode_day(day)
        with LiveMemory() as memory:
            network.forecast_tile(context, tile, lead)
    estimated = cost(settings)
    peak = estimated.forecast_bytes - estimated.weights_bytes - estimated.context_bytes
    assert peak == pytest.approx(memory.peak, rel=0.25)
    assert estimated.weights_bytes == 4 * size(network)
    assert estimated.training_bytes > estimated.forecast_bytes
