"""The public face: names, types, and that nothing hides it."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

import cranpm
from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError

FUNCTIONS = [name for name in cranpm.__all__ if name != "__version__"]


def test_all_names_are_functions_that_say_what_they_return():
    assert FUNCTIONS == ["forecast", "open_archive", "open_publication", "train", "verify"]
    for name in FUNCTIONS:
        function = getattr(cranpm, name)
        signature = inspect.signature(function)
        assert function.__doc__, name
        assert signature.return_annotation is not signature.empty
        for parameter in signature.parameters.values():
            assert parameter.annotation not in (parameter.empty, "Any"), (name, parameter)
    assert files("cranpm").joinpath("py.typed").is_file()


def test_no_room_hides_a_function():
    """`import cranpm.x` sets the attribute `x` of the package, so that no room may have the name of a function."""
    rooms = {module.name for module in pkgutil.iter_modules(cranpm.__path__)}
    assert rooms.isdisjoint(cranpm.__all__)
    for room in ("forecasting", "verification", "training"):
        importlib.import_module(f"cranpm.{room}")
    assert all(inspect.isfunction(getattr(cranpm, name)) for name in FUNCTIONS)


def test_importing_the_package_imports_nothing_heavy():
    heavy = "{'torch', 'xarray', 'zarr', 'icechunk', 'dask', 'numpy'}"
    code = f"import sys, cranpm; print(sorted({heavy} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_an_archive_is_opened(archive, archive_path):
    opened = cranpm.open_archive(archive_path)
    assert isinstance(opened, Archive)
    assert opened.snapshot == archive.snapshot
    assert cranpm.open_archive(archive) is archive
    assert cranpm.open_archive(archive_path, archive.snapshot).days == archive.days
    with pytest.raises(CranpmError, match="an archive at"):
        cranpm.open_archive(archive_path.parent / "nothing")


def test_forecasts_take_places_and_texts(archive, archive_path):
    made = cranpm.forecast(archive_path, str(archive.days[1]), "persistence", leads=(1,))
    assert made.pm2p5.attrs["units"] == "ug m-3"
    assert np.array_equal(made.pm2p5[0], archive.pm25(archive.days[1]), equal_nan=True)
    part = cranpm.forecast(archive, archive.days[1], "persistence", (1, 2), (slice(0, 32), slice(16, 64)))
    assert part.pm2p5.shape == (2, 32, 48)


def test_verification_returns_scores_and_writes_them(archive, tmp_path):
    scores = cranpm.verify({}, archive, [archive.days[0]], tmp_path, leads=(1,))
    error = archive.pm25(archive.days[0]) - archive.pm25(archive.days[1])
    assert scores.names == ["persistence"]
    assert scores.days == [archive.days[0]]
    assert np.isfinite(error).any()
    assert (tmp_path / "scores.json").is_file()
