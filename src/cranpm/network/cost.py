"""What a network costs: parameters, operations and memory, by part, counted without running it (meta device)."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from cranpm.network.context import DAYS_READ, DayContext
from cranpm.network.interface import DayInputs, ForecastNetwork, ForecastSettings, TileInputs
from cranpm.network.registry import build

Shape = tuple[int, ...]
KEYS = "bridge keys and values"
"""What a day costs beside the parts of the network."""


@dataclass(frozen=True)
class PartCost:
    """One part of a network: parameters, floating-point operations, shapes of one sample."""

    name: str
    stage: str
    """`day`: once per day; `tile`: for every tile and lead."""
    parameters: int
    flops: float
    takes: Shape
    gives: Shape


@dataclass(frozen=True)
class Cost:
    """The parts, and bytes of memory: estimates from the sizes of live tensors, attention matrices included."""

    parts: tuple[PartCost, ...]
    parameters: int
    weights_bytes: int
    context_bytes: int
    """A day's context: tokens, keys and values, wind."""
    forecast_bytes: int
    """Weights, context and the most that one tile needs at a time, in fp32."""
    training_bytes: int
    """Weights, gradients, two moments of Adam and the activations of one day with one tile, in fp32."""

    def flops(self, stage: str) -> float:
        return sum((part.flops for part in self.parts if part.stage == stage), 0.0)


def example(network: ForecastNetwork, tiles: int, device: str) -> tuple[DayInputs, TileInputs, Tensor]:
    """Inputs of plausible size: one day, `tiles` tiles in its north-west, and their leads."""
    settings = network.settings
    coarse, fine = settings.coarse_shape, settings.tile_shape
    scales = network.scales
    extra = settings.coarse_pm25
    mean, spread = (
        torch.tensor(values * DAYS_READ + (typical,) * DAYS_READ * extra, device=device)[:, None, None]
        for values, typical in ((scales.mean, scales.pm25_mean), (scales.spread, scales.pm25_spread))
    )
    day = mean + spread * torch.randn(1, len(mean), *coarse, device=device)
    corner = torch.tensor([[72.0, -25.0]], device=device)
    typical = torch.tensor([15.0, 300.0, 50.0, 10.0, 15.0], device=device)[:, None, None]
    tile = typical + 5 * torch.rand(tiles, 5, *fine, device=device)
    lead = torch.full((tiles,), settings.leads[0], device=device)
    wind, relief = 5 * torch.randn(1, 2, *coarse, device=device), 500 * torch.rand(1, *coarse, device=device)
    form = settings.days_ahead
    ahead: tuple[Tensor, ...] = ()
    if form.groups:
        fields = network.ahead_mean + network.ahead_spread * torch.randn(
            1, form.slots, form.channels, *coarse, device=device
        )
        ahead = (fields, torch.ones(1, form.slots, len(form.groups), device=device), lead[:1])
    return DayInputs(day, wind, relief, corner, *ahead), TileInputs(tile, corner.expand(tiles, -1)), lead


@contextmanager
def watch(network: ForecastNetwork, read: Callable[[], float]) -> Iterator[dict[tuple[str, str], float]]:
    """How much `read()` grows while each part runs."""
    grown = dict.fromkeys(network.parts(), 0.0)
    handles, stack = [], []
    for key, modules in network.parts().items():
        for module in modules:
            handles.append(module.register_forward_pre_hook(lambda *_: stack.append(read())))

            def finish(*_: Any, key: tuple[str, str] = key) -> None:
                grown[key] += read() - stack.pop()

            handles.append(module.register_forward_hook(finish))
    try:
        yield grown
    finally:
        for handle in handles:
            handle.remove()


