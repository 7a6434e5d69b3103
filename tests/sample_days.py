"""Days made of random numbers, for tests of the archive."""

from dataclasses import replace
from datetime import date

import numpy as np

from cranpm.archive.day_data import DayData, Stations
from cranpm.core.channels import PAPER_CHANNELS
from cranpm.core.grid import Domain
from cranpm.simulate import SimulationSettings

SMALL = Domain("box", 48, 7, 42.75, 12.25)
FIRST = date(2020, 2, 27)
"""Two days before a leap day."""
SETTINGS = SimulationSettings(first_day=FIRST, spin_up_days=2)
PRODUCER = {"source": "test"}
STATIONS = Stations(
    ids=np.array(["a", "b"]),
    lat=np.array([45.0, 46.0]),
    lon=np.array([8.0, 9.0]),
    altitude_m=np.array([100.0, 200.0], np.float32),
    country=np.array(["IT", "CH"]),
    kind=np.array(["traffic", "background"]),
    area=np.array(["urban", "rural"]),
)


def make_day(day, seed=0, channels=PAPER_CHANNELS, **changes):
    """A plausible day of random numbers: every chunk differs from every other."""
    rng = np.random.default_rng([seed, day.toordinal()])
    share = rng.uniform(0.2, 0.8, (len(channels), *SMALL.coarse.shape))
    low = np.array([channel.low for channel in channels])[:, None, None]
    high = np.array([channel.high for channel in channels])[:, None, None]
    pm25 = rng.gamma(2, 6, SMALL.fine.shape).astype(np.float32)
    pm25[:40] = np.nan
    data = DayData(
        day=day,
        coarse=(low + share * (high - low)).astype(np.float32),
        pm25_ugm3=pm25,
        stations_ugm3=np.array([12.5, np.nan], np.float32),
        provenance={"file": f"{day}.nc", "sha256": f"{rng.integers(1 << 60):x}"},
    )
    return replace(data, **changes)
