"""Training: the only room that knows Lightning."""

from cranpm.training.recipe import TrainSettings, load_settings
from cranpm.training.training_runs import train

__all__ = ["TrainSettings", "load_settings", "train"]
