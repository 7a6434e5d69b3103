"""Forecasts that cranpm itself published, lying among the files of providers: they are results, never inputs."""

from collections.abc import Mapping

from cranpm.core.errors import CranpmError


def refuse_own_product(attributes: Mapping[str, str], label: str) -> None:
    """Refuse a file whose attributes or tags state that cranpm made it as a forecast."""
    made_by = " ".join(str(attributes.get(name, "")) for name in ("source", "history", "creator_name"))
    if "cranpm" in made_by and ("provenance" in attributes or "forecast" in made_by):
        raise CranpmError(
            expected=f"a provider's file {label}",
            found="a forecast made by cranpm: not an input",
            remedy="Leave it out.",
        )
