"""A temporary package with an entry point, as a stranger would install it."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def install(folder: Path, module: str) -> None:
    """Put an example from the documentation into a folder as an installed plugin."""
    (folder / f"{module}.py").write_text((EXAMPLES / f"{module}.py").read_text())
    facts = folder / f"{module}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[cranpm.plugins]\n{module} = {module}\n")


def run_with_plugins(folder: Path, *line: str) -> "subprocess.CompletedProcess[str]":
    """The command line in a process that finds what is installed in a folder."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "cranpm", *line]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
