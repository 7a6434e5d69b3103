"""Providers' files in, validated fields on our grids out. Nothing after the archive knows where a day came from."""

from cranpm.providers.aifs import Aifs
from cranpm.providers.cams import Cams
from cranpm.providers.cams_europe import CamsEurope
from cranpm.providers.cams_global import CamsGlobal
from cranpm.providers.eea import Eea
from cranpm.providers.elevation import Elevation
from cranpm.providers.era5 import Era5
from cranpm.providers.ghap import Ghap
from cranpm.providers.hres import Hres
from cranpm.providers.ifs import Ifs
from cranpm.providers.openaq import OpenAq
from cranpm.providers.provider import PROVIDERS, Provider
from cranpm.providers.zarr_stores import ARCO, WEATHERBENCH2

_ALL = (
    *(Elevation(), OpenAq(), Eea(), ARCO, WEATHERBENCH2, Era5()),
    *(CamsGlobal(), CamsEurope(), Aifs(), Ifs(), Hres(), Cams(), Ghap()),
)
for _provider in _ALL:
    PROVIDERS.add(_provider.name, _provider)

__all__ = ["PROVIDERS", "Provider"]
