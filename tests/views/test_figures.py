"""Maps, and figures that are drawn from an archive and forecasts: what is drawn, where, and what is refused."""

import stat
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from golden_pictures import MOST_DIFFERENCE, check_golden, check_inside, difference, painted
from matplotlib import colormaps
from matplotlib.image import imread
from PIL import Image
from sample_days import FIRST, PRODUCER, SMALL, STATIONS, make_day

from cranpm.archive.day_data import Statics
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.days import DayRange
from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS, Grid
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.publication.dataset import to_dataset, write_netcdf
from cranpm.verification.methods import Product
from cranpm.views.figures import draw, draw_archive, pm25_layer
from cranpm.views.figures.animation import animate
from cranpm.views.figures.catalogue import draw_figure
from cranpm.views.figures.comparison import comparison
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.maps import _round_length, aggregate, beyond
from cranpm.views.figures.overview import overview
from cranpm.views.figures.style import PM25, drawing

LAND = np.ones(SMALL.fine.shape, bool)
LAND[400:, 300:] = False
"""Sea in the south-east."""


def plume(day):
    """PM2.5 that is 70 in the north-west quarter and 10 elsewhere on land, a little more each day."""
    field = np.full(SMALL.fine.shape, 10.0, np.float32)
    field[:256, :256] = 70
    field += (day - FIRST).days
    return np.where(LAND, field, np.float32(np.nan))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Three days of plain shapes, simulated in name; the fourth is missing, then one more."""
    path = str(tmp_path_factory.mktemp("plain") / "archive")
    statics = Statics(np.zeros(SMALL.fine.shape, np.float32), np.zeros(SMALL.fine.shape, np.float32), LAND)
    create_archive(path, SMALL, statics, STATIONS, PRODUCER | {"source": "simulation"})
    observed = np.array([33.0, np.nan], np.float32)
    with ArchiveWriter(path) as writer:
        for step in (0, 1, 2, 4):
            day = FIRST + timedelta(days=step)
            writer.put(make_day(day, pm25_ugm3=plume(day), stations_ugm3=observed))
    return Archive(path)


def write_forecast(folder, day, field, leads=(1,)):
    """A product as `cranpm forecast` leaves it."""
    made = {"method": "cran-pm", "archive_source": "simulation", "weights_sha256": "0"}
    fields = np.repeat(field[None], len(leads), axis=0)
    place = folder / str(day)
    place.mkdir(parents=True)
    write_netcdf(to_dataset(Forecast(day, leads, fields, SMALL.fine, (), made)), place / f"pm25_{day}.nc")


@pytest.fixture(scope="module")
def forecasts(tmp_path_factory):
    """Forecasts from the first day: one 2 too high everywhere, one right in the west and 4 too low in the east."""
    folder, truth = tmp_path_factory.mktemp("forecasts"), plume(FIRST + timedelta(days=1))
    write_forecast(folder / "high", FIRST, truth + 2)
    write_forecast(folder / "half", FIRST, np.where(np.arange(SMALL.fine.cols) < 256, truth, truth - 4))
    return tuple(Product(name, folder / name, SMALL.fine) for name in ("high", "half"))


# Maps


def test_aggregation_is_the_mean_of_valid_pixels():
    grid = Grid(50, 4, 0.01, 40, 6000)
    field = np.arange(40 * 6000, dtype=float).reshape(40, 6000)
    field[0, 0] = np.nan
    means, small = aggregate(field, grid)
    assert means.shape == small.shape == (10, 1500)
    assert means[0, 0] == pytest.approx(np.nanmean(field[:4, :4]))
    assert (small.north, small.west, small.step) == (50, 4, 0.04)


def find(picture, colour):
    """Share of the picture's pixels that have a colour."""
    return (np.abs(picture[..., :3] - np.array(colour)[:3]).max(-1) < 0.02).mean()


