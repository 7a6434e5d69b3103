"""EEA's stations: hourly PM2.5 as Parquet (E1a verified, E2a up to date) and their metadata; daily means by UTC day.

Values count whose validity is 1 to 4; 2 and 3 are below the limit of detection, and to leave clean air out would bias
the means. Stamps are naive and mean UTC+1. A day needs three quarters of its hours. GHAP learned from these stations:
scores at them are not independent of the 1-km field.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path, PurePosixPath
from urllib.parse import urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cranpm.archive.day_data import PM25_CEILING_UGM3, Stations
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain
from cranpm.providers.download import download, fetch_url, text
from cranpm.providers.eea_stations import METADATA, PM25_CODE, point_of, read_stations
from cranpm.providers.provider import (
    STATION_TABLE,
    STATIONS,
    DayReader,
    FetchQuery,
    FileSummary,
    Provider,
    Reading,
    ReadQuery,
)
from cranpm.providers.readers.files import Piece, sniff
from cranpm.providers.readers.tables import header
from cranpm.providers.request import Request

VALID = (1, 2, 3, 4)
NOISE_UGM3 = -5.0
"""Clean air measured with noise; what is lower is no measurement (-999, -5008)."""
UNITS = ("ug.m-3", "ug/m3", "µg/m3", "ug m-3")
CLOCK_HOURS = 1
"""Stamps are in UTC+1."""
LEAST_HOURS = 18
BELOW_DETECTION = (2, 3)
STUCK_HOURS, CLEAN_UGM3 = 12, 5.0
"""So many equal values in a row are an instrument that hangs, unless they are low."""
COLUMNS = ("Samplingpoint", "Pollutant", "Start", "End", "Value", "Unit", "AggType", "Validity")
SERVICE = "https://eeadmz1-downloads-api-appservice.azurewebsites.net/ParquetFile/urls"
METADATA_URL = "https://discomap.eea.europa.eu/map/fme/metadata/PanEuropean_metadata.csv"


class Eea(Provider):
    """Daily means at stations, and where the stations are."""

    name, title, page = "eea", "EEA", "stations.md"
    provides = (STATIONS, STATION_TABLE)
    required = "no"
    days_before, days_after = 1, 1  # stamps are in UTC+1
    hosts = {"EEA": "https://eeadmz1-downloads-api-appservice.azurewebsites.net"}  # noqa: RUF012
    licence = "https://www.eea.europa.eu/en/legal-notice"

    def recognise(self, piece: Piece) -> FileSummary | None:
        with piece.local() as path:
            kind = sniff(path)
            if kind == "parquet":
                return self._look_at_values(piece, path)
            if kind in ("text", "gzip") and all(set(names) & set(header(path)) for names in METADATA.values()):
                return FileSummary(piece, self.name, ("metadata of stations",))
        return None

    def _look_at_values(self, piece: Piece, path: Path) -> FileSummary | None:
        file = _parquet(path, str(piece))
        if not set(COLUMNS) <= set(file.schema_arrow.names):
            return None
        if not file.metadata.num_rows:
            return FileSummary(piece, self.name, ("no values",))
        first = next(file.iter_batches(batch_size=1, columns=["Samplingpoint", "AggType"])).to_pylist()[0]
        days = _span(file)
        return FileSummary(piece, self.name, (f"{point_of(first['Samplingpoint'])} by {first['AggType']}",), *days)

    def open(self, pieces: Sequence[Piece], query: ReadQuery) -> DayReader:
        """A file that cannot be used is noted; the others count."""
        means: dict[date, dict[str, float]] = {}
        dropped: dict[str, int] = {}
        problems: list[str] = []
        span = [("Start", ">=", _noon(min(query.days), -1)), ("Start", "<=", _noon(max(query.days), 2))]
        for piece in pieces:
            with piece.local() as path:
                if sniff(path) != "parquet":
                    continue
                try:
                    table = pq.read_table(path, columns=list(COLUMNS), filters=span)
                    found = daily_means(table, str(piece), dropped)
                except (CranpmError, pa.ArrowException, OSError) as error:
                    problems.append(str(error))
                    continue
            for point, day, value in ((p, day, value) for p, of in found.items() for day, value in of.items()):
                if means.setdefault(day, {}).setdefault(point, value) != value:
                    problems.append(f"{piece}: another mean of {point} on {day} than in another file; the first counts")

        def day_of(day: date) -> Reading:
            found = means.get(day, {})
            ids = np.array(sorted(found), dtype=str)
            values = np.array([found[name] for name in ids], np.float64)
            return Reading({"station_ids": ids, STATIONS: values}, tuple(problems), {"dropped_values": dropped})

        return day_of

    def requests(self, query: FetchQuery) -> list[Request]:
        """The service lists the files of countries; each file holds all years of a sampling point."""
        if not query.countries:
            raise CranpmError(expected="countries of the EEA", found="none", remedy="Add --country IT, repeated.")
        body = {
            "countries": list(query.countries),
            "cities": [],
            "pollutants": ["PM2.5"],
            "dataset": 2,
            "aggregationType": "hour",
            "source": "API",
        }
        return [
            Request(self.name, "eea-parquet", {"post": SERVICE, "body": body}, 0.3 * len(query.countries)),
            Request(self.name, "PanEuropean_metadata.csv", {"url": METADATA_URL}, gigabytes=0.03),
        ]

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        """Files that the service lists, or the metadata; names of files may repeat from country to country."""
        if "post" not in request.ask:
            return fetch_url(request, target, wait)
        lines = [line.strip('\ufeff"') for line in text(request.ask["post"], wait, request.ask["body"]).split()]
        head, *urls = lines or [""]
        if head != "ParquetFileUrl" or not urls:
            raise CranpmError(
                expected="a list of files headed ParquetFileUrl",
                found=head[:80] or "nothing" if head != "ParquetFileUrl" else "an empty one",
                remedy="Check the countries, or try again later.",
            )
        target.mkdir(parents=True, exist_ok=True)
        found = [target / _file_name(url) for url in urls]
        for url, path in zip(urls, found, strict=True):
            if not path.is_file():
                download(url, path, wait)
        return found

    def read_stations(self, pieces: Sequence[Piece], domain: Domain) -> Stations:
        return read_stations(pieces, domain)


def _file_name(url: str) -> str:
    """Country and sampling point, where an address of the service has them."""
    name = "_".join(PurePosixPath(urlparse(url).path).parts[-2:])
    if not re.fullmatch(r"[\w.,+-]+\.parquet", name):
        raise CranpmError(expected="addresses of Parquet files", found=url[:200], remedy="Try again later.")
    return name


def _noon(day: date, later: int) -> datetime:
    return datetime.combine(day + timedelta(days=later), datetime.min.time()) + timedelta(hours=12)


def _parquet(path: Path, label: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise CranpmError(expected=f"a Parquet file {label}", found=str(error), remedy="Fetch it again.") from None


def _span(file: pq.ParquetFile) -> tuple[date, date]:
    """First and last day, from the statistics of the file where it has them."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    column = file.schema_arrow.names.index("Start")
    found = [group.column(column).statistics for group in groups]
    if all(one is not None and one.has_min_max for one in found):
        return min(one.min for one in found).date(), max(one.max for one in found).date()
    ends = pc.min_max(file.read(columns=["Start"])["Start"]).as_py()
    return ends["min"].date(), ends["max"].date()


