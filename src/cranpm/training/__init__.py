"""Training: the only room that knows Lightning."""

from cranpm.training.loop import train
from cranpm.training.recipe import TrainSettings, load_settings

__all__ = ["TrainSettings", "load_settings", "train"]
