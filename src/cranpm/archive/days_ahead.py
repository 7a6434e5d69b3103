"""Forecasts of the days ahead in an archive: the coarse channels of day t+lead as they were forecast for start day t.

Weather and composition are two groups, each from one run of one model per start day; either may be absent. They lie in

    ahead/weather, ahead/composition  (day, lead, channel, lat, lon) float32, the channels of the group in their order
    ahead/held       (day, group, lead) 1 where there is a forecast
    ahead/reference  (day, group) when its run began, in hours since 2000-01-01, UTC
    ahead/run        (day, group) which run it is, as JSON

Day is the start day. A later run replaces all leads of its group in one commit; the record of the new run names the
version of the archive that still holds the old one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranpm.archive.layout import AXIS, EPOCH, SCHEMA, add_array, axis_index
from cranpm.archive.repository import Group
from cranpm.core.channels import GROUPS, Channel, channels_of
from cranpm.core.days import LONGEST_LEAD, check_leads, check_reference
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain

if TYPE_CHECKING:
    from cranpm.archive.store import Archive

DAYS_PER_CHUNK = 1024
_BEGIN = datetime(EPOCH.year, EPOCH.month, EPOCH.day)


@dataclass(frozen=True)
class RunRecord:
    """Which run of a model a stored forecast is from."""

    model: str
    """As ifs, aifs, cams-europe, cams-global, simulation."""
    reference: datetime
    """When the run began, UTC."""
    leads: tuple[int, ...]
    """Days ahead that it gives."""
    replaces: str | None = None
    """The version of the archive that holds the forecast which this one replaced."""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.model} of {self.reference:%Y-%m-%d %H} UTC"

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads back."""
        facts = {"model": self.model, "reference": self.reference.isoformat(), "leads": list(self.leads)}
        return facts | {"replaces": self.replaces, "provenance": dict(self.provenance)}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> "RunRecord":
        reference = datetime.fromisoformat(facts["reference"])
        return cls(facts["model"], reference, tuple(facts["leads"]), facts["replaces"], facts["provenance"])


@dataclass(frozen=True)
class DaysAhead:
    """One group of channels of the days after a start day, as one run forecast them; in physical units."""

    group: str
    model: str
    reference: datetime
    """When the run began, UTC without a time zone; not later than the end of the start day."""
    fields: Mapping[int, Array]
    """By lead in days: (channels of the group, rows, cols) on the coarse grid, in the archive's order; all finite."""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stored = {lead: np.asarray(values, np.float32) for lead, values in self.fields.items()}
        object.__setattr__(self, "fields", stored)

    @property
    def leads(self) -> tuple[int, ...]:
        return tuple(sorted(self.fields))

    def check(self, day: date, domain: Domain, channels: Sequence[Channel]) -> None:
        """Refuse a run from after its start day, wrong shapes, gaps, and values that no such quantity can take."""
        own = channels_of(channels, self.group)
        check_leads(self.leads)
        check_reference(day, self.reference, self.model)
        for lead, values in self.fields.items():
            what = f"{self.group} {lead} days after {day} by {self.model}"
            if values.shape != (len(own), *domain.coarse.shape):
                raise CranpmError(
                    expected=f"{what} of shape {(len(own), *domain.coarse.shape)}",
                    found=str(values.shape),
                    remedy="Put all channels of the group on the coarse grid of the archive's domain.",
                )
            for channel, of_channel in zip(own, values, strict=True):
                least, most = float(of_channel.min()), float(of_channel.max())  # NaN if one value is
                if not channel.low <= least <= most <= channel.high:
                    raise CranpmError(
                        expected=f"{channel.name} in {channel.low:g}..{channel.high:g} {channel.unit}, in {what}",
                        found=f"{least:g}..{most:g}",
                        remedy="Check its units; leave out a group or a lead that has gaps.",
                    )


def check_runs(runs: Sequence[DaysAhead], day: date, domain: Domain, channels: Sequence[Channel]) -> None:
    """Refuse runs of a start day that cannot be stored, and two runs of one group."""
    for run in runs:
        run.check(day, domain, channels)
    if twice := [group for group in GROUPS if sum(run.group == group for run in runs) > 1]:
        raise CranpmError(
            expected=f"one run of {twice[0]} for {day}", found="several", remedy="Choose one, or store them in turn."
        )


