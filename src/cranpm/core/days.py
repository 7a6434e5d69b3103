"""Days, ranges of days, gaps, and splits that cannot leak.

A forecast made on day t reads t-1 and t and is scored on t+1..t+lead: that window must lie inside one split.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise

from cranpm.core.errors import CranpmError

LEADS = (1, 2, 3)
"""Days ahead that settings and commands choose where nothing else is said."""
LONGEST_LEAD = 30
"""Days ahead beyond which nobody forecasts the air of one day."""


@dataclass(frozen=True)
class DayRange:
    """All days from `first` to `last`, both included."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise CranpmError(
                expected="a range of days that runs forward",
                found=f"{self.first}..{self.last}",
                remedy=f"Write {self.last}..{self.first}.",
            )

    def __iter__(self) -> Iterator[date]:
        return (self.first + timedelta(days=step) for step in range(len(self)))

    def __len__(self) -> int:
        return (self.last - self.first).days + 1

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"

    def overlaps(self, other: "DayRange") -> bool:
        return self.first <= other.last and other.first <= self.last


def parse_day(text: str) -> date:
    """A day from YYYY-MM-DD."""
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise CranpmError(expected="a day as YYYY-MM-DD", found=repr(text), remedy="For example 2022-01-25.")


def parse_days(text: str) -> DayRange:
    """A range from `2021-01-01..2022-12-31`, from one day or from a whole year `2022`."""
    if re.fullmatch(r"\d{4}", text):
        return DayRange(parse_day(f"{text}-01-01"), parse_day(f"{text}-12-31"))
    first, _, last = text.partition("..")
    return DayRange(parse_day(first), parse_day(last or first))


def parse_leads(text: str) -> tuple[int, ...]:
    """Leads in days from `1,2,3`: each once, from 1 to `LONGEST_LEAD`."""
    parts = [part.strip() for part in text.split(",")]
    return check_leads([int(part) if re.fullmatch(r"[0-9]{1,9}", part) else 0 for part in parts], text)


def check_leads(leads: Sequence[int], text: str | None = None) -> tuple[int, ...]:
    """These leads, in days; refused unless there is one, each once, from 1 to `LONGEST_LEAD`. `text` named them."""
    if not leads or len(set(leads)) != len(leads) or any(lead not in range(1, LONGEST_LEAD + 1) for lead in leads):
        found = text or ", ".join(map(str, leads)) or "none"
        raise CranpmError(
            expected=f"leads in days from 1 to {LONGEST_LEAD}, each once",
            found=found if len(found) <= 80 else f"{found[:80]}...",
            remedy="For example 1,2,3.",
        )
    return tuple(int(lead) for lead in leads)


def end_of(day: date) -> datetime:
    """The midnight (UTC) that ends a day."""
    return datetime(day.year, day.month, day.day) + timedelta(days=1)


def check_reference(start: date, reference: datetime, model: str) -> None:
    """Refuse a forecast for a start day whose run began after that day had ended: nobody had it then."""
    if reference > end_of(start):
        raise CranpmError(
            expected=f"forecasts for start day {start} from a run that began by {end_of(start):%Y-%m-%d %H} UTC",
            found=f"{model} of {reference:%Y-%m-%d %H} UTC",
            remedy="Use an earlier run. To learn from the days as they came true, set samples.prognosis=perfect.",
        )


def reach(day: date, leads: Sequence[int] = LEADS) -> DayRange:
    """Every day that a forecast made on `day` touches: yesterday up to the furthest lead."""
    return DayRange(day - timedelta(days=1), day + timedelta(days=max(leads)))


def needed(days: DayRange, every: int, leads: Sequence[int] = LEADS) -> list[date]:
    """The days that forecasts from every n-th day of a range need: a year can be verified on some of its days."""
    return sorted({other for day in list(days)[::every] for other in reach(day, leads)})


def gaps(present: Collection[date]) -> list[DayRange]:
    """The runs of missing days between the first and the last day present."""
    days = sorted(set(present))
    return [
        DayRange(before + timedelta(days=1), after - timedelta(days=1))
        for before, after in pairwise(days)
        if (after - before).days > 1
    ]


def usable(present: Collection[date], within: DayRange, leads: Sequence[int] = LEADS) -> list[date]:
    """The days of `within` whose whole reach is present and lies inside `within`."""
    held = {day for day in present if day in within}
    return [day for day in sorted(held) if all(other in held for other in reach(day, leads))]


@dataclass(frozen=True)
class Splits:
    """Training, validation and test days; refused where any two overlap."""

    train: DayRange
    validation: DayRange
    test: DayRange

    def __post_init__(self) -> None:
        named = {"train": self.train, "validation": self.validation, "test": self.test}
        pairs = [("train", "validation"), ("train", "test"), ("validation", "test")]
        for one, other in pairs:
            if named[one].overlaps(named[other]):
                raise CranpmError(
                    expected=f"{one} and {other} days that do not overlap",
                    found=f"{one} {named[one]} and {other} {named[other]}",
                    remedy="Move one of the two ranges: a day that was learned from must not be scored.",
                )


PAPER_SPLITS = Splits(
    train=DayRange(date(2017, 1, 1), date(2020, 12, 31)),
    validation=DayRange(date(2021, 1, 1), date(2021, 12, 31)),
    test=DayRange(date(2022, 1, 1), date(2022, 12, 31)),
)


def check_leakage(learned: Collection[date], scored: Collection[date], leads: Sequence[int] = LEADS) -> None:
    """Refuse start days for scoring whose reach touches the reach of any start day that was learned from."""
    seen = {day for start in learned for day in reach(start, leads)}
    shared = sorted({day for start in scored for day in reach(start, leads)} & seen)
    if shared:
        raise CranpmError(
            expected="no day shared by learning and scoring, yesterdays and targets included",
            found=f"{len(shared)} shared days, the first {shared[0]}",
            remedy="Take start days from days.usable() of two ranges that do not overlap.",
        )