@pytest.mark.parametrize("field", ["pm25", "wind", "elevation", "land", "t2m"])
def test_every_kind_of_map_is_drawn(archive, tmp_path, field):
    path = tmp_path / "new" / f"{field}.png"
    draw_archive(archive, field, archive.days[0], path)
    picture = imread(path)
    assert picture.shape[1] == 1500
    assert len(np.unique(picture.reshape(-1, picture.shape[-1])[::97], axis=0)) > 20


def test_north_is_up_and_colours_follow_the_values(archive, tmp_path):
    """A field that is 70 in its north-west quarter and 1 elsewhere shows dark there and only there."""
    field = np.ones(SMALL.fine.shape, np.float32)
    field[:256, :256] = 70
    path = tmp_path / "map.png"
    draw(pm25_layer(field, SMALL.fine), archive, "quarters", path)
    layer = pm25_layer(field, SMALL.fine)
    palette = colormaps[layer.palette]
    dark, light = (palette(float(layer.norm(value))) for value in (70, 1))
    picture = imread(path)
    height, width = picture.shape[:2]
    quarter = picture[height // 8 : height // 3, width // 6 : width // 3]
    opposite = picture[height // 2 : 4 * height // 5, width // 2 : 4 * width // 5]
    assert find(quarter, dark) > 0.5 > find(quarter, light)
    assert find(opposite, light) > 0.5 > find(opposite, dark)


def test_sea_is_drawn_as_sea(archive, tmp_path):
    path = tmp_path / "map.png"
    draw_archive(archive, "pm25", archive.days[0], path, stations=False)
    share = (~archive.land()).mean()
    assert find(imread(path), np.array([0xE9, 0xEE, 0xF2]) / 255) > 0.4 * share


def test_what_cannot_be_drawn_is_refused(archive, tmp_path):
    with pytest.raises(CranpmError, match=r"a field among pm25.*found ozone"):
        draw_archive(archive, "ozone", archive.days[0], tmp_path / "x.png")
    with pytest.raises(CranpmError, match="a day for wind"):
        draw_archive(archive, "wind", None, tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "x.pdf", tmp_path, tmp_path / "file" / "x.png"):
        with pytest.raises(CranpmError, match=r"ends in \.png"):
            draw_archive(archive, "land", None, place)


def test_scale_bars_are_round():
    assert [_round_length(km) for km in (160, 730, 33)] == [200, 500, 20]


# Figures


def at(figure, axes, picture, lat, lon):
    """The colour of a picture at a place on a map, 0 to 1."""
    x, y = axes.transData.transform((lon, lat))
    return picture[picture.shape[0] - 1 - int(y), int(x)] / 255


def shade(value):
    return np.array(colormaps[PM25.palette](float(PM25.norm(value))))[:3]


@pytest.fixture(scope="module")
def drawn_overview(plain):
    with drawing():
        figure = overview(FigureInputs(plain, day=FIRST))
        return figure, painted(figure, 100)


def test_the_overview_has_north_up_and_colours_of_its_values(drawn_overview):
    figure, picture = drawn_overview
    main = figure.axes[0]
    for lat, lon, value in ((47.4, 8.1, 70), (47.4, 11.1, 10), (44.2, 8.1, 10)):
        assert np.abs(at(figure, main, picture, lat, lon) - shade(value)).max() < 0.02
    sea = np.array([0xE9, 0xEE, 0xF2]) / 255
    assert np.abs(at(figure, main, picture, 43.3, 11.3) - sea).max() < 0.02


def test_stations_stand_in_their_place_in_the_colour_of_what_they_observed(drawn_overview):
    """The first station observed 33 where the map has 10; the second did not report and is not drawn."""
    figure, picture = drawn_overview
    main = figure.axes[0]
    (circles,) = [part for part in main.collections if part.get_label() == "stations"]
    assert circles.get_offsets().tolist() == [[8.0, 45.0]]
    assert np.abs(at(figure, main, picture, 45.0, 8.0) - shade(33)).max() < 0.03


def test_close_views_show_the_window_that_is_asked_for(plain):
    with drawing():
        figure = overview(FigureInputs(plain, day=FIRST, region="46,8,45,10"))
    inset = figure.axes[1]
    assert "46,8,45,10" in inset.get_title("center")
    assert inset.get_xlim() == pytest.approx((8, 10), abs=0.011)
    assert inset.get_ylim() == pytest.approx((45, 46), abs=0.011)
    assert inset.images[0].get_array().shape == (100, 200)


def test_regions_inside_the_domain_are_seen_closely():
    zooms = FigureInputs(SimpleNamespace(domain=DOMAINS["europe"])).zooms(3)
    assert list(zooms) == ["Po Valley", "Paris Basin", "Silesia"]
    assert list(FigureInputs(SimpleNamespace(domain=SMALL)).zooms(3)) == ["middle"]


def test_an_overview_of_a_forecast_says_whose_and_for_when(plain, forecasts):
    with drawing():
        figure = overview(FigureInputs(plain, forecasts, day=FIRST, lead=1))
    told = figure.texts[0].get_text()
    assert f"{FIRST + timedelta(days=1)} · high, T+1 from {FIRST}" in told
    assert "simulated data · not a real observation" in figure.texts[1].get_text()
    assert figure.axes[0].images[0].get_array()[0, 0] == pytest.approx(73, abs=0.06)


def test_errors_are_those_of_the_pixels(plain, forecasts):
    with drawing():
        figure = comparison(FigureInputs(plain, forecasts, day=FIRST))
        check_inside(figure)
    titles = [axes.get_title("left") for axes in figure.axes]
    assert "RMSE 2.00, bias +2.00" in titles[1]
    area = SMALL.fine.row_area_km2[:, None] * LAND
    east = (area * (np.arange(SMALL.fine.cols) >= 256)).sum() / area.sum()
    assert f"RMSE {4 * east**0.5:.2f}, bias −{4 * east:.2f}" in titles[2]
    assert "RMSE 1.00, bias −1.00" in titles[6]  # persistence: a little more each day
    error = figure.axes[7].images[0].get_array()
    assert error.compressed() == pytest.approx(2, abs=0.06)


@pytest.mark.parametrize(("name", "figure"), [("overview", overview), ("maps", comparison)])
def test_maps_look_as_they_did(plain, forecasts, name, figure):
    given = FigureInputs(plain, forecasts if name == "maps" else (), day=FIRST, region="46,8,45,10")
    with drawing():
        check_golden(name, figure(given))


def test_a_golden_picture_can_fail(drawn_overview):
    _, picture = drawn_overview
    assert difference(picture, picture) == 0
    assert difference(picture, np.roll(picture, 8, axis=1)) > MOST_DIFFERENCE
    assert difference(picture, picture[1:]) == float("inf")


def test_the_overview_stays_on_its_sheet(plain):
    with drawing():
        check_inside(overview(FigureInputs(plain, day=FIRST)))


def test_text_stays_text_and_files_repeat(plain, tmp_path):
    given = FigureInputs(plain, day=FIRST)
    for name in ("one.svg", "other.svg", "one.pdf"):
        draw_figure("overview", given, tmp_path / name, dpi=30)
    svg = (tmp_path / "one.svg").read_text()
    assert svg == (tmp_path / "other.svg").read_text()
    assert "not a real observation" in svg
    assert svg.count("<text") > 20
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")


def test_maps_that_cannot_be_drawn_are_refused(plain, forecasts, tmp_path):
    path = tmp_path / "x.png"
    with pytest.raises(CranpmError, match=r"a figure: overview, maps.*found 'sunset'"):
        draw_figure("sunset", FigureInputs(plain), path)
    with pytest.raises(CranpmError, match=r"for the figure maps; found no --day, no --forecasts\. Add --day and"):
        draw_figure("maps", FigureInputs(plain), path)
    with pytest.raises(CranpmError, match=r"ends in \.png or \.svg or \.pdf.*x\.jpg"):
        draw_figure("overview", FigureInputs(plain, day=FIRST), tmp_path / "x.jpg")
    with pytest.raises(CranpmError, match=r"1 to 4 times --forecasts.*found 5"):
        draw_figure("maps", FigureInputs(plain, (forecasts[0],) * 5, day=FIRST), path)
    with pytest.raises(CranpmError, match=r"a forecast from 2020-02-28 by high; found none in"):
        draw_figure("maps", FigureInputs(plain, forecasts, day=FIRST + timedelta(days=1)), path)
    assert not path.exists()


def test_colour_bars_say_when_values_lie_beyond():
    image = SimpleNamespace(norm=PM25.norm, get_array=lambda: np.array([[10.0, np.nan, 80.0]]))
    assert beyond(image) == "max"
    assert beyond(SimpleNamespace(norm=PM25.norm, get_array=lambda: np.array([[-1.0, 10]]))) == "min"
    assert beyond(SimpleNamespace(norm=PM25.norm, get_array=lambda: np.array([[np.nan]]))) == "neither"


# Animation


def test_an_episode_moves_from_day_to_day(plain, forecasts, tmp_path):
    """Five days of which one is missing, with a forecast for the second alone."""
    path = tmp_path / "episode.gif"
    days = DayRange(FIRST, FIRST + timedelta(days=4))
    absent = animate(FigureInputs(plain, forecasts[:1]), days, path)
    second, missing = FIRST + timedelta(days=1), FIRST + timedelta(days=3)
    assert absent == {"truth": [missing], "high, T+1": [day for day in days if day != second]}
    with Image.open(path) as gif:
        frames = []
        for number in range(gif.n_frames):
            gif.seek(number)
            frames.append((np.asarray(gif.convert("RGB")), gif.info["duration"]))
    assert [duration for _, duration in frames] == [500, 500, 500, 500, 1500]
    share = [find(frame / 255, shade(70 + step)) for step, (frame, _) in enumerate(frames)]
    assert share[1] > 0.04
    assert share[3] < 0.01
    forecast = [find(frame[:, frame.shape[1] // 2 :] / 255, shade(73)) for frame, _ in frames]
    assert forecast[1] > 0.04
    assert max(forecast[0], *forecast[2:]) < 0.01


def test_a_region_can_move_alone(plain, tmp_path):
    animate(FigureInputs(plain, region="46,8,45,10"), DayRange(FIRST, FIRST), tmp_path / "one.gif")
    with Image.open(tmp_path / "one.gif") as gif:
        assert gif.n_frames == 1
        assert gif.width > 1.3 * gif.height


def test_episodes_that_cannot_be_shown_are_refused(plain, forecasts, tmp_path, monkeypatch):
    days = DayRange(FIRST, FIRST + timedelta(days=1))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CranpmError, match=r"ffmpeg on the PATH for \.mp4; found none.*write a \.gif"):
        animate(FigureInputs(plain), days, tmp_path / "x.mp4")
    with pytest.raises(CranpmError, match=r"ends in \.gif or \.mp4"):
        animate(FigureInputs(plain), days, tmp_path / "x.avi")
    with pytest.raises(CranpmError, match=r"--forecasts once.*found 2 of them"):
        animate(FigureInputs(plain, forecasts), days, tmp_path / "x.gif")
    with pytest.raises(CranpmError, match=r"days of high, T\+1 in 2020-02-27\.\.2020-02-27; found none"):
        animate(FigureInputs(plain, forecasts[:1]), DayRange(FIRST, FIRST), tmp_path / "x.gif")
    assert not list(tmp_path.glob("x.*"))


def test_ffmpeg_gets_every_frame(plain, tmp_path, monkeypatch):
    """A stand-in for ffmpeg that keeps what it is given: raw frames of one size."""
    tool = tmp_path / "ffmpeg"
    tool.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/line"\nfor last in "$@"; do :; done\ncat > "$last"\n')
    tool.chmod(tool.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    animate(FigureInputs(plain), DayRange(FIRST, FIRST + timedelta(days=1)), tmp_path / "x.mp4")
    words = (tmp_path / "line").read_text().split()
    width, height = map(int, words[words.index("-s") + 1].split("x"))
    assert (tmp_path / "x.mp4").stat().st_size == 2 * width * height * 4
