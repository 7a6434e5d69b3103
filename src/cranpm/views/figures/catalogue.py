"""All figures by name: what each shows, what it needs, and how one or all of them are drawn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from cranpm.core.errors import CranpmError
from cranpm.core.registry import Registry
from cranpm.views.figures.ablation import TABLES, ablation, tables_in
from cranpm.views.figures.comparison import comparison
from cranpm.views.figures.counterfactuals import EXPERIMENT, counterfactuals
from cranpm.views.figures.experiment_data import has_experiment
from cranpm.views.figures.inputs import FigureInputs
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
    met: Callable[[FigureInputs], bool]


ARCHIVE = Need("--archive", lambda inputs: inputs.archive is not None)
DAY = Need("--day", lambda inputs: inputs.day is not None)
FORECASTS = Need("--forecasts", lambda inputs: bool(inputs.forecasts))
VERIFIED = Need("--verified", lambda inputs: inputs.verified is not None)
MEANS = Need(
    "--verified with means.nc (`cranpm verify --means`)",
    lambda inputs: inputs.verified is not None and (inputs.verified / "means.nc").is_file(),
)
ABLATION = Need(
    f"--experiments with one of {', '.join(TABLES)}",
    lambda inputs: bool(tables_in(inputs)),
)
COUNTERFACTUALS = Need(
    f"--experiments with {EXPERIMENT}",
    lambda inputs: has_experiment(inputs, EXPERIMENT),
)


@dataclass(frozen=True)
class FigureEntry:
    """A figure of the catalogue."""

    draw: Callable[[FigureInputs], Figure]
    needs: tuple[Need, ...]
    shows: str
    """What is seen, for help and captions."""
    paper: str = "ours"
    """Its counterpart in the paper."""

    def lacks(self, inputs: FigureInputs) -> list[str]:
        """The needs that are not met."""
        return [need.label for need in self.needs if not need.met(inputs)]


FIGURES: Registry[FigureEntry] = Registry("figure")
"""All figures by name; plugins add to it."""


def register_figure(
    name: str, *needs: Need, shows: str, paper: str = "ours"
) -> Callable[[Callable[[FigureInputs], Figure]], Callable[[FigureInputs], Figure]]:
    """Decorator: the function draws the figure `name` from inputs, of which it needs some."""

    def register(draw: Callable[[FigureInputs], Figure]) -> Callable[[FigureInputs], Figure]:
        FIGURES.add(name, FigureEntry(draw, needs, shows, paper))
        return draw

    return register


for _name, _entry in {
    "overview": FigureEntry(overview, (ARCHIVE, DAY), "a day over the domain, close views, stations", "1"),
    "maps": FigureEntry(comparison, (ARCHIVE, DAY, FORECASTS), "truth, forecasts and errors of a day", "3a, b, 4"),
    "leads": FigureEntry(leads, (VERIFIED,), "RMSE by lead, and its change against a reference", "3c, d"),
    "regions": FigureEntry(places, (VERIFIED,), "regional means day by day, RMSE by region", "5"),
    "ablation": FigureEntry(ablation, (ABLATION,), "RMSE of variants over seeds", "6, table 3"),
    "counterfactuals": FigureEntry(counterfactuals, (COUNTERFACTUALS,), "skill lost by model and intervention"),
    "transfer": FigureEntry(transfer, (MEANS,), "mean maps, pixels' means against the truth's", "8–10"),
    "target": FigureEntry(target, (VERIFIED,), "FAIRMODE's target diagram at stations"),
    "reliability": FigureEntry(reliability, (VERIFIED,), "truth given the forecast's bin"),
    "spectra": FigureEntry(spectra, (VERIFIED,), "power by wavelength relative to the truth"),
}.items():
    FIGURES.add(_name, _entry)


def draw_figure(name: str, inputs: FigureInputs, path: Path, dpi: float = DPI, small: bool = False) -> None:
    """Write one figure; refused before any work where an input is missing."""
    entry = FIGURES[name]
    check_picture(path, ENDINGS)
    if lacking := entry.lacks(inputs):
        raise CranpmError(
            expected=f"{', '.join(need.label for need in entry.needs)} for the figure {name}",
            found=f"no {', no '.join(lacking)}",
            remedy=f"Add {' and '.join(lacking)}.",
        )
    with drawing():
        write_figure(entry.draw(inputs), path, dpi, small)


def draw_all(inputs: FigureInputs, folder: Path, dpi: float = DPI, small: bool = False) -> Iterator[tuple[str, str]]:
    """Draw every figure whose inputs are given; yields each name with the file, or why there is none."""
    for name, entry in FIGURES.items():
        path = folder / f"{name}.png"
        if lacking := entry.lacks(inputs):
            yield name, f"left out: needs {', '.join(lacking)}"
            continue
        try:
            draw_figure(name, inputs, path, dpi, small)
        except CranpmError as error:
            yield name, f"refused: {error}"
        else:
            yield name, str(path)
