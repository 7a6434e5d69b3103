"""What a report is made of, and how it becomes HTML."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, PackageLoader

from cranpm import __version__

MOST_BYTES = 10_000_000


@dataclass(frozen=True)
class Badge:
    text: str
    warns: bool = False


@dataclass(frozen=True)
class Table:
    """A table: the first cell of a row names it."""

    rows: Sequence[Sequence[str]]
    header: Sequence[str] = ()
    heading: str = ""
    notes: Sequence[str] = ()
    facts: bool = False
    """Names and values rather than numbers."""


@dataclass(frozen=True)
class Picture:
    data: str
    alt: str
    caption: str

    @classmethod
    def of(cls, path: Path, alt: str, caption: str) -> "Picture":
        return cls(base64.b64encode(path.read_bytes()).decode(), alt, caption)


@dataclass(frozen=True)
class Section:
    title: str
    texts: Sequence[str] = ()
    points: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True)
class Report:
    title: str
    lead: str
    badges: Sequence[Badge]
    sections: Sequence[Section] = field(default_factory=list)

    def html(self) -> str:
        environment = Environment(loader=PackageLoader("cranpm.views.report", "."), autoescape=True)
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        return environment.get_template("page.html.j2").render(
            title=self.title,
            lead=self.lead,
            badges=self.badges,
            sections=self.sections,
            footer=f"Written by cranpm {__version__} on {made}. Concentrations are daily means in µg m⁻³.",
        )