def daily_means(table: pa.Table, label: str, dropped: dict[str, int]) -> dict[str, dict[date, float]]:
    """By sampling point and UTC day; `dropped` counts what was not used, and why."""
    table = table.filter(pc.equal(table["Pollutant"], PM25_CODE))
    units = {str(unit) for unit in pc.unique(table["Unit"]).to_pylist()}
    if not units <= set(UNITS):
        raise CranpmError(
            expected=f"PM2.5 in {' or '.join(UNITS)} in {label}",
            found=", ".join(sorted(units)),
            remedy="Fetch it again.",
        )
    values = table["Value"].cast(pa.float64()).to_numpy()
    validity = table["Validity"].to_numpy()
    starts = table["Start"].cast(pa.timestamp("s")).to_numpy().astype("datetime64[s]")
    points = np.array([point_of(point) for point in table["Samplingpoint"].to_pylist()], dtype=str)
    reasons = {
        "not valid": ~np.isin(validity, VALID),
        "not hourly": np.array([kind != "hour" for kind in table["AggType"].to_pylist()], dtype=bool),
        "no number": ~np.isfinite(values),
        "implausible": (values < NOISE_UGM3) | (values > PM25_CEILING_UGM3),
    }
    kept = np.ones(len(values), bool)
    for reason, bad in reasons.items():
        dropped[reason] = dropped.get(reason, 0) + int((kept & bad).sum())
        kept &= ~bad
    found: dict[str, dict[date, float]] = {}
    for point in np.unique(points[kept]):
        own = kept & (points == point)
        times, first = np.unique(starts[own] - np.timedelta64(CLOCK_HOURS, "h"), return_index=True)
        dropped["a time twice"] = dropped.get("a time twice", 0) + int(own.sum()) - len(times)
        hours = values[own][first]
        hangs = stuck(times, hours, measured=~np.isin(validity[own][first], BELOW_DETECTION))
        dropped["stuck"] = dropped.get("stuck", 0) + int(hangs.sum())
        found[str(point)] = _means(times[~hangs], hours[~hangs])
    return found


def stuck(times: Array, values: Array, measured: Array) -> Array:
    """Hours of an instrument that hangs: many equal values in a row. Clean air and what is below detection may last."""
    if not values.size:
        return np.zeros(0, bool)
    broken = (values[1:] != values[:-1]) | (np.diff(times) != np.timedelta64(1, "h"))
    starts = np.flatnonzero(np.concatenate([[True], broken]))
    lengths = np.diff(np.append(starts, len(values)))
    return (np.repeat(lengths, lengths) >= STUCK_HOURS) & measured & (values > CLEAN_UGM3)


def _means(times: Array, values: Array) -> dict[date, float]:
    days, inverse, counts = np.unique(times.astype("datetime64[D]"), return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, values, len(days))
    enough = counts >= LEAST_HOURS
    return {
        day.item(): max(float(total / count), 0.0)
        for day, total, count in zip(days[enough], sums[enough], counts[enough], strict=True)
    }
