import pytest

from cranpm.core.channels import CHANNELS, FINE_INPUT, PAPER_CHANNELS, STANDARD_NAMES, find_channel, parse_channels
from cranpm.core.errors import CranpmError

NAMES = tuple(channel.name for channel in PAPER_CHANNELS)


def test_the_papers_list_in_order():
    assert NAMES[:5] == ("u10", "v10", "t2m", "sp", "tp")
    assert NAMES[5:10] == ("u500", "u700", "u850", "u925", "u1000")
    assert [name[0] for name in NAMES[5:30:5]] == ["u", "v", "t", "z", "q"]
    assert NAMES[30:] == ("cams_pm25", "cams_pm10", "cams_no2", "cams_o3", "cams_co")
    assert [channel.source for channel in PAPER_CHANNELS].count("era5") == 30
    assert len(NAMES) == 35
    assert len(FINE_INPUT) == 5


def test_channels_are_found_by_quantity_and_level():
    for name, quantity, level in (
        ("u10", "wind_u", None),
        ("v850", "wind_v", 850),
        ("t2m", "temperature", None),
        ("tp", "precipitation", None),
        ("t1000", "temperature", 1000),
        ("z500", "geopotential", 500),
        ("q925", "humidity", 925),
        ("cams_pm25", "pm25", None),
    ):
        assert NAMES[find_channel(PAPER_CHANNELS, quantity, level)] == name
    turned = PAPER_CHANNELS[::-1]
    assert turned[find_channel(turned, "wind_u", 700)].name == "u700"
    with pytest.raises(CranpmError, match="boundary_layer_height at the surface; found u10, v10"):
        find_channel(PAPER_CHANNELS, "boundary_layer_height")
    with pytest.raises(CranpmError, match="temperature at 300 hPa"):
        find_channel(PAPER_CHANNELS, "temperature", 300)


def test_no_two_channels_are_the_same_thing():
    keys = [(channel.quantity, channel.level_hpa, channel.source) for channel in CHANNELS.values()]
    assert len(set(keys)) == len(keys)
    assert all(channel.low < channel.high for channel in CHANNELS.values())
    assert all(channel.quantity in STANDARD_NAMES for channel in CHANNELS.values())
    assert CHANNELS["z850"].level_hpa == 850


def test_more_is_known_than_the_paper_uses():
    blh = CHANNELS["blh"]
    assert blh not in PAPER_CHANNELS
    assert (blh.quantity, blh.unit) == ("boundary_layer_height", "m")
    assert parse_channels(["t2m", "blh"]) == (CHANNELS["t2m"], blh)


@pytest.mark.parametrize(
    ("names", "message"),
    [(["t2m", "t2m"], "t2m more than once"), ([], "channels, each once; found none"), (["fog"], "a channel: .*'fog'")],
)
def test_unclear_lists_are_refused(names, message):
    with pytest.raises(CranpmError, match=message):
        parse_channels(names)
