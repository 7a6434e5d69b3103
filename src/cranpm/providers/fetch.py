"""Fetching providers' files: what must be asked for, and the asking."""

from collections.abc import Callable, Sequence
from pathlib import Path

from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS
from cranpm.providers.provider import FetchQuery
from cranpm.providers.request import Request

OnFile = Callable[[int, Request, str], None]
"""Number, request, and what became of it; empty when it begins."""


def plan(provider: str, query: FetchQuery) -> list[Request]:
    """What would be fetched; a channel that the provider does not give is refused."""
    for channel in query.channels:
        if channel not in PROVIDERS[provider].provides:
            able = [one.name for one in PROVIDERS.values() if channel in one.provides]
            raise CranpmError(
                expected=f"channels that {provider} gives",
                found=f"{channel}, which {'is given by ' + ', '.join(able) if able else 'no provider gives'}",
                remedy=f"cranpm fetch {able[0]} --channel {channel}" if able else "Leave --channel out.",
            )
    return PROVIDERS[provider].requests(query)


def fetch(
    requests: Sequence[Request],
    folder: Path,
    wait: float = 1.0,
    on_file: OnFile = lambda number, request, state: None,
) -> list[Path]:
    """Fetch what is not there yet; a file appears under its name only when it is whole.

    `wait` seconds pass before the second try of anything, and longer before further ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: list[Path] = []
    for number, request in enumerate(requests):
        target = folder / request.name
        if target.is_file() and target.stat().st_size:
            on_file(number, request, "is there already")
            found.append(target)
            continue
        on_file(number, request, "")
        made = PROVIDERS[request.provider].fetch(request, target, wait)
        if not made:
            on_file(number, request, f"is not there: {request.ask['missing']}")
        found += made
    return found
