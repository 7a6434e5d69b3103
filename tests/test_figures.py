import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.image import imread
from sample_days import SMALL

from cranpm.errors import CranpmError
from cranpm.figures import draw_archive, pm25_layer
from cranpm.figures.maps import _aggregate, _round_length
from cranpm.grid import Grid


def test_aggregation_is_the_mean_of_valid_pixels():
    grid = Grid(50, 4, 0.01, 40, 6000)
    field = np.arange(40 * 6000, dtype=float).reshape(40, 6000)
    field[0, 0] = np.nan
    means, small = _aggregate(field, grid)
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
    from cranpm.figures import draw

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
