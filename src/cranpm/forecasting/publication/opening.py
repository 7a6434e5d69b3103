"""From the files of a run to a `Run`: checksums first, then that the files say the same and hold possible values."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import rasterio
import xarray

from cranpm.archive.day_data import PM25_CEILING_UGM3
from cranpm.archive.store import SIMULATION
from cranpm.core.errors import CranpmError
from cranpm.core.files import SUMS, check_sums, read_sums
from cranpm.core.grid import FINE_STEP, Array, Grid
from cranpm.core.packing import PUBLISHED, STEP_UGM3
from cranpm.forecasting.publication import names, stacks
from cranpm.forecasting.publication.dataset import UNITS
from cranpm.forecasting.publication.geotiff import BLOCK, open_geotiff
from cranpm.forecasting.publication.run import AbsentError, DamagedError, Run

REMEDY = "Make the forecast again."
HIGHEST = round(PM25_CEILING_UGM3 / STEP_UGM3)
EPOCH = date(1970, 1, 1)
FAULTS = (
    *(rasterio.errors.RasterioError, OSError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError),
    RuntimeError,  # how the HDF library says that it cannot read
)
"""What libraries raise on damaged files."""


@dataclass(frozen=True)
class Contents:
    """What one file, or the GeoTIFFs together, say."""

    leads: tuple[int, ...]
    grid: Grid
    attributes: dict[str, Any]


def open_run(folder: Path, day: str, version: str) -> Run:
    """A checked run from the folder of one version; refused where a bit differs from what was published."""
    if not folder.is_dir():
        raise DamagedError(expected=f"the files of {day}", found=f"no folder {folder.name}", remedy=REMEDY)
    checked = (folder / SUMS).is_file()
    try:
        if checked:
            check_files(folder, day)
        found = dict(_contents(folder, day))
        _check_agreement(found, day)
        _check_whole(found, day, checked)
        _check_values(folder, day, found, thorough=not checked)
        return _described(folder, day, version, found, checked)
    except (AbsentError, DamagedError):
        raise
    except CranpmError as error:
        raise DamagedError(expected=error.expected, found=error.found, remedy=REMEDY) from None
    except FAULTS as error:
        raise DamagedError(
            expected=f"products that cranpm wrote in {day}", found=str(error)[:300], remedy=REMEDY
        ) from None


def check_files(folder: Path, day: str) -> None:
    """Refuse a run with a file that differs from its checksum, is missing or is not listed."""
    stated, text = read_sums(folder), (folder / SUMS).read_bytes()
    if text != "".join(f"{value}  {name}\n" for name, value in stated.items()).encode():
        _refuse(f"{SUMS} as it was written in {day}", "a damaged one")
    present = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    if extra := [name for name in present if names.is_product(name, day) and name not in stated and name != SUMS]:
        _refuse(f"only files that {SUMS} lists in {day}", sorted(extra)[0])
    check_sums(folder)


def _contents(folder: Path, day: str) -> Iterator[tuple[str, Contents]]:
    """By format."""
    if leads := names.leads_in(folder, day, "tif"):
        yield "tif", _of_rasters(folder, day, leads)
    for form, name in (("nc", names.netcdf(day)), ("zarr", names.zarr(day))):
        if (folder / name).exists():
            with stacks.opened(folder / name) as dataset:
                yield form, _of_dataset(dataset, name, day)


def _of_rasters(folder: Path, day: str, leads: tuple[int, ...]) -> Contents:
    """Every lead on the grid of the first."""
    found = [_of_raster(folder / names.of_lead(day, lead, "tif"), day, lead) for lead in leads]
    for lead, other in zip(leads, found, strict=True):
        if other.grid != found[0].grid:
            _refuse(f"T+{lead} of {day} on the grid of T+{leads[0]}, {found[0].grid}", str(other.grid))
    return Contents(leads, found[0].grid, found[0].attributes)


def _of_raster(path: Path, day: str, lead: int) -> Contents:
    with open_geotiff(path) as raster:
        corner, shape, tags = raster.transform, raster.shape, raster.tags()
        kind = (raster.count, raster.dtypes[0], raster.nodata, round(raster.scales[0], 9), raster.offsets[0])
        place, what = raster.crs, raster.descriptions[0] or "nothing"
    if kind != (1, "int16", PUBLISHED.missing, STEP_UGM3, 0.0) or place != rasterio.CRS.from_epsg(4326):
        _refuse(f"one band of int16 in steps of {STEP_UGM3} {UNITS} in {path.name}", f"{kind}, {place}")
    if not what.endswith(f"T+{lead} from {day}"):
        _refuse(f"T+{lead} from {day} in {path.name}", what)
    if max(abs(corner.a - FINE_STEP), abs(corner.e + FINE_STEP), abs(corner.b), abs(corner.d)) > 1e-9:
        _refuse(f"pixels of {FINE_STEP} degrees in {path.name}", f"{corner.a:g} x {-corner.e:g}")
    return Contents((lead,), Grid(round(corner.f, 9), round(corner.c, 9), FINE_STEP, *shape), tags)


def _of_dataset(dataset: xarray.Dataset, name: str, day: str) -> Contents:
    pm25 = dataset["pm2p5"]
    if pm25.attrs.get("units") != UNITS:
        _refuse(f"PM2.5 in {UNITS} in {name}", str(pm25.attrs.get("units")))
    packing = set(pm25.attrs) & {"scale_factor", "_FillValue", "add_offset"}
    if packing != {"scale_factor", "_FillValue"} or pm25.dtype != PUBLISHED.dtype:
        _refuse(f"pm2p5 packed by scale_factor with a _FillValue in {name}", f"{sorted(packing)}, {pm25.dtype}")
    if abs(float(pm25.attrs["scale_factor"]) - STEP_UGM3) > 1e-6 or int(pm25.attrs["_FillValue"]) != PUBLISHED.missing:
        _refuse(f"steps of {STEP_UGM3} in {name}", str(pm25.attrs["scale_factor"]))
    start = EPOCH + timedelta(hours=int(dataset["forecast_reference_time"]))
    if str(start) != day:
        _refuse(f"a forecast from {day} in {name}", f"one from {start}")
    leads = tuple(int(lead) for lead in dataset["forecast_period"].values)
    grid = _grid(dataset["lat"].values, dataset["lon"].values, name)
    if pm25.shape != (len(leads), *grid.shape):
        _refuse(f"pm2p5 by lead, lat and lon in {name}", f"shape {pm25.shape}")
    return Contents(leads, grid, dict(dataset.attrs))


def _grid(lat: Array, lon: Array, name: str) -> Grid:
    """The grid that has these centres."""
    north, west = round(float(lat[0]) + FINE_STEP / 2, 9), round(float(lon[0]) - FINE_STEP / 2, 9)
    grid = Grid(north, west, FINE_STEP, len(lat), len(lon))
    if max(np.abs(lat - grid.lat).max(), np.abs(lon - grid.lon).max()) > 1e-6:
        _refuse(f"centres in steps of {FINE_STEP} degrees in {name}", f"lat {lat[0]:g}.., lon {lon[0]:g}..")
    return grid


def _check_agreement(found: dict[str, Contents], day: str) -> None:
    """Refuse formats that do not hold the same leads on the same grid."""
    if not found:
        raise AbsentError(
            expected=f"a forecast from {day} as tif, nc or zarr",
            found="none",
            remedy="Make it with `cranpm forecast --format tif`.",
        )
    (first, one), *others = found.items()
    for name, other in others:
        if (other.leads, other.grid) != (one.leads, one.grid):
            _refuse(
                f"{first} and {name} of {day} with the same leads and grid",
                f"{one.leads}, {one.grid} and {other.leads}, {other.grid}",
            )


def _check_whole(found: dict[str, Contents], day: str, checked: bool) -> None:
    """Refuse a product that lacks the checksums or a lead that it states; products of old versions state neither."""
    for form, contents in found.items():
        stated = json.loads(contents.attributes["provenance"])
        if "checksums" in stated and not checked:
            _refuse(f"{stated['checksums']} beside the {form} of {day}", "none")
        if "leads" in stated and sorted(stated["leads"]) != sorted(contents.leads):
            _refuse(f"the leads {stated['leads']} in the {form} of {day}", str(list(contents.leads)))


def _check_values(folder: Path, day: str, found: dict[str, Contents], thorough: bool) -> None:
    """Refuse values that PM2.5 never has: in the coarsest overview, or, without checksums, everywhere."""
    for form, contents in found.items():
        for index, lead in enumerate(contents.leads):
            for steps in _blocks(folder, day, form, index, lead, thorough):
                there = steps[steps != PUBLISHED.missing]
                if there.size and not (there.min() >= 0 and there.max() <= HIGHEST):
                    low, high = there.min() * STEP_UGM3, there.max() * STEP_UGM3
                    _refuse(f"0..{PM25_CEILING_UGM3:g} {UNITS} at T+{lead} of {day}", f"{low:.1f} to {high:.1f}")


def _blocks(folder: Path, day: str, form: str, index: int, lead: int, thorough: bool) -> Iterator[Array]:
    """Parts of a field, strip by strip; if not thorough, the coarsest overview of a GeoTIFF and nothing of others."""
    if form == "tif":
        path = folder / names.of_lead(day, lead, "tif")
        with open_geotiff(path) as raster:
            levels, rows, cols = len(raster.overviews(1)), raster.height, raster.width
            for first in range(0, rows if thorough or not levels else 0, BLOCK):
                yield raster.read(1, window=((first, min(first + BLOCK, rows)), (0, cols)))
        if levels and not thorough:
            with open_geotiff(path, levels - 1) as small:
                yield small.read(1)
    elif thorough:
        with stacks.opened(folder / (names.netcdf(day) if form == "nc" else names.zarr(day))) as dataset:
            for first in range(0, dataset["pm2p5"].shape[1], BLOCK):
                yield np.asarray(dataset["pm2p5"][index, first : first + BLOCK].values)


def _described(folder: Path, day: str, version: str, found: dict[str, Contents], checked: bool) -> Run:
    contents = next(iter(found.values()))
    tags = contents.attributes
    provenance, made = json.loads(tags["provenance"]), datetime.fromisoformat(tags["date_created"])
    if made.tzinfo is None:
        _refuse(f"a time zone in the date of {day}", tags["date_created"])
    return Run(
        day=date.fromisoformat(day),
        version=version,
        folder=folder,
        leads=contents.leads,
        grid=contents.grid,
        made=made,
        method=str(provenance["method"]),
        simulated=SIMULATION in f"{provenance.get('archive_source', '')} {provenance.get('weights_source', '')}",
        degraded=() if tags["degraded"] == "no" else tuple(tags["degraded"].split("; ")),
        formats=frozenset(found),
        checked=checked,
        provenance=provenance,
    )


def _refuse(expected: str, found: str) -> NoReturn:
    raise DamagedError(expected=expected, found=found, remedy=REMEDY)
