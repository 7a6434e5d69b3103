"""The sheet that a figure is drawn on: title above, sources below, and how it becomes a file."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from cranpm import __version__
from cranpm.archive.store import SIMULATION
from cranpm.core.errors import CranpmError
from cranpm.views.figures.style import NOTE

ENDINGS = (".png", ".svg", ".pdf")
DPI = 150
LETTERS_PER_INCH = 17.5
"""Of the small type in which sources are named."""
LINE_INCH = 0.14
TITLE_INCH = 0.42


def check_picture(path: Path, endings: Sequence[str] = (".png",)) -> None:
    """Refuse a place where no picture can be written, before any work is done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fits = path.suffix in endings and not path.is_dir()
    except OSError:
        fits = False
    if not fits:
        raise CranpmError(
            expected=f"a file name that ends in {' or '.join(endings)}, in a folder that can be made",
            found=str(path),
            remedy="Change --out.",
        )


def source_label(source: str) -> str:
    """What everybody who looks at a picture must know of its data."""
    return "simulated data · not a real observation" if SIMULATION in source else f"source: {source}"


def sheet(width: float, height: float, title: str, notes: Sequence[str], *, arranged: bool = True) -> Figure:
    """A figure of inches with its title and notes; `arranged` leaves the placing of panels to matplotlib."""
    text = " · ".join([*notes, f"cranpm\N{NO-BREAK SPACE}{__version__}"])
    lines = textwrap.wrap(text, int(LETTERS_PER_INCH * (width - 0.2)))
    foot = LINE_INCH * len(lines) + 0.12
    figure = Figure(figsize=(width, height + TITLE_INCH + foot))
    whole = figure.get_figheight()
    if arranged:
        rect = (0.005, foot / whole, 0.99, 1 - (foot + TITLE_INCH) / whole)
        figure.set_layout_engine("constrained", rect=rect, h_pad=0.07, w_pad=0.05)
    figure.text(0.1 / width, 1 - 0.1 / whole, title, ha="left", va="top", fontsize=12, fontweight="bold")
    figure.text(0.1 / width, 0.07 / whole, "\n".join(lines), ha="left", va="bottom", fontsize=7.5, color=NOTE)
    return figure


def letter(axes: Axes, number: int, title: str, **style: Any) -> None:
    """The panel's letter before its title."""
    axes.set_title(f"({chr(ord('a') + number)}) {title}", **({"fontsize": 9.5, "pad": 7} | style))


def signed(value: Any) -> str:
    """Two digits with the sign as printers set it."""
    return f"{float(value):+.2f}".replace("-", "−")


def write_figure(figure: Figure, path: Path, dpi: float = DPI, small: bool = False) -> None:
    """As PNG, SVG or PDF by the ending; without the time, so that the same input gives the same file.

    `dpi` is that of PNG, and of maps inside SVG and PDF; `small` is a PNG of 256 colours, a third of the size.
    """
    metadata: dict[str, dict[str, Any]] = {
        ".png": {"Software": f"cranpm {__version__}"},
        ".svg": {"Date": None, "Creator": f"cranpm {__version__}"},
        ".pdf": {"CreationDate": None, "Creator": f"cranpm {__version__}"},
    }
    figure.savefig(path, dpi=dpi, metadata=metadata[path.suffix])
    if small and path.suffix == ".png":
        with Image.open(path) as picture:
            few = picture.convert("RGB").quantize(256, kmeans=3, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
