"""Pictures that were looked at once, small, and what may differ from them.

To renew them: `CRANPM_GOLDEN=write pytest tests/test_figures.py tests/test_paper_figures.py`. Tests fail then, too:
look at what was written to tests/golden, and run them again without it.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

FOLDER = Path(__file__).parent / "golden"
DPI = 32
MOST_DIFFERENCE = 4.0
"""Root mean square over pixels and colours, of 255: other versions of fonts stay below, a moved panel does not."""


def painted(figure: Figure, dpi: float = DPI) -> np.ndarray:
    """The pixels of a figure, red, green and blue."""
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Root mean square; infinite where the sizes differ."""
    if one.shape != other.shape:
        return float("inf")
    return float(np.sqrt(np.mean((one.astype(float) - other.astype(float)) ** 2)))


def check_golden(name: str, figure: Figure) -> None:
    """Fail where a figure does not look as it did, or was never looked at."""
    path, picture = FOLDER / f"{name}.png", painted(figure)
    if os.environ.get("CRANPM_GOLDEN") == "write":
        FOLDER.mkdir(exist_ok=True)
        Image.fromarray(picture).save(path, optimize=True)
        pytest.fail(f"{path} was written: look at it, then run without CRANPM_GOLDEN")
    if not path.is_file():
        pytest.fail(f"no {path}: write it with CRANPM_GOLDEN=write and look at it")
    found = difference(picture, np.asarray(Image.open(path).convert("RGB")))
    assert found < MOST_DIFFERENCE, f"{name} differs by {found:.1f} from {path}"


def check_inside(figure: Figure) -> None:
    """Fail where something reaches over the edge of the sheet."""
    figure.set_dpi(DPI)
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox(FigureCanvasAgg(figure).get_renderer())
    width, height = figure.get_size_inches()
    assert drawn.x0 > -0.01, "cut at the left"
    assert drawn.y0 > -0.01, "cut below"
    assert drawn.x1 < width + 0.01, "cut at the right"
    assert drawn.y1 < height + 0.01, "cut above"
