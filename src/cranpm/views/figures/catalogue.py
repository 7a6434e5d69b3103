"""All figures by name: what each shows, what it needs, and how one or all of them are drawn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from cranpm.core.errors import CranpmError
from cranpm.views.figures.ablation import TABLES, ablation, tables_in
from cranpm.views.figures.comparison import comparison
from cranpm.views.figures.counterfactuals import EXPERIMENT, counterfactuals
from cranpm.views.figures.experiment_data import has_experiment
from cranpm.views.figures.inputs import Given
from cranpm.views.figures.leads import leads
from cranpm.views.figures.overview import overview
from cranpm.views.figures.region_series import places
from cranpm.views.figures.reliability import reliability
from cranpm.views.figures.sheet import DPI, ENDINGS, check_picture, write_figure
from cranpm.views.figures.spectra import spectra
from cranpm.views.figures.style import drawing
from cranpm.views.figures.target import target
from cranpm.views.figures.transfer import transfer


@dataclass(frozen=True)
class Need:
    """An input, as the user would name it, and whether it was given."""

    label: str
    met: Callable[[Given], bool]


ARCHIVE = Need("--archive", lambda given: given.archive is not None)
DAY = Need("--day", lambda given: given.day is not None)
FORECASTS = Need("--forecasts", lambda given: bool(given.forecasts))
VERIFIED = Need("--verified", lambda given: given.verified is not None)
MEANS = Need(
    "--verified with means.nc (`cranpm verify --means`)",
    lambda given: given.verified is not None and (given.verified / "means.nc").is_file(),
)
ABLATION = Need(
    f"--experiments with one of {', '.join(TABLES)}",
    lambda given: bool(tables_in(given)),
)
COUNTERFACTUALS = Need(
    f"--experiments with {EXPERIMENT}",
    lambda given: has_experiment(given, EXPERIMENT),
)


@dataclass(frozen=True)
class Entry:
    """A figure of the catalogue."""

    draw: Callable[[Given], Figure]
    needs: tuple[Need, ...]
    shows: str
    paper: str
    """Its counterpart in the paper."""

    def lacks(self, given: Given) -> list[str]:
        return [need.label for need in self.needs if not need.met(given)]


FIGURES = {
    "overview": Entry(overview, (ARCHIVE, DAY), "a day over the domain, close views, stations", "1"),
    "maps": Entry(comparison, (ARCHIVE, DAY, FORECASTS), "truth, forecasts and errors of a day", "3a, b, 4"),
    "leads": Entry(leads, (VERIFIED,), "RMSE by lead, and its change against a reference", "3c, d"),
    "regions": Entry(places, (VERIFIED,), "regional means day by day, RMSE by region", "5"),
    "ablation": Entry(ablation, (ABLATION,), "RMSE of variants over seeds", "6, table 3"),
    "counterfactuals": Entry(counterfactuals, (COUNTERFACTUALS,), "skill lost by model and intervention", "ours"),
    "transfer": Entry(transfer, (MEANS,), "mean maps, pixels' means against the truth's", "8–10"),
    "target": Entry(target, (VERIFIED,), "FAIRMODE's target diagram at stations", "ours"),
    "reliability": Entry(reliability, (VERIFIED,), "truth given the forecast's bin", "ours"),
    "spectra": Entry(spectra, (VERIFIED,), "power by wavelength relative to the truth", "ours"),
}


def draw_figure(name: str, given: Given, path: Path, dpi: float = DPI, small: bool = False) -> None:
    """Write one figure; refused before any work where an input lacks."""
    if name not in FIGURES:
        raise CranpmError(expected=f"a figure among {', '.join(FIGURES)}", found=name, remedy="Name one of these.")
    check_picture(path, ENDINGS)
    entry = FIGURES[name]
    if lacking := entry.lacks(given):
        raise CranpmError(
            expected=f"{', '.join(need.label for need in entry.needs)} for the figure {name}",
            found=f"no {', no '.join(lacking)}",
            remedy=f"Add {' and '.join(lacking)}.",
        )
    with drawing():
        write_figure(entry.draw(given), path, dpi, small)


def draw_all(given: Given, folder: Path, dpi: float = DPI, small: bool = False) -> Iterator[tuple[str, str]]:
    """Draw every figure for which the inputs were given; of each its name and what became of it."""
    for name, entry in FIGURES.items():
        path = folder / f"{name}.png"
        if lacking := entry.lacks(given):
            yield name, f"left out: needs {', '.join(lacking)}"
            continue
        try:
            draw_figure(name, given, path, dpi, small)
        except CranpmError as error:
            yield name, f"refused: {error}"
        else:
            yield name, str(path)
