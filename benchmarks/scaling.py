"""How cost grows with the domain: attention of all 1-km tokens to each other, in windows only, and tile by tile (ours).

Ours is the whole network; the others are the blocks of its fine branch alone, which flatters them. Memory and
operations are counted on the meta device at every size; time is measured as far as memory and patience allow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from cranpm.core.grid import DOMAINS
from cranpm.core.machine import timed
from cranpm.forecasting.tiles import even_plan
from cranpm.network import ForecastNetwork, NetworkSettings, build
from cranpm.network.attention import Block, SelfAttention, heads_first
from cranpm.network.cost import LiveMemory, example, size
from cranpm.network.swin import WindowAttention
from cranpm.verification.table import TextTable
from cranpm.views.figures import check_picture
from cranpm.views.figures.style import INK

Shape = tuple[int, int]
SHAPES: tuple[Shape, ...] = ((512, 512), (1024, 1024), (2048, 2048), DOMAINS["europe"].fine.shape)
FULL, WINDOWS, OURS = "full attention", "windows only", "ours"
MOST_GB, MOST_TFLOP = 6.0, 3.0
"""Beyond this nothing is measured."""


@dataclass(frozen=True)
class Scaling:
    """One way of mixing the tokens of one domain, forward, fp32."""

    way: str
    shape: Shape
    tokens: int
    gigabytes: float
    """Weights, activations and attention matrices alive at a time, at most."""
    tflop: float
    seconds: float | None
    """None where it was not measured."""

    @property
    def pixels(self) -> int:
        return self.shape[0] * self.shape[1]


class PlainAttention(SelfAttention):
    """Every token to every token, with the whole matrix in memory: what tiles and windows avoid."""

    def forward(self, tokens: Tensor, *_: Tensor | None) -> Tensor:
        flat = tokens.flatten(1, 2)
        query, key, value = (heads_first(part, self.heads) for part in self.qkv(flat).chunk(3, dim=2))
        weights = torch.softmax(query @ key.transpose(2, 3) / query.shape[3] ** 0.5, dim=3)
        return self.out((weights @ value).transpose(1, 2).flatten(2)).view_as(tokens)


class Stack(nn.Module):
    """The blocks of a branch, all with one kind of attention, over the tokens of a whole domain."""

    def __init__(self, settings: NetworkSettings, whole: bool):
        super().__init__()
        fine = settings.fine

        def attention(index: int) -> nn.Module:
            if whole:
                return PlainAttention(fine.width, fine.heads)
            return WindowAttention(fine.width, fine.heads, fine.window, shifted=index % 2 == 1)

        self.blocks = nn.ModuleList(Block(attention(i), fine.width, settings.mlp_ratio) for i in range(fine.depth + 1))

    def forward(self, tokens: Tensor) -> Tensor:
        for block in self.blocks:
            tokens = block(tokens, None)
        return tokens


def bench_scaling(settings: NetworkSettings, shapes: Sequence[Shape] = SHAPES) -> list[Scaling]:
    """All ways over all domains."""
    found = [_stack(way, settings, shape, way == FULL) for way in (FULL, WINDOWS) for shape in shapes]
    return found + _tiles(settings, shapes)


def _stack(way: str, settings: NetworkSettings, shape: Shape, whole: bool) -> Scaling:
    rows, cols = (-(-side // settings.fine.patch) for side in shape)
    window = settings.fine.window
    padded = (1, rows + -rows % window, cols + -cols % window, settings.fine.width)

    def work(device: str) -> Callable[[], object]:
        with torch.device(device):
            stack = Stack(settings, whole).eval()
            tokens = torch.randn(padded)
        return lambda: stack(tokens)

    gigabytes, tflop = _count(work("meta"), 4 * size(Stack(settings, whole)))
    seconds = None
    if gigabytes < MOST_GB and tflop < MOST_TFLOP:
        seconds = _measure(work("cpu"))
    return Scaling(way, shape, rows * cols, gigabytes, tflop, seconds)


def _tiles(settings: NetworkSettings, shapes: Sequence[Shape]) -> list[Scaling]:
    """A day once, then tile after tile: one tile is measured, and counts as often as the plan has tiles."""

    def work(device: str) -> tuple[ForecastNetwork, Callable[[], object], Callable[[], object]]:
        with torch.device(device):
            network = build(settings).eval()
            day, tile, lead = example(network, 1, device)
            with torch.no_grad():
                context = network.encode_day(day)
        return network, lambda: network.encode_day(day), lambda: network.forecast_tile(context, tile, lead)

    network, day, tile = work("meta")
    weights = 4 * size(network)
    (day_gb, day_tflop), (tile_gb, tile_tflop) = _count(day, weights), _count(tile, weights)
    _, day, tile = work("cpu")
    once, each = _measure(day), _measure(tile)
    found = []
    for shape in shapes:
        number = len(even_plan(shape, settings.tile_shape[0]))
        tokens = math.prod(settings.coarse.tokens) + number * math.prod(settings.fine.tokens)
        tflop, seconds = day_tflop + number * tile_tflop, once + number * each
        found.append(Scaling(OURS, shape, tokens, max(day_gb, tile_gb), tflop, seconds))
    return found


def _count(work: Callable[[], object], weights: int) -> tuple[float, float]:
    """GB and TFLOP."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter, LiveMemory() as memory:
        work()
    return (weights + memory.peak) / 1e9, counter.get_total_flops() / 1e12


