"""Every network that forecasts here: ours, the one that its authors released, and the learned opponents."""

from cranpm.baselines.learned.baseline import Opponent, OpponentSettings
from cranpm.network import CranPM, NetworkSettings, Released, ReleasedSettings
from cranpm.network import build as build_ours
from cranpm.network.scaling import Scales, typical_scales

Trainable = CranPM | Opponent
AnyNetwork = CranPM | Opponent | Released
AnyNetworkSettings = NetworkSettings | OpponentSettings | ReleasedSettings


def build(settings: AnyNetworkSettings, scales: Scales | None = None) -> AnyNetwork:
    """An untrained network; without `scales`, with round figures for its channels."""
    if isinstance(settings, OpponentSettings):
        return Opponent(settings, scales or typical_scales())
    return build_ours(settings, scales)
