"""What `cranpm verify` wrote, as figures read it."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.views.figures.inputs import Given
from cranpm.views.figures.sheet import source_label
from cranpm.views.figures.style import Line, method_lines

AGAIN = "Verify again with this version: `cranpm verify --out {}`; days that were judged are kept."


@dataclass(frozen=True)
class Verified:
    """Scores of methods by lead, scale and place."""

    folder: Path
    scores: dict[str, Any]
    names: list[str]
    """Methods to draw, in order."""

    @classmethod
    def of(cls, given: Given) -> "Verified":
        """From the folder that was given."""
        folder = given.verified
        if folder is None:
            raise CranpmError(expected="--verified for this figure", found="none", remedy="Add --verified.")
        scores = _read_json(folder / "scores.json")
        known = list(scores["methods"])
        if unknown := [name for name in given.methods if name not in known]:
            raise CranpmError(
                expected=f"--methods among {', '.join(known)}", found=", ".join(unknown), remedy="Name verified ones."
            )
        found = cls(folder, scores, list(given.methods) or known)
        if given.lead is not None and given.lead not in found.leads:
            raise CranpmError(
                expected=f"--lead among {', '.join(map(str, found.leads))}", found=str(given.lead), remedy="Change it."
            )
        return found

    @property
    def leads(self) -> list[int]:
        first = next(iter(self.scores["methods"].values()))
        return [int(name.removeprefix("T+")) for name in first["leads"]]

    @cached_property
    def lines(self) -> dict[str, Line]:
        """How methods are drawn: the same whichever of them are chosen."""
        return method_lines({name: method["kind"] for name, method in self.scores["methods"].items()})

    @property
    def ours(self) -> str | None:
        """The method to bring out, if it is among those that are drawn."""
        return next((name for name in self.names if self.lines[name].ours), None)

    @property
    def reference(self) -> str:
        """The method that changes are held against."""
        return "persistence" if "persistence" in self.names else self.names[0]

    def of_lead(self, name: str, lead: int) -> dict[str, Any]:
        return dict(self.scores["methods"][name]["leads"][f"T+{lead}"])

    def rmse(self, name: str, lead: int, scale: str = "1 km", place: str = "all") -> float:
        value = self.of_lead(name, lead)["fields"][scale][place]["rmse"]
        return float("nan") if value is None else float(value)

    def few(self, most: int, lead: int) -> list[str]:
        """Ours, the reference and the best of the others, where all would be too many to tell apart."""
        if len(self.names) <= most:
            return list(self.names)
        first = [name for name in (self.ours, self.reference) if name is not None]
        others = sorted((name for name in self.names if name not in first), key=lambda name: self.rmse(name, lead))
        chosen = list(dict.fromkeys([*first, *others]))[:most]
        return [name for name in self.names if name in chosen]

    def not_drawn(self, drawn: Sequence[str]) -> list[str]:
        """A note on the methods that were left away, if any."""
        away = [name for name in self.names if name not in drawn]
        return [f"not drawn: {', '.join(away)} (choose with --methods)"] if away else []

    def notes(self) -> list[str]:
        days, archive = self.scores["days"], self.scores["archive"]
        found = [
            source_label(archive["source"]),
            f"{days['count']} start days {days['first']}..{days['last']}",
            f"archive snapshot {archive['snapshot']}",
        ]
        left = len(self.scores["left_out"])
        return found + ([f"{left} days left out (see scores.json)"] if left else [])

    def need(self, part: Any, name: str) -> Any:
        """A part of the scores that older versions did not write."""
        if name not in part:
            raise CranpmError(
                expected=f"{name} in {self.folder / 'scores.json'}",
                found="scores of an older version",
                remedy=AGAIN.format(self.folder),
            )
        return part[name]

    def series(self) -> dict[str, dict[int, dict[str, Array]]]:
        """Means by place and lead: valid days, truth and every method."""
        path = self.folder / "series.csv"
        try:
            with path.open(newline="") as file:
                rows = list(csv.DictReader(file))
        except OSError:
            rows = []
        if not rows or "valid" not in rows[0]:
            raise CranpmError(
                expected=f"rows in {path}", found="none", remedy="Make it with `cranpm verify --out FOLDER`."
            )
        found: dict[str, dict[int, list[dict[str, str]]]] = {}
        for row in rows:
            found.setdefault(row["place"], {}).setdefault(int(row["lead"]), []).append(row)
        return {place: {lead: self._columns(part) for lead, part in of.items()} for place, of in found.items()}

    def _columns(self, rows: list[dict[str, str]]) -> dict[str, Array]:
        values = {name: np.array([float(row[name]) for row in rows]) for name in ("truth", *self.names)}
        return {"valid": np.array([row["valid"] for row in rows], "datetime64[D]"), **values}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        if isinstance(found, dict) and {"methods", "days", "archive", "left_out"} <= set(found):
            return found
        reason = "another file"
    except FileNotFoundError:
        reason = "no such file"
    except (OSError, ValueError) as error:
        reason = str(error)
    raise CranpmError(expected=f"scores at {path}", found=reason, remedy="Make them with `cranpm verify --out FOLDER`.")
