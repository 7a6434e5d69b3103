"""What forecasts in an archive should be, worked out by hand."""

import numpy as np
from forecast_files import day_of_run
from sample_days import SMALL

from cranpm.archive.store import Archive
from cranpm.core.channels import PAPER_CHANNELS


def check(place, day, lead, group, names, wanted, tolerance=2e-4):
    """Every channel of a stored forecast, by what it should be: `wanted(name)`."""
    fields = Archive(place).ahead.fields(day, lead, group)
    spreads = {channel.name: channel.spread for channel in PAPER_CHANNELS}
    assert len(fields) == len(names)
    for name, found in zip(names, fields, strict=True):
        assert np.allclose(found, wanted(name), atol=tolerance * spreads[name], rtol=1e-6), (name, lead)


def weather_of(begin, every=3, offset=0.0):
    return lambda name: day_of_run(name, begin, every, SMALL, offset)
