"""Means and spreads that bring fields to the size of 1 inside the network."""

from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, FiniteFloat, model_validator

from cranpm.core.channels import PAPER_CHANNELS, Channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array


class Scales(BaseModel):
    """Mean and spread of each coarse channel, in its unit, and of PM2.5 (ug m-3)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: tuple[FiniteFloat, ...]
    spread: tuple[FiniteFloat, ...]
    pm25_mean: FiniteFloat = 15.0
    pm25_spread: FiniteFloat = 20.0
    ahead_mean: tuple[FiniteFloat, ...] = ()
    ahead_spread: tuple[FiniteFloat, ...] = ()
    """Of the channels as they are forecast, of the groups that a network reads: a forecast model has its own."""

    @model_validator(mode="after")
    def _usable(self) -> "Scales":
        if len(self.mean) != len(self.spread):
            raise ValueError(f"{len(self.mean)} means but {len(self.spread)} spreads")
        if len(self.ahead_mean) != len(self.ahead_spread):
            raise ValueError(f"{len(self.ahead_mean)} means but {len(self.ahead_spread)} spreads of the days ahead")
        if not all(spread > 0 for spread in (*self.spread, self.pm25_spread, *self.ahead_spread)):
            raise ValueError("every spread must be above 0")
        return self

    def check(self, channels: int, ahead: int = 0) -> None:
        """Refuse scales that are not for `channels` channels, and `ahead` of the days ahead."""
        if (len(self.mean), len(self.ahead_mean)) != (channels, ahead):
            raise CranpmError(
                expected=f"scales of {channels} channels" + (f" and {ahead} of the days ahead" if ahead else ""),
                found=f"scales of {len(self.mean)}" + (f" and {len(self.ahead_mean)}" if self.ahead_mean else ""),
                remedy="Use the scales that were fitted on the same channels.",
            )


def fit_scales(fields: Iterable[Array], channels: Sequence[Channel] = PAPER_CHANNELS) -> Scales:
    """Mean and spread of every channel over the coarse fields of days, in one pass; give training days only."""
    count, total, square = 0, np.zeros(len(channels)), np.zeros(len(channels))
    centre = np.array([channel.mean for channel in channels])[:, None, None]
    for values in fields:
        field = values.astype(np.float64) - centre  # near 0, so that squares keep their digits
        count += field[0].size
        total += field.sum(axis=(1, 2))
        square += (field**2).sum(axis=(1, 2))
    if not count:
        raise CranpmError(expected="training days to fit scales on", found="none", remedy="Widen the training range.")
    mean = total / count
    spread = np.sqrt(np.maximum(square / count - mean**2, 0))
    flat = [channel.name for channel, value in zip(channels, spread, strict=True) if not value > 1e-6 * channel.spread]
    if flat:
        raise CranpmError(
            expected="channels that vary over the training days",
            found=f"no variation in {', '.join(flat)}",
            remedy="Check the archive: a constant channel is a missing one.",
        )
    return Scales(mean=tuple((mean + centre[:, 0, 0]).tolist()), spread=tuple(spread.tolist()))


def typical_scales(channels: int = len(PAPER_CHANNELS), ahead: int = 0) -> Scales:
    """Round figures for the paper's channels, for networks that are not trained; 0 and 1 for another number.

    `ahead`: how many of them, from the first, are read of the days ahead.
    """
    mean, spread = [0.0] * channels, [1.0] * channels
    if channels == len(PAPER_CHANNELS):
        mean, spread = [c.mean for c in PAPER_CHANNELS], [c.spread for c in PAPER_CHANNELS]
    return Scales(mean=mean, spread=spread, ahead_mean=mean[:ahead], ahead_spread=spread[:ahead])
