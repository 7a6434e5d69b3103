"""Daily PM2.5 at 1 km for a continent, one to three days ahead."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import xarray

    from cranpm.forecasting.publication import Publication

__version__ = version("cranpm")


def forecast(
    archive: Any, day: Any, weights: Any = "shipped", leads: Sequence[int] | None = None, **how: Any
) -> "xarray.Dataset":
    """A checked forecast as the dataset that NetCDF files hold.

    `archive` is a place or an Archive, `day` a date or its text, `weights` a folder, Weights,
    "shipped" or "persistence"; without `leads`, all days ahead of the weights are forecast.
    `how` is passed on to `cranpm.forecasting.engine.predict`.
    """
    from datetime import date

    from cranpm.archive.store import Archive
    from cranpm.core.days import parse_day
    from cranpm.forecasting.engine import predict
    from cranpm.forecasting.publication.dataset import to_dataset
    from cranpm.weights import Weights, find_weights

    opened = archive if isinstance(archive, Archive) else Archive(str(archive))
    start = day if isinstance(day, date) else parse_day(str(day))
    chosen = weights if isinstance(weights, Weights) else find_weights(str(weights))
    return to_dataset(predict(opened, start, chosen, leads, **how))


def open_publication(folder: "Path | str") -> "Publication":
    """The forecasts that `cranpm forecast --out` published in a folder; `.newest().pm25(lead)` is in ug m-3."""
    from cranpm.forecasting import publication

    return publication.open_publication(folder)
