"""ECMWF's open data by their indices: only the messages that are needed, from the first mirror that answers."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

from cranpm.core.errors import CranpmError
from cranpm.core.files import give_name, locked, write_whole
from cranpm.providers.download import PART, PART_OF, part_of, source_note, text
from cranpm.providers.era5 import LEVELS
from cranpm.providers.forecast_provider import ForecastProvider
from cranpm.providers.provider import FetchQuery
from cranpm.providers.request import Request

MIRRORS = (
    "https://data.ecmwf.int/forecasts",
    "https://ecmwf-forecasts.s3.eu-central-1.amazonaws.com",
    "https://storage.googleapis.com/ecmwf-open-data",
)
"""ECMWF keeps the last days; the clouds keep more."""
HOSTS = dict(zip(("ECMWF open data", "ECMWF open data at Amazon", "ECMWF open data at Google"), MIRRORS, strict=True))
SURFACE = ("10u", "10v", "2t", "sp", "tp")
ALOFT = ("u", "v", "t", "q")
"""What all models call so on pressure levels; the geopotential is a height to some."""
BEGIN, END = b"GRIB", b"7777"
TRIES = 3
"""Of each mirror, before the next is asked."""
GB_A_STEP = 0.022
"""Of the globe, about."""


class OpenData(ForecastProvider, ABC):
    """One file per run at 00 UTC, with all its steps: rain counts from the start of a run."""

    mirrors: Sequence[str] = MIRRORS
    aloft: tuple[str, ...]
    """What the index calls the fields on pressure levels."""

    @abstractmethod
    def folder(self, day: date) -> str:
        """Between the hour and the file in an address."""

    def requests(self, query: FetchQuery) -> list[Request]:
        fields = {"surface": list(SURFACE), "aloft": list(self.aloft), "levels": list(LEVELS)}
        hours = self.steps(query.leads)
        return [
            Request(
                self.name,
                f"{self.name}_{day}_{hours[-1]}h.grib2",
                {
                    "mirrors": list(self.mirrors),
                    "files": [f"{day:%Y%m%d}/00z/{self.folder(day)}/{day:%Y%m%d}000000-{h}h-oper-fc" for h in hours],
                    **fields,
                },
                gigabytes=GB_A_STEP * len(hours),
            )
            for day in query.days
        ]

    def fetch(self, request: Request, target: Path, wait: float) -> list[Path]:
        """Step by step; a fetch that was stopped goes on where it was. A hidden file beside it names the mirrors."""
        with locked(target.with_name(target.name + PART), wait=False):
            self._fetch_steps(request, target, wait)
        return [target]

    def _fetch_steps(self, request: Request, target: Path, wait: float) -> None:
        progress, mirrors = _Progress.left_by(target, request), list(request.ask["mirrors"])
        for number in range(progress.steps, len(request.ask["files"])):
            data, mirror = _from_mirrors(mirrors, request, number, wait)
            mirrors = mirrors[mirrors.index(mirror) :] + mirrors[: mirrors.index(mirror)]  # those that failed go last
            progress.add(data, mirror)
        give_name(progress.part, target)
        progress.note.unlink(missing_ok=True)
        write_whole(source_note(target), json.dumps({"mirrors": progress.mirrors}))


@dataclass
class _Progress:
    """What has arrived of a file: whole steps."""

    part: Path
    note: Path
    asked: str
    steps: int
    size: int
    mirrors: list[str]

    @classmethod
    def left_by(cls, target: Path, request: Request) -> "_Progress":
        """What an earlier fetch of the same left; what it wrote of a step that it did not finish is cut off."""
        part, note = (target.with_name(target.name + suffix) for suffix in (PART, PART_OF))
        asked = json.dumps({key: request.ask[key] for key in ("files", "surface", "aloft", "levels")}, sort_keys=True)
        known = json.loads(note.read_text()) if note.is_file() and part.is_file() else {}
        if known.get("asked") != asked or part.stat().st_size < known["size"]:
            part.write_bytes(b"")
            return cls(part, note, asked, 0, 0, [])
        with part.open("r+b") as file:
            file.truncate(known["size"])
        return cls(part, note, asked, known["steps"], known["size"], known["mirrors"])

    def add(self, data: bytes, mirror: str) -> None:
        """Append a step."""
        with self.part.open("ab") as file:
            self.size += file.write(data)
        self.steps += 1
        self.mirrors += [] if mirror in self.mirrors else [mirror]
        facts = {"asked": self.asked, "steps": self.steps, "size": self.size, "mirrors": self.mirrors}
        write_whole(self.note, json.dumps(facts))


class _LackingError(CranpmError):
    """A mirror has the step, but not all its fields."""

    listed: str = ""


def _from_mirrors(mirrors: Sequence[str], request: Request, number: int, wait: float) -> tuple[bytes, str]:
    """The messages of a step and the mirror that gave them: the first that has them all."""
    problems, lacking = [], ""
    for mirror in mirrors:
        try:
            return _messages(f"{mirror}/{request.ask['files'][number]}", request.ask, wait), mirror
        except CranpmError as error:
            problems.append(f"{mirror}: {error.found}")
            lacking = error.listed if isinstance(error, _LackingError) else lacking
    later = "Try again later: what has arrived is kept. A run is there about seven hours after it began."
    raise CranpmError(
        expected=f"{request.ask['files'][number]} on one of {len(problems)} mirrors",
        found="; ".join(problems),
        remedy=f"The run is there without {lacking}: fetch another day or another provider." if lacking else later,
    )


def _messages(place: str, ask: Mapping[str, Any], wait: float) -> bytes:
    """Messages of a GRIB file, found by the index beside it."""
    index = _read_index(text(f"{place}.index", wait, tries=TRIES), f"{place}.index")
    needed = {(name, 0) for name in ask["surface"]} | {
        (name, level) for name in ask["aloft"] for level in ask["levels"]
    }
    _check_whole(needed - set(index), place)
    ranges = sorted(index[field] for field in needed & set(index))
    return b"".join(_whole_messages(f"{place}.grib2", start, length, wait) for start, length in _joined(ranges))


def _read_index(lines: str, label: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Offset and length of each field by its name and level in hPa, 0 at the surface."""
    try:
        found = [json.loads(line) for line in lines.splitlines() if line.strip()]
        return {
            (line["param"], int(line["levelist"]) if line["levtype"] == "pl" else 0): _place(line)
            for line in found
            if line["levtype"] in ("sfc", "pl")
        }
    except (ValueError, KeyError, TypeError):
        raise CranpmError(
            expected=f"a field as JSON in each line of {label}",
            found=f"an index that begins with {lines[:40]!r}",
            remedy="Try again later.",
        ) from None


