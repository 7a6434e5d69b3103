"""The network: tensors in, tensors out; it never sees a file."""

from cranpm.network.ahead import AheadForm
from cranpm.network.context import DayContext
from cranpm.network.cranpm import CranPM
from cranpm.network.cranpm_settings import BranchSettings, NetworkSettings
from cranpm.network.interface import DayInputs, ForecastNetwork, ForecastSettings, GridSettings, TileInputs
from cranpm.network.presets import PRESETS, preset
from cranpm.network.registry import NETWORKS, build, register
from cranpm.network.released import Released
from cranpm.network.released_settings import ReleasedSettings

__all__ = [
    "NETWORKS",
    "PRESETS",
    "AheadForm",
    "BranchSettings",
    "CranPM",
    "DayContext",
    "DayInputs",
    "ForecastNetwork",
    "ForecastSettings",
    "GridSettings",
    "NetworkSettings",
    "Released",
    "ReleasedSettings",
    "TileInputs",
    "build",
    "preset",
    "register",
]
