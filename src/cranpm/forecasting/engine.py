"""From a start day in the archive to PM2.5 of the days ahead: tiles through a network, one checked field a lead."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import torch

from cranpm import __version__
from cranpm.archive.day_data import PM25_CEILING_UGM3, Quality
from cranpm.archive.store import SIMULATION, Archive
from cranpm.baselines import Persistence
from cranpm.core.allocator import keep_freed_memory
from cranpm.core.days import LEADS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import EVERYWHERE, TILE, Array, Grid, Window
from cranpm.forecasting.tiles import OVERLAP, Mosaic, Plan, adaptive_plan
from cranpm.network import DayInputs, ForecastNetwork, TileInputs
from cranpm.network.precision import DTYPES, Precision, best_precision
from cranpm.training.inputs import Inputs
from cranpm.weights import Weights

DRIFT = 4.0
"""Without a climatology, the mean of a forecast may be this many times today's, or this part of it."""
BEYOND = 1.5
"""With one, it may rise and fall so many times as far as the domain's mean ever did in the training days."""
SLACK_UGM3 = 5.0
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Forecast:
    """PM2.5 (ug m-3) of each lead on a grid, NaN off land, and what it was made from."""

    day: date
    leads: tuple[int, ...]
    fields: Array
    """(lead, row, column)."""
    grid: Grid
    degraded: tuple[str, ...]
    """What was missing in the inputs and what stood in for it; empty for a sound forecast."""
    provenance: Mapping[str, Any]

    def valid(self, lead: int) -> date:
        return self.day + timedelta(days=lead)

    def of(self, lead: int) -> Array:
        return self.fields[self.leads.index(lead)]


def predict(
    archive: Archive,
    day: date,
    weights: Weights | None,
    leads: Sequence[int] = LEADS,
    region: Window = EVERYWHERE,
    *,
    degrade: bool = False,
    precision: Precision | None = None,
    batch: int | None = None,
    compiled: bool = False,
    on_tile: Callable[[int, int], None] = lambda done, total: None,
) -> Forecast:
    """A checked forecast from `day`; without weights, by persistence. Nothing is replaced unless `degrade` says so."""
    grid, leads = archive.domain.fine.window(*region), tuple(sorted(leads))
    stand_in, degraded = _complete(archive, day, degrade, weights)
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
        weights.card.check(archive.channel_names, archive.domain.coarse, archive.domain.fine, leads)
        precision = precision or best_precision()
        inputs = Inputs(
            archive,
            replaced=stand_in,
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
            "tiles": len(plan),
        }
    np.maximum(fields, 0, out=fields)
    result = Forecast(day, leads, fields, grid, degraded, provenance)
    home = weights is not None and weights.card.domain in (None, str(archive.domain))
    whole = fields.shape[1:] == archive.domain.fine.shape
    check(result, today, weights.card.changes if weights and home and whole else {})
    return result


def _complete(
    archive: Archive, day: date, degrade: bool, weights: Weights | None
) -> tuple[dict[date, date], tuple[str, ...]]:
    """What stands in for what is missing, and how to say it; refused unless degrading is allowed."""
    if day not in archive.days:
        raise CranpmError(
            expected=f"{day} in the archive",
            found=f"days {archive.days[0]}..{archive.days[-1]}, without it" if archive.days else "no day",
            remedy="Simulate or ingest that day.",
        )
    stand_in, faults = {}, []
    if archive.quality(day) == Quality.DEGRADED:
        faults.append(f"{day} is stored as degraded")
    yesterday = day - timedelta(days=1)
    if weights and weights.card.source == SIMULATION and SIMULATION not in archive.source:
        faults.append(f"the weights were trained on simulated days, the archive's come from {archive.source}")
    if weights and weights.card.domain not in (None, str(archive.domain)):
        faults.append(f"the weights were trained on {weights.card.domain}, the archive is {archive.domain}")
    if weights and yesterday not in archive.days:
        stand_in[yesterday] = day
        faults.append(f"{yesterday} is missing: {day} stands in for it")
    elif weights and archive.quality(yesterday) == Quality.DEGRADED:
        faults.append(f"{yesterday} is stored as degraded")
    if faults and not degrade:
        _refuse_inputs("; ".join(faults))
    return stand_in, tuple(faults)


def _refuse_inputs(found: str) -> None:
    raise CranpmError(
        expected="sound inputs",
        found=found,
        remedy="Complete the archive, or add --degrade: the product is then labelled as degraded.",
    )


def _filled(inputs: Inputs, day: date, weights: Weights, degrade: bool) -> tuple[DayInputs, tuple[str, ...]]:
    """A day's fields, the training mean in gaps of coarse channels, and which have gaps; refused unless asked for."""
    fields = inputs.day(day)
    coarse = fields.coarse
    today = [channel.name for channel in inputs.channels]
    names = [*today, *(f"{name} of the day before" for name in today)]
    gap = coarse[:, : len(names)].isnan()  # beyond them PM2.5, which is missing at sea
    faults = tuple(
        f"{name} has gaps: the training mean stands in"
        for name, missing in zip(names, gap.any(dim=(0, 2, 3)).tolist(), strict=True)
        if missing
    )
    if faults and not degrade:
        _refuse_inputs("; ".join(faults))
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
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else CPU
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


def check(forecast: Forecast, today_ugm3: Array, changes: Mapping[int, tuple[float, float]]) -> None:
    """Refuse a field that must not be published: holes on land, impossible values, a mean that ran away.

    `changes` is the weights' climatology of the mean of their whole domain (see `Card`), give or take 5 ug m-3, but
    never down to less than half of the lowest; a region has none.
    """
    present = np.isfinite(today_ugm3)
    before = float(today_ugm3[present].mean()) if present.any() else 0.0
    for lead in forecast.leads:
        field = forecast.of(lead)
        holes = int((~np.isfinite(field) & present).sum())
        if holes:
            _refuse(f"a value at T+{lead} wherever today has one", f"{holes} pixels without")
        if not present.any():
            _refuse(f"PM2.5 somewhere on {forecast.day}", "none")
        top, mean = float(np.nanmax(field)), float(field[present].mean())
        if top > PM25_CEILING_UGM3:
            _refuse(f"PM2.5 at T+{lead} up to {PM25_CEILING_UGM3:g} ug m-3", f"{top:.0f}")
        fall, rise = changes.get(lead, (1 / DRIFT, DRIFT))
        if lead in changes:
            fall, rise = min(fall, 1.0) / BEYOND, max(rise, 1.0) * BEYOND
        low, high = before * fall - min(SLACK_UGM3, before * fall / 2), before * rise + SLACK_UGM3
        if not low <= mean <= high:
            _refuse(f"a mean at T+{lead} of {low:.1f} to {high:.1f} ug m-3, from today's {before:.1f}", f"{mean:.1f}")


def _refuse(expected: str, found: str) -> None:
    raise CranpmError(
        expected=expected, found=found, remedy="Nothing was published. Check the inputs, and the weights' model card."
    )
