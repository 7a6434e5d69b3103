"""Where a tile looks on the coarse grid under two winds, with and without biases, and how much each bias moves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid, Window
from cranpm.network import CranPM
from cranpm.network.attention import heads_first, key_mask
from cranpm.network.bridge import CrossAttention
from cranpm.network.context import DayContext
from cranpm.network.elevation_attention import ElevationAttention
from cranpm.network.tile_geometry import PairGeometry
from cranpm.training.inputs import Inputs
from cranpm.verification.table import TextTable
from cranpm.weights import Weights

VIEWS = ("as learned", "without wind bias", "without biases")
WINDS = ("westerly", "easterly")


@dataclass(frozen=True)
class Look:
    """What a tile attends to on a day."""

    day: date
    wind_ms: tuple[float, float]
    """Mean (u, v) at 10 m over the tile."""
    weights: Array
    """(layer, head, row, column) of coarse tokens, mean over the tile's own tokens."""
    grid: Grid
    """Of the coarse tokens."""
    tile: Grid

    @property
    def together(self) -> Array:
        """Mean over layers and heads: sums to 1."""
        return self.weights.mean(axis=(0, 1))

    def upwind_share(self) -> float:
        """Share of the attention on tokens upwind of the tile's centre, of that which is up- or downwind at all."""
        u, v = self.wind_ms
        lat, lon = (self.tile.north + self.tile.south) / 2, (self.tile.west + self.tile.east) / 2
        east = (self.grid.lon[None, :] - lon) * np.cos(np.radians(lat))
        along = u * east + v * (self.grid.lat[:, None] - lat)  # downwind is above 0
        return float(self.together[along < 0].sum() / self.together[along != 0].sum())


