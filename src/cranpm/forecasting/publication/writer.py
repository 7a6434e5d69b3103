"""The one writer of products: a new version appears whole, on disk and with checksums, or not at all."""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from cranpm.archive.day_data import PM25_CEILING_UGM3
from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.files import SUMS, point_to, sync, write_sums
from cranpm.forecasting.forecast import Forecast
from cranpm.forecasting.publication import names
from cranpm.forecasting.publication.formats import FORMATS, check_formats

A_DAY = 86400


def publish(
    forecast: Forecast,
    archive: Archive,
    folder: Path | str,
    formats: Sequence[str] = ("nc", "tif"),
    on_file: Callable[[str], None] = lambda name: None,
) -> Path:
    """Write a forecast as `folder`/DAY and return that path.

    A reader sees the old product or the new one, never a part of either, also after a power cut.
    """
    check_formats(formats)
    _check_range(forecast)
    public = Path(folder) / str(forecast.day)
    old = _replaced(public)
    version = public.parent / names.hidden(forecast.day, secrets.token_hex(4))
    stated = _with_contents(forecast)
    with _whole(version, public):
        version.mkdir(parents=True)
        for name in dict.fromkeys(formats):
            FORMATS[name].write(stated, archive, version, on_file)
        write_sums(version)
        _sync_all(version)
        point_to(public, version.name)
    for left in {old, *_leftovers(public)} - {None, version}:
        if left is not None and _is_ours(left, str(forecast.day)):
            shutil.rmtree(left, ignore_errors=True)
    return public


def _check_range(forecast: Forecast) -> None:
    """Refuse what readers would refuse."""
    low, high = (float(edge.reduce(forecast.fields, axis=None)) for edge in (np.fmin, np.fmax))
    if low < 0 or high > PM25_CEILING_UGM3:  # never where all is missing
        raise CranpmError(
            expected=f"PM2.5 in 0..{PM25_CEILING_UGM3:g} ug m-3 to publish",
            found=f"{low:g} to {high:g}",
            remedy="Nothing was published. Check the forecast.",
        )


def _with_contents(forecast: Forecast) -> Forecast:
    """The provenance also says what a whole product has: readers refuse one without it."""
    return replace(
        forecast, provenance={**forecast.provenance, "checksums": SUMS, "leads": sorted(map(int, forecast.leads))}
    )


@contextmanager
def _whole(version: Path, public: Path) -> Iterator[None]:
    """Remove the version where anything fails before it is published; a full disk is said in one sentence."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # RuntimeError: how the HDF library says that it cannot write
        remedy = "Make room or name another folder; what was published before is untouched."
        if not _discard(version, public):
            remedy = "The new product can be read, but a power cut may take it back: make the forecast again."
        raise CranpmError(
            expected=f"to write the product in {version.parent}",
            found=getattr(error, "strerror", None) or str(error),
            remedy=remedy,
        ) from None
    except BaseException:
        _discard(version, public)
        raise


def _discard(version: Path, public: Path) -> bool:
    """Remove a version unless it is the published one; whether it was removed."""
    if public.is_symlink() and os.readlink(public) == version.name:
        return False
    shutil.rmtree(version, ignore_errors=True)
    return True


def _sync_all(version: Path) -> None:
    """Everything below a folder is on disk before anybody is pointed to it."""
    for path in (*version.rglob("*"), version, version.parent):
        sync(path)


def _replaced(public: Path) -> Path | None:
    """The folder of the product that will be replaced, if any; refuses what is not a product of ours."""
    if not public.is_symlink() and not public.exists():
        return None
    old = public.parent / public.readlink() if public.is_symlink() else public
    if old.parent != public.parent or names.version_of(old.name, public.name) is None:
        raise CranpmError(
            expected=f"{public} free, or a product of ours", found="something else", remedy="Name another folder."
        )
    return old


def _leftovers(public: Path) -> list[Path]:
    """Folders of this day that writers left unfinished more than a day ago: killed, not slow. Removes stray links."""
    found = []
    for path in public.parent.iterdir():
        with suppress(FileNotFoundError):  # another writer of this day may remove it first
            if time.time() - path.lstat().st_mtime <= A_DAY:
                continue
            if path.is_symlink() and names.is_unfinished_link(path.name, public.name):
                path.unlink()
            elif names.version_of(path.name, public.name) and path.name != str(public.readlink()):
                found.append(path)
    return found


def _is_ours(folder: Path, day: str) -> bool:
    """Whether a folder holds nothing but files of products of that day: anything else may be a user's."""
    if folder.is_symlink() or not folder.is_dir() or names.version_of(folder.name, day) is None:
        return False
    return all(names.is_product(path.name, day) for path in folder.iterdir())
