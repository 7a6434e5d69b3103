"""Fetching providers' files: queued requests, plain downloads that go on where they broke off, checksums, patience."""

import hashlib
import json
import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import requests
from ecmwf.datastores import Client
from ecmwf.datastores.processing import ProcessingFailedError

from cranpm.errors import CranpmError
from cranpm.grid import Domain
from cranpm.sources import SOURCES
from cranpm.sources.base import Request
from cranpm.sources.cloud import CLOUDS
from cranpm.sources.eea import Eea
from cranpm.sources.elevation import Elevation
from cranpm.sources.ifs import Ifs
from cranpm.sources.openaq import OpenAq

TRIES = 6
CHUNK = 2**16
TIMEOUT = (20, 120)
BUSY = (408, 425, 429, 500, 502, 503, 504)
PART, JOB = ".part", ".job"
KEY_FILES = ("~/.ecmwfdatastoresrc", "~/.cdsapirc")
KEY_VARIABLES = ("ECMWF_DATASTORES_KEY", "CDSAPI_KEY")

logging.getLogger("ecmwf.datastores").setLevel(logging.WARNING)


@dataclass(frozen=True)
class Services:
    """Where the providers are; tests play them."""

    stores: Mapping[str, str]
    """URL of the data store of a source."""
    zenodo: str = "https://zenodo.org/api/records"
    wait: float = 1.0
    """Seconds before the first new try; each further one takes twice as long."""


REAL = Services({"era5": "https://cds.climate.copernicus.eu/api", "cams": "https://ads.atmosphere.copernicus.eu/api"})
OnBytes = Callable[[int, int | None], None]


def plan(
    source: str, days: Sequence[date], domain: Domain, countries: Sequence[str] = (), locations: Sequence[int] = ()
) -> list[Request]:
    """What would be fetched."""
    known = {**SOURCES, **CLOUDS, "ifs": Ifs()}
    if source not in known:
        raise CranpmError(expected=f"a source: {', '.join(known)}", found=source, remedy="Name one of these.")
    provider = known[source]
    if isinstance(provider, Elevation):
        return provider.requests(domain)
    if isinstance(provider, OpenAq):
        if not locations:
            raise CranpmError(expected="locations of OpenAQ", found="none", remedy="Add --location 2178, repeated.")
        return provider.requests(days, locations)
    if isinstance(provider, Eea):
        if not countries:
            raise CranpmError(expected="countries of the EEA", found="none", remedy="Add --country IT, repeated.")
        return provider.requests(days, domain, countries)
    return provider.requests(days, domain)


