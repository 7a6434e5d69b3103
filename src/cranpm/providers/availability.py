"""Which days a provider can have: days that it cannot are refused before anything is asked of its servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

KEPT_SLACK = 180
"""Days by which "about three years" may be meant longer."""


@dataclass(frozen=True)
class Availability:
    """First and last day, how late days appear and how long they are kept. Between sure and usual there is doubt."""

    first: date | None = None
    last: date | None = None
    late_days: int = 0
    """A day appears so many days later, surely not earlier."""
    usually_late_days: int = 0
    """A day is usually there so many days later."""
    kept_days: int | None = None
    """For about so many days a day is kept; None: for ever."""
    doubt_before: date | None = None
    """Earlier days may be laid out in another way."""

    def impossible(self, day: date, today: date) -> str:
        """Why a day cannot be had; empty where it can."""
        if day > today:
            return "it is in the future"
        if self.first and day < self.first:
            return f"the first day is {self.first}"
        if self.last and day > self.last:
            return f"the last day is {self.last}"
        if day > today - timedelta(days=self.late_days):
            return f"days appear at least {self.late_days} days later"
        if self.kept_days and day < today - timedelta(days=self.kept_days + KEPT_SLACK):
            return f"days are kept for about {self.kept_days} days"
        return ""

    def doubtful(self, day: date, today: date) -> str:
        """Why a possible day may not be there; empty where nothing speaks against it."""
        if day > today - timedelta(days=self.usually_late_days):
            return f"days usually appear about {self.usually_late_days} days later"
        if self.kept_days and day < today - timedelta(days=self.kept_days):
            return f"days are kept for about {self.kept_days} days"
        if self.doubt_before and day < self.doubt_before:
            return f"days before {self.doubt_before} may be laid out in another way"
        return ""

    def __str__(self) -> str:
        """For the table of providers."""
        parts = [f"from {self.first}" if self.first else "", f"until {self.last}" if self.last else ""]
        late = max(self.late_days, self.usually_late_days)
        parts += [
            f"about {late} days later" if late else "",
            f"the last {self.kept_days} days" if self.kept_days else "",
        ]
        return ", ".join(part for part in parts if part) or "any"


def by_reason(days: Sequence[date], reasons: Sequence[str]) -> dict[str, list[date]]:
    """Days by why they cannot be had; those without a reason are left out."""
    found: dict[str, list[date]] = {}
    for day, reason in zip(days, reasons, strict=True):
        if reason:
            found.setdefault(reason, []).append(day)
    return found
