"""Files are opened in another process with limits: what a damaged or hostile file does to it, it does not do to us.

The parent sends a job as JSON; the child answers with JSON and plain arrays. Nothing is pickled.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.archive.day_data import Stations
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array, Domain
from cranpm.providers.provider import Daily, Reading, Seen
from cranpm.providers.readers.files import Piece, pieces

MEMORY_BYTES = 12 * 2**30
"""Of addresses, not of memory in use."""
SECONDS = 1800
ANSWER, ARRAYS = "answer.json", "arrays.npz"
UNKNOWN = "expected a file of ERA5, CAMS, GHAP, elevation or stations; found nothing that we know in it. Leave it out."


class CrashError(Exception):
    """The child ended without an answer."""


def _ask(job: Mapping[str, Any]) -> tuple[Any, dict[str, Array]]:
    """Run a job in a child, whose passing files lie in a folder that goes when it has ended, however it ends."""
    with tempfile.TemporaryDirectory(prefix="cranpm-") as folder:
        line = [sys.executable, "-P", "-m", "cranpm.providers.sandbox", folder]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CDS", "ECMWF", "AWS"))}
        told = json.dumps({**job, "limits": [MEMORY_BYTES, SECONDS]})
        try:
            ended = subprocess.run(
                line,
                input=told,
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
        found = json.loads(answer.read_text())
        with np.load(arrays, allow_pickle=False) as stored:
            return found, dict(stored)


def look(paths: Sequence[Path]) -> list[Seen | tuple[Piece, str]]:
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
        else Seen(
            piece=_piece(one["piece"]),
            source=one["source"],
            holds=tuple(one["holds"]),
            first=_day(one["first"]),
            last=_day(one["last"]),
            notes=tuple(one["notes"]),
        )
        for one in answer
    ]


def read_days(
    source: str, given: Sequence[Piece], days: Sequence[date], domain: Domain, lenient: bool
) -> dict[date, Reading | str]:
    """What a provider's files give for days, or why they do not."""
    job = {
        "job": "days",
        "source": source,
        "pieces": [_plain(piece) for piece in given],
        "days": [str(day) for day in days],
        "domain": domain.to_json(),
        "lenient": lenient,
    }
    try:
        answer, arrays = _ask(job)
    except CrashError as crash:
        return {day: f"{', '.join(str(piece) for piece in given[:3])}: {crash}" for day in days}
    found: dict[date, Reading | str] = {}
    for day, one in answer.items():
        if "refused" in one:
            found[date.fromisoformat(day)] = one["refused"]
        else:
            fields = {name: arrays[f"{day} {name}"] for name in one["fields"]}
            found[date.fromisoformat(day)] = Reading(fields, tuple(one["notes"]), one["facts"])
    return found


def read_elevation(given: Sequence[Piece], domain: Domain, land: Array) -> tuple[Array, Array]:
    """Mean and spread of heights on the fine grid."""
    with tempfile.TemporaryDirectory(prefix="cranpm-") as folder:
        np.save(Path(folder) / "land.npy", land)
        job = {"job": "elevation", "pieces": [_plain(piece) for piece in given], "domain": domain.to_json()}
        _, arrays = _certainly({**job, "land": str(Path(folder) / "land.npy")}, "rasters of elevation")
    return arrays["mean"], arrays["spread"]


def read_stations(given: Sequence[Piece], domain: Domain) -> Stations:
    """Stations from metadata."""
    job = {"job": "stations", "pieces": [_plain(piece) for piece in given], "domain": domain.to_json()}
    _, arrays = _certainly(job, "metadata of stations")
    return Stations(**arrays)


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
    from cranpm.providers import DAILY, eea, elevation

    if job["job"] == "look":
        return [one for path in job["paths"] for one in _look(Path(path))], {}
    domain, given = Domain(**job["domain"]), [_piece(plain) for plain in job["pieces"]]
    try:
        if job["job"] == "elevation":
            mean, spread = elevation.read_elevation(given, domain.fine, np.load(job["land"], allow_pickle=False))
            return {}, {"mean": mean, "spread": spread}
        if job["job"] == "stations":
            return {}, asdict(eea.read_stations(given, domain))
    except CranpmError as error:
        return {"refused": [error.expected, error.found, error.remedy]}, {}
    return _days(DAILY[job["source"]], given, [date.fromisoformat(day) for day in job["days"]], domain, job["lenient"])


def _look(path: Path) -> list[dict[str, Any]]:
    from cranpm.providers import SOURCES

    try:
        found = pieces(path)
    except Exception as error:
        return [{"piece": [str(path), ""], "refused": _reason(error)}]
    answers: list[dict[str, Any]] = []
    for piece in found:
        try:
            seen = next((seen for source in SOURCES.values() if (seen := source.look(piece))), None)
        except Exception as error:  # whatever a damaged file makes its library say
            answers.append({"piece": _plain(piece), "refused": _reason(error)})
            continue
        if seen is None:
            answers.append({"piece": _plain(piece), "refused": UNKNOWN})
        else:
            days = {name: str(day) if day else None for name, day in (("first", seen.first), ("last", seen.last))}
            plain = {"piece": _plain(piece), "source": seen.source, "holds": seen.holds, "notes": seen.notes}
            answers.append(plain | days)
    if any(one.get("source") == "cams" for one in answers):
        for one in answers:  # a ZIP is one request: its surface pressure is not ERA5's
            if one.get("source") == "era5":
                one["source"] = "cams"
    return answers


def _days(
    source: Daily, given: Sequence[Piece], days: Sequence[date], domain: Domain, lenient: bool
) -> tuple[dict[str, Any], dict[str, Array]]:
    answer: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    try:
        read = source.open(given, days, domain, lenient)
    except Exception as error:
        return {str(day): {"refused": _reason(error)} for day in days}, {}
    for day in days:
        try:
            reading = read(day)
        except Exception as error:  # one day does not spoil the others
            answer[str(day)] = {"refused": _reason(error)}
            continue
        answer[str(day)] = {"fields": list(reading.fields), "notes": reading.notes, "facts": reading.facts}
        arrays |= {f"{day} {name}": values for name, values in reading.fields.items()}
    return answer, arrays


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, CranpmError) else f"{type(error).__name__}: {error}"


def _main() -> None:
    folder, job = Path(sys.argv[1]), json.load(sys.stdin)
    memory, seconds = job["limits"]
    for kind, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (limit, limit))
    answer, arrays = _work(job)
    with (folder / ARRAYS).open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    (folder / ANSWER).write_text(json.dumps(answer))


if __name__ == "__main__":
    _main()
