"""The network: tensors in, tensors out; it never sees a file."""

from cranpm.network.context import DayContext
from cranpm.network.cranpm import CranPM
from cranpm.network.presets import PRESETS, AnySettings, Network, build, preset
from cranpm.network.released import Released, ReleasedSettings
from cranpm.network.settings import BranchSettings, NetworkSettings

__all__ = [
    "PRESETS",
    "AnySettings",
    "BranchSettings",
    "CranPM",
    "DayContext",
    "Network",
    "NetworkSettings",
    "Released",
    "ReleasedSettings",
    "build",
    "preset",
]
