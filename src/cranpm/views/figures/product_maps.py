"""The format `png` of products: one map per lead. Import this module to register it."""

from pathlib import Path

from cranpm.archive.store import Archive
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.publication import FORMATS, Format, names
from cranpm.forecasting.publication.formats import OnFile
from cranpm.views.figures.maps import draw, pm25_layer


def write_maps(forecast: Forecast, archive: Archive, folder: Path, on_file: OnFile) -> None:
    """One PNG per lead, with the coast of the archive; degraded inputs are named in the title."""
    method = forecast.provenance["method"] + (" · DEGRADED INPUT" if forecast.degraded else "")
    for lead in forecast.leads:
        on_file(f"map T+{lead}")
        title = f"PM$_{{2.5}}$ forecast for {forecast.valid(lead)} · T+{lead} from {forecast.day} · {method}"
        path = folder / names.of_lead(forecast.day, lead, "png")
        draw(pm25_layer(forecast.of(lead), forecast.grid), archive, title, path)


FORMATS.add("png", Format("maps, one per lead", write_maps))
