"""Days with forecasts made of random numbers, for tests of files that hold forecasts."""

from datetime import date, datetime

import numpy as np

from cranpm.archive.days_ahead import DaysAhead
from cranpm.archive.store import Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.channels import GROUPS

START, LATER = date(2024, 2, 29), date(2024, 3, 1)
"""The first has the first run with the model in its address; it is a leap day, too."""
LEADS = {START: (1, 2, 3, 4, 5), LATER: (1, 2)}


def put_forecasts(location, leads):
    """Today's fields with errors that differ everywhere, as forecasts of the days ahead."""
    known = Archive(location)
    with ArchiveWriter(location) as writer:
        for day, days_ahead in leads.items():
            rng = np.random.default_rng(day.toordinal())
            midnight = datetime(day.year, day.month, day.day)
            runs = [
                DaysAhead(group, "simulation", midnight, {lead: guess(known, day, group, rng) for lead in days_ahead})
                for group in GROUPS
            ]
            writer.put_ahead(day, runs)


def guess(known, day, group, rng):
    """(channel, row, column) around the fields of a day."""
    channels = known.ahead.channels(group)
    today = known.coarse(day)[[known.channel_names.index(channel.name) for channel in channels]]
    spreads, low, high = (
        np.array([getattr(channel, what) for channel in channels])[:, None, None] for what in ("spread", "low", "high")
    )
    low = np.where(low == -1e-6, 0, low)  # of rain
    return np.clip(today + 0.3 * spreads * rng.normal(size=today.shape), low, high).astype(np.float32)


def days_of(archive, start, channel):
    """(day, row, column): the analysed start day and the forecasts."""
    group, name = channel.group, channel.name
    number = [one.name for one in archive.ahead.channels(group)].index(name)
    today = archive.coarse(start)[archive.channel_names.index(name)]
    return np.stack([today, *(archive.ahead.fields(start, lead, group)[number] for lead in LEADS[start])])
