"""Checksums of an archive's index files on local disk.

Chunks carry their own checksum, but icechunk's index files (snapshots and manifests) do not: a bit flipped there can
move a chunk to another day or lose it, and nothing would be noticed. So every commit writes the sha256 of the index
files of its snapshot, and every reader checks them. Object stores verify their own bits and need none.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from cranpm.core.errors import CranpmError
from cranpm.core.files import sha256, write_whole

FOLDER = "seals"
"""Where checksums lie in an archive; the name is that of the first archives, so that all of them can be read."""


def write(archive: Path, snapshot: str, parent: str | None, manifests: Sequence[str]) -> None:
    """Write the checksums of a snapshot; those that its parent's know are taken over, so that later damage shows."""
    known = load(archive, parent) if parent else {}
    names = [f"snapshots/{snapshot}", *(f"manifests/{name}" for name in manifests)]
    sums = {name: known.get(name) or _sum(archive / name) for name in names}
    (archive / FOLDER).mkdir(exist_ok=True)
    write_whole(archive / FOLDER / snapshot, json.dumps(sums, indent=0))


def load(archive: Path, snapshot: str) -> dict[str, str]:
    """The checksums of a snapshot's index files by their names; empty where none were written."""
    path = archive / FOLDER / snapshot
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise _broken(path, "checksums that cannot be read") from error


def check(archive: Path, sums: dict[str, str], names: Sequence[str]) -> None:
    """Refuse index files that differ from their checksum or have none."""
    for name in names:
        if _sum(archive / name) != sums.get(name):
            raise _broken(archive / name, "an index file that fails its checksum")


def _sum(path: Path) -> str:
    try:
        return sha256(path)
    except OSError as error:
        raise _broken(path, "an index file that is missing") from error


def _broken(path: Path, found: str) -> CranpmError:
    return CranpmError(
        expected=f"{path} intact",
        found=found,
        remedy="Restore the folder from a copy, or delete the archive and build it again.",
    )
