from cranpm.core.channels import COARSE, COARSE_INPUT, COARSE_NAMES, FINE_INPUT, INDEX


def test_the_papers_list_in_order():
    assert COARSE_NAMES[:5] == ("u10", "v10", "t2m", "sp", "tp")
    assert COARSE_NAMES[5:10] == ("u500", "u700", "u850", "u925", "u1000")
    assert [name[0] for name in COARSE_NAMES[5:30:5]] == ["u", "v", "t", "z", "q"]
    assert COARSE_NAMES[30:] == ("cams_pm25", "cams_pm10", "cams_no2", "cams_o3", "cams_co")
    assert [channel.source for channel in COARSE].count("era5") == 30


def test_seventy_and_five_inputs():
    assert len(COARSE_INPUT) == 70
    assert COARSE_INPUT[0] == ("u10", 0)
    assert COARSE_INPUT[35] == ("u10", -1)
    assert len(FINE_INPUT) == 5


def test_index_and_ranges():
    assert [COARSE[INDEX[name]].name for name in COARSE_NAMES] == list(COARSE_NAMES)
    assert all(channel.low < channel.high for channel in COARSE)
    assert COARSE[INDEX["z850"]].level_hpa == 850
