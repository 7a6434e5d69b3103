"""How fast a continent is forecast, against the plain way: fixed tiles, the coarse branch for each, fp32."""

from datetime import date, timedelta
from typing import Any

import torch

from benchmarks.archive import passing_archive
from cranpm.archive.store import Archive
from cranpm.core.days import LEADS, DayRange
from cranpm.core.machine import forget_peak_memory, peak_memory, timed
from cranpm.forecasting.engine import predict
from cranpm.forecasting.tiles import adaptive_plan, even_plan, facts, land_plan
from cranpm.network import ForecastSettings, build
from cranpm.network.cost import cost
from cranpm.network.precision import best_precision, gemm_peak
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

        def plain() -> object:
            return network.forecast_tile(network.encode_day(day), tile, torch.tensor([1]))

        plain()
        one = timed(lambda: [plain() for _ in range(REFERENCE_TILES)]) / REFERENCE_TILES
    fixed = FIXED_TILES if archive.domain.name == "europe" and size == 512 else len(plans["even"])
    done = len(plans["adaptive"]) * len(LEADS)
    gflops = (counts.flops("day") + done * counts.flops("tile")) / whole / 1e9
    return {
        "domain": archive.domain.name,
        "precision": precision,
        "tiles: even / with land / adaptive": " / ".join(str(len(plan)) for plan in plans.values()),
        "pixels computed for a land pixel": facts(plans["adaptive"], land).pixels_a_land_pixel,
        "planning, s": planning,
        "encoding the day, s": encoding,
        "three leads in all, s": whole,
        "tiles and leads a second": done / whole,
        "GFLOP/s": gflops,
        "share of the GEMM peak": gflops / peak,
        "peak resident memory, GB": memory,
        f"reference, {fixed} tiles, day encoded for each, fp32, scaled, s": one * fixed * len(LEADS),
        "reference / ours (goal 12)": one * fixed * len(LEADS) / whole,
    }
