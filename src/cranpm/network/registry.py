"""Networks by name, to which a plugin may add its own: see `cranpm.core.registry`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from cranpm.core.errors import CranpmError
from cranpm.core.registry import Registry
from cranpm.core.settings import validate
from cranpm.network.interface import ForecastNetwork, ForecastSettings
from cranpm.network.scaling import Scales

NEEDED = ("channels", "leads", "coarse_shape", "tile_shape", "resolution")
Class = TypeVar("Class", bound=type[ForecastNetwork])


@dataclass(frozen=True)
class NetworkKind:
    """A class of networks and that of its settings."""

    network: type[ForecastNetwork]
    settings: type[ForecastSettings]


NETWORKS: Registry[NetworkKind] = Registry("network")


def register(name: str, settings: type[ForecastSettings]) -> Callable[[Class], Class]:
    """Make a network known under `name`: it is then trained, tuned, forecast with and verified as the others are."""
    if missing := [field for field in NEEDED if field not in settings.model_fields and not hasattr(settings, field)]:
        raise CranpmError(
            expected=f"settings of {name} with {', '.join(NEEDED)}",
            found=f"{settings.__name__} without {', '.join(missing)}",
            remedy="Derive them from cranpm.network.GridSettings, or add these as fields or properties.",
        )
    if settings.trainable and "channels" not in settings.model_fields and not _own_with_channels(settings):
        raise CranpmError(
            expected=f"settings of {name} that can be made for the channels of an archive",
            found=f"{settings.__name__}, where channels is not a field",
            remedy="Make channels a field, define with_channels, or say trainable: ClassVar[bool] = False.",
        )

    def add(network: Class) -> Class:
        NETWORKS.add(name, NetworkKind(network, settings))
        return network

    return add


def _own_with_channels(settings: type[ForecastSettings]) -> bool:
    return settings.with_channels is not ForecastSettings.with_channels


def settings_of(kind: str, values: Mapping[str, Any], table: str = "network") -> ForecastSettings:
    """The settings of a registered network from plain values; `table` names them in refusals."""
    return validate(NETWORKS[kind].settings, {**values, "kind": kind}, table)


def build(settings: ForecastSettings, scales: Scales | None = None) -> ForecastNetwork:
    """An untrained network; without `scales`, with round figures for its channels."""
    return NETWORKS[settings.kind].network(settings, scales or settings.scales)
