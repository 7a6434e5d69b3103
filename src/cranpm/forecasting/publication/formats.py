"""The formats of products. All hold the same numbers: PM2.5 in steps of 0.1 ug m-3.

A format writes files whose names begin with `names.stem(day)`. Others register theirs: maps (png) are drawn by
`cranpm.views.figures.product_maps`, which stands above this room.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.registry import Registry
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.publication import names
from cranpm.forecasting.publication.dataset import global_attributes, to_dataset, write_netcdf, write_zarr
from cranpm.forecasting.publication.geotiff import write_cog

OnFile = Callable[[str], None]


@dataclass(frozen=True)
class Format:
    """Something that products can be written as."""

    title: str
    write: Callable[[Forecast, Archive, Path, OnFile], None]
    """Writes a forecast into a folder; the archive has the coast, and `OnFile` is called with what comes next."""


FORMATS: Registry[Format] = Registry("format")


def check_formats(wanted: Sequence[str]) -> None:
    """Refuse formats that cannot be written."""
    if unknown := [name for name in wanted if name not in FORMATS]:
        raise CranpmError(
            expected=f"formats among {', '.join(FORMATS)}", found=", ".join(unknown), remedy="For example --format nc."
        )


def _netcdf(forecast: Forecast, archive: Archive, folder: Path, on_file: OnFile) -> None:
    on_file("NetCDF")
    write_netcdf(to_dataset(forecast), folder / names.netcdf(forecast.day))


def _zarr(forecast: Forecast, archive: Archive, folder: Path, on_file: OnFile) -> None:
    on_file("Zarr")
    write_zarr(to_dataset(forecast), folder / names.zarr(forecast.day))


def _geotiff(forecast: Forecast, archive: Archive, folder: Path, on_file: OnFile) -> None:
    tags = global_attributes(forecast)
    for lead in forecast.leads:
        on_file(f"GeoTIFF T+{lead}")
        path = folder / names.of_lead(forecast.day, lead, "tif")
        write_cog(forecast.of(lead), forecast.grid, path, describe_lead(forecast, lead), tags)


def describe_lead(forecast: Forecast, lead: int) -> str:
    """What a GeoTIFF says of its band."""
    return f"daily mean PM2.5 on {forecast.valid(lead)}, T+{lead} from {forecast.day}"


FORMATS.add("nc", Format("NetCDF", _netcdf))
FORMATS.add("zarr", Format("Zarr", _zarr))
FORMATS.add("tif", Format("Cloud-Optimised GeoTIFF, one file per lead", _geotiff))
