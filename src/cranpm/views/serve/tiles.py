"""Map tiles: pixels of the GeoTIFFs through the colours that all pictures share."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colors
from PIL import Image

from cranpm import __version__
from cranpm.core.grid import Array
from cranpm.core.packing import PUBLISHED, STEP_UGM3
from cranpm.forecasting.publication import rasters
from cranpm.views.figures.style import CHANGE, ERROR, EXCEEDANCE, INDEX, PM25, UNIT, Classes, Shade

ZOOMS = 12
KEPT_TILES = 4096
STYLES: dict[str, Shade | Classes] = {
    "pm25": PM25,
    "exceedance": EXCEEDANCE,
    "index": INDEX,
    "change": CHANGE,
    "truth": Shade("observed PM2.5", PM25.palette, PM25.low, PM25.high, PM25.power),
    "error": ERROR,
}
STOPS = 16


@dataclass(frozen=True)
class Colours:
    """A number for each step of 0.1 µg m⁻³ (0: nothing there), and the colour of each number."""

    numbers: Array
    palette: bytes

    def paint(self, steps: Array) -> bytes:
        """PNG of int16 steps."""
        image = Image.fromarray(self.numbers[steps.view(np.uint16)])
        image.putpalette(self.palette)
        target = BytesIO()
        image.save(target, "PNG", transparency=0, compress_level=1)
        return target.getvalue()


@cache
def colours(variable: str) -> Colours:
    style = STYLES[variable]
    steps = np.arange(65536, dtype=np.uint16).view(np.int16)
    values = steps * STEP_UGM3
    if isinstance(style, Shade):
        numbers = 1 + np.clip(np.round(254 * np.asarray(style.norm(values), float).clip(0, 1)), 0, 254).astype(np.uint8)
        swatches = matplotlib.colormaps[style.palette](np.linspace(0, 1, 255))[:, :3]
    else:
        numbers = 1 + np.searchsorted(np.asarray(style.edges), np.round(values, 6)).astype(np.uint8)
        swatches = np.array([colors.to_rgb(colour) for colour in style.colours])
    numbers[steps == PUBLISHED.missing] = 0
    return Colours(numbers, bytes([0, 0, 0]) + np.round(255 * swatches).astype(np.uint8).tobytes())


def legend(variable: str) -> dict[str, Any]:
    """What a page needs to explain the colours of its tiles."""
    style = STYLES[variable]
    if isinstance(style, Shade):
        values = np.linspace(style.low, style.high, STOPS + 1)
        shown = matplotlib.colormaps[style.palette](style.norm(values))
        stops = [{"value": float(v), "colour": colors.to_hex(c)} for v, c in zip(values, shown, strict=True)]
        return {"kind": "shade", "label": style.label, "unit": UNIT, "note": "", "stops": stops}
    bounds = zip((None, *style.edges), (*style.edges, None), style.names, style.colours, strict=True)
    classes = [{"name": name, "colour": colour, "from": low, "to": high} for low, high, name, colour in bounds]
    return {"kind": "classes", "label": style.label, "unit": UNIT, "note": style.note, "classes": classes}


def draw_tile(variable: str, raster: Path, z: int, x: int, y: int) -> bytes:
    """PNG of a raster in the colours of a variable."""
    return colours(variable).paint(rasters.tile(raster, z, x, y))


def tile(variable: str, raster: Path, z: int, x: int, y: int) -> bytes:
    """The same; the most recent tiles are kept in memory while the file stays the same."""
    return _kept_tile(rasters.identity(raster), variable, z, x, y)


@lru_cache(maxsize=KEPT_TILES)
def _kept_tile(raster: rasters.Identity, variable: str, z: int, x: int, y: int) -> bytes:
    return draw_tile(variable, raster[0], z, x, y)


@cache
def style() -> str:
    """A text that changes with the colours and the software: browsers may keep tiles only while it stays the same."""
    content = json.dumps([__version__, {variable: legend(variable) for variable in STYLES}])
    return hashlib.sha256(content.encode()).hexdigest()[:8]
