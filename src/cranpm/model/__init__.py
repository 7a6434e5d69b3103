"""The network: tensors in, tensors out; it never sees a file."""

from cranpm.model.context import DayContext
from cranpm.model.cranpm import CranPM
from cranpm.model.presets import PRESETS, AnySettings, Network, build, preset
from cranpm.model.released import Released, ReleasedSettings
from cranpm.model.settings import BranchSettings, NetworkSettings

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