def _measure(work: Callable[[], object]) -> float:
    """Seconds, best of two."""
    with torch.inference_mode():
        return min(timed(work) for _ in range(2))


def scaling_table(found: Sequence[Scaling]) -> TextTable:
    """One row a domain and way."""
    rows: list[tuple[str, ...]] = [
        (
            f"{one.shape[0]} x {one.shape[1]}",
            one.way,
            f"{one.tokens:,}",
            f"{one.gigabytes:,.2f}",
            f"{one.tflop:,.2f}",
            "not measured" if one.seconds is None else f"{one.seconds:.2f}",
        )
        for one in sorted(found, key=lambda one: one.pixels)
    ]
    header = ("pixels of 1 km", "attention", "tokens", "memory, GB (counted)", "TFLOP (counted)", "time, s (measured)")
    note = "A forward pass in fp32. Ours: the whole network, one tile measured; the others: blocks of the fine branch."
    return TextTable("scaling", "Cost of a forward pass by size of the domain", header, rows, (note,))


STYLE = {FULL: ("#b3261e", "o"), WINDOWS: ("#8a6d00", "s"), OURS: ("#0b5cad", "D")}


def draw_scaling(found: Sequence[Scaling], path: Path) -> None:
    """Memory and time over the size of the domain."""
    check_picture(path)
    figure = Figure(figsize=(10, 4.4), dpi=140, layout="constrained")
    memory, clock = figure.subplots(1, 2)
    for way, (color, marker) in STYLE.items():
        points = sorted((one for one in found if one.way == way), key=lambda one: one.pixels)
        size = [one.pixels / 1e6 for one in points]
        style = {"color": color, "marker": marker, "markersize": 5}
        memory.plot(size, [one.gigabytes for one in points], label=way, **style)
        rates = [one.seconds / one.tflop for one in points if one.seconds is not None]
        clock.plot(size, [one.tflop * rates[-1] for one in points], linestyle=":", color=color)
        known = [one for one in points if one.seconds is not None]
        clock.plot([one.pixels / 1e6 for one in known], [one.seconds for one in known], label=way, **style)
    for axes, label in ((memory, "memory of a forward pass (GB)"), (clock, "time of a forward pass (s)")):
        axes.set(xscale="log", yscale="log", xlabel="pixels of 1 km in the domain (millions)", ylabel=label)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK)
    clock.plot([], [], linestyle=":", color=INK, label="by operations, not measured")
    memory.legend(frameon=False)
    clock.legend(frameon=False)
    figure.savefig(path, format="png")
