"""A forecast as files that people can use: NetCDF, Zarr, Cloud-Optimised GeoTIFF and maps, published all at once.

All formats hold the same numbers: PM2.5 in steps of 0.1 ug m-3.
"""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import rasterio
import xarray

from cranpm import __version__
from cranpm.archive.store import SIMULATION, Archive
from cranpm.core.errors import CranpmError
from cranpm.core.grid import FINE_STEP
from cranpm.core.packing import PUBLISHED, STEP_UGM3
from cranpm.forecasting.engine import Forecast
from cranpm.forecasting.publication.geotiff import write_cog
from cranpm.views.figures import draw, pm25_layer

A_DAY = 86400
CHUNK = 512
FORMATS = ("nc", "zarr", "tif", "png")
FLAGS = {"good": 0, "degraded_input": 1, "no_forecast": 2}
STANDARD_NAME = "mass_concentration_of_pm2p5_ambient_aerosol_particles_in_air"


def to_dataset(forecast: Forecast) -> xarray.Dataset:
    """CF-1.11 and ACDD-1.3: daily means by valid day, with reference time, period, bounds, quality and provenance."""
    starts = np.array([np.datetime64(forecast.valid(lead), "ns") for lead in forecast.leads])
    day, noon = np.timedelta64(1, "D"), np.timedelta64(12, "h")
    here, nowhere = (np.int8(FLAGS[n]) for n in ("degraded_input" if forecast.degraded else "good", "no_forecast"))
    dims = ("time", "lat", "lon")
    dataset = xarray.Dataset(
        {
            "pm2p5": (dims, np.stack([PUBLISHED.unpack(PUBLISHED.pack(field)) for field in forecast.fields])),
            "quality": (dims, np.where(np.isfinite(forecast.fields), here, nowhere)),
            "time_bnds": (("time", "bnds"), np.stack([starts, starts + day], axis=1)),
            "crs": ((), np.int32(0)),
        },
        coords={
            "time": ("time", starts + noon),
            "lat": ("lat", forecast.grid.lat),
            "lon": ("lon", forecast.grid.lon),
            "forecast_reference_time": ((), np.datetime64(forecast.day, "ns") + noon),
            "forecast_period": ("time", np.array(forecast.leads, dtype=np.int32)),
        },
    )
    for name, attributes in _attributes(forecast).items():
        dataset[name].attrs.update(attributes)
    dataset.attrs.update(_global_attributes(forecast))
    return dataset


def _attributes(forecast: Forecast) -> dict[str, dict[str, Any]]:
    return {
        "pm2p5": {
            "standard_name": STANDARD_NAME,
            "long_name": "daily mean PM2.5 at the surface, forecast",
            "units": "ug m-3",
            "cell_methods": "time: mean",
            "grid_mapping": "crs",
            "ancillary_variables": "quality",
            "coverage_content_type": "modelResult",
        },
        "quality": {
            "standard_name": "quality_flag",
            "long_name": "quality of the forecast",
            "flag_values": np.array(list(FLAGS.values()), dtype=np.int8),
            "flag_meanings": " ".join(FLAGS),
            "grid_mapping": "crs",
            "coverage_content_type": "qualityInformation",
            **({"comment": "; ".join(forecast.degraded)} if forecast.degraded else {}),
        },
        "time": {"standard_name": "time", "long_name": "middle of the valid day", "axis": "T", "bounds": "time_bnds"},
        "lat": {"standard_name": "latitude", "long_name": "latitude", "units": "degrees_north", "axis": "Y"},
        "lon": {"standard_name": "longitude", "long_name": "longitude", "units": "degrees_east", "axis": "X"},
        "forecast_reference_time": {
            "standard_name": "forecast_reference_time",
            "long_name": "middle of the start day",
        },
        "forecast_period": {
            "standard_name": "forecast_period",
            "long_name": "days from the start day to the valid day",
            "units": "days",
        },
        "crs": {
            "grid_mapping_name": "latitude_longitude",
            "long_name": "WGS 84",
            "semi_major_axis": 6378137.0,
            "inverse_flattening": 298.257223563,
            "longitude_of_prime_meridian": 0.0,
            "crs_wkt": rasterio.CRS.from_epsg(4326).to_wkt(),
        },
    }


