"""Icechunk repositories: where they live, who may write, one commit at a time, and its errors as refusals."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlparse

import icechunk
import zarr

from cranpm.archive import checksums
from cranpm.archive.shutdown import wait_at_exit
from cranpm.core.errors import CranpmError

BRANCH = "main"
DAYS_PER_MANIFEST = 64
"""How many days share an index file: a commit rewrites one of them, not the index of the whole archive."""

Group = Any
"""A zarr group; its stubs do not say what a path inside it names."""

_used_in: int | None = None


def exists(location: str) -> bool:
    """Whether a repository with content is there; one whose creation was interrupted does not count."""
    folder = _folder(location)
    if folder is not None and not folder.exists():
        return False
    with _refusing(location):
        storage = _storage(location)
        return icechunk.Repository.exists(storage) and not _is_blank(icechunk.Repository.open(storage))


def read(location: str, snapshot: str | None = None) -> tuple[Group, str]:
    """The root group of one version (the newest where none is named), and the version's id."""
    with _refusing(location, f" in version {snapshot}" if snapshot else ""):
        repo = _open(location)
        version = snapshot or repo.lookup_branch(BRANCH)
        _check_index(location, repo, version)
        if _is_blank(repo):
            raise CranpmError(
                expected=f"an archive at {location}",
                found="one whose creation was interrupted",
                remedy="Run the command that creates it again.",
            )
        return zarr.open_group(repo.readonly_session(snapshot_id=version).store, mode="r"), version


def lock(location: str) -> TextIO:
    """An exclusive lock for one writer on local disk, held until it is closed; object stores need none."""
    folder = _folder(location)
    if folder is None:
        return open(os.devnull)
    # Beside the archive, because icechunk wants a new folder to itself.
    path = folder.resolve()
    with _refusing(location):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open(path.parent / f".{path.name}.lock", "a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.seek(0)
        found = f"process {handle.read().strip() or 'unknown'} writing to it"
        handle.close()
        raise CranpmError(
            expected=f"no other writer of {location}", found=found, remedy="Wait until it ends, then try again."
        ) from None
    handle.truncate(0)
    handle.write(str(os.getpid()))
    handle.flush()
    return handle


@contextmanager
def create(location: str, message: str) -> Iterator[Group]:
    """A new repository whose first commit is what the block writes; an interrupted creation is started again."""
    with _refusing(location):
        storage = _storage(location)
        if icechunk.Repository.exists(storage):
            repo = icechunk.Repository.open(storage)
            if not _is_blank(repo):
                raise CranpmError(
                    expected=f"no archive yet at {location}", found="one", remedy="Extend it, or choose another place."
                )
        else:
            _refuse_other_files(location)
            repo = icechunk.Repository.create(storage, config=_config())
        session = repo.writable_session(BRANCH)
        yield zarr.create_group(session.store)
        session.commit(message)
        write_checksums(location)


@contextmanager
def commit(location: str, message: str, metadata: dict[str, Any]) -> Iterator[Group]:
    """The root group for writing; what the block wrote is committed when it ends, and dropped if it fails."""
    with _refusing(location):
        write_checksums(location)
        session = _open(location).writable_session(BRANCH)
        yield zarr.open_group(session.store, mode="r+")
        try:
            session.commit(message, metadata=metadata)
        except icechunk.ConflictError as error:
            raise CranpmError(
                expected=f"to be the only writer of {location}",
                found=_first_line(error),
                remedy="Another process committed meanwhile; run the command again.",
            ) from error
        write_checksums(location)


def versions(location: str) -> int:
    """How many commits the repository has."""
    with _refusing(location):
        return sum(1 for _ in _open(location).ancestry(branch=BRANCH))


def size_mb(location: str) -> float | None:
    """Size on local disk; None for an object store, where counting would cost requests."""
    folder = _folder(location)
    if folder is None:
        return None
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1)


def write_checksums(location: str) -> None:
    """Write checksums of the newest version where it has none, also for a writer that was killed before it could."""
    folder = _folder(location)
    if folder is None:
        return
    repo = _open(location)
    newest = repo.lookup_snapshot(repo.lookup_branch(BRANCH))
    if not has_checksums(location, newest.id):
        checksums.write(folder, newest.id, newest.parent_id, [manifest.id for manifest in newest.manifests])


def has_checksums(location: str, snapshot: str) -> bool:
    """Whether the index files of a version have checksums; object stores need none."""
    folder = _folder(location)
    return folder is None or bool(checksums.load(folder, snapshot))