def fetch(
    wanted: Sequence[Request],
    folder: Path,
    services: Services = REAL,
    on_file: Callable[[Request, str], None] = lambda request, state: None,
    on_bytes: OnBytes = lambda done, total: None,
) -> list[Path]:
    """Fetch what is not there yet; a file appears under its name only when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    found: list[Path] = []
    for request in wanted:
        target = folder / request.name
        if target.is_file() and target.stat().st_size:
            on_file(request, "there already")
        elif "collection" in request.ask:
            _from_store(request, target, services, on_file, on_bytes)
        elif "zenodo" in request.ask:
            _from_zenodo(request, target, services, on_bytes)
        elif "zarr" in request.ask:
            _from_cloud(request, target)
        elif "index" in request.ask:
            _from_index(request, target, services)
        elif "post" in request.ask:
            found += _from_eea(request, target, services, on_file, on_bytes)
            continue
        elif not _plain(request, target, services, on_bytes):
            on_file(request, f"not there: {request.ask['missing']}")
            continue
        found.append(target)
    return found


def _plain(request: Request, target: Path, services: Services, on_bytes: OnBytes) -> bool:
    """A URL; where its absence has a meaning, False."""
    return download(str(request.ask["url"]), target, services, on_bytes, absent="missing" in request.ask)


def download(
    url: str,
    target: Path,
    services: Services = REAL,
    on_bytes: OnBytes = lambda done, total: None,
    *,
    md5: str | None = None,
    size: int | None = None,
    absent: bool = False,
) -> bool:
    """Fetch a URL, going on from what an earlier try left; False where nothing is there and that is allowed."""
    part = target.with_name(target.name + PART)
    problem = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(services.wait * 2 ** (attempt - 1))
        try:
            there = _transfer(url, part, on_bytes)
        except requests.RequestException as error:
            problem = _without_secrets(error)
            status = getattr(error.response, "status_code", None)
            if status == 404 and absent:
                return False
            if status is not None and status not in BUSY:
                raise CranpmError(expected=f"{url}", found=problem, remedy=_advice(status)) from None
            continue
        if size is not None and there != size:
            problem = f"{there} bytes of {size}"
            continue
        if md5 is not None and (found := _md5(part)) != md5:
            part.unlink()
            problem = f"checksum {found} instead of {md5}"
            continue
        os.replace(part, target)
        return True
    raise CranpmError(
        expected=f"{url} within {TRIES} tries", found=problem, remedy="Try again later: what has arrived is kept."
    )


def _transfer(url: str, part: Path, on_bytes: OnBytes) -> int:
    """Append what is missing; bytes that are there in the end."""
    begun = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={begun}-"} if begun else {}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        if answer.status_code == 416:  # nothing is missing, or the file is another one now
            part.unlink()
            raise requests.ConnectionError("the server has less than what had arrived; beginning anew")
        answer.raise_for_status()
        if answer.status_code != 206:
            begun = 0
        length = answer.headers.get("Content-Length")
        total = begun + int(length) if length else None
        with part.open("ab" if begun else "wb") as file:
            for chunk in answer.iter_content(CHUNK):
                file.write(chunk)
                begun += len(chunk)
                on_bytes(begun, total)
    if total is not None and begun != total:
        raise requests.ConnectionError(f"broken off after {begun} of {total} bytes")
    return begun


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _advice(status: int) -> str:
    return {
        401: "Check your key: see docs/sources.",
        403: "Accept the licence of the data, and check your key: see docs/sources.",
        404: "Check the days and the domain; the provider may have moved the file.",
    }.get(status, "See what the provider says.")


def _without_secrets(error: Exception) -> str:
    """A message of a library, which must never show a key."""
    text = str(error)
    for secret in filter(None, (find_key(),)):
        text = text.replace(secret, "***")
    return text[:500]


def find_key() -> str | None:
    """The key of the data stores, where their own clients look for it."""
    for name in KEY_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    for name in KEY_FILES:
        path = Path(os.environ.get("CDSAPI_RC", name) if "cdsapi" in name else name).expanduser()
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client warns where the store has no news
        return Client(
            url=url,
            key=key,
            progress=False,
            sleep_max=max(30 * services.wait, 0.01),
            retry_after=10 * services.wait,
            maximum_tries=TRIES,
        )


def _from_store(
    request: Request, target: Path, services: Services, on_file: Callable[[Request, str], None], on_bytes: OnBytes
) -> None:
    """Queue a request, wait for it and download it; a fetch that was stopped waits for the same request."""
    client = _client(services.stores[request.source], services)
    note = target.with_name(target.name + JOB)
    try:
        if note.is_file():
            remote = client.get_remote(json.loads(note.read_text())["job"])
        else:
            remote = client.submit(str(request.ask["collection"]), dict(request.ask["request"]))
            note.write_text(json.dumps({"job": remote.request_id}))
        on_file(request, "queued")
        results = remote.get_results()
    except (requests.HTTPError, ProcessingFailedError) as error:
        note.unlink(missing_ok=True)
        status = getattr(getattr(error, "response", None), "status_code", None)
        remedy = f"Accept the licence at {request.licence}" if status == 403 else _advice(status or 0)
        raise CranpmError(
            expected=f"{request.ask['collection']} from the data store", found=_without_secrets(error), remedy=remedy
        ) from None
    download(results.location, target, services, on_bytes, size=results.content_length)
    note.unlink(missing_ok=True)


def _from_zenodo(request: Request, target: Path, services: Services, on_bytes: OnBytes) -> None:
    """The record says where the file is and what its checksum is."""
    record = _json(f"{services.zenodo}/{request.ask['zenodo']}", services)
    pattern = re.compile(str(request.ask["pattern"]))
    found = [file for file in record.get("files", []) if pattern.fullmatch(file.get("key", ""))]
    if not found:
        names = ", ".join(sorted(file.get("key", "?") for file in record.get("files", []))[:6])
        raise CranpmError(
            expected=f"a file {pattern.pattern} in Zenodo's record {request.ask['zenodo']}",
            found=names or "no files",
            remedy="Look at the record: a new version may have a number of its own.",
        )
    newest = max(found, key=lambda file: str(file["key"]))
    md5 = str(newest["checksum"]).removeprefix("md5:")
    download(str(newest["links"]["self"]), target, services, on_bytes, md5=md5, size=int(newest["size"]))


def _from_cloud(request: Request, target: Path) -> None:
    """Copy a day out of a Zarr; the file appears when it is whole."""
    cloud = CLOUDS[request.source]
    part = target.with_name(target.name + PART)
    cloud.copy(cloud.open(), date.fromisoformat(request.ask["day"]), Domain(**request.ask["domain"]), part)
    os.replace(part, target)


def _from_index(request: Request, target: Path, services: Services) -> None:
    """Messages of GRIB files, found by the indices beside them, one range of bytes each."""
    part = target.with_name(target.name + PART)
    with part.open("wb") as file:
        for place in request.ask["index"]:
            lines = [json.loads(line) for line in _text(f"{place}.index", services).splitlines() if line.strip()]
            wanted = [line for line in lines if _is_wanted(line, request.ask)]
            if not wanted:
                raise CranpmError(
                    expected=f"fields in {place}.index", found=f"{len(lines)} others", remedy="Look at the index."
                )
            for line in wanted:
                file.write(_range(f"{place}.grib2", int(line["_offset"]), int(line["_length"]), services))
    os.replace(part, target)


def _is_wanted(line: Mapping[str, Any], ask: Mapping[str, Any]) -> bool:
    if line.get("levtype") == "sfc":
        return line["param"] in ask["surface"]
    return line.get("levtype") == "pl" and line["param"] in ask["aloft"] and int(line["levelist"]) in ask["levels"]


def _range(url: str, start: int, length: int, services: Services) -> bytes:
    problem = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(services.wait * 2 ** (attempt - 1))
        try:
            asked = {"Range": f"bytes={start}-{start + length - 1}"}
            answer = requests.get(url, headers=asked, timeout=TIMEOUT)
            answer.raise_for_status()
            if answer.status_code == 206 and len(answer.content) == length:
                return answer.content
            problem = f"{len(answer.content)} bytes of {length}"
        except requests.RequestException as error:
            problem = _without_secrets(error)
    raise CranpmError(expected=f"bytes {start} to {start + length} of {url}", found=problem, remedy="Try again later.")


def _json(url: str, services: Services, body: Any = None) -> Any:
    return json.loads(_text(url, services, body))


def _text(url: str, services: Services, body: Any = None) -> str:
    """The answer to a small question."""
    problem = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(services.wait * 2 ** (attempt - 1))
        try:
            answer = requests.request("POST" if body else "GET", url, json=body, timeout=TIMEOUT)
            answer.raise_for_status()
            return answer.text
        except requests.RequestException as error:
            problem = _without_secrets(error)
            status = getattr(error.response, "status_code", None)
            if status is not None and status not in BUSY:
                raise CranpmError(expected=url, found=problem, remedy=_advice(status)) from None
    raise CranpmError(expected=f"{url} within {TRIES} tries", found=problem, remedy="Try again later.")


def _from_eea(
    request: Request, folder: Path, services: Services, on_file: Callable[[Request, str], None], on_bytes: OnBytes
) -> list[Path]:
    """The service answers with a list of files."""
    lines = _text(str(request.ask["post"]), services, request.ask["body"]).split()
    if not lines or lines[0].strip("﻿").strip('"') != "ParquetFileUrl":
        raise CranpmError(
            expected="a list of files headed ParquetFileUrl",
            found=(lines or ["nothing"])[0][:80],
            remedy="Try again later.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number, url in enumerate(lines[1:], start=1):
        target = folder / url.strip('"').rpartition("/")[2]
        if not target.is_file():
            download(url.strip('"'), target, services, on_bytes)
        found.append(target)
        on_file(request, f"{number} of {len(lines) - 1}")
    return found
