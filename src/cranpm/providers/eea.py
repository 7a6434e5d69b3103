"""EEA's stations: hourly PM2.5 as Parquet (E1a verified, E2a up to date) and their metadata; daily means by UTC day.

Values count whose validity is 1 to 4; 2 and 3 are below the limit of detection, and to leave clean air out would bias
the means. Stamps are naive and mean UTC+1. A day needs three quarters of its hours. GHAP learned from these stations:
scores at them are not independent of the 1-km field.
"""

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cranpm.archive.day_data import PM25_CEILING_UGM3, Stations
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain
from cranpm.providers.provider import DayReader, Reading, Request, Seen, Wanted
from cranpm.providers.readers.files import Piece, sniff

PM25 = 6001
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
SERVICE = "https://eeadmz1-downloads-api-appservice.azurewebsites.net/ParquetFile/urls"
METADATA_URL = "https://discomap.eea.europa.eu/map/fme/metadata/PanEuropean_metadata.csv"


class Eea:
    """Daily means at stations."""

    name = "eea"

    def look(self, piece: Piece) -> Seen | None:
        with piece.local() as path:
            kind = sniff(path)
            if kind == "parquet":
                return self._look_at_values(piece, path)
            if kind in ("text", "gzip") and all(set(names) & set(header(path)) for names in METADATA.values()):
                return Seen(piece, self.name, ("metadata of stations",))
        return None

    def _look_at_values(self, piece: Piece, path: Path) -> Seen | None:
        file = _parquet(path, str(piece))
        if not set(COLUMNS) <= set(file.schema_arrow.names):
            return None
        if not file.metadata.num_rows:
            return Seen(piece, self.name, ("no values",))
        first = next(file.iter_batches(batch_size=1, columns=["Samplingpoint", "AggType"])).to_pylist()[0]
        days = _span(file)
        return Seen(piece, self.name, (f"{point_of(first['Samplingpoint'])} by {first['AggType']}",), *days)

    def open(self, pieces: Sequence[Piece], days: Sequence[date], domain: Domain, lenient: bool) -> DayReader:
        """A file that cannot be used is noted; the others count."""
        means: dict[date, dict[str, float]] = {}
        dropped: dict[str, int] = {}
        problems: list[str] = []
        span = [("Start", ">=", _noon(min(days), -1)), ("Start", "<=", _noon(max(days), 2))]
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
            return Reading({"station_ids": ids, "stations": values}, tuple(problems), {"dropped_values": dropped})

        return day_of

    def requests(self, wanted: Wanted) -> list[Request]:
        """The service lists the files of countries; each file holds all years of a sampling point."""
        if not wanted.countries:
            raise CranpmError(expected="countries of the EEA", found="none", remedy="Add --country IT, repeated.")
        body = {
            "countries": list(wanted.countries),
            "cities": [],
            "pollutants": ["PM2.5"],
            "dataset": 2,
            "aggregationType": "hour",
            "source": "API",
        }
        return [
            Request(self.name, "eea-parquet", "eea", {"post": SERVICE, "body": body}, 0.3 * len(wanted.countries)),
            Request(self.name, "PanEuropean_metadata.csv", "url", {"url": METADATA_URL}, gigabytes=0.03),
        ]


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


def point_of(text: str) -> str:
    """The sampling point without its country: `CZ/SPO.X` and `SPO.X` are the same."""
    return str(text).rpartition("/")[2]


def daily_means(table: pa.Table, label: str, dropped: dict[str, int]) -> dict[str, dict[date, float]]:
    """By sampling point and UTC day; `dropped` counts what was not used, and why."""
    table = table.filter(pc.equal(table["Pollutant"], PM25))
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


def header(path: Path) -> list[str]:
    """Column names of a table."""
    with _text(path) as file:
        return next(csv.reader(file, dialect=_dialect(path)), [])


def _text(path: Path) -> io.TextIOBase:
    if sniff(path) == "gzip":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _dialect(path: Path) -> type[csv.Dialect]:
    with _text(path) as file:
        first = file.readline()
    return csv.excel_tab if "\t" in first else csv.excel


def read_stations(pieces: Sequence[Piece], domain: Domain) -> Stations:
    """PM2.5 sampling points inside the domain, each once, by name."""
    found: dict[str, Mapping[str, str]] = {}
    for piece in pieces:
        with piece.local() as path:
            if sniff(path) not in ("text", "gzip"):
                continue
            with _text(path) as file:
                for row in csv.DictReader(file, dialect=_dialect(path)):
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
    return inside and pollutant in ("PM2.5", str(PM25))


def _altitude(text: str) -> float:
    try:
        altitude = float(text)
    except ValueError:
        return float("nan")
    return altitude if -450 < altitude < 4900 else float("nan")
