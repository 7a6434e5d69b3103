"""Networks at 25 km from the literature, trained by the same loop as ours. Importing this registers them."""

from cranpm.baselines.learned.learned_baseline import LearnedBaseline, LearnedBaselineSettings, learned_baseline

__all__ = ["LearnedBaseline", "LearnedBaselineSettings", "learned_baseline"]
