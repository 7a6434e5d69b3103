"""Does the synthetic world behave like the real one? Measured on one pixel in every 25-km cell, with wanted ranges.

The baseline for predictability is damped persistence, x = climatology + rho (x_t - climatology), fitted on the first
half of the days; it is compared with a ridge regression on today's and yesterday's meteorology. Both are scored on the
second half.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise

import numpy as np
from scipy import ndimage

from cranpm.archive.store import Archive
from cranpm.core.channels import CHANNELS, Channel, find_channel
from cranpm.core.days import LEADS, DayRange, gaps
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Grid
from cranpm.simulate import World
from cranpm.simulate.forecast_realism import SCORED, Check, Forecasts, ForecastScores, scored, stored_forecasts

EVERY = 25
"""One sample per coarse cell."""
PREDICTORS = ("u10", "v10", "t2m", "sp", "tp", "u850", "v850", "t850", "q850", "t925")
REGIONS = {
    "Po Valley": (46, 7.5, 44.5, 12.5),
    "Silesia": (51, 17.5, 49.5, 20),
    "Iberia": (43, -9, 37, -1),
    "Scandinavia": (66, 6, 58, 20),
}
FEWEST_DAYS = 5
DAYS_FOR_SKILL = 500


@dataclass(frozen=True)
class Sample:
    """One pixel in every coarse cell over many days."""

    days: list[date]
    grid: Grid
    pm25_ugm3: Array
    """(day, row, col), NaN off land."""
    cams_ugm3: Array
    weather: Array
    """(day, predictor, row, col)."""
    mixing_m: Array | None = None
    """Height of the mixed layer, where the sample comes from a world and not from an archive."""
    forecasts: ForecastScores = field(default_factory=ForecastScores)
    """How good the forecasts of the days ahead were, where there are some."""


def sample_archive(archive: Archive, days: Iterable[date], on_day: Callable[[date], None] = lambda _: None) -> Sample:
    """Samples of the days that an archive holds."""
    present = set(archive.days)
    held = [day for day in days if day in present]
    if holes := gaps(held):
        raise CranpmError(
            expected="days without a gap", found=f"none of {holes[0]}", remedy="Report on a range that is whole."
        )

    def fields() -> Iterable[tuple[Array, Array, Forecasts]]:
        for day in held:
            on_day(day)
            pixels = archive.pm25(day)[EVERY // 2 :: EVERY, EVERY // 2 :: EVERY]
            yield pixels, archive.coarse(day), stored_forecasts(archive, day)

    return _collect(held, archive.domain.coarse, archive.channels, fields())


def sample_world(
    world: World, days: DayRange, on_day: Callable[[date], None] = lambda _: None, ahead: int = 0
) -> Sample:
    """Samples of a world that is run for the purpose and not stored: a year of Europe in minutes."""
    points = world.downscaler.sampled(EVERY)
    places = np.ix_(*(np.round(x).astype(int) for x in world.grid.row_col(points.grid.lat, points.grid.lon)))
    mixing: list[Array] = []
    picked = [CHANNELS[name] for name in SCORED]

    def fields() -> Iterable[tuple[Array, Array, Forecasts]]:
        for day, air, _, later in world.air_ahead(days, None, ahead):
            on_day(day)
            mixing.append(air.mixing_m[places].astype(np.float32))
            pixels = world.retrieved(points.field(air), day, EVERY)
            yield pixels, world.coarse_channels(day, air), world.forecaster.channels_ahead(day, later, picked)

    return replace(_collect(list(days), world.domain.coarse, world.channels, fields()), mixing_m=np.array(mixing))


def _collect(
    days: list[date], grid: Grid, channels: Sequence[Channel], fields: Iterable[tuple[Array, Array, Forecasts]]
) -> Sample:
    """Gather what the report needs, day by day; the trimmed fine grid may lack the last coarse row or column."""
    wanted = [CHANNELS[name] for name in PREDICTORS]
    picked = [find_channel(channels, channel.quantity, channel.level_hpa) for channel in wanted]
    cams, judged, sample = find_channel(channels, "pm25"), scored(channels), None
    for number, (fine, coarse, forecasts) in enumerate(fields):
        rows, cols = fine.shape
        if sample is None:
            pm25, cams_pm25 = np.empty((2, len(days), rows, cols), np.float32)
            weather = np.empty((len(days), len(picked), rows, cols), np.float32)
            sample = Sample(days, Grid(grid.north, grid.west, grid.step, rows, cols), pm25, cams_pm25, weather)
        sample.pm25_ugm3[number] = fine
        sample.cams_ugm3[number] = coarse[cams, :rows, :cols]
        sample.weather[number] = coarse[picked, :rows, :cols]
        sample.forecasts.add(days[number], fine, coarse[judged, :rows, :cols], forecasts)
    if sample is None:
        raise CranpmError(expected="days to report on", found="none", remedy="Choose days that the archive holds.")
    return sample


def judge(sample: Sample, leads: Sequence[int] = LEADS) -> list[Check]:
    """All figures of the report; persistence and skill by lead, from the shortest to the longest."""
    fewest = max(FEWEST_DAYS, max(leads) + 2)
    if len(sample.days) < fewest:
        raise CranpmError(
            expected=f"at least {fewest} days to report on",
            found=str(len(sample.days)),
            remedy="Choose a longer range; two years show everything.",
        )
    land: Array = np.asarray(np.isfinite(sample.pm25_ugm3).all(0))
    series = sample.pm25_ugm3[:, land].astype(float)
    checks = [
        Check("median PM2.5, ug m-3", float(np.median(series)), 8, 16),
        Check("99th percentile, ug m-3", float(np.percentile(series, 99)), 40, 90),
        Check("lag-1 autocorrelation of daily PM2.5", _autocorrelation(series), 0.5, 0.85),
    ]
    persistence = {lead: _rmse(series[lead:] - series[:-lead]) for lead in {1, *leads}}
    checks.append(Check("persistence RMSE at T+1, ug m-3", persistence[1], 5, 9))
    checks += [
        Check(f"persistence RMSE at T+{lead}, ug m-3", persistence[lead], persistence[before])
        for before, lead in pairwise(sorted(persistence))
    ]
    cams = _rmse(sample.cams_ugm3[:, land] - series)
    checks.append(Check("CAMS-like RMSE at 1 km, ug m-3 (above persistence)", cams, persistence[1]))
    return (
        checks
        + _drivers(sample, land, series)
        + _regions(sample, land)
        + _skill(sample, land, leads)
        + sample.forecasts.checks()
    )


def _rmse(error: Array) -> float:
    return float(np.sqrt(np.mean(error**2)))


def _autocorrelation(series: Array) -> float:
    departure = series - series.mean(0)
    return float(np.mean((departure[1:] * departure[:-1]).mean(0) / (departure**2).mean(0)))


def _drivers(sample: Sample, land: Array, series: Array) -> list[Check]:
    """Correlation of the day-to-day change (of the logarithm) with the change of what drives it.

    In the more polluted half of the domain: where the air is clean, wind brings pollution instead of taking it.
    """
    mean = series.mean(0)
    polluted = mean >= np.median(mean)
    change = np.diff(np.log(np.maximum(series[:, polluted], 0.1)), axis=0)
    weather = dict(zip(PREDICTORS, np.moveaxis(sample.weather[:, :, land][..., polluted], 1, 0), strict=True))
    drivers = {
        "wind speed": (np.hypot(weather["u10"], weather["v10"]), None, -0.1),
        "stability (t925 - t2m)": (weather["t925"] - weather["t2m"], 0.05, None),
        "rain": (np.minimum(weather["tp"], 0.01), None, -0.1),
    }
    if sample.mixing_m is not None:
        drivers["mixed-layer height"] = (np.log(sample.mixing_m[:, land][:, polluted]), None, -0.1)
    return [
        Check(
            f"polluted half: daily change against {name}, correlation",
            float(np.corrcoef(change.ravel(), np.diff(driver, axis=0).ravel())[0, 1]),
            *wanted,
        )
        for name, (driver, *wanted) in drivers.items()
    ]


def _regions(sample: Sample, land: Array) -> list[Check]:
    """Winter means of known hot spots and clean regions, as multiples of the domain's winter mean."""
    winter = np.array([day.month in (12, 1, 2) for day in sample.days])
    if not winter.any():
        return []
    mean = np.where(land, sample.pm25_ugm3[winter].mean(0), np.nan)
    whole = float(np.nanmean(mean))
    checks = [Check("winter mean over land, ug m-3", whole)]
    for name, box in REGIONS.items():
        values = mean[sample.grid.slices(*box)]
        if np.isfinite(values).sum() >= 20:
            dirty = name in ("Po Valley", "Silesia")
            bounds = (1.5, None) if dirty else (None, 0.9)
            checks.append(Check(f"winter in {name} / whole domain", float(np.nanmean(values)) / whole, *bounds))
    return checks


