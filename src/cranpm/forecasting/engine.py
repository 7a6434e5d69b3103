"""From a start day in the archive to PM2.5 of the days ahead: tiles through a network, one checked field per lead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import torch

from cranpm import __version__
from cranpm.archive.store import Archive
from cranpm.baselines import Persistence
from cranpm.core.allocator import keep_freed_memory
from cranpm.core.days import LEADS, check_leads
from cranpm.core.grid import EVERYWHERE, TILE, Array, Window
from cranpm.forecasting.checks import check, refuse_inputs, replacements
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.tiles import OVERLAP, Mosaic, Plan, adaptive_plan
from cranpm.network import DayInputs, ForecastNetwork, TileInputs
from cranpm.network.precision import DTYPES, Precision, best_precision
from cranpm.training.inputs import Inputs
from cranpm.weights import Weights

CPU = torch.device("cpu")


def predict(
    archive: Archive,
    day: date,
    weights: Weights | None,
    leads: Sequence[int] | None = None,
    region: Window = EVERYWHERE,
    *,
    degrade: bool = False,
    precision: Precision | None = None,
    batch: int | None = None,
    compiled: bool = False,
    on_tile: Callable[[int, int], None] = lambda done, total: None,
) -> Forecast:
    """A checked forecast from `day`; without weights, by persistence. Nothing is replaced unless `degrade` says so.

    Without `leads`, all that the weights were trained for.
    """
    leads = tuple(sorted(check_leads(default_leads(weights) if leads is None else leads)))
    grid = archive.domain.fine.window(*region)
    instead, degraded = replacements(archive, day, weights.card if weights else None, degrade)
    today = archive.pm25(day, region)
    provenance: dict[str, Any] = {
        "software": f"cranpm {__version__}",
        "archive_snapshot": archive.snapshot,
        "archive_source": archive.source,
        "method": "persistence",
    }
    if weights is None:
        fields = np.stack([Persistence(archive).forecast(day, lead, region) for lead in leads])
    else:
        weights.card.check(archive.channels, archive.domain.coarse, archive.domain.fine, leads)
        precision = precision or best_precision()
        inputs = Inputs(
            archive,
            replaced=instead,
            coarse_pm25=weights.network.settings.coarse_pm25,
            channels=weights.card.channel_names,
        )
        encoded, gaps = _filled(inputs, day, weights, degrade)
        degraded += gaps
        plan = _plan(archive, day, weights.network)
        work = _Work(weights.network, plan, leads, precision, batch or max(1, (TILE // plan.size) ** 2), compiled)
        fields = _tiles(work, inputs, day, encoded, region, on_tile)
        provenance |= {
            "method": weights.card.network.kind,
            "weights_sha256": weights.sha256,
            "weights_trained_on": weights.card.data or "not recorded",
            "parameters": sum(parameter.numel() for parameter in weights.network.parameters()),
            "resolution": weights.network.settings.resolution,
            "stations_in_loss": weights.card.stations_in_loss,
            "weights_source": weights.card.source or "not recorded",
            "precision": precision,
            "compiled": compiled,
            "tiles": len(plan),
        }
    np.maximum(fields, 0, out=fields)
    result = Forecast(day, leads, fields, grid, degraded, provenance)
    home = weights is not None and weights.card.domain in (None, str(archive.domain))
    whole = fields.shape[1:] == archive.domain.fine.shape
    check(result, today, weights.card.changes if weights and home and whole else {})
    return result


def default_leads(weights: Weights | None) -> tuple[int, ...]:
    """All leads (days ahead) of the weights; for persistence those of the settings' default."""
    return weights.card.leads if weights else LEADS


def _filled(inputs: Inputs, day: date, weights: Weights, degrade: bool) -> tuple[DayInputs, tuple[str, ...]]:
    """A day's fields, the training mean in gaps of coarse channels, and which have gaps; refused unless asked for."""
    fields = inputs.day(day)
    coarse = fields.coarse
    today = [channel.name for channel in inputs.channels]
    names = [*today, *(f"{name} of the day before" for name in today)]
    gap = coarse[:, : len(names)].isnan()  # beyond them PM2.5, which is missing at sea
    faults = tuple(
        f"{name} has gaps: the training mean is used instead"
        for name, missing in zip(names, gap.any(dim=(0, 2, 3)).tolist(), strict=True)
        if missing
    )
    if faults and not degrade:
        refuse_inputs("; ".join(faults))
    mean = torch.tensor(weights.network.scales.mean * 2)[None, :, None, None]
    whole = torch.cat([torch.where(gap, mean, coarse[:, : gap.shape[1]]), coarse[:, gap.shape[1] :]], dim=1)
    return replace(fields, coarse=whole, wind=whole[:, inputs.wind]), faults


def _plan(archive: Archive, day: date, network: ForecastNetwork) -> Plan:
    """Tiles wherever today has PM2.5, of the size that the network was made for."""
    present = np.isfinite(archive.pm25(day))
    size = min(*network.settings.tile_shape, *present.shape)
    return adaptive_plan(present, size, min(OVERLAP, size // 2))


@dataclass(frozen=True)
class _Work:
    """How tiles are computed."""

    network: ForecastNetwork
    plan: Plan
    leads: tuple[int, ...]
    precision: Precision
    batch: int
    compiled: bool


@torch.inference_mode()
def _tiles(
    work: _Work,
    inputs: Inputs,
    day: date,
    encoded: DayInputs,
    region: Window,
    on_tile: Callable[[int, int], None],
) -> Array:
    """The day is encoded once and serves all tiles and leads; tiles are added in the plan's order."""
    keep_freed_memory()
    device = torch.device("cuda") if torch.cuda.is_available() else CPU
    network, mosaic = work.network.to(device), Mosaic(work.plan, len(work.leads))
    forecast_tile: Any = torch.compile(network.forecast_tile) if work.compiled else network.forecast_tile
    every = [window for window in work.plan.windows() if _meet(window, region)]
    with torch.autocast(device.type, DTYPES[work.precision], enabled=work.precision != "fp32"):
        context = network.encode_day(encoded.to(device))
        for first in range(0, len(every), work.batch):
            windows = every[first : first + work.batch]
            tiles = TileInputs.join([inputs.tile(day, window) for window in windows]).to(device)
            for index, lead in enumerate(work.leads):
                ahead = torch.full((len(windows),), lead, device=device)
                values = forecast_tile(context, tiles, ahead).float().cpu().numpy()
                for window, tile in zip(windows, values, strict=True):
                    mosaic.add(window, tile, index)
            on_tile(first + len(windows), len(every))
    return np.stack([mosaic.field(index)[region] for index in range(len(work.leads))])


def _meet(window: Window, region: Window) -> bool:
    """Whether a tile reaches into a region; an open slice reaches everywhere."""
    return all(
        (part.stop is None or tile.start < part.stop) and (part.start is None or tile.stop > part.start)
        for tile, part in zip(window, region, strict=True)
    )
