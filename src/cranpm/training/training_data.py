"""What a run learns from and is judged by; whatever is wrong with it is refused before the first step."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np

from cranpm.archive.day_data import Quality
from cranpm.archive.store import Archive
from cranpm.baselines.simple.damped import DampedPersistence, fit_damped
from cranpm.core.channels import Channel, channels_of
from cranpm.core.days import check_leakage, usable
from cranpm.core.errors import CranpmError
from cranpm.network import NetworkSettings
from cranpm.network.scaling import Scales, fit_scales
from cranpm.training.batches import land_corners
from cranpm.training.days_ahead import check_runs
from cranpm.training.inputs import Inputs, find_channels
from cranpm.training.recipe import TrainSettings
from cranpm.training.tile_scores import spread_days
from cranpm.weights import Card

PROBE = 64
FIT_DAYS = 200
"""Start days whose forecasts give the scales of the days ahead."""


@dataclass(frozen=True)
class TrainingData:
    """Start days of each split, the channels that the network reads, their scales, and damped persistence."""

    train: list[date]
    validation: list[date]
    test: list[date]
    sound: list[date]
    """All days of good quality."""
    channels: tuple[Channel, ...]
    scales: Scales
    damped: DampedPersistence


def gather(archive: Archive, settings: TrainSettings, card: Card | None = None) -> TrainingData:
    """Days, channels, scales and damped persistence.

    Channels and scales are those of a `card`, or else all of the archive and what is fitted on training days.
    """
    splits, leads = settings.splits.checked(), settings.model.leads
    sound = [day for day in archive.days if archive.quality(day) is Quality.GOOD]
    days = {name: usable(sound, getattr(splits, name), leads) for name in ("train", "validation", "test")}
    for name, found in days.items():
        if not found:
            raise CranpmError(
                expected=f"{name} days in the archive, of good quality: {getattr(splits, name)}, "
                "with the day before and the days ahead",
                found="none",
                remedy=f"Simulate or ingest them, or move splits.{name}.",
            )
    check_leakage(days["train"], [*days["validation"], *days["test"]], leads)
    form, prognosis = settings.model.for_channels(archive.channels).days_ahead, settings.samples.prognosis
    for found in days.values():
        check_runs(archive, form, found, min(leads), prognosis)
    _check_domain(archive, settings)
    _check_tiles(settings)
    _check_stations(archive, settings)
    ranges = (splits.train, splits.validation, splits.test)
    _check_filled(archive, [day for day in sound if any(day in split for split in ranges)])
    if card:
        channels = tuple(archive.channels[index] for index in find_channels(archive, card.channel_names))
        card.check_channels(channels)
        scales = card.scales
    else:
        channels = archive.channels
        _check_channels(archive, settings)
        scales = fit_scales((archive.coarse(day) for day in sound if day in splits.train), channels)
        scales = _with_ahead(scales, archive, settings, channels, days["train"])
    return TrainingData(
        **days, sound=sound, channels=channels, scales=scales, damped=fit_damped(archive, days["train"], leads)
    )


def _with_ahead(
    scales: Scales, archive: Archive, settings: TrainSettings, channels: Sequence[Channel], days: Sequence[date]
) -> Scales:
    """Scales that know the channels of the days ahead too, where the network reads them, from some training days."""
    model, samples = settings.model.for_channels(channels), settings.samples
    if not model.days_ahead.groups:
        return scales
    inputs = Inputs.of(model, archive, cache_gb=0.0, prognosis=samples.prognosis)
    mean: list[float] = []
    spread: list[float] = []
    for group in model.days_ahead.groups:
        some = [day for day in days if inputs.ahead.knows(day, min(model.leads), group)]
        pairs = [(day, lead) for day in spread_days(some, FIT_DAYS) for lead in model.leads]
        fields = (inputs.ahead.group(*pair, group) for pair in pairs if inputs.ahead.knows(*pair, group))
        fitted = fit_scales(fields, channels_of(channels, group))
        mean += fitted.mean
        spread += fitted.spread
    return scales.model_copy(update={"ahead_mean": tuple(mean), "ahead_spread": tuple(spread)})


def _check_domain(archive: Archive, settings: TrainSettings) -> None:
    """A new network is made for the grid of its archive; one that is tuned may come from elsewhere."""
    wanted, found = settings.model.coarse_shape, archive.domain.coarse.shape
    if settings.finetune is None and not settings.model.any_grid and wanted != found:
        key = _key(settings, "coarse")
        raise CranpmError(
            expected=f"a domain of {wanted[0]} x {wanted[1]} coarse cells ({key})",
            found=f"{archive.domain.name} of {found[0]} x {found[1]}",
            remedy=f"Name the archive that the settings were written for, or --set {key}={list(found)}.",
        )


def _check_channels(archive: Archive, settings: TrainSettings) -> None:
    """A number of channels that the settings state is that of the archive; unless stated, it is taken from there."""
    stated = settings.network.model_fields_set | (settings.baseline or {}).keys()
    wanted, found = settings.model.channels, len(archive.channels)
    if "channels" in stated and wanted != found:
        raise CranpmError(
            expected=f"an archive of {wanted} coarse channels (network.channels)",
            found=f"{found} in {archive.location}",
            remedy="Leave network.channels out: it is taken from the archive.",
        )


def _check_tiles(settings: TrainSettings) -> None:
    """Plans of forecasts know squares only."""
    rows, cols = settings.model.tile_shape
    if rows != cols:
        key = _key(settings, "fine")
        raise CranpmError(
            expected=f"square tiles ({key})", found=f"{rows} x {cols}", remedy=f"--set {key}=[{rows},{rows}]."
        )


def _key(settings: TrainSettings, grid: Literal["coarse", "fine"]) -> str:
    """The setting that holds the shape of the coarse grid or of tiles."""
    if isinstance(settings.network, NetworkSettings):
        return f"network.{grid}.shape"
    return "network.coarse_shape" if grid == "coarse" else "network.tile_shape"


def _check_stations(archive: Archive, settings: TrainSettings) -> None:
    if settings.loss.station > 0 and not len(archive.stations):
        raise CranpmError(
            expected=f"stations in the archive, for loss.station = {settings.loss.station:g}",
            found="none",
            remedy="Ingest stations, or --set loss.station=0.",
        )


def _check_filled(archive: Archive, days: Sequence[date]) -> None:
    """Every day has PM2.5 somewhere; looks at the window with most land first, at all the rest only if it is empty."""
    corners, share = land_corners(archive.land(), min(PROBE, *archive.domain.fine.shape))
    row, col = corners[share.argmax()]
    window = (slice(int(row), int(row) + PROBE), slice(int(col), int(col) + PROBE))
    for day in days:
        if not (np.isfinite(archive.pm25(day, window)).any() or np.isfinite(archive.pm25(day)).any()):
            raise CranpmError(
                expected=f"PM2.5 on {day}",
                found="no value anywhere",
                remedy="Ingest that day again, or move the splits so that they leave it out.",
            )