def refuse_forks() -> None:
    """Icechunk's threads do not survive a fork: a forked reader would hang for ever, so it is refused."""
    global _used_in
    _used_in = _used_in or os.getpid()
    if _used_in != os.getpid():
        raise CranpmError(
            expected="an archive opened in a process that was not forked from one that used an archive",
            found="a forked process",
            remedy='Start workers with multiprocessing context "spawn" or "forkserver".',
        )


@contextmanager
def _refusing(location: str, what: str = "") -> Iterator[None]:
    """Icechunk's and the disk's errors as refusals; what was committed before stays."""
    try:
        yield
    except (icechunk.IcechunkError, OSError) as error:
        raise CranpmError(
            expected=f"an archive that can be read and written at {location}{what}",
            found=_first_line(error),
            remedy="Check the path, its permissions and the free space; a damaged folder needs a copy or a rebuild.",
        ) from error


def _check_index(location: str, repo: icechunk.Repository, snapshot: str) -> None:
    """Refuse a damaged index. The newest version of a killed writer is checked as far as its parent's checksums go."""
    folder = _folder(location)
    if folder is None:
        return
    own = checksums.load(folder, snapshot)
    if own:
        checksums.check(folder, own, [f"snapshots/{snapshot}"])
    facts = repo.lookup_snapshot(snapshot)
    manifests = [f"manifests/{manifest.id}" for manifest in facts.manifests]
    if own:
        checksums.check(folder, own, manifests)
    elif facts.parent_id:
        known = checksums.load(folder, facts.parent_id)
        checksums.check(folder, known, [name for name in manifests if name in known])


def _is_blank(repo: icechunk.Repository) -> bool:
    try:
        zarr.open_group(repo.readonly_session(BRANCH).store, mode="r")
    except FileNotFoundError:
        return True
    return False


def _refuse_other_files(location: str) -> None:
    path = _folder(location)
    if path is not None and path.exists() and any(path.iterdir()):
        raise CranpmError(
            expected=f"a new or empty folder at {location}",
            found="other files there",
            remedy="Choose another place for the archive.",
        )


def _open(location: str) -> icechunk.Repository:
    folder = _folder(location)
    if folder is not None and not folder.is_dir():
        raise CranpmError(
            expected=f"an archive at {location}",
            found="no such folder",
            remedy="Check the path, or make one with `cranpm simulate`.",
        )
    return icechunk.Repository.open(_storage(location))


def _folder(location: str) -> Path | None:
    """The folder of a local archive, which need not exist yet; None for an object store."""
    if urlparse(location).scheme:
        return None
    path = Path(location)
    if not location.strip() or any(part.is_file() for part in (path, *path.parents)):
        raise CranpmError(
            expected="a folder for the archive",
            found=repr(location) if not location.strip() else f"a file in the way of {location}",
            remedy="Name a folder, existing or new.",
        )
    return path


def _storage(location: str) -> icechunk.Storage:
    """Storage for a folder, s3://bucket/prefix, gs://bucket/prefix or az://account/container/prefix."""
    refuse_forks()
    wait_at_exit()
    icechunk.set_logs_filter("error")
    folder, parts = _folder(location), urlparse(location)
    prefix = parts.path.strip("/")
    if folder is not None:
        return icechunk.local_filesystem_storage(str(folder.resolve()))
    if parts.scheme == "s3":
        return icechunk.s3_storage(bucket=parts.netloc, prefix=prefix, from_env=True)
    if parts.scheme == "gs":
        return icechunk.gcs_storage(bucket=parts.netloc, prefix=prefix, from_env=True)
    if parts.scheme == "az":
        container, _, rest = prefix.partition("/")
        return icechunk.azure_storage(account=parts.netloc, container=container, prefix=rest, from_env=True)
    raise CranpmError(
        expected="a folder, or a URL that starts with s3://, gs:// or az://",
        found=location,
        remedy="Give the archive's place in one of these forms.",
    )


def _config() -> icechunk.RepositoryConfig:
    by_day: dict[Any, int] = {icechunk.ManifestSplitDimCondition.DimensionName("day"): DAYS_PER_MANIFEST}
    splitting = icechunk.ManifestSplittingConfig.from_dict({icechunk.ManifestSplitCondition.AnyArray(): by_day})
    config = icechunk.RepositoryConfig.default()
    config.manifest = icechunk.ManifestConfig(splitting=splitting)
    return config


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" x|") for line in str(error).splitlines() if line.strip(" x|")]
    return lines[0] if lines else type(error).__name__
