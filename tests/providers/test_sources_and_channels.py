"""What an archive says of its source, who is named in a remedy, and which channels are written as files."""

from datetime import date
from types import SimpleNamespace

import netCDF4
import numpy as np
import pytest
from paper_channels import NAMES

from cranpm.archive.day_data import Statics
from cranpm.archive.layout import create_archive
from cranpm.core.cluster import Pool
from cranpm.core.errors import CranpmError
from cranpm.providers import ingest as ingesting
from cranpm.providers.assemble import IngestJob
from cranpm.providers.export import _check_channels, _write_era5
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.provider import FileSummary
from cranpm.providers.readers.files import Piece
from cranpm.providers.scan import Scan

DAY = date(2020, 2, 27)


def found(*names, notes=()):
    return Scan([FileSummary(Piece(None), name, (), DAY, DAY, notes) for name in names], {})


@pytest.fixture
def old(archive, tmp_path):
    """An archive with the text of earlier versions."""
    statics = Statics(archive.elevation(), archive.elevation(), archive.land())
    place = str(tmp_path / "old")
    create_archive(place, archive.domain, statics, archive.stations, {"source": "providers: ERA5, CAMS, GHAP, EEA"})
    return place


def test_the_source_names_the_providers_that_were_found():
    assert ingesting._source(found("ghap", "openaq", "ghap")) == "providers: OpenAQ, GHAP"
    assert ingesting._source(found("ghap", notes=(MADE_UP,))) == "simulation, written as providers' files"


def test_an_archive_takes_more_days_of_other_providers_but_none_simulated(old):
    report = ingesting.IngestReport()
    assert ingesting._archive(old, None, (), found("ghap", "openaq"), report).location == old
    with pytest.raises(CranpmError, match="never mixed"):
        ingesting._archive(old, None, (), found("ghap", notes=(MADE_UP,)), report)


def test_remedies_name_who_gives_what_a_new_archive_needs():
    for what, name in (("elevation", "elevation"), ("station_table", "eea")):
        with pytest.raises(CranpmError, match=rf"Add files of .* \(cranpm fetch {name}\)"):
            ingesting._once(found(), what)


def test_what_all_tasks_need_is_sent_once(old, monkeypatch):
    shared = []

    class Recording(Pool):
        def share(self, value):
            shared.append(value)
            return value

    monkeypatch.setattr(ingesting, "scan", lambda places, pool: found("openaq"))
    ingesting.ingest([], old, pool=Recording())
    assert [type(value) for value in shared] == [IngestJob]


def test_blh_is_written_and_other_channels_are_refused(archive, tmp_path):
    _check_channels(NAMES)
    _check_channels([*NAMES, "blh"])
    with pytest.raises(CranpmError, match="found moss, which"):
        _check_channels([*NAMES, "moss"])
    with pytest.raises(CranpmError, match="one without t2m"):
        _check_channels([name for name in NAMES if name != "t2m"])
    day = archive.days[0]
    fields = np.concatenate([archive.coarse(day), np.full((1, *archive.domain.coarse.shape), 700.0)])
    with_blh = SimpleNamespace(domain=archive.domain, channel_names=[*NAMES, "blh"], coarse=lambda day: fields)
    _write_era5(with_blh, [day], tmp_path)
    (path,) = tmp_path.glob("era5-single*")
    piece = Piece(path, "data_stream-oper_stepType-instant.nc")
    with piece.local() as local, netCDF4.Dataset(local) as file:
        assert np.allclose(file["blh"][:], 700.0)
        assert file["blh"].units == "m"


def test_a_channel_of_the_paper_is_not_stored_twice(provider_files, archive, tmp_path):
    with pytest.raises(CranpmError, match="found t2m more than once"):
        ingesting.ingest([provider_files], str(tmp_path / "made"), archive.domain, channels=("t2m",))
    assert not (tmp_path / "made").exists()
