"""The EEA's list of stations: where sampling points are, and of which kind."""

import csv
from collections.abc import Mapping, Sequence

import numpy as np

from cranpm.archive.day_data import Stations
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain
from cranpm.providers.readers.files import Piece, sniff
from cranpm.providers.readers.tables import dialect, open_text

PM25_CODE = 6001
METADATA = {
    "point": ("Sampling Point Id", "SamplingPoint"),
    "pollutant": ("Air Pollutant", "AirPollutantCode"),
    "lat": ("Latitude",),
    "lon": ("Longitude",),
    "altitude": ("Altitude",),
    "station": ("Air Quality Station EoI Code", "AirQualityStationEoICode"),
    "kind": ("Air Quality Station Type", "AirQualityStationType"),
    "area": ("Air Quality Station Area", "AirQualityStationArea"),
}
"""Columns of DataExtract.csv, and of PanEuropean_metadata.csv."""


def point_of(text: str) -> str:
    """The sampling point without its country: `CZ/SPO.X` and `SPO.X` are the same."""
    return str(text).rpartition("/")[2]


def read_stations(pieces: Sequence[Piece], domain: Domain) -> Stations:
    """PM2.5 sampling points inside the domain, each once, by name."""
    found: dict[str, Mapping[str, str]] = {}
    for piece in pieces:
        with piece.local() as path:
            if sniff(path) not in ("text", "gzip"):
                continue
            with open_text(path) as file:
                for row in csv.DictReader(file, dialect=dialect(path)):
                    known = _known(row)
                    if _usable(known, domain):
                        found.setdefault(point_of(known["point"]), known)
    if not found:
        raise CranpmError(
            expected=f"stations of PM2.5 inside {domain}",
            found="none in the metadata",
            remedy="Fetch EEA's metadata for the countries of the domain.",
        )
    names = sorted(found)
    rows = [found[name] for name in names]
    return Stations(
        ids=np.array(names),
        lat=np.array([float(row["lat"]) for row in rows]),
        lon=np.array([float(row["lon"]) for row in rows]),
        altitude_m=np.array([_altitude(row["altitude"]) for row in rows]),
        country=np.array([row["station"][:2] for row in rows]),
        kind=np.array([row["kind"] for row in rows]),
        area=np.array([row["area"].partition("-")[0] for row in rows]),
    )


def _known(row: Mapping[str, str | None]) -> dict[str, str]:
    """The columns that we use, whatever the table calls them."""
    return {name: next((row[c] or "" for c in columns if c in row), "") for name, columns in METADATA.items()}


def _usable(row: Mapping[str, str], domain: Domain) -> bool:
    """A place inside the domain that measures PM2.5."""
    pollutant = row["pollutant"].rpartition("/")[2]
    try:
        inside = bool(domain.fine.contains(float(row["lat"]), float(row["lon"])))
    except ValueError:
        return False  # a station that nobody can find
    return inside and pollutant in ("PM2.5", str(PM25_CODE))


def _altitude(text: str) -> float:
    try:
        altitude = float(text)
    except ValueError:
        return float("nan")
    return altitude if -450 < altitude < 4900 else float("nan")
