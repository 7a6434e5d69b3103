"""Folders that appear whole or not at all, with checksums of every file."""

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cranpm.core.errors import CranpmError

SUMS = "SHA256SUMS"


def write_sealed(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a new folder beside its place and rename it; an existing one is never replaced."""
    if folder.exists():
        raise CranpmError(
            expected=f"no folder {folder} yet", found="one that exists", remedy="Name another, or remove it first."
        )
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _write_beside_and_rename(folder, {**files, SUMS: sums.encode()})
    except OSError as error:
        found = error.strerror or str(error)
        raise CranpmError(
            expected=f"a place to write {folder}", found=found, remedy="Free space or name another place."
        ) from None


def _write_beside_and_rename(folder: Path, files: Mapping[str, bytes]) -> None:
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        beside.chmod(0o755)
        for name, data in files.items():
            (beside / name).write_bytes(data)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)  # gone already where all went well


def read_sealed(folder: Path, names: Sequence[str]) -> tuple[dict[str, bytes], str]:
    """The files of a sealed folder, every byte checked, and the checksum that names the whole."""
    sums = read_file(folder, SUMS)
    stated = dict(line.split("  ", 1)[::-1] for line in sums.decode(errors="replace").splitlines() if "  " in line)
    files = {name: read_file(folder, name) for name in names}
    for name, data in files.items():
        if stated.get(name) != hashlib.sha256(data).hexdigest():
            raise CranpmError(
                expected=f"{name} with the checksum that {SUMS} states",
                found="another",
                remedy=f"{folder} was changed or damaged: fetch or write it again.",
            )
    return files, hashlib.sha256(sums).hexdigest()


def read_file(folder: Path, name: str) -> bytes:
    """One file of a folder."""
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        found = error.strerror or str(error)
        raise CranpmError(
            expected=f"{name} in {folder}", found=found, remedy="Fetch or write the folder again."
        ) from None
