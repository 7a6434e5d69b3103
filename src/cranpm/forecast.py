"""From a start day in the archive to maps of the days ahead. The method is persistence until a network replaces it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from cranpm.baselines.persistence import persistence
from cranpm.days import LEADS
from cranpm.errors import CranpmError
from cranpm.figures import check_picture, draw, pm25_layer
from cranpm.grid import Array
from cranpm.store import Archive


@dataclass(frozen=True)
class Forecasted:
    """One lead of a forecast that was drawn; the error is None where the archive lacks the day."""

    lead: int
    valid: date
    mean_ugm3: float
    rmse_ugm3: float | None
    path: Path


def parse_leads(text: str) -> tuple[int, ...]:
    """Leads from `1,2,3`."""
    try:
        leads = tuple(int(part) for part in text.split(","))
    except ValueError:
        leads = ()
    if not leads or not set(leads) <= set(LEADS) or len(set(leads)) != len(leads):
        raise CranpmError(expected=f"leads among {LEADS}, each once", found=text, remedy="For example --leads 1,2,3.")
    return leads


def draw_forecast(
    archive: Archive, day: date, leads: Sequence[int], folder: Path, on_lead: Callable[[], None] = lambda: None
) -> list[Forecasted]:
    """Forecast and draw one PNG a lead."""
    results = []
    check_picture(folder / "map.png")
    for lead, field in persistence(archive, day, leads).items():
        valid = day + timedelta(days=lead)
        path = folder / f"pm25_{day}_T+{lead}.png"
        title = f"PM$_{{2.5}}$ forecast for {valid} · T+{lead} from {day} · persistence"
        draw(pm25_layer(field, archive.domain.fine), archive, title, path)
        results.append(Forecasted(lead, valid, float(np.nanmean(field)), _rmse(archive, valid, field), path))
        on_lead()
    return results


def _rmse(archive: Archive, valid: date, field: Array) -> float | None:
    if valid not in archive.days:
        return None
    return float(np.sqrt(np.nanmean((archive.pm25(valid) - field) ** 2)))
