"""Fetching providers' files: what must be asked for, and the asking."""

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS
from cranpm.providers.availability import by_reason
from cranpm.providers.provider import FetchQuery, Provider, by_precedence, family
from cranpm.providers.request import Request

OnFile = Callable[[int, Request, str], None]
"""Number, request, and what became of it; empty when it begins."""


def plan(provider: str, query: FetchQuery) -> list[Request]:
    """What would be fetched; a channel or a day that the provider does not give is refused."""
    for channel in query.channels:
        if channel not in PROVIDERS[provider].provides:
            asked = PROVIDERS[provider]
            others = _instead(asked, query, query.days) if asked.role == "forecast" else []
            able = list(dict.fromkeys(one.name for one in (*others, *PROVIDERS.values()) if channel in one.provides))
            raise CranpmError(
                expected=f"channels that {provider} gives",
                found=f"{channel}, which {'is given by ' + ', '.join(able) if able else 'no provider gives'}",
                remedy=f"cranpm fetch {able[0]} --channel {channel}" if able else "Leave --channel out.",
            )
    _check_area(PROVIDERS[provider], query)
    _check_days(PROVIDERS[provider], query)
    return PROVIDERS[provider].requests(query)


def doubts(provider: str, query: FetchQuery) -> list[str]:
    """Why some of the days, or of the days ahead, may not be there, one line each."""
    asked = PROVIDERS[provider]
    lines = []
    if 0 < asked.days_ahead < query.leads:
        others = [one for one in _instead(asked, query, query.days) if set(one.forecasts) & set(asked.forecasts)]
        further = ", ".join(f"{one.name} {one.days_ahead}" for one in others if one.days_ahead > asked.days_ahead)
        more = f"; others give more: {further}" if further else ""
        lines.append(f"runs of {provider} give {asked.days_ahead} days ahead, not {query.leads}{more}")
    if query.today is None:
        return lines
    found = by_reason(query.days, [asked.has.doubtful(day, query.today) for day in query.days])
    return [*lines, *(f"{_named(days)} may not be there: of {provider}, {reason}" for reason, days in found.items())]


def _check_area(provider: Provider, query: FetchQuery) -> None:
    """Refuse a domain that the provider does not cover, and name who does."""
    if provider.covers(query.domain) or provider.area is None:
        return
    north, west, south, east = provider.area
    raise CranpmError(
        expected=f"a domain within {south:g}..{north:g} N and {west:g}..{east:g} E, which {provider.name} covers",
        found=f"{query.domain.south:g}..{query.domain.north:g} N and {query.domain.west:g}..{query.domain.east:g} E",
        remedy=_remedy(_instead(provider, query, query.days), "Choose a smaller domain."),
    )


def _check_days(provider: Provider, query: FetchQuery) -> None:
    """Refuse days that the provider cannot have, and name who has them."""
    if query.today is None:
        return
    found = by_reason(query.days, [provider.has.impossible(day, query.today) for day in query.days])
    for reason, days in found.items():
        raise CranpmError(
            expected=f"days that {provider.name} can have",
            found=f"{_named(days)}, but {reason}",
            remedy=_remedy(_instead(provider, query, days), "Choose other days."),
        )


def _remedy(able: Sequence[Provider], otherwise: str) -> str:
    names = [other.name for other in able]
    more = f" ({', '.join(names)} have such days)" if len(names) > 1 else ""
    return f"cranpm fetch {names[0]} ...{more}" if names else otherwise


def _instead(provider: Provider, query: FetchQuery, days: Sequence[date]) -> list[Provider]:
    """Who gives the same for these days, best first: forecasts instead of forecasts, then those without doubt."""
    today = query.today or max(days, default=date.max)
    able = [
        other
        for other in by_precedence()
        if _stands_in(other, provider)
        and other.covers(query.domain)
        and not any(other.has.impossible(day, today) for day in days)
    ]
    kind = (provider.role, provider.gives_channels)
    return sorted(
        able,
        key=lambda other: (
            provider.role == "forecast" and other.role != "forecast",
            any(other.has.doubtful(day, today) for day in days),
            (other.role, other.gives_channels) != kind,
            -other.preference,
        ),
    )


def _stands_in(other: Provider, provider: Provider) -> bool:
    """Whether days of one provider can be used where another's were asked for: of analyses, only within a family."""
    if other is provider or not set(other.provides) & set(provider.provides):
        return False
    read_by = PROVIDERS[provider.replaces or provider.name]
    return provider.role == "forecast" or not provider.gives_channels or other.name in family(read_by)


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