def _skill(sample: Sample, land: Array, leads: Sequence[int]) -> list[Check]:
    """How much better than damped persistence a regression on the weather is, by lead."""
    if len(sample.days) < DAYS_FOR_SKILL:
        return []
    cells = np.flatnonzero(land.ravel())[:: max(1, int(land.sum()) // 1500)]
    half = len(sample.days) // 2
    climate, anomaly = _climatology(sample, cells, half)
    features = _features(sample, cells, climate, anomaly)
    gains = {lead: _gain(features, climate, anomaly, lead, half) for lead in sorted({1, *leads})}
    name = "regression on weather against damped persistence at T+{}, % RMSE"
    return [
        Check(name.format(1), gains[1], 10, 25),
        *(Check(name.format(lead), gains[lead], None, gains[before]) for before, lead in pairwise(gains)),
    ]


def _climatology(sample: Sample, cells: Array, half: int) -> tuple[Array, Array]:
    """A smooth year for every cell, fitted on the first half, and departures from it; (day, cell)."""
    series = sample.pm25_ugm3.reshape(len(sample.days), -1)[:, cells].astype(float)
    phase = 2 * np.pi * np.array([day.timetuple().tm_yday for day in sample.days]) / 365.25
    waves = np.stack([np.ones_like(phase), *(f(n * phase) for n in (1, 2) for f in (np.cos, np.sin))], axis=1)
    climate = waves @ np.linalg.lstsq(waves[:half], series[:half], rcond=None)[0]
    return climate, series - climate


def _features(sample: Sample, cells: Array, climate: Array, anomaly: Array) -> Array:
    """(day, cell, feature): pollution today and upwind, weather here and around, and their products."""
    days = len(sample.days)
    weather = sample.weather
    filled = np.nan_to_num(sample.pm25_ugm3)
    parts = [anomaly, *(_upwind(filled, weather, sample.grid, hours).reshape(days, -1)[:, cells] for hours in (12, 24))]
    local = weather.reshape(days, len(PREDICTORS), -1)[:, :, cells]
    parts += list(np.moveaxis(local, 1, 0))
    speed = np.hypot(local[:, 0], local[:, 1])
    stable = local[:, PREDICTORS.index("t925")] - local[:, PREDICTORS.index("t2m")]
    drivers = [speed, stable, np.minimum(local[:, PREDICTORS.index("tp")], 0.01), local[:, 0], local[:, 1]]
    parts += drivers
    parts += [climate * _standard(driver) for driver in drivers] + [anomaly * _standard(driver) for driver in drivers]
    for shift in ((0, 6), (0, -6), (0, 12), (0, -12), (4, 0), (-4, 0)):
        around = ndimage.shift(weather[:, :5], (0, 0, *shift), order=0, mode="nearest")
        parts += list(np.moveaxis(around.reshape(days, 5, -1)[:, :, cells], 1, 0))
    return np.stack([_standard(part).astype(np.float32) for part in parts], axis=-1)


def _standard(values: Array) -> Array:
    return (values - values.mean()) / (values.std() + 1e-12)


def _upwind(pm25: Array, weather: Array, grid: Grid, hours: float) -> Array:
    """The field as the wind of the day would carry it in so many hours."""
    km = grid.step * 111.2
    rows, cols = np.mgrid[: grid.rows, : grid.cols]
    shrink = np.cos(np.radians(grid.lat))[:, None]
    reach = hours * 3.6 / km
    return np.stack(
        [
            ndimage.map_coordinates(day, (rows + reach * v, cols - reach * u / shrink), order=1, mode="nearest")
            for day, u, v in zip(pm25, weather[:, 0], weather[:, 1], strict=True)
        ]
    )


def _gain(features: Array, climate: Array, anomaly: Array, lead: int, half: int) -> float:
    """Percent by which the regression's RMSE is below that of damped persistence, on the second half."""
    both = np.concatenate([features[1:], features[:-1]], axis=-1)
    start = np.arange(1, len(anomaly) - lead)
    learn, score = start[start + lead < half], start[start > half]

    def design(days: Array) -> Array:
        scaled = both[days - 1] * (climate[days + lead] / climate.mean())[..., None]
        stacked = np.concatenate([both[days - 1], scaled[..., : features.shape[-1]]], axis=-1)
        return np.c_[stacked.reshape(-1, stacked.shape[-1]), np.ones(stacked.shape[0] * stacked.shape[1])]

    x, y = design(learn[::2]).astype(np.float64), anomaly[learn[::2] + lead].ravel()
    weights = np.linalg.solve(x.T @ x + 3e-3 * len(x) * np.eye(x.shape[1]), x.T @ y)
    damping = np.sum(anomaly[learn] * anomaly[learn + lead]) / np.sum(anomaly[learn] ** 2)
    truth = anomaly[score + lead]
    regression = np.concatenate([design(day[None]) @ weights for day in score]).reshape(truth.shape)
    return 100 * (1 - _rmse(regression - truth) / _rmse(damping * anomaly[score] - truth))
