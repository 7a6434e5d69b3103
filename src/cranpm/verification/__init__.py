"""Forecasts against truth: statistics that add up, stations, agencies' figures, certainty, the paper's tables.

Scores any forecast, ours or another's; knows neither torch nor networks.
"""

from cranpm.verification.cf_forecasts import CfForecasts
from cranpm.verification.means import mean_maps, means_table, write_means
from cranpm.verification.methods import Method, Product, Simple, common_leads, open_forecasts
from cranpm.verification.run import Plan, verify
from cranpm.verification.scores import Scores, score
from cranpm.verification.scores_file import ScoresFile, read_scores
from cranpm.verification.statistics import STATISTICS, Metric, Pixels, Statistic, ratio
from cranpm.verification.summary import summarise
from cranpm.verification.table import TextTable
from cranpm.verification.tables import all_tables
from cranpm.verification.write import write

__all__ = [
    "STATISTICS",
    "CfForecasts",
    "Method",
    "Metric",
    "Pixels",
    "Plan",
    "Product",
    "Scores",
    "ScoresFile",
    "Simple",
    "Statistic",
    "TextTable",
    "all_tables",
    "common_leads",
    "mean_maps",
    "means_table",
    "open_forecasts",
    "ratio",
    "read_scores",
    "score",
    "summarise",
    "verify",
    "write",
    "write_means",
]
