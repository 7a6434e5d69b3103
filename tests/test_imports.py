"""Rooms import downward only: a module may use those that stand before it, never those after."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/cranpm"
ORDER = (
    "errors",
    "settings",
    "precision",
    "memory",
    "grid",
    "channels",
    "days",
    "fields",
    "simulate",
    "seals",
    "repository",
    "layout",
    "store",
    "regions",
    "tiles",
    "scale",
    "model",
    "baselines",
    "networks",
    "weights",
    "loss",
    "inputs",
    "samples",
    "verify",
    "train",
    "realism",
    "fill",
    "sources",
    "download",
    "fetch",
    "ingest",
    "native",
    "raster",
    "figures",
    "predict",
    "products",
    "experiments",
    "published",
    "report",
    "serve",
    "bench",
    "doctor",
    "cli",
    "__main__",
)
INNER = {
    "simulate": "geography waves weather transport emissions air downscale observe world __init__",
    "model": "context settings patches attention places swin elevation wind meeting encoder bridge decoder cranpm "
    "released presets cost __init__",
    "weights": "card authors readme sealed folder confine unpickle checkpoint __init__",
    "bench": "machine archive drawing network training forecasting verifying scaling ingesting serving __init__",
    "cli": "console archive ingesting training forecasting reporting serving verifying drawing experimenting "
    "network benches __init__",
    "baselines": "base persistence damped climatology cams body convlstm simvp earthformer climax topoflow learned "
    "__init__",
    "verify": "tally structure bootstrap agency stations methods day run scores table tables means write __init__",
    "figures": "style sheet maps given verified trials overview comparison leads places ablation causes transfer "
    "target reliability spectra animation catalogue __init__",
    "experiments": "intervene spec run report attention __init__",
    "report": "parts forecast verification write __init__",
    "published": "runs rasters places __init__",
    "serve": "truth made service tiles around models answers app __init__",
    "sources": "place names variable classic write netcdf files grib base regrid daily fields era5 cams ghap elevation "
    "eea openaq cloud ifs __init__ apart",
    "train": "settings optimise state validate record material start keep loop __init__",
}
"""Order inside the rooms that are folders."""
FILES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Dotted names below cranpm that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name.removeprefix("cranpm.") for name in names if name.startswith("cranpm.")}


def upward(path: Path, order: tuple[str, ...], own: str, names: set[str]) -> list[str]:
    used = {name.split(".")[0] for name in names} & set(order)
    return [name for name in used if order.index(name) > order.index(own)]


def test_every_room_has_its_place():
    assert {room(path) for path in FILES} - {"__init__"} == set(ORDER)
    assert {path.parent.name for path in FILES} - {"cranpm"} == set(INNER)
    for name, order in INNER.items():
        assert {path.stem for path in (SOURCE / name).glob("*.py")} == set(order.split())


@pytest.mark.parametrize("path", [path for path in FILES if path.parent != SOURCE or path.stem != "__init__"], ids=str)
def test_imports_run_downward(path):
    assert upward(path, ORDER, room(path), imported(path)) == []
    if path.parent != SOURCE:
        prefix = f"{room(path)}."
        inner = {name.removeprefix(prefix) for name in imported(path) if name.startswith(prefix)}
        assert upward(path, tuple(INNER[room(path)].split()), path.stem, inner) == []


def test_the_check_can_fail():
    assert upward(SOURCE / "grid.py", ORDER, "grid", {"store.Archive"}) == ["store"]


def test_lightning_and_torch_are_not_needed_to_simulate():
    code = "import sys, cranpm.cli, cranpm.simulate.job, cranpm.cli.forecasting; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "cranpm.simulate.job" in loaded
    assert not {"torch", "lightning"} & set(loaded)


def test_the_network_never_sees_a_file():
    for path in (SOURCE / "model").glob("*.py"):
        text = path.read_text()
        assert not [word for word in ("pathlib", "open(", "safetensors", "cranpm.archive.store") if word in text], path


def test_no_import_is_relative():
    nodes = [node for path in FILES for node in ast.walk(ast.parse(path.read_text()))]
    assert not [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
