"""Products: the one writer and the one reader of published forecasts, and what they say of points and boxes."""

from cranpm.forecasting.publication.formats import FORMATS, Format, check_formats
from cranpm.forecasting.publication.reader import Publication, find_product, open_publication
from cranpm.forecasting.publication.run import AbsentError, DamagedError, Run
from cranpm.forecasting.publication.writer import publish

__all__ = [
    "FORMATS",
    "AbsentError",
    "DamagedError",
    "Format",
    "Publication",
    "Run",
    "check_formats",
    "find_product",
    "open_publication",
    "publish",
]