def _place(line: Mapping[str, Any]) -> tuple[int, int]:
    return int(line["_offset"]), int(line["_length"])


def _whole_messages(url: str, start: int, length: int, wait: float) -> bytes:
    """A range of bytes that begins and ends with a message: an index may be of another file than the one beside it."""
    data = part_of(url, start, length, wait, TRIES)
    if not (data.startswith(BEGIN) and data.endswith(END)):
        raise CranpmError(
            expected=f"GRIB messages in {url} from byte {start} to byte {start + length}, as its index says",
            found=f"no message from byte {start} to byte {start + length} of {url}",
            remedy="Try again later.",
        )
    return data


def _check_whole(missing: set[tuple[str, int]], place: str) -> None:
    """Every field must be in the index; a run has no rain yet at its start."""
    named = [f"{name} at {level} hPa" if level else name for name, level in sorted(missing)]
    named = [name for name in named if name != "tp" or "-0h-" not in place]
    if named:
        listed = f"{', '.join(named[:5])}{' ...' if len(named) > 5 else ''}"
        error = _LackingError(
            expected=f"{len(named)} more fields in {place}.index",
            found=f"no {listed} in {place}.index",
            remedy="Look at the index.",
        )
        error.listed = listed
        raise error


def _joined(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges of bytes, those that touch as one: fewer questions."""
    ends = [start + length for start, length in ranges]
    numbers = [0]
    for index in range(1, len(ranges)):
        numbers.append(numbers[-1] + (ranges[index][0] != ends[index - 1]))
    for _, group in groupby(range(len(ranges)), key=lambda index: numbers[index]):
        members = list(group)
        start = ranges[members[0]][0]
        yield start, ends[members[-1]] - start
