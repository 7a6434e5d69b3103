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

    @model_validator(mode="after")
    def _usable(self) -> "Scales":
        if len(self.mean) != len(self.spread):
            raise ValueError(f"{len(self.mean)} means but {len(self.spread)} spreads")
        if not all(spread > 0 for spread in (*self.spread, self.pm25_spread)):
            raise ValueError("every spread must be above 0")
        return self

    def check(self, channels: int) -> None:
        """Refuse scales that are not for `channels` channels."""
        if len(self.mean) != channels:
            raise CranpmError(
                expected=f"scales of {channels} channels",
                found=f"scales of {len(self.mean)}",
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


def typical_scales(channels: int = len(PAPER_CHANNELS)) -> Scales:
    """Round figures for the paper's channels, for networks that are not trained; 0 and 1 for another number."""
    if channels != len(PAPER_CHANNELS):
        return Scales(mean=(0.0,) * channels, spread=(1.0,) * channels)
    return Scales(mean=tuple(c.mean for c in PAPER_CHANNELS), spread=tuple(c.spread for c in PAPER_CHANNELS))
