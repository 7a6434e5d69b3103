"""Providers' files in, validated fields on our grids out. Nothing after the archive knows where a day came from."""

from collections.abc import Mapping

from cranpm.providers.cams import Cams
from cranpm.providers.eea import Eea
from cranpm.providers.elevation import Elevation
from cranpm.providers.era5 import Era5
from cranpm.providers.ghap import Ghap
from cranpm.providers.openaq import OpenAq
from cranpm.providers.provider import Daily, Source

DAILY: Mapping[str, Daily] = {source.name: source for source in (Ghap(), Cams(), Era5(), Eea(), OpenAq())}
SOURCES: Mapping[str, Source] = {**DAILY, Elevation.name: Elevation()}
"""In the order in which a file is offered to them; the first that knows it has it."""
