"""Names of the paper's channels, and where each stands."""

from cranpm.core.channels import PAPER_CHANNELS

NAMES = tuple(channel.name for channel in PAPER_CHANNELS)
INDEX = {name: index for index, name in enumerate(NAMES)}
