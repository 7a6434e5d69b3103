"""Tables of text, plain or packed by gzip, separated by commas or tabs."""

import csv
import gzip
import io
from pathlib import Path

from cranpm.providers.readers.files import sniff


def header(path: Path) -> list[str]:
    """Column names of a table."""
    with open_text(path) as file:
        return next(csv.reader(file, dialect=dialect(path)), [])


def open_text(path: Path) -> io.TextIOBase:
    if sniff(path) == "gzip":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def dialect(path: Path) -> type[csv.Dialect]:
    with open_text(path) as file:
        first = file.readline()
    return csv.excel_tab if "\t" in first else csv.excel
