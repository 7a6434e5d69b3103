"""Fetching providers' files: what must be asked for, and the way to each kind of server."""

import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlparse

from ecmwf.datastores import Client
from ecmwf.datastores.processing import ProcessingFailedError, Remote

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain
from cranpm.providers import SOURCES
from cranpm.providers.cloud import CLOUDS, Cloud
from cranpm.providers.download import ADVICE, PART, download, part_of, status_of, text
from cranpm.providers.ifs import Ifs
from cranpm.providers.provider import Request, Source, Wanted
from cranpm.providers.readers.files import UNFINISHED

JOB = UNFINISHED[2]
KEY_FILES = ("~/.ecmwfdatastoresrc", "~/.cdsapirc")
KEY_VARIABLES = ("ECMWF_DATASTORES_KEY", "CDSAPI_KEY")
FETCHABLE: Mapping[str, Source | Cloud | Ifs] = {**SOURCES, **CLOUDS, Ifs.name: Ifs()}


@dataclass(frozen=True)
class Services:
    """Where the providers are; tests play them."""

    stores: Mapping[str, str]
    """URL of the data store of a source."""
    zenodo: str = "https://zenodo.org/api/records"
    wait: float = 1.0
    """Seconds before the second try of anything."""


REAL = Services({"era5": "https://cds.climate.copernicus.eu/api", "cams": "https://ads.atmosphere.copernicus.eu/api"})
OnFile = Callable[[int, Request, str], None]


def plan(source: str, wanted: Wanted) -> list[Request]:
    """What would be fetched."""
    if source not in FETCHABLE:
        raise CranpmError(expected=f"a source: {', '.join(FETCHABLE)}", found=source, remedy="Name one of these.")
    return FETCHABLE[source].requests(wanted)


