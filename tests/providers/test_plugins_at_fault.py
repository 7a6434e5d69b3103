"""A provider that fails does no harm to the files and days of others."""

import zipfile

import pytest

from cranpm.providers import PROVIDERS, Provider, sandbox


@pytest.fixture
def add(monkeypatch):
    """Adds a provider for the time of a test; the one that is added last is asked first."""

    def put(provider):
        monkeypatch.setitem(PROVIDERS._things, provider.name, provider)

    return put


def test_a_zip_with_cams_keeps_what_is_no_channel(here, provider_files, tmp_path):
    with zipfile.ZipFile(tmp_path / "week.zip", "w") as week:
        (cams,) = provider_files.glob("cams-eac4*.zip")
        with zipfile.ZipFile(cams) as inner:
            for name in inner.namelist():
                week.writestr(name, inner.read(name))
        for pattern in ("GHAP*", "elevation.tif", "DataExtract.csv"):
            path = sorted(provider_files.glob(pattern))[0]
            week.write(path, path.name)
    seen = {one.piece.member: one.provider for one in sandbox.look([tmp_path / "week.zip"])}
    assert sorted(seen.values()) == ["cams", "cams", "eea", "elevation", "ghap"], seen


class Clumsy(Provider):
    name, title = "clumsy", "Clumsy"

    def recognise(self, piece):
        raise RuntimeError("clumsy")


def test_an_error_of_one_provider_hides_no_file_from_the_others(here, add, provider_files, tmp_path):
    add(Clumsy())
    (tmp_path / "x.txt").write_text("nothing of interest\n")
    known, (_, reason) = sandbox.look([provider_files / "elevation.tif", tmp_path / "x.txt"])
    assert known.provider == "elevation"
    assert reason == "RuntimeError: clumsy"
