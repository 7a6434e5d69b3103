"""Networks by name, and from settings to a network."""

from collections.abc import Mapping

from cranpm.core.errors import CranpmError
from cranpm.network.cranpm import CranPM
from cranpm.network.released import SCALES as RELEASED_SCALES
from cranpm.network.released import Released, ReleasedSettings
from cranpm.network.scaling import Scales, typical_scales
from cranpm.network.settings import BranchSettings, NetworkSettings

AnySettings = NetworkSettings | ReleasedSettings
Network = CranPM | Released

PRESETS: Mapping[str, AnySettings] = {
    "paper": NetworkSettings(),
    "small": NetworkSettings(
        coarse=BranchSettings(shape=(168, 280), patch=8, width=192, heads=6, depth=2, window=7, elevation_scale_m=1000),
        fine=BranchSettings(shape=(512, 512), patch=16, width=192, heads=6, depth=3, window=8, elevation_scale_m=500),
        decoder=(64, 32, 16, 8),
        drop_path=0.0,
        dropout=0.0,
    ),
    "tiny": NetworkSettings(
        coarse=BranchSettings(shape=(32, 48), patch=4, width=48, heads=3, depth=2, window=4, elevation_scale_m=1000),
        fine=BranchSettings(shape=(128, 128), patch=16, width=32, heads=2, depth=2, window=4, elevation_scale_m=500),
        decoder=(16, 16, 8, 8),
        drop_path=0.0,
        dropout=0.0,
    ),
    "released": ReleasedSettings(),
}


def preset(name: str) -> AnySettings:
    """The settings of a preset by name."""
    if name not in PRESETS:
        raise CranpmError(
            expected=f"a preset: {', '.join(PRESETS)}", found=repr(name), remedy="Name one, for example --preset small."
        )
    return PRESETS[name]


def build(settings: AnySettings, scales: Scales | None = None) -> Network:
    """An untrained network; without `scales`, with round figures for its channels."""
    if isinstance(settings, ReleasedSettings):
        return Released(settings, scales or RELEASED_SCALES)
    return CranPM(settings, scales or typical_scales())
