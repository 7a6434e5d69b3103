"""An episode as a moving picture: one frame per day, truth alone or a forecast beside it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.animation import FFMpegWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Text
from PIL import Image

from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.core.grid import EVERYWHERE, Array, Window
from cranpm.core.regions import parse_region
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.maps import PM25_LABEL, Ground, aggregate, draw_scale_bar, proportion
from cranpm.views.figures.sheet import check_picture, sheet
from cranpm.views.figures.style import COAST, NOTE, PM25, SEA, drawing

ENDINGS = (".gif", ".mp4")
A_SECOND, FRAME_MS, LAST_MS = 2, 500, 1500
COLOURS, GREYS = 224, 30
"""Of a GIF, beside the sea and the coast: all frames share one table of colours, so that nothing flickers."""
DPI = 100
ALONE_INCH, PAIR_INCH, MOST_INCH = 7.0, 4.8, 6.5
"""Width of a map alone and of one beside another; most height."""


@dataclass(frozen=True)
class Episode:
    """The fields of any day in a window: of the truth and, where one is given, of a method."""

    inputs: FigureInputs
    window: Window

    @property
    def names(self) -> list[str]:
        return ["truth", *(f"{method.name}, T+{self.inputs.ahead}" for method in self.inputs.forecasts)]

    @cached_property
    def held(self) -> frozenset[date]:
        return frozenset(self.inputs.held().days)

    def fields(self, day: date) -> list[Array | None]:
        """One a panel; None where there is none."""
        truth = self.inputs.held().pm25(day, self.window) if day in self.held else None
        return [truth, *(self._forecast(day) for _ in self.inputs.forecasts)]

    def _forecast(self, day: date) -> Array | None:
        """For a day, from the start day that lies so many days before it."""
        (method,), start, (rows, cols) = self.inputs.forecasts, day - timedelta(days=self.inputs.ahead), self.window
        if method.identity(start) is None:
            return None
        method.check(start, [self.inputs.ahead])
        return method.strip(start, self.inputs.ahead, slice(*rows.indices(method.grid.rows)))[:, cols]


@dataclass(frozen=True)
class Screen:
    """The picture that changes from day to day."""

    figure: Figure
    ground: Ground
    images: list[AxesImage]
    gaps: list[Text]
    """What is written where a field is missing."""

    def show(self, day: date, fields: list[Array | None]) -> None:
        nothing = np.full(self.ground.grid.shape, np.nan, np.float32)
        self.figure.texts[0].set_text(f"PM$_{{2.5}}$ on {day}")
        for image, gap, field in zip(self.images, self.gaps, fields, strict=True):
            picture, _ = aggregate(nothing if field is None else field, self.ground.grid, self.ground.columns)
            image.set_data(np.ma.masked_invalid(picture))
            gap.set_visible(field is None)


def animate(
    inputs: FigureInputs, days: DayRange, path: Path, on_day: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, list[date]]:
    """Write one frame per day; by panel, the days for which it had nothing to show."""
    _check(inputs, path)
    window = parse_region(inputs.region, inputs.held().domain.fine) if inputs.region else EVERYWHERE
    episode = Episode(inputs, window)
    absent = _absent(episode, days)
    with drawing():
        screen = _screen(episode, days)
        with _writer(path, screen.figure) as grab:
            for number, day in enumerate(days, start=1):
                screen.show(day, episode.fields(day))
                grab()
                on_day(number, len(days))
    return {name: gone for name, gone in absent.items() if gone}


def _check(inputs: FigureInputs, path: Path) -> None:
    check_picture(path, ENDINGS)
    if path.suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise CranpmError(expected="ffmpeg on the PATH for .mp4", found="none", remedy="Install it, or write a .gif.")
    if len(inputs.forecasts) > 1:
        raise CranpmError(
            expected="--forecasts once: the truth and one method move side by side",
            found=f"{len(inputs.forecasts)} of them",
            remedy="Animate one method at a time.",
        )


def _absent(episode: Episode, days: DayRange) -> dict[str, list[date]]:
    """Days without a field, by panel; refused where a panel has none at all."""
    starts = {day: day - timedelta(days=episode.inputs.ahead) for day in days}
    absent = {"truth": [day for day in days if day not in episode.held]}
    for name, method in zip(episode.names[1:], episode.inputs.forecasts, strict=True):
        absent[name] = [day for day in days if method.identity(starts[day]) is None]
    for name, gone in absent.items():
        if len(gone) == len(days):
            raise CranpmError(
                expected=f"days of {name} in {days}",
                found="none",
                remedy="Choose --days that the archive holds, and for which forecasts of --lead were made.",
            )
    return absent


def _screen(episode: Episode, days: DayRange) -> Screen:
    """Panels side by side with one colour bar, arranged once."""
    inputs, names = episode.inputs, episode.names
    ground = Ground.of(inputs.held(), episode.window, 700)
    wide = min(ALONE_INCH if len(names) == 1 else PAIR_INCH, MOST_INCH / proportion(ground.grid))
    notes = [f"{days}", *([inputs.region] if inputs.region else []), *inputs.notes()]
    size = (wide + 0.5) * len(names) + 0.8, wide * proportion(ground.grid) + 0.5
    figure = sheet(*size, f"PM$_{{2.5}}$ on {days.first}", notes)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    blank = np.full(ground.grid.shape, np.nan, np.float32)
    images, gaps = [], []
    for axes, name in zip(panels, names, strict=True):
        images.append(ground.draw(axes, blank, PM25))
        axes.set_title(name, fontsize=10)
        gaps.append(axes.text(0.5, 0.5, "none for this day", transform=axes.transAxes, ha="center", color=NOTE))
    draw_scale_bar(panels[0], ground.grid)
    figure.colorbar(images[0], ax=panels, label=PM25_LABEL, extend="max", aspect=28)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # as it is now: arranging again would cost most of the time
    return Screen(figure, ground, images, gaps)


@contextmanager
def _writer(path: Path, figure: Figure) -> Iterator[Callable[[], None]]:
    """A function that takes the figure as it is now for the next frame."""
    figure.set_dpi(DPI)
    if path.suffix == ".mp4":
        writer = FFMpegWriter(fps=A_SECOND, codec="h264", extra_args=["-pix_fmt", "yuv420p"])
        with writer.saving(figure, str(path), DPI):
            yield writer.grab_frame
        return
    canvas: Any = FigureCanvasAgg(figure)
    table, frames = _colour_table(), list[Image.Image]()

    def grab() -> None:
        canvas.draw()
        frame = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        frames.append(frame.quantize(palette=table, dither=Image.Dither.NONE))

    yield grab
    times = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False)


def _colour_table() -> Image.Image:
    """The colours of PM2.5, greys for what is written, the sea and the coast."""
    shades = colormaps[PM25.palette](np.linspace(0, 1, COLOURS))[:, :3]
    greys = np.linspace(0, 1, GREYS)[:, None].repeat(3, axis=1)
    table = np.concatenate([shades, greys, [to_rgb(SEA), to_rgb(COAST)]])
    image = Image.new("P", (1, 1))
    image.putpalette((255 * table).round().astype(np.uint8).tobytes())
    return image
