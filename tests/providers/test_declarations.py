"""A provider is one module: nothing else names it, and the documentation is made of what it declares."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from paper_channels import NAMES

from cranpm.archive.day_data import Quality
from cranpm.archive.store import Archive
from cranpm.core.channels import PAPER_CHANNELS
from cranpm.core.errors import CranpmError
from cranpm.providers import PROVIDERS, Provider
from cranpm.providers.provider import ELEVATION, PM25, STATION_TABLE, STATIONS, never_without, providers_of
from cranpm.providers.table import provider_table

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cranpm"


def install(folder, module):
    """A package with an entry point, as pip would leave it; returns the environment that finds it."""
    (folder / "mine-1.0.dist-info").mkdir(parents=True)
    (folder / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (folder / "mine-1.0.dist-info" / "entry_points.txt").write_text(f"[cranpm.plugins]\nmine = {module}\n")
    paths = [str(folder), str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def cranpm(environment, *line):
    return subprocess.run(
        [sys.executable, "-m", "cranpm", *map(str, line)], env=environment, capture_output=True, text=True, check=False
    )


def box_of(domain):
    return f"{domain.north},{domain.west},{domain.south},{domain.east}"


def write_laboratory_file(path, archive, day):
    grid = archive.domain.fine
    with netCDF4.Dataset(path, "w") as file:
        file.title, file.day = "PM2.5 of the laboratory", str(day)
        for name, values in (("lat", grid.lat), ("lon", grid.lon)):
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", (name,))[:] = values
        file.createVariable("pm25", "f4", ("lat", "lon"), zlib=True)[:] = archive.pm25(day) + 1


def test_a_strangers_provider_is_fetched_validated_and_ingested(provider_files, archive, tmp_path):
    """PM2.5 of a laboratory fills the day that GHAP does not have, and goes before GHAP where both have one."""
    shutil.copy(ROOT / "docs" / "examples" / "own_provider.py", tmp_path)
    environment = install(tmp_path, "own_provider")
    first, second = archive.days[:2]
    files = shutil.copytree(provider_files, tmp_path / "files")
    for path in files.glob("GHAP*"):
        if f"{second:%Y%m%d}" not in path.name:
            path.unlink()
    for day in (first, second):
        write_laboratory_file(files / f"of_{day}.bin", archive, day)

    line = ["fetch", "laboratory", "--domain", "alps", "--days", first, "--to", tmp_path / "to", "--dry-run"]
    done = cranpm(environment, *line)
    assert json.loads(done.stdout.splitlines()[0])["url"].endswith(f"laboratory_{first}.nc"), done.stderr

    done = cranpm(environment, "validate", files, "--json")
    told = {Path(one["file"]).name: one for one in json.loads(done.stdout)["files"]}
    assert told[f"of_{first}.bin"]["provider"] == "laboratory"

    line = ["ingest", files, "--archive", tmp_path / "a", "--domain", box_of(archive.domain), "--jobs", 1, "-q"]
    done = cranpm(environment, *line)
    assert done.returncode == 0, done.stdout + done.stderr
    made = Archive(str(tmp_path / "a"))
    assert made.days == [first, second]
    for day in made.days:
        assert made.quality(day) is Quality.GOOD
        assert np.allclose(made.pm25(day), archive.pm25(day) + 1, atol=0.051, equal_nan=True)
        assert [name for name, _ in made.provenance(day)["files"]["laboratory"]] == [f"of_{day}.bin"]


DEADLY = '''
import os, signal
from datetime import date
from pathlib import Path
import numpy as np
from cranpm.providers import PROVIDERS, Provider
from cranpm.providers.provider import STATIONS, FileSummary, Reading

class Deadly(Provider):
    """The first worker that reads its file is killed."""
    name, title, provides, required = "deadly", "Deadly", (STATIONS,), "no"

    def recognise(self, piece):
        if piece.name == "deadly.txt":
            return FileSummary(piece, self.name, ("death",), date({first}), date({last}))

    def open(self, pieces, query):
        mark = Path({mark!r})
        if not mark.exists():
            mark.touch()
            os.kill(os.getppid(), signal.SIGKILL)
        return lambda day: Reading({{"station_ids": np.array([], dtype=str), STATIONS: np.array([])}})

PROVIDERS.add(Deadly.name, Deadly())
'''


@pytest.mark.long
def test_the_archive_is_the_same_when_a_worker_is_killed(provider_files, archive, tmp_path):
    """Two processes, one of which dies in the middle of a task; then one process alone."""
    days, mark = archive.days[:3], tmp_path / "killed"
    span = {name: f"{day.year}, {day.month}, {day.day}" for name, day in (("first", days[0]), ("last", days[-1]))}
    (tmp_path / "deadly.py").write_text(DEADLY.format(mark=str(mark), **span))
    environment = install(tmp_path, "deadly")
    files = shutil.copytree(provider_files, tmp_path / "files")
    (files / "deadly.txt").write_text("x\n")
    made = {}
    for jobs in (2, 1):
        place = tmp_path / f"{jobs}"
        line = ["ingest", files, "--archive", place, "--domain", box_of(archive.domain), "--jobs", jobs, "-q"]
        done = cranpm(environment, *line, "--days", f"{days[0]}..{days[-1]}")
        assert done.returncode == 0, done.stdout + done.stderr
        assert mark.exists()
        made[jobs] = Archive(str(place))
        assert made[jobs].days == days
    for day in days:
        assert made[1].provenance(day) == made[2].provenance(day)
        assert np.array_equal(made[1].coarse(day), made[2].coarse(day))
        assert np.array_equal(made[1].packed_pm25(day), made[2].packed_pm25(day))
        assert np.array_equal(made[1].stations_pm25(day), made[2].stations_pm25(day), equal_nan=True)


def test_every_channel_has_a_provider_and_no_file_but_its_own_names_one():
    assert {what: [provider.name for provider in providers_of(what)] for what in NAMES} == {
        channel.name: [channel.source] for channel in PAPER_CHANNELS
    }
    assert never_without() == {PM25}
    assert [provider.name for provider in providers_of(STATIONS)] == ["eea", "openaq"]
    assert providers_of(STATION_TABLE) == [PROVIDERS["eea"]]
    assert providers_of(ELEVATION) == [PROVIDERS["elevation"]]
    general = ["ingest", "assemble", "scan", "fetch", "sandbox", "table", "provider"]
    for name in general:
        text = (PACKAGE / "providers" / f"{name}.py").read_text()
        assert not [one for one in PROVIDERS if f'"{one}"' in text.replace('"elevation"', "")], name


def test_channels_are_known_by_their_quantity():
    found = {channel.name: channel.quantity for channel in PAPER_CHANNELS}
    assert (found["u10"], found["v850"], found["t2m"], found["t500"]) == (
        "wind_u",
        "wind_v",
        "temperature",
        "temperature",
    )
    assert {found[name] for name in ("z500", "q700", "sp", "tp")} == {
        "geopotential",
        "humidity",
        "surface_pressure",
        "precipitation",
    }
    assert found["cams_o3"] == "o3"
    assert all(found.values())


def test_the_table_in_the_documentation_is_made_of_the_declarations():
    text = (ROOT / "docs" / "sources" / "README.md").read_text()
    assert text.partition("<!-- providers -->\n")[2].partition("<!-- end of providers -->")[0] == provider_table()
    for provider in PROVIDERS.values():
        assert provider.licence.startswith("https://")
        assert all(url.startswith("https://") for url in provider.hosts.values())
        assert (ROOT / "docs" / "sources" / provider.page).is_file()


def test_a_provider_that_declares_nothing_else_refuses_politely():
    class Mute(Provider):
        name, title = "mute", "Mute"

    with pytest.raises(Exception, match="files of mute that can be fetched; found a provider whose files cannot"):
        Mute().requests(None)
    assert Mute().recognise(None) is None
    for ask in (Mute().open, Mute().read_stations):
        with pytest.raises(CranpmError, match="of the provider mute, which declares nothing"):
            ask([], None)
