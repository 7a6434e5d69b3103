"""How fast a continent is forecast, against the plain way: fixed tiles, the coarse branch for each, fp32."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import torch

from benchmarks.archive import passing_archive
from cranpm.archive.store import Archive
from cranpm.core.days import LEADS, DayRange
from cranpm.core.grid import Array
from cranpm.core.machine import forget_peak_memory, peak_memory, timed
from cranpm.forecasting.engine import predict
from cranpm.forecasting.tiles import Plan, adaptive_plan, even_plan, facts, land_plan
from cranpm.network import CranPM, ForecastNetwork, ForecastSettings, build
from cranpm.network.cost import cost
from cranpm.network.precision import best_precision, gemm_peak
from cranpm.network.reach import around, cover, holds_land
from cranpm.training.inputs import Inputs
from cranpm.weights import Weights, card_for

DAY = date(2022, 1, 25)
REFERENCE_TILES = 2
FIXED_TILES = 198
"""Of the authors' forecaster over Europe, 512 pixels each."""


def bench_forecast(settings: ForecastSettings, domain: str = "europe") -> dict[str, Any]:
    """Wall time by stage of all leads over a domain, untrained network; the reference is scaled from few tiles."""
    network = build(settings).eval()
    with passing_archive(domain, DayRange(DAY - timedelta(days=1), DAY)) as archive:
        return _measure(archive, Weights(network, card_for(network), "untrained"), settings)


def _shares(network: ForecastNetwork, plan: Plan, land: Array) -> dict[str, float]:
    """Which share of its tiles each part computes where the sea is left out; parts that are not named compute all."""
    if not isinstance(network, CranPM):
        return {}
    decoder, patch = network.decoder, network.settings.fine.patch
    bridged = decoded = 0.0
    for window in plan.windows():
        pm25 = torch.from_numpy(np.where(land[window], 1.0, np.nan)).float()[None]
        tokens = holds_land(pm25, patch)
        cost = decoder.cost((tokens.shape[1], tokens.shape[2]))
        bridged += float(around(tokens, decoder.reach).sum())
        decoded += sum(map(cost, cover(tokens[0], cost))) / len(decoder.stages)
    tokens_of_tiles = len(plan) * plan.size**2 / patch**2
    return {"bridge": bridged / tokens_of_tiles, "decoder": decoded / tokens_of_tiles}


def _measure(archive: Archive, weights: Weights, settings: ForecastSettings) -> dict[str, Any]:
    network: Any = weights.network
    counts, precision = cost(settings), best_precision()
    land, size = archive.land(), min(settings.tile_shape)
    peak = gemm_peak(precision)
    plans = {"even": even_plan(archive.domain.fine.shape, size), "land": land_plan(land, size)}
    planning = timed(lambda: plans.__setitem__("adaptive", adaptive_plan(land, size)))
    inputs = Inputs(archive)
    with torch.inference_mode():
        day = inputs.day(DAY)
        encoding = timed(lambda: network.encode_day(day))
    forget_peak_memory()
    whole = timed(lambda: predict(archive, DAY, weights, LEADS, precision=precision))
    memory = peak_memory()
    with torch.inference_mode():
        window = plans["adaptive"].windows()[len(plans["adaptive"]) // 2]
        tile = inputs.tile(DAY, window)
        network.skips_sea = False  # the plain way computes every pixel

        def plain() -> object:
            return network.forecast_tile(network.encode_day(day), tile, torch.tensor([1]))

        plain()
        one = timed(lambda: [plain() for _ in range(REFERENCE_TILES)]) / REFERENCE_TILES
    fixed = FIXED_TILES if archive.domain.name == "europe" and size == 512 else len(plans["even"])
    done = len(plans["adaptive"]) * len(LEADS)
    pixels = facts(plans["adaptive"], land).pixels_a_land_pixel
    shares = _shares(network, plans["adaptive"], land)
    per_tile = sum(shares.get(part.name, 1.0) * part.flops for part in counts.parts if part.stage == "tile")
    gflops = (counts.flops("day") + done * per_tile) / whole / 1e9
    return {
        "domain": archive.domain.name,
        "precision": precision,
        "tiles: even / with land / adaptive": " / ".join(str(len(plan)) for plan in plans.values()),
        "pixels of tiles for a land pixel": pixels,
        **{f"of these, in the {part}": share * pixels for part, share in shares.items()},
        "planning, s": planning,
        "encoding the day, s": encoding,
        "three leads in all, s": whole,
        "tiles and leads a second": done / whole,
        "GFLOP/s, of what is really done": gflops,
        "share of the GEMM peak": gflops / peak,
        "peak resident memory, GB": memory,
        f"reference, {fixed} tiles, day encoded for each, fp32, scaled, s": one * fixed * len(LEADS),
        "reference / ours (goal 12)": one * fixed * len(LEADS) / whole,
    }