class LiveMemory(TorchDispatchMode):
    """Bytes of all storages that are alive, and the most there were at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage not in self._seen:
            self._seen.add(storage)
            self.live += storage.nbytes()
            self.peak = max(self.peak, self.live)
            weakref.finalize(storage, self._free, storage.nbytes())

    def _free(self, size: int) -> None:
        self.live -= size


def cost(settings: ForecastSettings) -> Cost:
    """Parameters, operations and memory of a network at its usual input, one day and one tile."""
    with torch.device("meta"):
        network = build(settings).eval()
        inputs = example(network, 1, "meta")
    rows, context_bytes, forecast_peak = _forecast_cost(network, *inputs)
    parameters = size(network)
    return Cost(
        parts=tuple(rows),
        parameters=parameters,
        weights_bytes=4 * parameters,
        context_bytes=context_bytes,
        forecast_bytes=4 * parameters + context_bytes + forecast_peak,
        training_bytes=4 * 4 * parameters + _training_peak(network, *inputs),
    )


def _forecast_cost(
    network: ForecastNetwork, day: DayInputs, tile: TileInputs, lead: Tensor
) -> tuple[list[PartCost], int, int]:
    shapes: dict[tuple[str, str], tuple[Shape, Shape]] = {}
    handles = [
        handle
        for key, modules in network.parts().items()
        for handle in (_record(shapes, key, modules[0], 0), _record(shapes, key, modules[-1], 1))
    ]
    with torch.no_grad(), FlopCounterMode(display=False) as counter, watch(network, counter.get_total_flops) as flops:
        context = network.encode_day(day)
        of_day = counter.get_total_flops()
        with LiveMemory() as memory:
            network.forecast_tile(context, tile, lead)
    for handle in handles:
        handle.remove()
    rows = [
        PartCost(name, stage, sum(map(size, modules)), flops[stage, name], *shapes[stage, name])
        for (stage, name), modules in network.parts().items()
    ]
    of_stage = {"day": of_day, "tile": counter.get_total_flops() - of_day}
    for stage, whole in of_stage.items():
        if rest := whole - sum(row.flops for row in rows if row.stage == stage):
            rows.append(_rest(stage, rest, context))
    rows.sort(key=lambda row: row.stage)  # day before tile
    left = size(network) - sum(row.parameters for row in rows)
    rows.append(PartCost("embeddings" if network.parts() else "network", "tile", left, 0.0, (), ()))
    return rows, sum(tensor.nbytes for tensor in _held(context)), memory.peak


def _rest(stage: str, flops: float, context: Any) -> PartCost:
    """Operations of a stage outside of the network's parts; in ours they make the keys and values of a day."""
    if stage == "day" and isinstance(context, DayContext) and context.memory:
        return PartCost(KEYS, stage, 0, flops, tuple(context.tokens.shape[1:]), tuple(context.memory[0].shape[1:]))
    return PartCost(f"rest of the {stage}", stage, 0, flops, (), ())


def _held(context: Any) -> list[Tensor]:
    """The tensors of a context of any kind."""
    values = vars(context).values() if hasattr(context, "__dict__") else [context]
    return [leaf for leaf in tree_leaves(list(values)) if isinstance(leaf, Tensor)]


def _record(shapes: dict[Any, Any], key: tuple[str, str], module: nn.Module, end: int) -> Any:
    """Keep the shape of one sample that enters (0) or leaves (1) a module."""
    if end == 0:
        return module.register_forward_pre_hook(lambda _, args: shapes.__setitem__(key, (tuple(args[0].shape[1:]), ())))
    return module.register_forward_hook(
        lambda _, __, result: shapes.__setitem__(key, (shapes[key][0], tuple(result.shape[1:])))
    )


def size(module: nn.Module) -> int:
    """Number of parameters."""
    return sum(parameter.numel() for parameter in module.parameters())


def _training_peak(network: ForecastNetwork, day: DayInputs, tile: TileInputs, lead: Tensor) -> int:
    network.train()
    with LiveMemory() as memory:
        network.forecast_tile(network.encode_day(day), tile, lead).sum().backward()
    return memory.peak - sum(p.grad.nbytes for p in network.parameters() if p.grad is not None)
