"""What a network costs: parameters, operations and memory, by part, counted without running it (meta device)."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from cranpm.network.presets import AnySettings, Network, build

Shape = tuple[int, ...]
KEYS = "bridge keys and values"
"""What a day costs beside its parts."""


@dataclass(frozen=True)
class PartCost:
    """One part of a network: parameters, floating-point operations, shapes of one sample."""

    name: str
    stage: str
    """`day`: once a day; `tile`: for every tile and lead."""
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


def parts(network: Network) -> Mapping[tuple[str, str], list[nn.Module]]:
    """The modules of each (stage, part), in the order in which they run."""
    found: dict[tuple[str, str], list[nn.Module]] = {}
    for name in ("coarse", "fine"):
        if branch := getattr(network, name, None):
            stage = "day" if name == "coarse" else "tile"
            found[stage, f"{name} patches"] = [branch.patches]
            found[stage, f"{name} elevation block"] = [branch.blocks[0]]
            found[stage, f"{name} blocks"] = [*branch.blocks[1:], branch.norm]
    found["tile", "bridge"] = [network.bridge]
    found["tile", "decoder"] = [network.decoder]
    return found


def example(network: Network, tiles: int, device: str) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Arguments of `encode_day` and `forecast_tile` of plausible size: one day, `tiles` tiles in its north-west."""
    settings = network.settings
    coarse, fine = settings.coarse_shape, settings.tile_shape
    scales = network.scales
    mean, spread = (torch.tensor(values * 2, device=device)[:, None, None] for values in (scales.mean, scales.spread))
    day = mean + spread * torch.randn(1, 2 * settings.channels, *coarse, device=device)
    corner = torch.tensor([[72.0, -25.0]], device=device)
    typical = torch.tensor([15.0, 300.0, 50.0, 10.0, 15.0], device=device)[:, None, None]
    tile = typical + 5 * torch.rand(tiles, 5, *fine, device=device)
    lead = torch.full((tiles,), settings.leads[0], device=device)
    wind, relief = 5 * torch.randn(1, 2, *coarse, device=device), 500 * torch.rand(1, *coarse, device=device)
    return (day, wind, relief, corner), (tile, corner.expand(tiles, -1), lead)


@contextmanager
def watch(network: Network, read: Callable[[], float]) -> Iterator[dict[tuple[str, str], float]]:
    """How much `read()` grows while each part runs."""
    grown = dict.fromkeys(parts(network), 0.0)
    handles, stack = [], []
    for key, modules in parts(network).items():
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


def cost(settings: AnySettings) -> Cost:
    """Parameters, operations and memory of a network at its usual input, one day and one tile."""
    with torch.device("meta"):
        network = build(settings).eval()
        day, tile = example(network, 1, "meta")
    rows, context_bytes, forecast_peak = _forecast_cost(network, day, tile)
    parameters = size(network)
    return Cost(
        parts=tuple(rows),
        parameters=parameters,
        weights_bytes=4 * parameters,
        context_bytes=context_bytes,
        forecast_bytes=4 * parameters + context_bytes + forecast_peak,
        training_bytes=4 * 4 * parameters + _training_peak(network, day, tile),
    )


def _forecast_cost(
    network: Network, day: tuple[Tensor, ...], tile: tuple[Tensor, ...]
) -> tuple[list[PartCost], int, int]:
    shapes: dict[tuple[str, str], tuple[Shape, Shape]] = {}
    handles = [
        handle
        for key, modules in parts(network).items()
        for handle in (_record(shapes, key, modules[0], 0), _record(shapes, key, modules[-1], 1))
    ]
    with torch.no_grad(), FlopCounterMode(display=False) as counter, watch(network, counter.get_total_flops) as flops:
        context = network.encode_day(*day)
        of_day = counter.get_total_flops()
        with LiveMemory() as memory:
            network.forecast_tile(context, *tile)
    for handle in handles:
        handle.remove()
    keys = of_day - sum(value for (stage, _), value in flops.items() if stage == "day")
    rows = [
        PartCost(name, stage, sum(map(size, modules)), flops[stage, name], *shapes[stage, name])
        for (stage, name), modules in parts(network).items()
    ]
    if keys:
        bridge = next(index for index, row in enumerate(rows) if row.stage == "tile")
        takes, gives = tuple(context.tokens.shape[1:]), tuple(context.memory[0].shape[1:])
        rows.insert(bridge, PartCost(KEYS, "day", 0, keys, takes, gives))
    rest = size(network) - sum(row.parameters for row in rows)
    rows.append(PartCost("embeddings", "tile", rest, 0.0, (), ()))
    held = (context.tokens, *context.memory, context.wind)
    return rows, sum(tensor.nbytes for tensor in held), memory.peak


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


def _training_peak(network: Network, day: tuple[Tensor, ...], tile: tuple[Tensor, ...]) -> int:
    network.train()
    with LiveMemory() as memory:
        network.forecast_tile(network.encode_day(*day), *tile).sum().backward()
    return memory.peak - sum(p.grad.nbytes for p in network.parameters() if p.grad is not None)
