"""The table of providers in docs/sources/README.md, made of their declarations."""

from cranpm.providers.provider import ELEVATION, PM25, PROVIDERS, STATION_TABLE, STATIONS, Provider, by_precedence

LABELS = {
    PM25: "PM2.5 at 1 km",
    STATIONS: "PM2.5 at stations",
    STATION_TABLE: "the list of stations",
    ELEVATION: "elevation, once",
}
FEW = 6
NEEDED = {"always": "always", "good days": "unless the day is stored as degraded", "no": "no"}


def provider_table() -> str:
    """Markdown with one row per provider."""
    lines = ["| provider | gives | what | days | a day needs it | key | licence |", "|---|---|---|---|---|---|---|"]
    return "\n".join([*lines, *map(_row, by_precedence())]) + "\n"


def _row(provider: Provider) -> str:
    title = f"[{provider.title}]({provider.page})" if provider.page else provider.title
    needed = f"instead of {PROVIDERS[provider.replaces].title}" if provider.replaces else NEEDED[provider.required]
    key = "yes" if provider.needs_key else "no"
    what = f"forecast of {' and '.join(provider.forecasts)}" if provider.forecasts else provider.role
    days = str(provider.has) if provider.needs_days else ""
    cells = (f"`{provider.name}`: {title}", _gives(provider), what, days, needed, key, f"<{provider.licence}>")
    return f"| {' | '.join(cells)} |"


def _gives(provider: Provider) -> str:
    channels = [what for what in provider.provides if what not in LABELS]
    others = [LABELS[what] for what in provider.provides if what in LABELS]
    if len(channels) > FEW:
        channels = [f"{len(channels)} channels: {', '.join(channels[:3])}, ..., {channels[-1]}"]
    return ", ".join(others + channels)
