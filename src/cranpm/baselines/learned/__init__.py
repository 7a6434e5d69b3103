"""Networks at 25 km from the literature, trained by the same loop as ours, and gradient boosting pixel by pixel.

Importing this registers them.
"""

from cranpm.baselines.learned.boosting import Boosting, BoostingSettings
from cranpm.baselines.learned.learned_baseline import LearnedBaseline, LearnedBaselineSettings, learned_baseline

__all__ = ["Boosting", "BoostingSettings", "LearnedBaseline", "LearnedBaselineSettings", "learned_baseline"]
