"""A network of another package needs its class and one decorator: the page's example is trained, tuned, and judged."""

import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from cranpm.core.errors import CranpmError
from cranpm.network import NETWORKS, ForecastNetwork, ForecastSettings, register
from cranpm.network.presets import read_network

EXAMPLE = Path(__file__).parents[2] / "docs/examples/own_network.py"
DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from cranpm import cli
for line in open(sys.argv[2]).read().splitlines():
    sys.argv = ["cranpm", *line.split()]
    try:
        cli.main()
    except SystemExit as stop:
        assert not stop.code, line
"""


def install(folder: Path) -> Path:
    """The example as the plugin of a package that is installed in `folder`."""
    facts = folder / "own-1.0.dist-info"
    facts.mkdir(parents=True)
    (folder / "own_network.py").write_text(EXAMPLE.read_text())
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[cranpm.plugins]\nown = own_network\n")
    return folder


def run_commands(folder: Path, *lines: str) -> str:
    """What `cranpm LINE` prints for each line, in one process that knows the plugin."""
    script = folder / "lines"
    script.write_text("\n".join(lines))
    command = [sys.executable, "-c", DRIVER, str(folder / "site"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_is_trained_tuned_forecasts_and_is_verified(month, tmp_path):
    install(tmp_path / "site")
    run, tuned = tmp_path / "run", tmp_path / "tuned"
    quick = f"--archive {month.location} --set optimiser.epochs=1 -q"
    printed = run_commands(
        tmp_path,
        f"train tiny.toml --model linear --set baseline.kernel=3 --set network.leads=[1,5] --out {run} {quick}",
        f"finetune {run}/best tiny.toml --out {tuned} {quick}",
        f"weights show {tuned}/best",
        f"forecast --archive {month.location} --day {month.days[5]} --weights {tuned}/best --leads 1,5 "
        f"--format nc --out {tmp_path}/products -q",
        f"verify --archive {month.location} --days {month.days[5]} --forecasts own={tmp_path}/products "
        f"--leads 1,5 --no-ssim --out {tmp_path}/scores -q",
    )
    assert "linear, 38 parameters" in printed  # 2 x 3 x 3 weights and a bias for each of two leads
    settings = json.loads((run / "best" / "settings.json").read_text())["network"]["settings"]
    assert settings["kernel"] == 3
    assert settings["tile_shape"] == [64, 64]
    assert json.loads((tuned / "settings.json").read_text())["network"] == settings
    assert "own" in (tmp_path / "scores" / "tables.md").read_text()


def test_the_example_is_short():
    assert len(EXAMPLE.read_text().splitlines()) <= 30


def test_settings_that_lack_what_others_need_are_refused():
    class Bare(ForecastSettings):
        leads: tuple[int, ...] = (1,)

    with pytest.raises(CranpmError, match="Bare without channels, coarse_shape, tile_shape, resolution"):
        register("bare", Bare)(ForecastNetwork)
    assert "bare" not in NETWORKS


def test_settings_that_cannot_follow_an_archive_are_refused():
    class Fixed(ForecastSettings):
        resolution: ClassVar[str] = "1 km"
        leads: tuple[int, ...] = (1,)
        coarse_shape: tuple[int, int] = (8, 8)
        tile_shape: tuple[int, int] = (8, 8)

        @property
        def channels(self) -> int:
            return 35

    with pytest.raises(CranpmError, match=r"the channels of an archive; found Fixed, .*define with_channels"):
        register("fixed", Fixed)(ForecastNetwork)
    assert "fixed" not in NETWORKS


def test_a_table_of_settings_names_its_network():
    assert read_network({}).kind == "cran-pm"
    assert read_network({"preset": "released"}).kind == "released"
    with pytest.raises(CranpmError, match=r"a network: cran-pm, released.*; found 'prophet'"):
        read_network({"kind": "prophet"})
    with pytest.raises(CranpmError, match="a preset of cran-pm; found released, which is one of released"):
        read_network({"kind": "cran-pm", "preset": "released"})
    with pytest.raises(CranpmError, match=r"one of the keys network\.kind, .*; found network\.depth"):
        read_network({"preset": "tiny", "depth": 3})
