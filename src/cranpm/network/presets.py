"""Settings by name, and from a table of settings to those of the network that it names."""

from collections.abc import Mapping
from typing import Any

from cranpm.core.errors import CranpmError
from cranpm.core.registry import Registry
from cranpm.network.cranpm_settings import BranchSettings, NetworkSettings
from cranpm.network.interface import ForecastSettings
from cranpm.network.registry import settings_of
from cranpm.network.released_settings import ReleasedSettings

DEFAULT = "cran-pm"
"""The network of a table that names none."""
PRESETS: Registry[ForecastSettings] = Registry("preset")
PRESETS.add("paper", NetworkSettings())
PRESETS.add(
    "small",
    NetworkSettings(
        coarse=BranchSettings(shape=(168, 280), patch=8, width=192, heads=6, depth=2, window=7, elevation_scale_m=1000),
        fine=BranchSettings(shape=(512, 512), patch=16, width=192, heads=6, depth=3, window=8, elevation_scale_m=500),
        decoder=(64, 32, 16, 8),
        drop_path=0.0,
        dropout=0.0,
    ),
)
PRESETS.add(
    "tiny",
    NetworkSettings(
        coarse=BranchSettings(shape=(32, 48), patch=4, width=48, heads=3, depth=2, window=4, elevation_scale_m=1000),
        fine=BranchSettings(shape=(128, 128), patch=16, width=32, heads=2, depth=2, window=4, elevation_scale_m=500),
        decoder=(16, 16, 8, 8),
        drop_path=0.0,
        dropout=0.0,
    ),
)
PRESETS.add("released", ReleasedSettings())


def preset(name: str) -> ForecastSettings:
    """The settings of a preset by name."""
    return PRESETS[name]


def read_network(table: Mapping[str, Any]) -> ForecastSettings:
    """Settings from a table with `kind` (cran-pm unless named), perhaps a `preset`, and what differs from it."""
    given = {key: value for key, value in table.items() if key != "preset"}
    if "preset" in table:
        base = preset(str(table["preset"]))
        if given.get("kind", base.kind) != base.kind:
            raise CranpmError(
                expected=f"a preset of {given['kind']}",
                found=f"{table['preset']}, which is one of {base.kind}",
                remedy="Leave out network.preset, or network.kind.",
            )
        unset = {"channels"} - base.model_fields_set  # so that a number that was stated is known as such
        given = _merged(base.model_dump(exclude=unset), given)
    return settings_of(str(given.get("kind", DEFAULT)), given)


def _merged(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `given`, table by table."""
    both = {key: _merged(base[key], value) for key, value in given.items() if isinstance(base.get(key), Mapping)}
    return {**base, **given, **both}
