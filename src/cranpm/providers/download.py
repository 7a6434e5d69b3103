"""Bytes from a server: new tries after growing pauses, interrupted downloads resume."""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import requests

from cranpm.core.errors import CranpmError
from cranpm.core.files import give_name
from cranpm.providers.readers.files import UNFINISHED
from cranpm.providers.request import Request

TRIES = 6
CHUNK = 2**16
TIMEOUT = (20, 120)
BUSY = (408, 416, 425, 429, 500, 502, 503, 504)
PART, PART_OF, _ = UNFINISHED
PLAIN = {"Accept-Encoding": "identity"}
"""Lengths and ranges are those of the file, not of a packed stream."""
ADVICE = {
    401: "Check your key: see docs/sources.",
    403: "Accept the licence of the data, and check your key: see docs/sources.",
    404: "Check the days and the domain; the provider may have moved the file.",
}
Answer = TypeVar("Answer")


def with_retries(what: str, work: Callable[[], Answer], wait: float, tries: int = TRIES) -> Answer:
    """Try until it works; `wait` seconds before the second try, and twice as long before each further one."""
    problem = ""
    for attempt in range(tries):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            return work()
        except (requests.RequestException, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
                raise CranpmError(expected=f"room for {what}", found=str(error), remedy="Free the disk.") from None
            problem = str(error)[:500]
            status = status_of(error)
            if status is not None and status not in BUSY:
                remedy = ADVICE.get(status, "See what the provider says.")
                raise CranpmError(expected=what, found=problem, remedy=remedy) from error
    raise CranpmError(
        expected=f"{what} within {tries} tries", found=problem, remedy="Try again later: what has arrived is kept."
    )


def status_of(error: BaseException | None) -> int | None:
    """The number that a server answered with, if it answered."""
    return getattr(getattr(error, "response", None), "status_code", None)


def text(url: str, wait: float, body: Any = None, tries: int = TRIES) -> str:
    """The answer to a small question."""

    def ask() -> str:
        answer = requests.request("POST" if body else "GET", url, json=body, timeout=TIMEOUT)
        answer.raise_for_status()
        return answer.text

    return with_retries(url, ask, wait, tries)


def part_of(url: str, start: int, length: int, wait: float, tries: int = TRIES) -> bytes:
    """A range of bytes."""

    def ask() -> bytes:
        asked = {**PLAIN, "Range": f"bytes={start}-{start + length - 1}"}
        answer = requests.get(url, headers=asked, timeout=TIMEOUT)
        answer.raise_for_status()
        if answer.status_code != 206 or len(answer.content) != length:
            raise requests.ConnectionError(f"{len(answer.content)} bytes of {length}")
        return answer.content

    return with_retries(url, ask, wait, tries)


def source_note(target: Path) -> Path:
    """The hidden file that says which mirrors a file came from."""
    return target.with_name(f".{target.name}.source")


def fetch_url(request: Request, target: Path, wait: float) -> list[Path]:
    """The plain file at `url`; none where its absence has a meaning, which `missing` states."""
    try:
        download(request.ask["url"], target, wait)
    except CranpmError as error:
        if status_of(error.__cause__) == 404 and "missing" in request.ask:
            return []
        raise
    return [target]


def download(url: str, target: Path, wait: float, *, md5: str | None = None, size: int | None = None) -> None:
    """Fetch a file, resuming what an earlier try left of it; it appears under its name when it is whole."""
    part, note = (target.with_name(target.name + suffix) for suffix in (PART, PART_OF))

    def work() -> None:
        there = _transfer(url, part, note)
        if size is not None and there != size:
            raise requests.ConnectionError(f"{there} bytes of {size}")
        if md5 is not None and (found := _md5(part)) != md5:
            part.unlink()
            note.unlink()
            raise requests.ConnectionError(f"checksum {found} instead of {md5}")

    with_retries(url, work, wait)
    give_name(part, target)
    note.unlink(missing_ok=True)


def _transfer(url: str, part: Path, note: Path) -> int:
    """Append what is missing; bytes that are there in the end. A part of another or an older file is dropped."""
    known = json.loads(note.read_text()) if note.is_file() else {}
    if known.get("url") != url or not known.get("tag"):
        part.unlink(missing_ok=True)
    begun = part.stat().st_size if part.exists() else 0
    resume = {"Range": f"bytes={begun}-", "If-Range": known["tag"]} if begun else {}
    with requests.get(url, headers={**PLAIN, **resume}, stream=True, timeout=TIMEOUT) as answer:
        if answer.status_code == 416:
            part.unlink(missing_ok=True)
        answer.raise_for_status()
        begun = begun if answer.status_code == 206 else 0
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        note.write_text(json.dumps({"url": url, "tag": tag}))
        length = answer.headers.get("Content-Length")
        total = begun + int(length) if length else None
        with part.open("ab" if begun else "wb") as file:
            for chunk in answer.iter_content(CHUNK):
                begun += file.write(chunk)
    if total is not None and begun != total:
        raise requests.ConnectionError(f"broken off after {begun} of {total} bytes")
    return begun


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