def _global_attributes(forecast: Forecast) -> dict[str, Any]:
    grid, now = forecast.grid, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    first, last = (forecast.valid(lead) for lead in (min(forecast.leads), max(forecast.leads)))
    made_from = f"{forecast.provenance['archive_source']} {forecast.provenance.get('weights_source', '')}"
    caveat = "Made from simulated data: not for real decisions." if SIMULATION in made_from else ""
    return {
        "Conventions": "CF-1.11, ACDD-1.3",
        "title": f"PM2.5 forecast at 1 km from {forecast.day}",
        "summary": f"Daily mean surface PM2.5 at 0.01 degrees, {', '.join(f'T+{lead}' for lead in forecast.leads)} "
        f"from {forecast.day}. {caveat}".strip(),
        "keywords": "air quality, PM2.5, particulate matter, forecast",
        "source": f"{forecast.provenance['method']}, cranpm {__version__}",
        "history": f"{now} cranpm {__version__} forecast",
        "date_created": now,
        "institution": "not stated",
        "license": "as the input data allow",
        "processing_level": "forecast",
        "geospatial_lat_min": grid.south,
        "geospatial_lat_max": grid.north,
        "geospatial_lon_min": grid.west,
        "geospatial_lon_max": grid.east,
        "geospatial_lat_resolution": f"{grid.step:g} degrees",
        "geospatial_lon_resolution": f"{grid.step:g} degrees",
        "time_coverage_start": f"{first}T00:00:00Z",
        "time_coverage_end": f"{last + timedelta(days=1)}T00:00:00Z",
        "time_coverage_resolution": "P1D",
        "degraded": "; ".join(forecast.degraded) or "no",
        "provenance": json.dumps(dict(forecast.provenance), sort_keys=True),
    }


