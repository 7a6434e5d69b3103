"""Providers' files in, validated fields on our grids out. Nothing after the archive knows where a day came from."""

from collections.abc import Mapping

from cranpm.sources.base import Daily, Source
from cranpm.sources.cams import Cams
from cranpm.sources.eea import Eea
from cranpm.sources.elevation import Elevation
from cranpm.sources.era5 import Era5
from cranpm.sources.ghap import Ghap
from cranpm.sources.openaq import OpenAq

DAILY: Mapping[str, Daily] = {source.name: source for source in (Ghap(), Cams(), Era5(), Eea(), OpenAq())}
SOURCES: Mapping[str, Source] = {**DAILY, Elevation.name: Elevation()}
"""In the order in which a file is offered to them; the first that knows it has it."""
