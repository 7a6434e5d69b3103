"""Fetching providers' files: what must be asked for, and the asking."""

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS
from cranpm.providers.availability import by_reason
from cranpm.providers.provider import FetchQuery, Provider, by_precedence
from cranpm.providers.request import Request

OnFile = Callable[[int, Request, str], None]
"""Number, request, and what became of it; empty when it begins."""


def plan(provider: str, query: FetchQuery) -> list[Request]:
    """What would be fetched; a channel or a day that the provider does not give is refused."""
    for channel in query.channels:
        if channel not in PROVIDERS[provider].provides:
            able = [one.name for one in PROVIDERS.values() if channel in one.provides]
            raise CranpmError(
                expected=f"channels that {provider} gives",
                found=f"{channel}, which {'is given by ' + ', '.join(able) if able else 'no provider gives'}",
                remedy=f"cranpm fetch {able[0]} --channel {channel}" if able else "Leave --channel out.",
            )
    _check_days(PROVIDERS[provider], query)
    return PROVIDERS[provider].requests(query)


def doubts(provider: str, query: FetchQuery) -> list[str]:
    """Why some of the days may not be there, one line each."""
    if query.today is None:
        return []
    has = PROVIDERS[provider].has
    found = by_reason(query.days, [has.doubtful(day, query.today) for day in query.days])
    return [f"{_named(days)} may not be there: of {provider}, {reason}" for reason, days in found.items()]


def _check_days(provider: Provider, query: FetchQuery) -> None:
    """Refuse days that the provider cannot have, and name who has them."""
    if query.today is None:
        return
    found = by_reason(query.days, [provider.has.impossible(day, query.today) for day in query.days])
    for reason, days in found.items():
        able = [other.name for other in _instead(provider, days, query.today)]
        raise CranpmError(
            expected=f"days that {provider.name} can have",
            found=f"{_named(days)}, but {reason}",
            remedy=f"cranpm fetch {able[0]} ..." + (f" ({', '.join(able)} have such days)" if len(able) > 1 else "")
            if able
            else "Choose other days.",
        )


def _instead(provider: Provider, days: Sequence[date], today: date) -> list[Provider]:
    """Who gives the same for these days: those that have them without doubt first."""
    same = [
        other for other in by_precedence() if other is not provider and set(other.provides) & set(provider.provides)
    ]
    able = [other for other in same if not any(other.has.impossible(day, today) for day in days)]
    kind = (provider.role, provider.gives_channels)
    return sorted(
        able,
        key=lambda other: (
            any(other.has.doubtful(day, today) for day in days),
            (other.role, other.gives_channels) != kind,
            -other.preference,
        ),
    )


def _named(days: Sequence[date]) -> str:
    first, last = min(days), max(days)
    return str(first) if first == last else f"{first}..{last} ({len(days)} days)"


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
