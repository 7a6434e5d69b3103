"""Files are opened in another process with limits: what a damaged or hostile file does to it, it does not do to us.

The parent sends a job as JSON; the child answers with JSON and plain arrays. Nothing is pickled.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.archive.day_data import Stations
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain
from cranpm.providers import PROVIDERS
from cranpm.providers.provider import FileSummary, Provider, Reading, ReadQuery, RunSpan, by_precedence
from cranpm.providers.readers.files import Piece, pieces

MEMORY_BYTES = 12 * 2**30
"""Of addresses, not of memory in use."""
SECONDS = 1800
FILE_BYTES = 8 * 2**30
"""Of each file that the child writes."""
PLAIN = "biufU"
"""Kinds of numpy's types that are handed over; the others would need a pickle."""
ANSWER, ARRAYS = "answer.json", "arrays.npz"
UNKNOWN = "expected a file of a known provider; found nothing that any of them gives. Leave it out."


class CrashError(Exception):
    """The child ended without an answer."""


def _ask(job: Mapping[str, Any]) -> tuple[Any, dict[str, Array]]:
    """Run a job in a child, whose temporary folder is removed when it has ended, however it ends."""
    with tempfile.TemporaryDirectory(prefix="cranpm-") as folder:
        line = [sys.executable, "-P", "-m", "cranpm.providers.sandbox", folder]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CDS", "ECMWF", "AWS"))}
        text = json.dumps({**job, "limits": [MEMORY_BYTES, SECONDS, FILE_BYTES]})
        try:
            ended = subprocess.run(
                line,
                input=text,
                capture_output=True,
                text=True,
                timeout=2 * SECONDS,
                check=False,
                env={**kept, "TMPDIR": folder},
                cwd=folder,
            )
        except subprocess.TimeoutExpired:
            raise CrashError(f"its reader did not end within {2 * SECONDS} s") from None
        answer, arrays = Path(folder) / ANSWER, Path(folder) / ARRAYS
        if ended.returncode or not answer.is_file():
            why = f"signal {-ended.returncode}" if ended.returncode < 0 else f"exit code {ended.returncode}"
            lines = ended.stderr.strip().splitlines()
            raise CrashError(f"its reader ended with {why}" + (f": {lines[-1][:200]}" if lines else ""))
        try:
            with np.load(arrays, allow_pickle=False) as stored:
                return json.loads(answer.read_text()), dict(stored)
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise CrashError(f"its reader gave an answer that cannot be read: {error}") from None


def look(paths: Sequence[Path]) -> list[FileSummary | tuple[Piece, str]]:
    """What files are; those that cannot be used with the reason. A file that kills its reader is singled out."""
    if not paths:
        return []
    try:
        answer, _ = _ask({"job": "look", "paths": [str(path.resolve()) for path in paths]})
    except CrashError as crash:
        if len(paths) == 1:
            return [(Piece(paths[0]), str(crash))]
        middle = len(paths) // 2
        return look(paths[:middle]) + look(paths[middle:])
    return [
        (_piece(one["piece"]), one["refused"])
        if "refused" in one
        else FileSummary(
            piece=_piece(one["piece"]),
            provider=one["provider"],
            holds=tuple(one["holds"]),
            first=_day(one["first"]),
            last=_day(one["last"]),
            notes=tuple(one["notes"]),
            runs=tuple(RunSpan(datetime.fromisoformat(start), hours) for start, hours in one["runs"]),
        )
        for one in answer
    ]


def read_days(provider: str, given: Sequence[Piece], query: ReadQuery) -> dict[date, Reading | str]:
    """What a provider's files give for days, or why they do not."""
    job = {
        "job": "days",
        "provider": provider,
        "pieces": [_plain(piece) for piece in given],
        "days": [str(day) for day in query.days],
        "domain": query.domain.to_json(),
        "channels": list(query.channels),
        "lenient": query.lenient,
        "run": query.run.isoformat() if query.run else None,
    }
    try:
        answer, arrays = _ask(job)
    except CrashError as crash:
        return {day: f"{', '.join(str(piece) for piece in given[:3])}: {crash}" for day in query.days}
    found: dict[date, Reading | str] = {}
    for day, one in answer.items():
        if "refused" in one:
            found[date.fromisoformat(day)] = one["refused"]
        else:
            fields = {name: arrays[f"{day} {name}"] for name in one["fields"]}
            found[date.fromisoformat(day)] = Reading(fields, tuple(one["notes"]), one["facts"])
    return found


def read_elevation(provider: str, given: Sequence[Piece], domain: Domain, land: Array | None) -> tuple[Array, Array]:
    """Mean and spread of heights on the fine grid, m."""
    with tempfile.TemporaryDirectory(prefix="cranpm-") as folder:
        job = _static_job("elevation", provider, given, domain)
        if land is not None:
            job["land"] = str(Path(folder) / "land.npy")
            np.save(job["land"], land)
        _, arrays = _certainly(job, "rasters of elevation")
    return arrays["mean"], arrays["spread"]


