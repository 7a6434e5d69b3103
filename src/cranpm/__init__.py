"""Daily PM2.5 at 1 km for a continent, one to three days ahead."""

from importlib.metadata import version

__version__ = version("cranpm")
