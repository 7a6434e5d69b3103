"""OpenAQ's archive for regions without the EEA: one gzipped table per station and day, in local time."""

import csv
import gzip
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np

from cranpm.archive.day_data import PM25_CEILING_UGM3
from cranpm.core.errors import CranpmError
from cranpm.providers.eea import LEAST_HOURS, NOISE_UGM3
from cranpm.providers.provider import STATIONS, DayReader, FetchQuery, FileSummary, Provider, Reading, ReadQuery
from cranpm.providers.readers.files import Piece, sniff
from cranpm.providers.readers.tables import header
from cranpm.providers.request import Request

COLUMNS = ("location_id", "sensors_id", "location", "datetime", "lat", "lon", "parameter", "units", "value")
UNITS = ("µg/m³", "ug/m3", "µg/m3")
URL = "https://openaq-data-archive.s3.amazonaws.com/records/csv.gz/locationid={id}/year={day:%Y}/month={day:%m}/{name}"


class OpenAq(Provider):
    """Daily means at stations elsewhere."""

    name, title, page = "openaq", "OpenAQ", "stations.md"
    provides = (STATIONS,)
    required = "no"
    days_before, days_after = 1, 1  # a file is a day of the station's clock
    hosts = {"OpenAQ": "https://openaq-data-archive.s3.amazonaws.com"}  # noqa: RUF012
    licence = "https://docs.openaq.org/about/about"

    def recognise(self, piece: Piece) -> FileSummary | None:
        with piece.local() as path:
            if sniff(path) not in ("gzip", "text") or tuple(header(path)) != COLUMNS:
                return None
            rows = list(_rows(path, str(piece)))
        days = [time.date() for _, time, _ in rows]
        names = tuple(sorted({place for place, _, _ in rows}))
        return FileSummary(piece, self.name, names, min(days, default=None), max(days, default=None))

    def open(self, pieces: Sequence[Piece], query: ReadQuery) -> DayReader:
        """Means of hours first: some places report every minute, some have several sensors."""
        hours: dict[tuple[str, date], dict[datetime, list[float]]] = {}
        for piece in pieces:
            with piece.local() as path:
                for place, time, value in _rows(path, str(piece)):
                    hours.setdefault((place, time.date()), {}).setdefault(time, []).append(value)

        def day_of(day: date) -> Reading:
            means = {
                place: float(np.mean([np.mean(values) for values in of_day.values()]))
                for (place, when), of_day in hours.items()
                if when == day and len(of_day) >= LEAST_HOURS
            }
            ids = np.array(sorted(means), dtype=str)
            return Reading({"station_ids": ids, STATIONS: np.array([max(means[name], 0) for name in ids])})

        return day_of

    def requests(self, query: FetchQuery) -> list[Request]:
        """One file per location and day."""
        if not query.locations:
            raise CranpmError(expected="locations of OpenAQ", found="none", remedy="Add --location 2178, repeated.")
        found = []
        for location in query.locations:
            for day in query.days:
                name = f"location-{location}-{day:%Y%m%d}.csv.gz"
                ask = {"url": URL.format(id=location, day=day, name=name), "missing": "no measurements"}
                found.append(Request(self.name, name, ask, gigabytes=1e-5))
        return found


def _rows(path: Path, label: str) -> Iterator[tuple[str, datetime, float]]:
    """(location, UTC hour, value) of PM2.5 that is a number."""
    opened = gzip.open(path, "rt", encoding="utf-8") if sniff(path) == "gzip" else path.open(encoding="utf-8")
    with opened as file:
        for row in csv.DictReader(file):
            if row["parameter"] != "pm25":
                continue
            if row["units"] not in UNITS:
                raise CranpmError(
                    expected=f"PM2.5 in {UNITS[0]} in {label}", found=row["units"], remedy="Leave it out."
                )
            time = datetime.fromisoformat(row["datetime"])
            if time.tzinfo is None:
                raise CranpmError(
                    expected=f"times with their offset from UTC in {label}",
                    found=row["datetime"],
                    remedy="Fetch it again.",
                )
            value = float(row["value"])
            if NOISE_UGM3 <= value <= PM25_CEILING_UGM3:
                utc = time.astimezone(UTC).replace(tzinfo=None)
                hour = (utc - timedelta(seconds=1)).replace(minute=0, second=0)  # stamps are ends
                yield f"openaq-{row['location_id']}", hour, value
