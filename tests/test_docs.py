"""What the documents say runs."""

import re
from pathlib import Path

import numpy as np

from cranpm.archive.store import Archive
from cranpm.network import preset
from cranpm.network.cost import cost

DOCS = Path(__file__).parents[1] / "docs"


def python_blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)


def test_the_networks_page_runs_and_its_untrained_network_is_persistence(archive_path):
    text = "\n".join(python_blocks("network.md"))
    names: dict[str, object] = {}
    exec(text.replace('"alps.archive"', repr(str(archive_path))), names)
    today = Archive(str(archive_path)).pm25(names["today"], names["tile"])
    assert np.array_equal(names["forecast"][0].numpy(), today, equal_nan=True)
    assert names["day_ahead"].lead.tolist() == [2]
    assert names["context"].lead.tolist() == [2]


def test_the_networks_page_states_the_measured_sizes():
    text = (DOCS / "network.md").read_text()
    for name in ("paper", "small", "released"):
        result = cost(preset(name))
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"{result.parameters / 1e6:.1f} M" in row
        assert f"{result.flops('tile') / 1e9:.3g} GFLOP" in row
