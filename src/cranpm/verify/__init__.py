"""Forecasts against truth: statistics that add up, stations, agencies' figures, certainty, the paper's tables.

Judges any forecast, ours or another's; knows neither torch nor networks.
"""

from cranpm.verify.means import mean_maps, means_table, write_means
from cranpm.verify.methods import Method, Product, Simple
from cranpm.verify.run import Plan, verify
from cranpm.verify.scores import Scores, judge
from cranpm.verify.table import Table
from cranpm.verify.tables import all_tables
from cranpm.verify.write import write

__all__ = [
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
    "verify",
    "write",
    "write_means",
]
