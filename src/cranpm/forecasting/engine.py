"""From a start day in the archive to PM2.5 of the days ahead: tiles through a network, one checked field per lead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import torch

from cranpm import __version__
from cranpm.archive.store import Archive
from cranpm.baselines import Persistence
from cranpm.core.allocator import keep_freed_memory
from cranpm.core.days import LEADS, check_leads
from cranpm.core.grid import EVERYWHERE, TILE, Array, Window
from cranpm.forecasting.checks import check, days_ahead, refuse_inputs, replacements
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.tiles import OVERLAP, Mosaic, Plan, adaptive_plan
from cranpm.network import DayInputs, FittedNetwork, ForecastNetwork, TileInputs
from cranpm.network.precision import DTYPES, Precision, best_precision
from cranpm.training.days_ahead import Prognosis
from cranpm.training.inputs import YESTERDAY, Inputs
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
    prognosis: Prognosis = "forecast",
    precision: Precision | None = None,
    batch: int | None = None,
    compiled: bool = False,
    on_tile: Callable[[int, int], None] = lambda done, total: None,
) -> Forecast:
    """A checked forecast from `day`; without weights, by persistence. Nothing is replaced unless `degrade` says so.

    Without `leads`, all that the weights were trained for. With the `perfect` prognosis, for research, weights that
    read the days ahead read their analyses, and the product is labelled as degraded.
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
        settings, names = weights.network.settings, weights.card.channel_names
        inputs = Inputs.of(settings, archive, replaced=instead, channels=names, prognosis=prognosis)
        faults, runs = days_ahead(inputs.ahead, day, leads, weights.card)
        gaps = _gaps(inputs, day)
        if (faults or gaps) and not degrade:
            refuse_inputs("; ".join([*gaps, *faults]))
        degraded += (*gaps, *faults)
        plan = _plan(archive, day, weights.network)
        work = _Work(weights.network, plan, leads, precision, batch or max(1, (TILE // plan.size) ** 2), compiled)
        fields = _tiles(work, inputs, day, region, on_tile)
        provenance |= {"days_ahead": runs} if runs else {}
        provenance |= {
            "method": weights.card.network.kind,
            "weights_sha256": weights.sha256,
            "weights_trained_on": weights.card.data or "not recorded",
            "parameters": sum(parameter.numel() for parameter in weights.network.parameters()),
            "resolution": weights.network.settings.resolution,
            "stations_in_loss": weights.card.stations_in_loss,
            "weights_source": weights.card.source or "not recorded",
            "prognosis": prognosis if inputs.ahead.form.groups else "none",
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


def _gaps(inputs: Inputs, day: date) -> list[str]:
    """Which coarse channels of today and yesterday have gaps, and what is used instead."""
    found = []
    for when, suffix in ((day, ""), (day - YESTERDAY, " of the day before")):
        for channel, field in zip(inputs.channels, inputs.coarse(when), strict=True):
            if np.isnan(field).any():
                found.append(f"{channel.name}{suffix} has gaps: the training mean is used instead")
    return found


def _filled(fields: DayInputs, mean: Sequence[float], wind: Sequence[int]) -> DayInputs:
    """A day with the training mean in gaps of its coarse channels; PM2.5 after them is missing at sea and stays so."""
    means = torch.tensor([*mean, *mean])[None, :, None, None]
    own, pm25 = fields.coarse.tensor_split([means.shape[1]], dim=1)
    whole = torch.where(own.isnan(), means, own)
    today = torch.where(fields.wind.isnan(), whole[:, list(wind)], fields.wind)
    return replace(fields, coarse=torch.cat([whole, pm25], dim=1), wind=today)


def _plan(archive: Archive, day: date, network: ForecastNetwork) -> Plan:
    """Tiles wherever today has PM2.5, of the size that the network was made for."""
    present = np.isfinite(archive.pm25(day))
    size = min(*network.settings.tile_shape, *present.shape)
    return adaptive_plan(present, size, min(OVERLAP, size // 2) if network.settings.looks_around else 0)


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
    region: Window,
    on_tile: Callable[[int, int], None],
) -> Array:
    """The day is encoded once, or once per lead where the days ahead are read, and serves all tiles.

    Tiles are added in the plan's order.
    """
    keep_freed_memory()
    device = torch.device("cuda") if torch.cuda.is_available() else CPU
    network, mosaic = work.network.to(device), Mosaic(work.plan, len(work.leads))
    compiled = work.compiled and not isinstance(network, FittedNetwork)  # what is fitted is no graph of tensors
    forecast_tile: Any = torch.compile(network.forecast_tile) if compiled else network.forecast_tile
    every = [window for window in work.plan.windows() if _meet(window, region)]
    with torch.autocast(device.type, DTYPES[work.precision], enabled=work.precision != "fp32"):
        filled = partial(_filled, mean=network.scales.mean, wind=inputs.wind)
        encoded = [
            network.encode_day(filled(inputs.day(day, lead)).to(device))
            for lead in (work.leads if inputs.ahead.form.groups else work.leads[:1])
        ]
        for first in range(0, len(every), work.batch):
            windows = every[first : first + work.batch]
            tiles = TileInputs.join([inputs.tile(day, window) for window in windows]).to(device)
            for index, lead in enumerate(work.leads):
                ahead = torch.full((len(windows),), lead, device=device)
                context = encoded[index] if len(encoded) > 1 else encoded[0]
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
