"""Means and spreads that bring fields to the size of 1 inside the network."""

from typing import Self

from pydantic import BaseModel, ConfigDict, FiniteFloat, model_validator

from cranpm.channels import COARSE
from cranpm.errors import CranpmError


class Scales(BaseModel):
    """Mean and spread of each coarse channel, in its unit, and of PM2.5 (ug m-3)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: tuple[FiniteFloat, ...]
    spread: tuple[FiniteFloat, ...]
    pm25_mean: FiniteFloat = 15.0
    pm25_spread: FiniteFloat = 20.0

    @model_validator(mode="after")
    def _usable(self) -> Self:
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


def typical_scales() -> Scales:
    """Round figures for the 35 channels, for networks that are not trained."""
    return Scales(mean=tuple(c.mean for c in COARSE), spread=tuple(c.spread for c in COARSE))
