"""Forecasts against truth: statistics that add up, stations, agencies' figures, certainty, the paper's tables.

Judges any forecast, ours or another's; knows neither torch nor networks.
"""

from cranpm.verify.methods import Method, Product, Simple
from cranpm.verify.run import Plan, load_records, verify
from cranpm.verify.scores import Scores
from cranpm.verify.tables import Table, all_tables

__all__ = ["Method", "Plan", "Product", "Scores", "Simple", "Table", "all_tables", "load_records", "verify"]
