"""Training: the only room that knows Lightning."""

from cranpm.train.loop import train
from cranpm.train.settings import TrainSettings, load_settings

__all__ = ["TrainSettings", "load_settings", "train"]
