"""Training: the only room that knows Lightning."""

from cranpm.train.loop import train
from cranpm.train.settings import TrainSettings

__all__ = ["TrainSettings", "train"]
