"""What folders of files hold: every file is looked at in the sandbox, whatever its name."""

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import TypeVar

from cranpm.core.cluster import Pool
from cranpm.core.errors import CranpmError
from cranpm.core.files import sha256
from cranpm.providers import sandbox
from cranpm.providers.provider import FileSummary, Provider, family
from cranpm.providers.readers.files import SERVER_COPY, UNFINISHED, Piece

FILES_PER_TASK = 700
"""At most; starting a sandbox takes a second."""
INDEX = ".index"
T = TypeVar("T")


@dataclass(frozen=True)
class Scan:
    """What folders hold, and which files are of no use, with the reason."""

    files: list[FileSummary]
    refused: dict[str, str]

    def of(self, provider: Provider) -> list[FileSummary]:
        """Files that a provider reads: its own, and those of providers that replace it."""
        names = family(provider)
        return [one for one in self.files if one.provider in names]

    def days(self, provider: Provider) -> set[date]:
        """Days that a provider's files may hold."""
        return {
            one.first + timedelta(days=number)
            for one in self.of(provider)
            if one.first and one.last
            for number in range((one.last - one.first).days + 1)
        }

    def touching(self, provider: Provider, days: Sequence[date]) -> list[FileSummary]:
        """Files that matter for days: also those of days before and after, as far as the provider declares.

        A run of a forecast model matters for the day on which it began alone.
        """
        before, after = timedelta(days=provider.days_before), timedelta(days=provider.days_after)
        none = timedelta()
        return [
            one
            for one in self.of(provider)
            if one.first and one.last
            if one.first <= max(days) + (none if one.runs else after)
            if one.last >= min(days) - (none if one.runs else before)
        ]


def files_in(places: Iterable[Path]) -> list[Path]:
    """All files below some folders, and files themselves; hidden and unfinished ones are left alone.

    So are folders to fetch from, as the Zarr that `cranpm export` writes, unless they are named themselves.
    """
    found: set[Path] = set()
    for place in places:
        if not place.exists():
            raise CranpmError(expected=f"a file or folder {place}", found="nothing there", remedy="Check the path.")
        copies = {mark.parent for mark in place.rglob(SERVER_COPY)} - {place}
        below = (path for path in place.rglob("*") if path.is_file() and copies.isdisjoint(path.parents))
        found |= {place} if place.is_file() else set(below)
    return sorted(path for path in found if not path.name.startswith(".") and not _is_aside(path, found))


def _is_aside(path: Path, others: set[Path]) -> bool:
    """Whether a file is unfinished, or the index of a GRIB file beside it."""
    return path.suffix in UNFINISHED or (path.suffix == INDEX and path.with_suffix(".grib2") in others)


def scan(places: Iterable[Path], pool: Pool | None = None) -> Scan:
    """Look at every file; the order does not depend on the number of workers."""
    pool, paths = pool or Pool(), files_in(places)
    size = max(1, min(FILES_PER_TASK, -(-len(paths) // pool.workers)))
    done = sorted(pool.each(sandbox.look, in_parts(paths, size)), key=lambda pair: pair[0])
    found = [one for _, looks in done for one in looks]
    files = [one for one in found if isinstance(one, FileSummary)]
    return Scan(files, {str(one[0]): one[1] for one in found if not isinstance(one, FileSummary)})


def in_parts(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Lists of at most `size` items, in order."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def fingerprint(piece: Piece) -> str:
    """sha256 of a file; of a member of a ZIP, the checksum and size in its directory, which unpacking verifies."""
    facts = piece.path.stat()
    return _fingerprint(piece, facts.st_mtime_ns, facts.st_size)


@cache
def _fingerprint(piece: Piece, changed_ns: int, size: int) -> str:
    """Of the file as it was changed last: one process may see a file that was fetched again."""
    if not piece.member:
        return sha256(piece.path)
    with zipfile.ZipFile(piece.path) as archive:
        member = archive.getinfo(piece.member)
    return f"crc32 {member.CRC:08x}, {member.file_size} bytes"
