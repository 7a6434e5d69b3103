"""What all pictures share: colours that the colour-blind can distinguish, one scale for each quantity, one type."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import matplotlib
from matplotlib import colors

from cranpm.baselines import SIMPLE
from cranpm.core.air_quality import INDEX_EDGES_UGM3, INDEX_NAMES, THRESHOLDS_UGM3

SEA, COAST, INK, NOTE = "#e9eef2", "#3a3f44", "#22262a", "#5b6166"
UNIT = "µg m⁻³"
PM25_TOP_UGM3, CHANGE_TOP_UGM3 = 75.0, 30.0
SERIES = ("#22262a", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Lines: truth first, then methods (after Okabe and Ito)."""
TRUTH, HIGHLIGHT, QUIET = SERIES[0], SERIES[1], SERIES[-1]
FRAME = "#0b5cad"
"""Of boxes on a map and their close views."""
OURS = "cran-pm"
"""The kind of method that pictures bring out."""
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
MARKERS = "os^Dv"


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


@dataclass(frozen=True)
class Line:
    """How a method is drawn wherever it appears: distinguished by colour, dashes and marker together."""

    colour: str
    dashes: Any = "-"
    marker: str = "o"
    ours: bool = False

    @property
    def plain(self) -> dict[str, Any]:
        """For a line without markers."""
        above = {"linewidth": 2.6, "zorder": 4} if self.ours else {"linewidth": 1.3, "zorder": 3}
        return {"color": self.colour, "linestyle": self.dashes, **above}

    @property
    def marked(self) -> dict[str, Any]:
        return {**self.plain, "marker": self.marker, "markersize": 7 if self.ours else 4}


def method_lines(kinds: Mapping[str, str]) -> dict[str, Line]:
    """Lines by method, given each method's kind: ours bright, simple baselines grey, learned ones in colours."""
    lines: dict[str, Line] = {}
    grey, learned = count(), count()
    for name, kind in kinds.items():
        if kind == OURS and not any(line.ours for line in lines.values()):
            lines[name] = Line(HIGHLIGHT, marker="*", ours=True)
        elif kind in SIMPLE:
            place = next(grey)
            lines[name] = Line(QUIET, DASHES[place % len(DASHES)], MARKERS[place % len(MARKERS)])
        else:
            again, place = divmod(next(learned), len(SERIES) - 3)
            lines[name] = Line(SERIES[2 + place], DASHES[again % len(DASHES)], MARKERS[place])
    return lines


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
    INDEX_NAMES,
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
            "svg.hashsalt": "cranpm",
            "pdf.fonttype": 42,
        }
    ):
        yield
