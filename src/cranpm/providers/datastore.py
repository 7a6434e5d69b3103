"""The Climate and the Atmosphere Data Store: a request is queued, waited for and downloaded."""

import json
import logging
import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from cranpm.core.errors import CranpmError
from cranpm.core.files import write_whole
from cranpm.providers.download import ADVICE, download, status_of
from cranpm.providers.provider import Provider
from cranpm.providers.readers.files import UNFINISHED
from cranpm.providers.request import Request

if TYPE_CHECKING:  # imported where it is used: every sandbox would wait for it
    from ecmwf.datastores import Client
    from ecmwf.datastores.processing import Remote

JOB = UNFINISHED[2]
KEY_FILES = ("~/.ecmwfdatastoresrc", "~/.cdsapirc")
KEY_VARIABLES = ("ECMWF_DATASTORES_KEY", "CDSAPI_KEY")


class StoreProvider(Provider):
    """A provider whose files are asked of a data store."""

    service: str
    """Where the store answers."""
    needs_key = True

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        """Queue the request, wait for it and download its file."""
        return fetch_from_store(self.service, request, target, wait)


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


def fetch_from_store(service: str, request: Request, target: Path, wait: float) -> list[Path]:
    """Queue a request, wait for it and download it; a fetch that was stopped waits for the same request."""
    from ecmwf.datastores.processing import ProcessingFailedError

    client = _client(service, wait)
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
    download(place, target, wait, size=size)
    note.unlink(missing_ok=True)
    return [target]


def _client(url: str, wait: float) -> "Client":
    from ecmwf.datastores import Client

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
            sleep_max=max(30 * wait, 0.01),
            retry_after=10 * wait,
            maximum_tries=6,
        )


def _remote(client: "Client", request: Request, note: Path) -> "Remote":
    """The request that an earlier fetch left, or a new one."""
    asked = json.dumps(request.ask, sort_keys=True)
    if note.is_file():
        left = json.loads(note.read_text())
        if left["asked"] == asked:
            return client.get_remote(left["job"])
    remote = client.submit(request.ask["collection"], dict(request.ask["request"]))
    write_whole(note, json.dumps({"job": remote.request_id, "asked": asked}))
    return remote