def _logits(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.transpose(2, 3) / query.shape[-1] ** 0.5


def _of_bridge(layer: CrossAttention, tokens: Tensor, key: Tensor) -> Tensor:
    """Logits of a cross-attention before any bias."""
    return _logits(heads_first(layer.query(layer.norm_query(tokens)), layer.heads), key)


@contextmanager
def _noted(network: CranPM, kind: type[nn.Module], note: Callable[..., None]) -> Iterator[None]:
    """Calls `note` with name, layer and arguments of every layer of a kind that runs inside."""
    handles = [
        module.register_forward_pre_hook(partial(note, name))
        for name, module in network.named_modules()
        if isinstance(module, kind)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watched(network: CranPM, view: str) -> Iterator[list[Tensor]]:
    """Collects the weights of every cross-attention that runs inside, computed as the view says."""
    found: list[Tensor] = []

    def note(name: str, layer: CrossAttention, arguments: tuple[Any, ...]) -> None:
        tokens, key, _, pairs = arguments
        seen = {"as learned": pairs, "without wind bias": pairs.without_wind(), "without biases": PairGeometry()}[view]
        logits, bias = _of_bridge(layer, tokens, key), layer.bias(seen, key.dtype)
        found.append(torch.softmax(logits if bias is None else logits + bias, dim=3))

    with _noted(network, CrossAttention, note):
        yield found


def paper_network(weights: Weights) -> CranPM:
    """CRAN-PM of its weights; those of other networks are refused."""
    if not isinstance(weights.network, CranPM):
        raise CranpmError(
            expected="weights of the paper's network",
            found=f"those of {weights.card.network.kind}",
            remedy="Name weights of CRAN-PM that `cranpm train` wrote: only their attention can be shown.",
        )
    return weights.network


def _forecast(network: CranPM, inputs: Inputs, day: date, window: Window, lead: int) -> DayContext:
    """Run the network on a tile; what it saw of the day."""
    context = network.encode_day(inputs.day(day, lead))
    network.forecast_tile(context, inputs.tile(day, window), torch.tensor([lead]))
    return context


@torch.no_grad()
def look(network: CranPM, inputs: Inputs, day: date, window: Window, lead: int = 1, view: str = VIEWS[0]) -> Look:
    """What a tile looks at on one day."""
    with watched(network, view) as found:
        context = _forecast(network, inputs, day, window, lead)
    if not found:
        raise CranpmError(
            expected="a network whose tiles look at the coarse grid by cross-attention",
            found=f"fusion {network.settings.fusion}",
            remedy="Use weights that were trained with network.fusion=cross.",
        )
    weights = torch.stack([part[0].mean(dim=1) for part in found]).unflatten(2, context.grid)
    coarse, tile = inputs.archive.domain.coarse, inputs.archive.domain.fine.window(*window)
    tokens = Grid(coarse.north, coarse.west, coarse.step * network.settings.coarse.patch, *context.grid)
    return Look(day, wind_over(context.wind[0].numpy(), coarse, tile), weights.numpy(), tokens, tile)


@torch.no_grad()
def moved(network: CranPM, inputs: Inputs, day: date, window: Window, lead: int = 1) -> dict[tuple[str, str], float]:
    """By bias and layer: share of the attention that would be elsewhere without that bias.

    Half of the sum of |weights with it - weights without it|, mean over heads and queries. Of the coarse branch over
    the whole domain, else over the tile.
    """
    found = {}

    def compare(name: str, logits: Tensor, biases: Mapping[str, Tensor]) -> None:
        whole = sum(biases.values(), start=logits)
        for cause, bias in biases.items():
            change = torch.softmax(whole, dim=3) - torch.softmax(whole - bias, dim=3)
            found[cause, name] = float(change.abs().sum(dim=3).mean() / 2)

    def branch(name: str, layer: ElevationAttention, arguments: tuple[Any, ...]) -> None:
        tokens, elevation_m, valid, *others = arguments
        query, key, _ = layer.attention.project(tokens.flatten(1, 2))
        hidden = 0 if valid is None else key_mask(valid.flatten(1))
        compare(name, _logits(query, key) + hidden, layer.biases(elevation_m, *others))

    def bridge(name: str, layer: CrossAttention, arguments: tuple[Any, ...]) -> None:
        tokens, key, _, pairs = arguments
        whole, still = (layer.bias(seen, key.dtype) for seen in (pairs, pairs.without_wind()))
        biases = {} if still is None else {"distance": still}
        if whole is not None and (pairs.upwind is not None or pairs.drift is not None):
            biases["wind"] = whole if still is None else whole - still
        compare(name, _of_bridge(layer, tokens, key), biases)

    with _noted(network, ElevationAttention, branch), _noted(network, CrossAttention, bridge):
        _forecast(network, inputs, day, window, lead)
    return found


def moved_table(by_day: Sequence[Mapping[tuple[str, str], float]]) -> TextTable:
    """Bias x layer: share of the attention that it moves, mean over days."""
    rows: list[tuple[str, ...]] = [
        (cause, layer, f"{100 * np.mean([day[cause, layer] for day in by_day]):.1f} %")
        for cause, layer in sorted(by_day[0])
    ]
    note = "Half of the sum of |weights with it - weights without it|, mean over heads, queries and the days above."
    return TextTable("moved", "Share of the attention that each bias moves", ("bias", "layer", "share"), rows, (note,))


def wind_over(wind: Array, coarse: Grid, tile: Grid) -> tuple[float, float]:
    """Mean (u, v) over a tile."""
    rows, cols = coarse.slices(tile.north, tile.west, tile.south, tile.east)
    u, v = wind[:, rows, cols].mean(axis=(1, 2))
    return float(u), float(v)


def windiest(inputs: Inputs, days: Sequence[date], window: Window) -> dict[str, date]:
    """The days of the strongest west and of the strongest east wind over a tile; a wind that no day has is absent."""
    if not days:
        raise CranpmError(expected="days with a day before them in the archive", found="none", remedy="Choose others.")
    coarse, tile = inputs.archive.domain.coarse, inputs.archive.domain.fine.window(*window)
    eastward = {day: wind_over(inputs.coarse(day)[inputs.wind], coarse, tile)[0] for day in days}
    west, east = max(days, key=lambda day: eastward[day]), min(days, key=lambda day: eastward[day])
    found = {WINDS[0]: west} if eastward[west] > 0 else {}
    return found | ({WINDS[1]: east} if eastward[east] < 0 else {})


def tile_in(window: Window, grid: Grid, size: int) -> Window:
    """The tile around the centre of a window, moved inward where it would reach over the grid's border."""
    starts = (
        int(np.clip((part.start + part.stop - size) // 2, 0, most - size))
        for part, most in zip(window, grid.shape, strict=True)
    )
    row, col = starts
    return slice(row, row + size), slice(col, col + size)


def strengths(network: CranPM) -> dict[str, list[float]]:
    """The learned alpha (elevation), beta or reach (wind) and nearness (distance) of every layer that has them.

    Of alpha and nearness the size counts; beta or reach below 0 looks downwind.
    """
    found = {}
    for name, parameter in network.named_parameters():
        kind = name.rpartition(".")[2]
        if kind in ("alpha", "beta", "nearness", "reach"):
            found[name] = (parameter if kind in ("beta", "reach") else parameter.abs()).detach().flatten().tolist()
    return found


def upwind_table(looks: Mapping[tuple[str, str], Look]) -> TextTable:
    """Wind x view: share of the attention that goes upwind; says so where no day has a wind."""
    rows = [_upwind_row(looks, wind) for wind in WINDS]
    title = "Share of the attention that goes upwind of the tile"
    note = "Of the attention along the wind: 50 % is no preference. Mean over layers, heads and the tile's tokens."
    return TextTable("attention", title, ("wind over the tile (u, v)", *VIEWS), rows, (note,))


def _upwind_row(looks: Mapping[tuple[str, str], Look], wind: str) -> tuple[str, ...]:
    if (wind, VIEWS[0]) not in looks:
        return (f"{wind}: none of the days", *("" for _ in VIEWS))
    first = looks[wind, VIEWS[0]]
    u, v = first.wind_ms
    shares = (f"{100 * looks[wind, view].upwind_share():.1f} %" for view in VIEWS)
    return (f"{wind}, {first.day} ({u:+.1f}, {v:+.1f} m/s)", *shares)


def strength_table(network: CranPM) -> TextTable:
    """Learned strengths by layer."""
    rows = [
        (name.rpartition(".")[2], name.rpartition(".")[0], ", ".join(f"{value:.2f}" for value in values))
        for name, values in strengths(network).items()
    ]
    note = "alpha (elevation) and beta (wind) begin at 1, nearness (distance) at 2 to 64 per 1000 km, reach at 0 or 1."
    return TextTable(
        "strengths", "Learned strengths of biases", ("strength", "layer", "by head"), sorted(rows), (note,)
    )
