"""A file by its first bytes: NetCDF, GRIB, Parquet, GeoTIFF, a table, or a ZIP of such. Names are not trusted."""

import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cranpm.core.errors import CranpmError

MAGIC = {
    b"PK\x03\x04": "zip",
    b"CDF\x01": "netcdf",
    b"CDF\x02": "netcdf",
    b"\x89HDF": "netcdf",
    b"GRIB": "grib",
    b"PAR1": "parquet",
    b"II*\x00": "tiff",
    b"MM\x00*": "tiff",
    b"II+\x00": "tiff",
    b"\x1f\x8b": "gzip",
}
MOST_MEMBERS = 20_000
MOST_BYTES = 64 * 2**30
MOST_RATIO, SMALL_BYTES = 100, 2**20
"""A ZIP that promises more is a bomb: what providers send is packed already. Small members may shrink as they like."""
HGT = ".hgt"
UNFINISHED = (".part", ".part-of", ".job")
"""What a fetch leaves behind until it is done."""
SERVER_COPY = ".server-copy"
"""A file of this name marks a folder to fetch from, whose files are of no use one by one."""


@dataclass(frozen=True, order=True)
class Piece:
    """A file, or a member of a ZIP."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        return PurePosixPath(self.member).name if self.member else self.path.name

    def __str__(self) -> str:
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """A path to read from; a member is unpacked for as long as it is needed, and nothing else of its ZIP."""
        if not self.member:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="cranpm-") as folder:
            target = Path(folder) / self.name
            try:
                with _zip(self.path) as archive, archive.open(self.member) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy, 2**20)
            except (zipfile.BadZipFile, KeyError, OSError, EOFError) as error:
                raise CranpmError(expected=f"{self} whole", found=str(error), remedy="Fetch the ZIP again.") from None
            yield target


def sniff(path: Path) -> str:
    """What a file is: zip, netcdf, grib, parquet, tiff, gzip, hgt, text, or unknown."""
    with path.open("rb") as file:
        start = file.read(4096)
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            return kind
    if path.suffix.lower() == HGT:
        return "hgt"
    try:
        text = start.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "unknown"
    return "text" if text.strip() and all(letter.isprintable() or letter in "\r\n\t" for letter in text) else "unknown"


def pieces(path: Path) -> list[Piece]:
    """The file itself or, of a ZIP, its members; one that reaches outside or promises too much is refused."""
    if sniff(path) != "zip":
        return [Piece(path)]
    with _zip(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
    _check_members(path, members)
    return [Piece(path, member.filename) for member in members]


@contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise CranpmError(expected=f"a whole ZIP {path}", found=str(error), remedy="Fetch it again.") from None
    with archive:
        yield archive


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    def refuse(expected: str, found: str) -> None:
        raise CranpmError(expected=f"{expected} in {path}", found=found, remedy="Do not open it; fetch it again.")

    if len(members) > MOST_MEMBERS:
        refuse(f"at most {MOST_MEMBERS} files", str(len(members)))
    for member in members:
        parts = PurePosixPath(member.filename.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in member.filename:
            refuse("members that stay inside", repr(member.filename))
        if stat.S_ISLNK(member.external_attr >> 16):
            refuse("plain files", f"a link {member.filename!r}")
        if member.flag_bits & 1:
            refuse("files that are not encrypted", repr(member.filename))
        if member.file_size > max(MOST_RATIO * member.compress_size, SMALL_BYTES):
            refuse(f"members at most {MOST_RATIO} times as large as packed", f"{member.filename!r}, a bomb")
    total = sum(member.file_size for member in members)
    if total > MOST_BYTES:
        refuse(f"at most {MOST_BYTES / 2**30:g} GB unpacked", f"{total / 2**30:.1f} GB")
