"""One thing to fetch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Request:
    """One thing to fetch, in the words of its provider, who alone understands `ask`."""

    provider: str
    name: str
    """Of the file that it becomes, or of the folder."""
    ask: Mapping[str, Any]
    gigabytes: float
    """An estimate."""
    licence: str = ""
    """The page on which its licence must be accepted first."""
