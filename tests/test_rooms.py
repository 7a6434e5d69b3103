"""The house has at most fifteen rooms, and a room uses only those that stand before it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/cranpm"
ORDER = (
    "core",
    "archive",
    "providers",
    "simulate",
    "network",
    "baselines",
    "weights",
    "training",
    "forecasting",
    "verification",
    "experiments",
    "operate",
    "views",
    "cli",
)
"""From what knows nothing of the others to what knows them all."""
MOST_ROOMS = 15
FILES = sorted(SOURCE.rglob("*.py"))
INSIDE = [path for path in FILES if path.parent != SOURCE]


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def imported(text: str) -> set[str]:
    """Dotted names below cranpm that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name.removeprefix("cranpm.") for name in names if name.startswith("cranpm.")}


def upward(own: str, names: set[str]) -> set[str]:
    """Rooms that a file of the room `own` must not use, but does."""
    used = {name.split(".")[0] for name in names} & set(ORDER)
    return {name for name in used if ORDER.index(name) > ORDER.index(own)}


def test_every_room_has_its_place():
    assert {room(path) for path in INSIDE} == set(ORDER)
    assert len(ORDER) <= MOST_ROOMS
    assert {path.name for path in FILES if path.parent == SOURCE} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("name", ORDER)
def test_imports_run_downward(name):
    found = {str(path): upward(name, imported(path.read_text())) for path in INSIDE if room(path) == name}
    assert {path: rooms for path, rooms in found.items() if rooms} == {}


def test_the_check_can_fail():
    assert upward("core", imported("from cranpm.archive.store import Archive")) == {"archive"}
    assert upward("verification", imported("def f():\n    import cranpm.views.figures")) == {"views"}
    assert upward("cli", imported("from cranpm.core import grid")) == set()


def test_tests_mirror_the_rooms():
    folders = {path.name for path in Path(__file__).parent.iterdir() if path.is_dir()} - {"golden", "__pycache__"}
    assert folders <= set(ORDER)


@pytest.mark.parametrize(
    "module", ["cranpm.cli", "cranpm.simulate.job", "cranpm.cli.forecasting", "cranpm.verification"]
)
def test_torch_is_not_needed(module):
    """To simulate, to judge a forecast, or to start the command line."""
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert module in loaded
    assert not {"torch", "lightning"} & set(loaded)


def test_the_network_never_sees_a_file():
    for path in (*(SOURCE / "network").glob("*.py"), SOURCE / "training" / "loss.py"):
        text = path.read_text()
        forbidden = ("open(", "safetensors", "cranpm.archive", *(() if path.stem == "precision" else ("pathlib",)))
        assert not [word for word in forbidden if word in text], path


def test_no_import_is_relative():
    nodes = [node for path in FILES for node in ast.walk(ast.parse(path.read_text()))]
    assert not [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
