"""Files and folders that appear whole or not at all, and checksums that say whether they are still what was written."""

import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cranpm.core.errors import CranpmError

SUMS = "SHA256SUMS"


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on disk: a power cut cannot take it back."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def give_name(finished: Path, path: Path) -> None:
    """Let a finished file take its name, or replace what has it, in one step that a power cut cannot undo."""
    sync(finished)
    os.replace(finished, path)
    sync(path.parent)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A hidden path beside `path` to write to; if the block ends well, that file takes the name in one step."""
    beside = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        yield beside
        give_name(beside, path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold a file that no other command holds, or refuse at once; what is in it stays, and the lock ends with us."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise CranpmError(
                expected=f"no other command that writes {path}",
                found="one",
                remedy="Wait until it has ended, then give this command again.",
            ) from None
        yield


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file, or replace it, in one step."""
    with whole_file(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


def point_to(link: Path, target: Path | str) -> None:
    """Let a symbolic link name `target`, in one step also where it named another before."""
    beside = link.with_name(f".{link.name}.{secrets.token_hex(4)}.link")
    try:
        beside.symlink_to(target)
        os.replace(beside, link)
        sync(link.parent)
    finally:
        beside.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Checksum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` with the checksum of every file below a folder, as `sha256sum` reads it."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    lines = [f"{sha256(folder / name)}  {name}\n" for name in names if name != SUMS]
    write_whole(folder / SUMS, "".join(lines))


def read_sums(folder: Path) -> dict[str, str]:
    """Checksum by name, as `SHA256SUMS` in the folder states them."""
    text = read_file(folder, SUMS).decode(errors="replace")
    return dict(line.split("  ", 1)[::-1] for line in text.splitlines() if "  " in line)


def check_sums(folder: Path, names: Iterable[str] | None = None) -> None:
    """Refuse a folder with a file that is missing or differs from `SHA256SUMS`; without names, look at all."""
    stated = read_sums(folder)
    for name in stated if names is None else names:
        path = folder / name
        if not path.is_file():
            raise _damaged(folder, name, "none")
        if stated.get(name) != sha256(path):
            raise _damaged(folder, name, "another one")


def _damaged(folder: Path, name: str, found: str) -> CranpmError:
    return CranpmError(
        expected=f"{name} with the checksum that {SUMS} states",
        found=found,
        remedy=f"{folder} was changed or damaged: fetch or write it again.",
    )


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a new folder with its checksums, in one step; an existing one is never replaced."""
    if folder.exists():
        raise CranpmError(
            expected=f"no folder {folder} yet", found="one that exists", remedy="Name another, or remove it first."
        )
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        beside.mkdir(parents=True)
        for name, data in files.items():
            write_whole(beside / name, data)
        write_sums(beside)
        beside.rename(folder)
        sync(folder.parent)
    except OSError as error:
        found = error.strerror or str(error)
        raise CranpmError(
            expected=f"a place to write {folder}", found=found, remedy="Free space or name another place."
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)  # gone already where all went well


def read_folder(folder: Path, names: Iterable[str]) -> tuple[dict[str, bytes], str]:
    """Files of a folder with checksums, every byte checked, and one checksum that names the whole."""
    stated, sums = read_sums(folder), read_file(folder, SUMS)
    files = {name: read_file(folder, name) for name in names}
    for name, data in files.items():
        if stated.get(name) != hashlib.sha256(data).hexdigest():
            raise _damaged(folder, name, "another one")
    return files, hashlib.sha256(sums).hexdigest()


def read_file(folder: Path, name: str) -> bytes:
    """The bytes of one file of a folder."""
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        found = error.strerror or str(error)
        raise CranpmError(
            expected=f"{name} in {folder}", found=found, remedy="Fetch or write the folder again."
        ) from None
