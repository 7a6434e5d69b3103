"""From the archive's forecasts to what a network reads of the days ahead of a start day."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cranpm.archive.day_data import Quality
from cranpm.archive.store import Archive
from cranpm.core.channels import Channel, channels_of
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.network import AheadForm

Prognosis = Literal["forecast", "perfect"]
"""Where the days ahead come from: runs of forecast models that had begun by then, or, for research, the analyses of
these days themselves (`perfect prognosis`), which nobody has on the start day."""
PERFECT = "perfect prognosis: the analyses of the days ahead instead of forecasts"


class AheadInputs(NamedTuple):
    """What `DayInputs` holds of the days ahead of one start day, and the wind of the way, if it is known."""

    ahead: Tensor
    known: Tensor
    lead: Tensor
    wind: Array | None


class AheadFields:
    """The days ahead of start days of an archive, in the form and order of channels that a network reads.

    `analysed` gives the coarse channels of a day; `wind` is where u and v at 10 m stand among the channels.
    """

    def __init__(
        self,
        archive: Archive,
        form: AheadForm,
        channels: Sequence[Channel],
        wind: Sequence[int],
        analysed: Callable[[date], Array],
        prognosis: Prognosis = "forecast",
    ):
        self.archive, self.form, self.prognosis, self._analysed = archive, form, prognosis, analysed
        self._wind = list(wind)
        self._all: dict[str, list[int]] = {}
        """Where the channels of a group stand among all."""
        self._stored: dict[str, list[int]] = {}
        """Where they stand among those that are stored of the group."""
        for group in form.groups:
            own = [channel.name for channel in channels_of(channels, group)]
            stored = [channel.name for channel in archive.ahead.channels(group)]
            self._all[group] = [index for index, channel in enumerate(channels) if channel.group == group]
            self._stored[group] = [stored.index(name) for name in own]
        self._good = {day for day in archive.days if archive.quality(day) is Quality.GOOD}

    def knows(self, day: date, lead: int, group: str) -> bool:
        """Whether all days up to a lead are known of a group."""
        if self.prognosis == "perfect":
            return all(day + timedelta(days=ahead) in self._good for ahead in range(1, lead + 1))
        return set(range(1, lead + 1)) <= set(self.archive.ahead.leads(day, group))

    def group(self, day: date, lead: int, group: str) -> Array:
        """(channels of the group, rows, cols) of the day `lead` days after a start day."""
        if self.prognosis == "perfect":
            return self._analysed(day + timedelta(days=lead))[self._all[group]]
        return self.archive.ahead.fields(day, lead, group)[self._stored[group]]

    def of(self, day: date, lead: int, hidden: Collection[str] = ()) -> AheadInputs:
        """What is known on a start day of the days up to a lead; groups that are `hidden` count as unknown."""
        form, shape = self.form, self.archive.domain.coarse.shape
        ahead = np.zeros((form.slots, form.channels, *shape), np.float32)
        known = np.zeros((form.slots, len(form.groups)), np.float32)
        wind, first = None, 0
        for number, (group, size) in enumerate(zip(form.groups, form.sizes, strict=True)):
            if group not in hidden and self.knows(day, lead, group):
                fields = [self.group(day, step, group) for step in range(1, lead + 1)]
                slots = [fields[-1], np.mean(fields, axis=0)] if form.way == "mean" else fields[::-1]
                ahead[: len(slots), first : first + size] = slots
                known[: len(slots), number] = 1
                if group == "weather":
                    wind = self._of_the_way(day, fields)
            first += size
        fields_ahead, masks = torch.from_numpy(ahead)[None], torch.from_numpy(known)[None]
        return AheadInputs(fields_ahead, masks, torch.tensor([lead]), wind)

    def _of_the_way(self, day: date, weather: Sequence[Array]) -> Array:
        """(u, v) in m/s, the mean from the middle of the start day to the middle of the target day."""
        places = [self._all["weather"].index(index) for index in self._wind]
        winds = [self._analysed(day)[self._wind], *(fields[places] for fields in weather)]
        between = sum(winds[1:-1], start=0.5 * (winds[0] + winds[-1]))
        return np.asarray(between / len(weather), np.float32)


def check_runs(archive: Archive, form: AheadForm, days: Sequence[date], shortest: int, prognosis: Prognosis) -> None:
    """Refuse start days whose stored forecast began after they had ended; and if none reaches the `shortest` lead."""
    for group, size in zip(form.groups, form.sizes, strict=True):
        if not size:
            raise CranpmError(
                expected=f"channels of {group} in {archive.location}, for network.ahead",
                found="none",
                remedy="Use an archive that has some, or --set network.ahead=none.",
            )
        if prognosis == "perfect":
            continue
        archive.ahead.check_references(group, days)
        reached = max((_unbroken(archive.ahead.leads(day, group)) for day in days), default=0)
        if reached < shortest:
            raise CranpmError(
                expected=f"forecasts of the {group} ahead in {archive.location} up to T+{shortest}, for network.ahead",
                found=f"none beyond T+{reached}" if reached else f"none for the {len(days)} start days",
                remedy="Simulate with --ahead 5, ingest forecasts, or --set network.ahead=none.",
            )


def _unbroken(leads: Collection[int]) -> int:
    """The last of the leads 1, 2, 3, ... before the first that is missing; 0 where the first is."""
    return next(lead for lead in range(len(leads) + 1) if lead + 1 not in leads)


def models_of(
    archive: Archive, form: AheadForm, days: Sequence[date], prognosis: Prognosis, before: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """By group, the models whose forecasts of start days were read, and those that were read `before` these."""
    if prognosis == "perfect":
        found = {group: {PERFECT} for group in form.groups}
    else:
        found = {group: _models(archive, group, days) for group in form.groups}
    return {group: tuple(sorted({*models, *before.get(group, ())})) for group, models in found.items()}


def _models(archive: Archive, group: str, days: Sequence[date]) -> set[str]:
    if len(ever := archive.ahead.models(group)) <= 1:
        return set(ever)
    return {run.model for day in days if (run := archive.ahead.run(day, group)) is not None}