def encoding(dataset: xarray.Dataset, compression: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Packing, chunks and units of time, for NetCDF and Zarr alike."""
    rows, cols = (min(CHUNK, dataset.sizes[name]) for name in ("lat", "lon"))
    pack = {"dtype": "int16", "scale_factor": np.float32(STEP_UGM3), "_FillValue": np.int16(PUBLISHED.missing)}
    since = {"units": "hours since 1970-01-01 00:00:00", "calendar": "standard", "dtype": "int32"}
    stored = {**compression, "chunksizes" if "zlib" in compression else "chunks": (1, rows, cols)}
    return {
        "pm2p5": pack | stored,
        "quality": {"dtype": "int8"} | stored,
        **{name: dict(since) for name in ("time", "time_bnds", "forecast_reference_time")},
        **{name: {"_FillValue": None} for name in ("lat", "lon")},
    }


def write_netcdf(dataset: xarray.Dataset, path: Path) -> None:
    compression = {"zlib": True, "complevel": 2, "shuffle": True}
    dataset.to_netcdf(path, engine="netcdf4", encoding=encoding(dataset, compression))


def write_zarr(dataset: xarray.Dataset, path: Path) -> None:
    dataset.to_zarr(path, mode="w", consolidated=False, encoding=encoding(dataset, {}))


def publish(
    forecast: Forecast,
    archive: Archive,
    folder: Path,
    formats: Sequence[str] = ("nc", "tif", "png"),
    on_file: Callable[[str], None] = lambda name: None,
) -> Path:
    """Write a forecast as `folder`/DAY. A reader sees the old product or the new one, never a part of either."""
    public = folder / str(forecast.day)
    old = _check_place(public, formats)
    hidden = folder / f".{public.name}.{secrets.token_hex(4)}"
    try:
        hidden.mkdir(parents=True)
        _write_all(forecast, archive, hidden, formats, on_file)
        pointer = folder / f"{hidden.name}.link"
        pointer.symlink_to(hidden.name)
        os.replace(pointer, public)
    except (OSError, RuntimeError) as error:  # RuntimeError: how the HDF library says that it cannot write
        shutil.rmtree(hidden, ignore_errors=True)
        raise CranpmError(
            expected=f"to write the product in {folder}",
            found=getattr(error, "strerror", None) or str(error),
            remedy="Make room or name another folder; what was published before is untouched.",
        ) from None
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    for left in {old, *_leftovers(public)} - {None, hidden}:
        shutil.rmtree(cast(Path, left), ignore_errors=True)
    return public


def _leftovers(public: Path) -> list[Path]:
    """Folders of this day that writers left unfinished more than a day ago: killed, not slow."""
    found = [path for path in public.parent.glob(f".{public.name}.*") if path.is_dir() and not path.is_symlink()]
    return [path for path in found if path != public.resolve() and time.time() - path.stat().st_mtime > A_DAY]


def _check_place(public: Path, formats: Sequence[str]) -> Path | None:
    """The folder of the product that will be replaced, if any; refuses what is not a product of ours."""
    check_formats(formats)
    if not public.is_symlink() and not public.exists():
        return None
    old = public.resolve()
    if not (public.is_symlink() and old.parent == public.parent.resolve() and old.name.startswith(f".{public.name}.")):
        raise CranpmError(
            expected=f"{public} free, or a product of ours", found="something else", remedy="Name another folder."
        )
    return old


def check_formats(formats: Sequence[str]) -> None:
    """Refuse formats that cannot be written."""
    if unknown := [name for name in formats if name not in FORMATS]:
        raise CranpmError(
            expected=f"formats among {', '.join(FORMATS)}", found=", ".join(unknown), remedy="For example --format nc."
        )


def _write_all(
    forecast: Forecast, archive: Archive, folder: Path, formats: Sequence[str], on_file: Callable[[str], None]
) -> None:
    stem = f"pm25_{forecast.day}"
    if {"nc", "zarr"} & set(formats):
        dataset = to_dataset(forecast)
        if "nc" in formats:
            on_file("NetCDF")
            write_netcdf(dataset, folder / f"{stem}.nc")
        if "zarr" in formats:
            on_file("Zarr")
            write_zarr(dataset, folder / f"{stem}.zarr")
    for lead in forecast.leads:
        if "tif" in formats:
            on_file(f"GeoTIFF T+{lead}")
            what = f"daily mean PM2.5 on {forecast.valid(lead)}, T+{lead} from {forecast.day}"
            path = folder / f"{stem}_T+{lead}.tif"
            write_cog(forecast.of(lead), forecast.grid, path, what, _global_attributes(forecast))
        if "png" in formats:
            on_file(f"map T+{lead}")
            method = forecast.provenance["method"] + (" · DEGRADED INPUT" if forecast.degraded else "")
            title = f"PM$_{{2.5}}$ forecast for {forecast.valid(lead)} · T+{lead} from {forecast.day} · {method}"
            draw(pm25_layer(forecast.of(lead), forecast.grid), archive, title, folder / f"{stem}_T+{lead}.png")


def _open(path: Path) -> xarray.Dataset:
    try:
        dataset = xarray.open_dataset(path, engine="netcdf4", decode_timedelta=False)
    except (OSError, ValueError) as error:
        raise CranpmError(
            expected=f"a NetCDF file of a forecast at {path}", found=str(error), remedy="Name a pm25_DAY.nc."
        ) from None
    if "pm2p5" not in dataset or "forecast_period" not in dataset.coords:
        raise CranpmError(
            expected="pm2p5 by forecast_period", found=f"others in {path}", remedy="Name a file that cranpm wrote."
        )
    return dataset


def point(path: Path, lat: float, lon: float) -> list[dict[str, Any]]:
    """Values of the pixel that holds a point, one row a lead; NaN at sea."""
    with _open(path) as dataset:
        row, col = (int(np.abs(dataset[name].values - value).argmin()) for name, value in (("lat", lat), ("lon", lon)))
        if max(abs(float(dataset.lat[row]) - lat), abs(float(dataset.lon[col]) - lon)) > 0.5 * FINE_STEP + 1e-9:
            box = [float(dataset[n][i]) for n, i in (("lat", 0), ("lon", 0), ("lat", -1), ("lon", -1))]
            raise CranpmError(
                expected="a point inside N {:.2f}, W {:.2f}, S {:.2f}, E {:.2f}".format(*box),
                found=f"{lat}, {lon}",
                remedy="Give --lat and --lon in degrees north and east.",
            )
        here = dataset.isel(lat=row, lon=col).load()
    return [
        {
            "lead": int(here.forecast_period[index]),
            "valid": str(here.time.values[index])[:10],
            "pm2p5": float(here.pm2p5[index]),
            "quality": next(name for name, flag in FLAGS.items() if flag == int(here.quality[index])),
            "lat": float(here.lat),
            "lon": float(here.lon),
        }
        for index in range(here.sizes["time"])
    ]
