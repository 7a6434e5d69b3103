"""Hours of a day that are made up around its mean or total: averages over the right hours give the day back, exactly.

Averages over other hours do not, so that a wrong choice of hours shows.
"""

import numpy as np

from cranpm.core.grid import Array

SWING = {"u10": 1.0, "v10": 1.0, "t2m": 4.0, "sp": 100.0, "u": 1.0, "v": 1.0, "t": 1.0, "z": 50.0}
"""How far an hour may be from the day's mean."""
RAIN_SHARE = np.arange(1, 25) / 300
"""Of a day's rain, in each of its 24 hours."""


def wave(hour: Array | float) -> Array:
    """From -1 to 1 over the day; the mean over 24, 8 or 4 even hours from midnight is 0."""
    return np.sin(2 * np.pi * np.asarray(hour) / 24)


def around(mean: Array, hours: int, swing: float) -> Array:
    """(hour, row, column) with the given mean."""
    return mean + swing * wave(np.arange(hours) * 24 / hours)[:, None, None]


def rain_until(hour: int) -> float:
    """Share of a day's rain that has fallen at an hour of it, 0 to 24."""
    return float(RAIN_SHARE[:hour].sum())