def read_stations(provider: str, given: Sequence[Piece], domain: Domain) -> Stations:
    """The stations inside a domain."""
    _, arrays = _certainly(_static_job("stations", provider, given, domain), "metadata of stations")
    return Stations(**arrays)


def _static_job(job: str, provider: str, given: Sequence[Piece], domain: Domain) -> dict[str, Any]:
    pieces = [_plain(piece) for piece in given]
    return {"job": job, "provider": provider, "pieces": pieces, "domain": domain.to_json()}


def _certainly(job: Mapping[str, Any], what: str) -> tuple[Any, dict[str, Array]]:
    try:
        answer, arrays = _ask(job)
    except CrashError as crash:
        raise CranpmError(expected=f"{what} that can be read", found=str(crash), remedy="Fetch them again.") from None
    if "refused" in answer:
        expected, found, remedy = answer["refused"]
        raise CranpmError(expected=expected, found=found, remedy=remedy)
    return answer, arrays


def _plain(piece: Piece) -> list[str]:
    return [str(piece.path.resolve()), piece.member]


def _piece(plain: Sequence[str]) -> Piece:
    return Piece(Path(plain[0]), plain[1])


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


# In the child


def _work(job: Mapping[str, Any]) -> tuple[Any, dict[str, Array]]:
    if job["job"] == "look":
        return [one for path in job["paths"] for one in _look(Path(path))], {}
    provider, domain = PROVIDERS[job["provider"]], Domain(**job["domain"])
    given = [_piece(plain) for plain in job["pieces"]]
    try:
        if job["job"] == "elevation":
            land = np.load(job["land"], allow_pickle=False) if "land" in job else None
            mean, spread = provider.read_elevation(given, domain, land)
            return {}, {"mean": mean, "spread": spread}
        if job["job"] == "stations":
            return {}, asdict(provider.read_stations(given, domain))
    except CranpmError as error:
        return {"refused": [error.expected, error.found, error.remedy]}, {}
    days = [date.fromisoformat(day) for day in job["days"]]
    run = datetime.fromisoformat(job["run"]) if job["run"] else None
    return _days(provider, given, ReadQuery(days, domain, job["channels"], job["lenient"], run))


def _look(path: Path) -> list[dict[str, Any]]:
    try:
        found = pieces(path)
    except Exception as error:
        return [{"piece": [str(path), ""], "refused": _reason(error)}]
    answers: list[dict[str, Any]] = []
    for piece in found:
        seen = _recognise(piece)
        if isinstance(seen, str):
            answers.append({"piece": _plain(piece), "refused": seen})
        else:
            days = {name: str(day) if day else None for name, day in (("first", seen.first), ("last", seen.last))}
            plain = {"piece": _plain(piece), "provider": seen.provider, "holds": seen.holds, "notes": seen.notes}
            runs = [[span.reference.isoformat(), span.hours] for span in seen.runs]
            answers.append(plain | days | {"runs": runs})
    gridded = [one for one in answers if "provider" in one and PROVIDERS[one["provider"]].gives_channels]
    owner = next((one["provider"] for one in gridded if PROVIDERS[one["provider"]].whole_zip), None)
    return [one | {"provider": owner} if owner and one in gridded else one for one in answers]


def _recognise(piece: Piece) -> FileSummary | str:
    """What a file is to the first provider that knows it; the first error counts only if none does."""
    reason = ""
    for provider in by_precedence():
        try:
            if seen := provider.recognise(piece):
                return seen
        except Exception as error:  # whatever a damaged file makes its library say
            reason = reason or _reason(error)
    return reason or UNKNOWN


def _days(provider: Provider, given: Sequence[Piece], query: ReadQuery) -> tuple[dict[str, Any], dict[str, Array]]:
    answer: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    try:
        read = provider.open(given, query)
    except Exception as error:
        return {str(day): {"refused": _reason(error)} for day in query.days}, {}
    for day in query.days:
        try:
            reading = read(day)
            fields = {name: _plain_array(name, values) for name, values in reading.fields.items()}
            plain = {"fields": list(fields), "notes": list(reading.notes), "facts": dict(reading.facts)}
            json.dumps(plain)
        except Exception as error:  # one day does not spoil the others
            answer[str(day)] = {"refused": _reason(error)}
            continue
        answer[str(day)] = plain
        arrays |= {f"{day} {name}": values for name, values in fields.items()}
    return answer, arrays


def _plain_array(name: str, values: Array) -> Array:
    found = np.asarray(values)
    if found.dtype.kind not in PLAIN:
        raise CranpmError(
            expected=f"numbers or text in {name}",
            found=f"an array of {found.dtype}",
            remedy="Correct the provider's `open`: give the array a type, as float32 or str.",
        )
    return found


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, CranpmError) else f"{type(error).__name__}: {error}"


def _main() -> None:
    folder, job = Path(sys.argv[1]), json.load(sys.stdin)
    kinds = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    for kind, limit in zip(kinds, (*job["limits"], 0), strict=True):
        resource.setrlimit(kind, (limit, limit))
    answer, arrays = _work(job)
    with (folder / ARRAYS).open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    (folder / ANSWER).write_text(json.dumps(answer))


if __name__ == "__main__":
    _main()