class AheadReader:
    """The forecasts that one version of an archive holds, by their start day."""

    def __init__(self, archive: "Archive", keep: bool = False):
        self._archive, self._keep = archive, keep
        self._kept: dict[tuple[date, int, str], Array] = {}

    @cached_property
    def _held(self) -> Array:
        """(day, group, lead) of the whole axis."""
        there = self._archive.has("ahead")
        return self._archive.read("ahead/held").astype(bool) if there else np.zeros((AXIS, 2, LONGEST_LEAD), bool)

    def channels(self, group: str) -> tuple[Channel, ...]:
        """The channels of a group, in the order in which they are stored."""
        return channels_of(self._archive.channels, group)

    def leads(self, day: date, group: str) -> tuple[int, ...]:
        """Days ahead for which the start day has a forecast; none where there is no run."""
        return tuple(int(index) + 1 for index in np.flatnonzero(self._held[axis_index(day), GROUPS.index(group)]))

    def days(self, group: str) -> list[date]:
        """The start days with any forecast of a group, in order."""
        any_lead = self._held[:, GROUPS.index(group)].any(axis=1)
        return [EPOCH + timedelta(days=int(index)) for index in np.flatnonzero(any_lead)]

    def models(self, group: str) -> tuple[str, ...]:
        """The models that ever gave forecasts of a group."""
        there = self._archive.has("ahead")
        return tuple(self._archive.attributes_of("ahead")["models"][group]) if there else ()

    def check_references(self, group: str, days: Sequence[date]) -> None:
        """Refuse start days with a forecast from a run that began after they had ended."""
        held = set(self.days(group))
        chosen = [day for day in days if day in held]
        if chosen:
            hours = self._archive.read("ahead/reference", (slice(None), GROUPS.index(group)))
            for day in chosen:
                check_reference(day, _BEGIN + timedelta(hours=int(hours[axis_index(day)])), f"{group} of a model")

    def run(self, day: date, group: str) -> RunRecord | None:
        """Which run the forecast of a start day is from; None where there is none."""
        if not self.leads(day, group):
            return None
        return RunRecord.from_json(json.loads(str(self._archive.read("ahead/run", _place(day, group)))))

    def fields(self, day: date, lead: int, group: str) -> Array:
        """(channels of the group, rows, cols) float32 of the day `lead` days after a start day, as forecast then."""
        if lead not in self.leads(day, group):
            raise CranpmError(
                expected=f"{group} {lead} days after {day}, as forecast then, in {self._archive.location}",
                found=f"leads {', '.join(map(str, self.leads(day, group))) or 'none'}",
                remedy="Fetch and ingest a forecast run of that day, or simulate with --ahead.",
            )
        if (day, lead, group) in self._kept:
            return self._kept[day, lead, group]
        values = self._archive.read(f"ahead/{group}", (axis_index(day), lead - 1))
        if self._keep:
            values.flags.writeable = False
            self._kept[day, lead, group] = values
        return values

    def same(self, day: date, ahead: DaysAhead) -> bool:
        """Whether exactly this forecast is stored already."""
        old = self.run(day, ahead.group)
        if old is None or _identity(old) != _identity(_record(ahead, None)):
            return False
        return all(np.array_equal(self.fields(day, lead, ahead.group), ahead.fields[lead]) for lead in ahead.leads)

    def summary(self) -> dict[str, Any]:
        """What `cranpm info` says of each group: start days, leads, and models that ever gave some."""
        facts: dict[str, Any] = {}
        for number, group in enumerate(GROUPS):
            if days := self.days(group):
                leads = np.flatnonzero(self._held[:, number].any(axis=0)) + 1
                newest = self.run(days[-1], group)
                facts[group] = {
                    "start_days": len(days),
                    "first": str(days[0]),
                    "last": str(days[-1]),
                    "leads": [int(lead) for lead in leads],
                    "models": list(self.models(group)),
                    "newest_run": str(newest),
                }
        return facts


def _identity(record: RunRecord) -> Any:
    facts = record.to_json() | {"replaces": None}
    return json.dumps(facts, sort_keys=True, default=str)


def _place(day: date, group: str) -> tuple[int, int]:
    return axis_index(day), GROUPS.index(group)


def _record(ahead: DaysAhead, replaces: str | None) -> RunRecord:
    return RunRecord(ahead.model, ahead.reference, ahead.leads, replaces, ahead.provenance)


def lay_out(root: Group, domain: Domain, channels: Sequence[Channel]) -> None:
    """Arrays for forecasts, in a repository that has none yet."""
    group = root.create_group("ahead")
    for name in GROUPS:
        own = channels_of(channels, name)
        shape = (len(own), *domain.coarse.shape)
        dimensions = ("day", "lead", "channel", "lat", "lon")
        array = add_array(group, name, (AXIS, LONGEST_LEAD, *shape), "float32", (1, 1, *shape), dimensions, fill=np.nan)
        array.attrs["channels"] = [channel.name for channel in own]
    shape = (AXIS, len(GROUPS), LONGEST_LEAD)
    add_array(group, "held", shape, "uint8", (DAYS_PER_CHUNK, *shape[1:]), ("day", "group", "lead"), fill=0)
    add_array(group, "reference", shape[:2], "int32", (DAYS_PER_CHUNK, len(GROUPS)), ("day", "group"), fill=0)
    add_array(group, "run", shape[:2], str, (1, 1), ("day", "group"), fill="")
    group.attrs["models"] = {name: [] for name in GROUPS}


def write(root: Group, day: date, runs: Sequence[DaysAhead], known: "Archive") -> None:
    """Put runs of a start day into an open commit; what was there of their groups is replaced."""
    if "ahead" not in root:
        lay_out(root, known.domain, known.channels)
        root.attrs["schema"] = SCHEMA
    for ahead in runs:
        index, number = _place(day, ahead.group)
        before = known.ahead.leads(day, ahead.group)
        held = np.zeros(LONGEST_LEAD, np.uint8)
        for lead in ahead.leads:
            root[f"ahead/{ahead.group}"][index, lead - 1] = ahead.fields[lead]
            held[lead - 1] = 1
        for lead in set(before) - set(ahead.leads):
            root[f"ahead/{ahead.group}"][index, lead - 1] = np.nan
        root["ahead/held"][index, number] = held
        root["ahead/reference"][index, number] = -((_BEGIN - ahead.reference) // timedelta(hours=1))
        record = _record(ahead, known.snapshot if before else None)
        root["ahead/run"][index, number] = json.dumps(record.to_json(), sort_keys=True, default=str)
        models = dict(root["ahead"].attrs["models"])
        if ahead.model not in models[ahead.group]:
            root["ahead"].attrs["models"] = models | {ahead.group: [*models[ahead.group], ahead.model]}
