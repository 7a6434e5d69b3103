"""Forecasts against truth: statistics that add up, stations, agencies' figures, certainty, the paper's tables.

Judges any forecast, ours or another's; knows neither torch nor networks.
"""

from cranpm.verification.cf_forecasts import CfForecasts
from cranpm.verification.means import mean_maps, means_table, write_means
from cranpm.verification.methods import Method, Product, Simple, open_forecasts
from cranpm.verification.run import Plan, verify
from cranpm.verification.scores import Scores, judge
from cranpm.verification.table import Table
from cranpm.verification.tables import all_tables
from cranpm.verification.write import write

__all__ = [
    "CfForecasts",
    "Method",
    "Plan",
    "Product",
    "Scores",
    "Simple",
    "Table",
    "all_tables",
    "judge",
    "mean_maps",
    "means_table",
    "open_forecasts",
    "verify",
    "write",
    "write_means",
]
