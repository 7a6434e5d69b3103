"""A forecast as a dataset by the conventions CF-1.11 and ACDD-1.3, for NetCDF and Zarr."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import xarray

from cranpm import __version__
from cranpm.archive.store import SIMULATION
from cranpm.core.packing import PUBLISHED, STEP_UGM3
from cranpm.forecasting.forecast import Forecast

CHUNK = 512
UNITS = "ug m-3"
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
    dataset.attrs.update(global_attributes(forecast))
    return dataset


def _attributes(forecast: Forecast) -> dict[str, dict[str, Any]]:
    return {
        "pm2p5": {
            "standard_name": STANDARD_NAME,
            "long_name": "daily mean PM2.5 at the surface, forecast",
            "units": UNITS,
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


def global_attributes(forecast: Forecast) -> dict[str, Any]:
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
