"""PM2.5 as whole steps of 0.1 ug m-3: how archives and products store it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array

STEP_UGM3 = 0.1


@dataclass(frozen=True)
class Packing:
    """Integers of one kind, one of which stands for a missing value."""

    dtype: Any
    missing: int

    @property
    def limits_ugm3(self) -> tuple[float, float]:
        """The lowest and the highest value that can be stored."""
        kind = np.iinfo(self.dtype)
        low, high = (kind.min + 1, kind.max) if self.missing == kind.min else (kind.min, kind.max - 1)
        return low * STEP_UGM3, high * STEP_UGM3

    def pack(self, values_ugm3: Array) -> Array:
        """The nearest steps; NaN becomes `missing`. Values that cannot be stored are refused."""
        present = np.isfinite(values_ugm3)
        scaled = np.where(present, values_ugm3, 0) * np.float32(1 / STEP_UGM3)
        steps = np.floor(scaled + np.float32(0.5))
        low, high = self.limits_ugm3
        if steps.size and not (steps.min() >= low / STEP_UGM3 - 0.5 and steps.max() <= high / STEP_UGM3 + 0.5):
            raise CranpmError(
                expected=f"PM2.5 in {low:g}..{high:g} ug m-3",
                found=f"{steps.min() * STEP_UGM3:g} to {steps.max() * STEP_UGM3:g}",
                remedy="Check the field: files cannot hold these values.",
            )
        packed = steps.astype(self.dtype)
        packed[~present] = self.missing
        return packed

    def unpack(self, packed: Array) -> Array:
        """float32 ug m-3; `missing` becomes NaN."""
        values = packed * np.float32(STEP_UGM3)
        values[packed == self.missing] = np.nan
        return values


ARCHIVED = Packing(np.uint16, 65535)
"""In archives, and in GHAP's own files."""
PUBLISHED = Packing(np.int16, -32768)
"""In products; their differences can be negative."""
