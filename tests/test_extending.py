"""What docs/extending.md promises: every example, in a package of its own, works through the command line."""

import re
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from plugins import EXAMPLES, install, run_with_plugins

from cranpm.archive.store import Archive
from cranpm.core.channels import PAPER_CHANNELS
from cranpm.providers.export import write_provider_files

ROOT = Path(__file__).parents[1]


def test_the_page_names_every_example_and_every_example_is_tested():
    page = (ROOT / "docs" / "extending.md").read_text()
    named = set(re.findall(r"\(examples/(\w+)\.py\)", page))
    assert named == {path.stem for path in EXAMPLES.glob("*.py")}
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in named if f'"{name}"' not in tests and f"{name}.py" not in tests] == []


@pytest.mark.parametrize("name", [path.stem for path in EXAMPLES.glob("*.py")])
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 90


def test_an_own_command_is_listed_and_runs(archive, tmp_path):
    install(tmp_path, "own_command")
    listed = run_with_plugins(tmp_path, "--help")
    assert "dirtiest" in listed.stdout
    line = ["forecast", "--archive", archive.location, "--day", str(archive.days[2]), "--weights", "persistence"]
    done = run_with_plugins(tmp_path, *line, "--format", "tif", "--out", str(tmp_path / "products"), "-q")
    assert done.returncode == 0, done.stderr
    found = run_with_plugins(tmp_path, "dirtiest", str(tmp_path / "products"), "--count", "3").stdout.splitlines()
    values = [float(line.rpartition(": ")[2]) for line in found]
    assert len(values) == 3
    assert values == sorted(values, reverse=True)


def write_ammonia(path, grid, day, level):
    with netCDF4.Dataset(path, "w") as file:
        file.day = str(day)
        for name, values in (("lat", grid.lat), ("lon", grid.lon)):
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", (name,))[:] = values
        file.createVariable("nh3", "f4", ("lat", "lon"), fill_value=-1)[:] = np.full(grid.shape, level)


def test_an_own_channel_is_ingested_and_stored_with_its_archive(archive, tmp_path):
    install(tmp_path, "own_channel")
    files, days, place = tmp_path / "files", archive.days[:2], str(tmp_path / "made")
    write_provider_files(archive, days, files, forecasts=False)
    write_ammonia(files / "one.nc", archive.domain.coarse, days[0], 4.5)
    box = ",".join(
        str(edge) for edge in (archive.domain.north, archive.domain.west, archive.domain.south, archive.domain.east)
    )
    line = ["ingest", str(files), "--archive", place, "--domain", box, "--channel", "nh3", "--jobs", "1", "-q"]
    done = run_with_plugins(tmp_path, *line)
    assert f"refused day: {days[1]}" in done.stdout, done.stderr  # it has no ammonia, and is not filled
    made = Archive(place)  # in a process without the plugin: the archive knows its channels
    assert made.days == days[:1]
    assert [channel.name for channel in made.channels] == [*(channel.name for channel in PAPER_CHANNELS), "nh3"]
    assert made.channels[-1].unit == "ug m-3"
    assert np.all(made.coarse(days[0])[-1] == np.float32(4.5))
    assert "nh3" in run_with_plugins(tmp_path, "info", place).stdout
