"""ECMWF's open data by their indices: only the messages that are needed, from the first mirror that answers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

from cranpm.core.errors import CranpmError
from cranpm.core.files import give_name, write_whole
from cranpm.providers.download import PART, PART_OF, part_of, source_note, text
from cranpm.providers.era5 import LEVELS
from cranpm.providers.forecast_provider import ForecastProvider, steps
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
ALOFT = ("u", "v", "t", "q", "gh")
EXTRA = ("blh",)
TRIES = 3
"""Of each mirror, before the next is asked."""
GB_A_STEP = 0.022
"""Of the globe, about."""


class OpenData(ForecastProvider):
    """One file per run at 00 UTC, with all its steps: rain counts from the start of a run."""

    mirrors: Sequence[str] = MIRRORS
    every: int
    """Hours between steps."""
    most: int
    """Hours up to which there are such steps."""

    def folder(self, day: date) -> str:
        """Between the hour and the file in an address."""
        raise NotImplementedError

    def requests(self, query: FetchQuery) -> list[Request]:
        extra = [name for name in query.channels if name in EXTRA]
        fields = {"surface": [*SURFACE, *extra], "aloft": list(ALOFT), "levels": list(LEVELS)}
        hours = steps(query.leads, self.every, self.most)
        return [
            Request(
                self.name,
                f"{self.name}_{day}.grib2",
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
        progress, mirrors = _Progress.left_by(target, request), list(request.ask["mirrors"])
        for number in range(progress.steps, len(request.ask["files"])):
            data, mirror = _from_mirrors(mirrors, request, number, wait)
            mirrors = mirrors[mirrors.index(mirror) :] + mirrors[: mirrors.index(mirror)]  # those that failed go last
            progress.add(data, mirror)
        give_name(progress.part, target)
        progress.note.unlink(missing_ok=True)
        write_whole(source_note(target), json.dumps({"mirrors": progress.mirrors}))
        return [target]


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


def _from_mirrors(mirrors: Sequence[str], request: Request, number: int, wait: float) -> tuple[bytes, str]:
    """The messages of a step and the mirror that gave them: the first that has them all."""
    problems = []
    for mirror in mirrors:
        try:
            return _messages(f"{mirror}/{request.ask['files'][number]}", request, wait), mirror
        except CranpmError as error:
            problems.append(f"{mirror}: {error.found}")
    raise CranpmError(
        expected=f"{request.ask['files'][number]} on one of {len(problems)} mirrors",
        found="; ".join(problems),
        remedy="Try again later: what has arrived is kept. A run is there about seven hours after it began.",
    )


def _messages(place: str, request: Request, wait: float) -> bytes:
    """Messages of a GRIB file, found by the index beside it."""
    lines = [json.loads(line) for line in text(f"{place}.index", wait, tries=TRIES).splitlines() if line.strip()]
    wanted = [line for line in lines if _is_wanted(line, request.ask)]
    _check_whole(wanted, request.ask, place)
    ranges = sorted((int(line["_offset"]), int(line["_length"])) for line in wanted)
    return b"".join(part_of(f"{place}.grib2", start, length, wait, TRIES) for start, length in _joined(ranges))


def _is_wanted(line: Mapping[str, Any], ask: Mapping[str, Any]) -> bool:
    if line.get("levtype") == "sfc":
        return line["param"] in ask["surface"]
    return line.get("levtype") == "pl" and line["param"] in ask["aloft"] and int(line["levelist"]) in ask["levels"]


def _check_whole(wanted: Sequence[Mapping[str, Any]], ask: Mapping[str, Any], place: str) -> None:
    """Every field must be in the index; a run has no rain yet at its start."""
    there = {(line["param"], int(line.get("levelist", 0))) for line in wanted}
    surface = {(name, 0) for name in ask["surface"]} - ({("tp", 0)} if "-0h-" in place else set())
    missing = sorted((surface | {(name, level) for name in ask["aloft"] for level in ask["levels"]}) - there)
    if missing:
        listed = ", ".join(f"{name} at {level} hPa" if level else name for name, level in missing[:5])
        raise CranpmError(
            expected=f"{len(missing)} more fields in {place}.index",
            found=f"no {listed}{' ...' if len(missing) > 5 else ''} in {place}.index",
            remedy="Look at the index.",
        )


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
