"""A forecast of the days ahead that an archive holds, at the hours of the run that it may have been made of."""

from dataclasses import dataclass
from datetime import date

import numpy as np

from cranpm.archive.store import Archive
from cranpm.core.channels import Channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.era5 import ALOFT
from cranpm.providers.made_up_hours import SWING, rain_until, wave


@dataclass(frozen=True, eq=False)
class ForecastRun:
    """Fields of the 00 UTC run of a start day; the start day itself is the archive's analysed one."""

    start: date
    channels: tuple[Channel, ...]
    fields: Array
    """(day, channel, row, column) float64: daily means, and totals of rain."""

    @classmethod
    def of(cls, archive: Archive, start: date, group: str, longest_lead: int) -> "ForecastRun":
        """Read the channels of a group up to a lead; refused where a day before the last lead has no forecast."""
        channels = archive.ahead.channels(group)
        leads = [lead for lead in archive.ahead.leads(start, group) if lead <= longest_lead]
        if leads != list(range(1, len(leads) + 1)) or not leads:
            raise CranpmError(
                expected=f"{group} of every day up to the last, as forecast on {start}",
                found=f"leads {', '.join(map(str, leads)) or 'none'}",
                remedy="A provider's run has all hours: export only start days that have all leads.",
            )
        today = archive.coarse(start)[[archive.channel_names.index(channel.name) for channel in channels]]
        ahead = [archive.ahead.fields(start, lead, group) for lead in leads]
        return cls(start, channels, np.stack([today, *ahead]).astype(np.float64))

    @property
    def days(self) -> int:
        """The start day and all leads."""
        return len(self.fields)

    def daily(self, index: int, hour: int) -> Array:
        """A channel's mean or total of the day of an hour; of the last day at the midnight that ends the run."""
        return self.fields[min(hour // 24, self.days - 1), index]

    def at(self, index: int, hour: int) -> Array:
        """A channel at an hour of the run, on the archive's cells; rain as the sum since the start."""
        channel = self.channels[index]
        if channel.quantity == "precipitation":
            full, rest = divmod(hour, 24)
            return self.fields[:full, index].sum(axis=0) + rain_until(rest) * self.daily(index, hour)
        name = channel.name if channel.level_hpa is None else ALOFT[channel.quantity]
        return self.daily(index, hour) + SWING.get(name, 0.0) * wave(hour)
