"""Checksums of an archive's index files on local disk.

Chunks carry their own checksum, but icechunk's index files (snapshots and manifests) do not: a bit flipped there can
move a chunk to another day or lose it, and nothing would be noticed. So every commit leaves a seal, the sha256 of the
index files of its snapshot, and every reader checks it. Object stores verify their own bits and need no seal.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from cranpm.core.errors import CranpmError

FOLDER = "seals"


def write(archive: Path, snapshot: str, parent: str | None, manifests: Sequence[str]) -> None:
    """Seal a snapshot; what its parent's seal knows is taken from there, so that later damage is never blessed."""
    known = load(archive, parent) if parent else {}
    names = [f"snapshots/{snapshot}", *(f"manifests/{name}" for name in manifests)]
    digests = {name: known.get(name) or _digest(archive / name) for name in names}
    path = archive / FOLDER / snapshot
    path.parent.mkdir(exist_ok=True)
    beside = path.with_suffix(".new")
    with open(beside, "w") as file:
        file.write(json.dumps(digests, indent=0))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def load(archive: Path, snapshot: str) -> dict[str, str]:
    """The digests that a snapshot was sealed with; empty where it was not."""
    path = archive / FOLDER / snapshot
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise _broken(path, "a seal that cannot be read") from error


def check(archive: Path, seal: dict[str, str], names: Sequence[str]) -> None:
    """Refuse index files that differ from their seal or are not in it."""
    for name in names:
        if _digest(archive / name) != seal.get(name):
            raise _broken(archive / name, "an index file that fails its checksum")


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise _broken(path, "an index file that is missing") from error


def _broken(path: Path, found: str) -> CranpmError:
    return CranpmError(
        expected=f"{path} intact",
        found=found,
        remedy="Restore the folder from a copy, or delete the archive and build it again.",
    )