def fetch(
    wanted: Sequence[Request],
    folder: Path,
    services: Services = REAL,
    on_file: OnFile = lambda number, request, state: None,
) -> list[Path]:
    """Fetch what is not there yet; a file appears under its name only when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    ways: Mapping[str, Callable[[Request, Path, Services], list[Path]]] = {
        "store": _from_store,
        "zenodo": _from_zenodo,
        "eea": _from_eea,
        "zarr": _from_cloud,
        "index": _from_index,
        "url": _from_url,
    }
    found: list[Path] = []
    for number, request in enumerate(wanted):
        target = folder / request.name
        if target.is_file() and target.stat().st_size:
            on_file(number, request, "is there already")
            found.append(target)
            continue
        on_file(number, request, "")
        made = ways[request.kind](request, target, services)
        if not made:
            on_file(number, request, f"is not there: {request.ask['missing']}")
        found += made
    return found


def _from_url(request: Request, target: Path, services: Services) -> list[Path]:
    """A plain file; none where its absence has a meaning."""
    try:
        download(request.ask["url"], target, services.wait)
    except CranpmError as error:
        if status_of(error.__cause__) == 404 and "missing" in request.ask:
            return []
        raise
    return [target]


def find_key() -> str | None:
    """The key of the data stores, where their own clients look for it."""
    for name in KEY_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    given = (os.environ.get("ECMWF_DATASTORES_RC_FILE"), os.environ.get("CDSAPI_RC"))
    for name in (*filter(None, given), *KEY_FILES):
        path = Path(name).expanduser()
        if path.is_file():
            found = re.search(r"^key\s*:\s*(\S+)", path.read_text(), re.MULTILINE)
            if found:
                return found.group(1)
    return None


def _client(url: str, services: Services) -> Client:
    key = find_key()
    if key is None:
        raise CranpmError(
            expected=f"a key for {url}",
            found=f"none in {', '.join(KEY_VARIABLES)} or {', '.join(KEY_FILES)}",
            remedy="Register, copy the key from your profile page, and keep it there: see docs/sources.",
        )
    logging.getLogger("ecmwf.datastores").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client warns where the store has no news
        return Client(
            url=url,
            key=key,
            progress=False,
            sleep_max=max(30 * services.wait, 0.01),
            retry_after=10 * services.wait,
            maximum_tries=6,
        )


def _from_store(request: Request, target: Path, services: Services) -> list[Path]:
    """Queue a request, wait for it and download it; a fetch that was stopped waits for the same request."""
    client = _client(services.stores[request.source], services)
    note = target.with_name(target.name + JOB)
    try:
        results = _remote(client, request, note).get_results()
        place, size = results.location, results.content_length
    except Exception as error:  # the client's libraries raise of all kinds; a key must never be shown
        status = status_of(error)
        if isinstance(error, ProcessingFailedError) or status in (400, 404):  # it failed, or is forgotten
            note.unlink(missing_ok=True)
        licence = f"Accept the licence at {request.licence}"
        raise CranpmError(
            expected=f"{request.ask['collection']} from the data store",
            found=str(error).replace(client.key or "", "***")[:500] or type(error).__name__,
            remedy=licence if status == 403 else ADVICE.get(status or 0, "Try again later: the request waits."),
        ) from None
    download(place, target, services.wait, size=size)
    note.unlink(missing_ok=True)
    return [target]


def _remote(client: Client, request: Request, note: Path) -> Remote:
    """The request that an earlier fetch left, or a new one."""
    asked = json.dumps(request.ask, sort_keys=True)
    if note.is_file():
        left = json.loads(note.read_text())
        if left["asked"] == asked:
            return client.get_remote(left["job"])
    remote = client.submit(request.ask["collection"], dict(request.ask["request"]))
    passing = note.with_name(f".{note.name}")
    passing.write_text(json.dumps({"job": remote.request_id, "asked": asked}))
    os.replace(passing, note)
    return remote


def _from_zenodo(request: Request, target: Path, services: Services) -> list[Path]:
    """The record says where the file is and what its checksum is."""
    place = f"{services.zenodo}/{request.ask['record']}"
    pattern = re.compile(request.ask["pattern"])
    try:
        files = {file["key"]: file for file in json.loads(text(place, services.wait))["files"]}
        found = [(int(match.group(1)), files[name]) for name in files if (match := pattern.fullmatch(name))]
    except (KeyError, TypeError, ValueError) as error:
        raise CranpmError(expected=f"a record of files at {place}", found=repr(error), remedy="Look at it.") from None
    if not found:
        raise CranpmError(
            expected=f"a file {pattern.pattern} in {place}",
            found=", ".join(sorted(files)[:6]) or "no files",
            remedy="Look at the record: a new version may have a number of its own.",
        )
    _, newest = max(found, key=lambda pair: pair[0])
    md5 = str(newest["checksum"]).removeprefix("md5:")
    download(newest["links"]["self"], target, services.wait, md5=md5, size=int(newest["size"]))
    return [target]


def _from_eea(request: Request, folder: Path, services: Services) -> list[Path]:
    """The service answers with a list of files; their names alone may repeat from country to country."""
    head, *urls = [
        line.strip('\ufeff"') for line in text(request.ask["post"], services.wait, request.ask["body"]).split()
    ] or [""]
    if head != "ParquetFileUrl" or not urls:
        raise CranpmError(
            expected="a list of files headed ParquetFileUrl",
            found=head[:80] or "nothing" if head != "ParquetFileUrl" else "an empty one",
            remedy="Check the countries, or try again later.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for url in urls:
        name = "_".join(PurePosixPath(urlparse(url).path).parts[-2:])
        if not re.fullmatch(r"[\w.,+-]+\.parquet", name):
            raise CranpmError(expected="addresses of Parquet files", found=url[:200], remedy="Try again later.")
        target = folder / name
        if not target.is_file():
            download(url, target, services.wait)
        found.append(target)
    return found


def _from_cloud(request: Request, target: Path, services: Services) -> list[Path]:
    """Copy a day out of a Zarr."""
    cloud = CLOUDS[request.source]
    part = target.with_name(target.name + PART)
    try:
        group = cloud.open()
        cloud.copy(group, date.fromisoformat(request.ask["day"]), Domain(**request.ask["domain"]), part)
    except CranpmError:
        raise
    except Exception as error:  # of the store's libraries
        raise CranpmError(
            expected=f"{request.ask['day']} in {request.ask['zarr']}", found=str(error)[:300], remedy="Try again later."
        ) from None
    os.replace(part, target)
    return [target]


def _from_index(request: Request, target: Path, services: Services) -> list[Path]:
    """Messages of GRIB files, found by the indices beside them, one range of bytes each."""
    part = target.with_name(target.name + PART)
    with part.open("wb") as file:
        for place in request.ask["index"]:
            lines = [json.loads(line) for line in text(f"{place}.index", services.wait).splitlines() if line.strip()]
            wanted = [line for line in lines if _is_wanted(line, request.ask)]
            if not wanted:
                raise CranpmError(
                    expected=f"fields in {place}.index", found=f"{len(lines)} others", remedy="Look at the index."
                )
            for line in wanted:
                file.write(part_of(f"{place}.grib2", int(line["_offset"]), int(line["_length"]), services.wait))
    os.replace(part, target)
    return [target]


def _is_wanted(line: Mapping[str, Any], ask: Mapping[str, Any]) -> bool:
    if line.get("levtype") == "sfc":
        return line["param"] in ask["surface"]
    return line.get("levtype") == "pl" and line["param"] in ask["aloft"] and int(line["levelist"]) in ask["levels"]
