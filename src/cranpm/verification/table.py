"""A table: for a terminal, a page and a spreadsheet."""

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from cranpm.verification.bootstrap import Interval

SURE = "* the 95 % interval (in brackets; paired bootstrap over days in blocks of a week) leaves out 0."


@dataclass(frozen=True)
class TextTable:
    """A title, a header, rows of text and what must be said below them."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", _line(self.header), _line(["---"] + ["---:"] * (len(self.header) - 1))]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}  " for note in self.notes)]).replace("*", "\\*").rstrip() + "\n"

    def csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def percent(change: Interval | None) -> str:
    """A change with its interval; a star where it is certain."""
    if change is None or not np.isfinite(change.value):
        return ""
    if not np.isfinite(change.low):
        return f"{change.value:+.1f} % (too few days)"
    star = "*" if change.significant else ""
    return f"{change.value:+.1f} %{star} [{change.low:+.1f}, {change.high:+.1f}]"
