"""What all pictures share: colours that the colour-blind can tell apart, one scale for each quantity, one type."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import matplotlib
from matplotlib import colors

from cranpm.verify.tally import INDEX_EDGES_UGM3, THRESHOLDS_UGM3

SEA, COAST, INK = "#e9eef2", "#3a3f44", "#22262a"
UNIT = "µg m⁻³"
PM25_TOP_UGM3, CHANGE_TOP_UGM3 = 75.0, 30.0
SERIES = ("#22262a", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Lines: truth first, then methods (after Okabe and Ito)."""


@dataclass(frozen=True)
class Shade:
    """How a quantity turns into colour: a palette of matplotlib and the values at its ends, in µg m⁻³."""

    label: str
    palette: str
    low: float
    high: float
    power: float = 1.0

    @property
    def norm(self) -> colors.Normalize:
        return colors.PowerNorm(self.power, self.low, self.high)


@dataclass(frozen=True)
class Classes:
    """How a quantity falls into classes; a border belongs to the class below it."""

    label: str
    edges: tuple[float, ...]
    names: tuple[str, ...]
    colours: tuple[str, ...]
    note: str


PM25 = Shade("PM2.5", "magma_r", 0, PM25_TOP_UGM3, 0.85)
CHANGE = Shade("change since the start day", "RdBu_r", -CHANGE_TOP_UGM3, CHANGE_TOP_UGM3)
ERROR = Shade("forecast − truth", "PuOr_r", -CHANGE_TOP_UGM3, CHANGE_TOP_UGM3)


def _ranges(edges: tuple[float, ...]) -> tuple[str, ...]:
    inner = (f"{low:g}–{high:g}" for low, high in pairwise(edges))
    return (f"≤ {edges[0]:g}", *inner, f"> {edges[-1]:g}")


EXCEEDANCE = Classes(
    "thresholds of the daily mean",
    THRESHOLDS_UGM3,
    _ranges(THRESHOLDS_UGM3),
    ("#e3f1ee", "#f0cf5a", "#e0743a", "#8c1d4f"),
    "15: WHO's guideline of 2021; 25: the EU's limit from 2030; 50: twice that",
)
INDEX = Classes(
    "air quality index",
    INDEX_EDGES_UGM3,
    ("good", "fair", "moderate", "poor", "very poor", "extremely poor"),
    ("#e3f4ef", "#b9e3d6", "#ebc64c", "#e5823a", "#b5304f", "#551a55"),
    "bands of the European index until 2024, here used on daily means",
)


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of matplotlib for every picture: text stays text in SVG and PDF."""
    with matplotlib.rc_context(
        {
            "font.size": 10,
            "text.color": INK,
            "axes.edgecolor": COAST,
            "axes.labelcolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "xtick.color": INK,
            "ytick.color": INK,
            "legend.frameon": False,
            "svg.fonttype": "none",
            "pdf.fonttype": 42,
        }
    ):
        yield
