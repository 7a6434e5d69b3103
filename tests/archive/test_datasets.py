"""What xarray sees of an archive: the same values, dated and named, and nothing read before it is needed."""

from datetime import date, timedelta

import numpy as np
import pytest
from sample_days import FIRST, PRODUCER, SMALL, STATIONS, make_day

from cranpm.archive.day_data import Statics
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.channels import parse_channels

CHANNELS = parse_channels(["t2m", "tp", "z500", "blh"])
DAYS = [FIRST, FIRST + timedelta(days=2)]
"""A gap between them."""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    place = str(tmp_path_factory.mktemp("xarray") / "archive")
    rng = np.random.default_rng(1)
    land = rng.uniform(size=SMALL.fine.shape) > 0.5
    statics = Statics(rng.uniform(0, 3000, land.shape).astype(np.float32), np.full(land.shape, 3, np.float32), land)
    create_archive(place, SMALL, statics, STATIONS, PRODUCER, CHANNELS)
    with ArchiveWriter(place) as writer:
        for day in DAYS:
            writer.put(make_day(day, channels=CHANNELS))
    return Archive(place)


@pytest.fixture
def reads(monkeypatch):
    """The paths that are read from the archive's store, in order."""
    found, read = [], Archive.read

    def counted(archive, path, *selection):
        found.append(path)
        return read(archive, path, *selection)

    monkeypatch.setattr(Archive, "read", counted)
    return found


def test_values_are_those_of_the_archive(small):
    tree = small.to_xarray()
    for index, day in enumerate(DAYS):
        pm25 = tree["fine/pm2p5"].isel(time=index)
        assert pm25.dtype == np.float32
        assert np.array_equal(pm25, small.pm25(day), equal_nan=True)
        for channel, field in zip(CHANNELS, small.coarse(day), strict=True):
            assert np.array_equal(tree[f"coarse/{channel.name}"].isel(time=index), field), channel.name
        values = tree["stations/pm2p5"].sel(time=str(day)).squeeze("time")
        assert np.array_equal(values, small.stations_pm25(day), equal_nan=True)
    assert np.array_equal(tree["fine/elevation"], small.elevation())
    assert np.array_equal(tree["fine/land"], small.land())
    assert np.array_equal(tree["coarse/land_fraction"], small.coarse_statics()["land_fraction"])


def test_nothing_is_read_before_it_is_computed(small, reads):
    reopened = Archive(small.location)
    reopened.days, reopened.stations  # noqa: B018 - the axes are not lazy
    reads.clear()
    tree = reopened.to_xarray()
    warm = tree["coarse/t2m"].sel(time=str(DAYS[1])) - 273.15
    assert reads == []
    warm.compute()
    assert reads == ["coarse/fields"]
    reads.clear()
    tree["coarse"].to_dataset()[["t2m", "tp", "blh"]].isel(time=[0]).compute()
    assert reads == ["coarse/fields"]  # one day is read once for all of its channels
    assert tree["fine/pm2p5"].chunks == ((1, 1), (SMALL.fine.rows,), (SMALL.fine.cols,))


def test_times_are_the_days_that_are_there(small):
    for group in ("fine", "coarse", "stations"):
        dataset = small.to_xarray()[group].to_dataset()
        assert [str(time)[:13] for time in dataset.time.values] == [f"{day}T12" for day in DAYS]
        assert str(dataset.time_bnds.values[0, 0])[:13] == f"{FIRST}T00"
        assert (np.diff(dataset.time_bnds.values, axis=1) == np.timedelta64(1, "D")).all()


def test_names_units_and_places(small):
    tree = small.to_xarray()
    assert set(tree["coarse"].data_vars) >= {"t2m", "tp", "z500", "blh", "elevation", "crs"}
    for channel in CHANNELS:
        attributes = tree[f"coarse/{channel.name}"].attrs
        assert attributes["units"] == channel.unit
        assert attributes["long_name"] == channel.meaning
        assert attributes["grid_mapping"] == "crs"
    assert tree["coarse/t2m"].attrs["standard_name"] == "air_temperature"
    assert tree["coarse/tp"].attrs["cell_methods"] == "time: sum"
    assert tree["coarse/z500"].attrs["pressure_hpa"] == 500
    assert tree["fine/pm2p5"].attrs["units"] == "ug m-3"
    assert np.array_equal(tree["fine"].lat, SMALL.fine.lat)
    assert np.array_equal(tree["coarse"].lon, SMALL.coarse.lon)
    stations = tree["stations"]
    assert stations.station_id.values.tolist() == ["a", "b"]
    assert stations.lat.values.tolist() == STATIONS.lat.tolist()
    assert stations.altitude.attrs["units"] == "m"
    assert stations.kind.values.tolist() == ["traffic", "background"]


def test_an_archive_without_days(tmp_path):
    place = str(tmp_path / "archive")
    create_archive(
        place, SMALL, Statics(*(np.ones(SMALL.fine.shape, np.float32) for _ in range(3))), STATIONS, PRODUCER
    )
    tree = Archive(place).to_xarray()
    assert tree["fine/pm2p5"].shape == (0, *SMALL.fine.shape)
    assert tree["coarse"].sizes["time"] == 0


@pytest.mark.parametrize("group", ["fine", "coarse", "stations", "ahead/weather"])
def test_groups_are_written_as_cf(small, archive, group, tmp_path):
    """The compliance checker finds no error in what `to_netcdf` makes of a group."""
    from compliance_checker.runner import CheckSuite

    opened_archive = archive if group.startswith("ahead") else small
    path = tmp_path / f"{group.replace('/', '-')}.nc"
    opened_archive.to_xarray()[group].to_dataset().to_netcdf(path)
    suite = CheckSuite()
    suite.load_all_available_checkers()
    opened = suite.load_dataset(str(path))
    scores, errors = suite.run_all(opened, ["cf:1.11"], skip_checks=[])["cf:1.11"]
    opened.close()
    assert not errors
    failed = [score for score in scores if score.weight == 3 and score.value[0] < score.value[1]]
    assert [message for score in failed for message in score.msgs] == []


def test_the_page_of_the_archive_runs(archive, archive_path):
    from test_docs import python_blocks

    text = "\n".join(python_blocks("archive.md"))
    names: dict[str, object] = {}
    exec(text.replace('"alps.archive"', repr(str(archive_path))).replace("2021-01-02", "2020-02-28"), names)
    day = date(2020, 2, 28)
    assert float(names["highest"]) == np.nanmax(archive.pm25(day))
    assert names["warmth"].dims == ("time",)
    assert names["start"] == day
    assert names["two_days_later"].shape == (30, 21, 21)
    assert names["warmth"].sizes["time"] == 5
