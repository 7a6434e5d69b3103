"""What `cranpm verify` wrote, as figures read it."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.verification.scores_file import ScoresFile, read_scores
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.sheet import source_label
from cranpm.views.figures.style import Line, method_lines


@dataclass(frozen=True)
class ScoresData:
    """Scores of methods by lead, scale and place."""

    folder: Path
    scores: ScoresFile
    names: list[str]
    """Methods to draw, in order."""

    @classmethod
    def of(cls, inputs: FigureInputs) -> "ScoresData":
        """From the folder that was given."""
        folder = inputs.verified
        if folder is None:
            raise CranpmError(expected="--verified for this figure", found="none", remedy="Add --verified.")
        scores = read_scores(folder)
        known = list(scores.methods)
        if unknown := [name for name in inputs.methods if name not in known]:
            raise CranpmError(
                expected=f"--methods among {', '.join(known)}", found=", ".join(unknown), remedy="Name verified ones."
            )
        found = cls(folder, scores, list(inputs.methods) or known)
        if inputs.lead is not None and inputs.lead not in found.leads:
            raise CranpmError(
                expected=f"--lead among {', '.join(map(str, found.leads))}", found=str(inputs.lead), remedy="Change it."
            )
        return found

    @property
    def leads(self) -> list[int]:
        """Days ahead."""
        return self.scores.leads

    @cached_property
    def lines(self) -> dict[str, Line]:
        """How methods are drawn: the same whichever of them are chosen."""
        return method_lines({name: method.kind for name, method in self.scores.methods.items()})

    @property
    def ours(self) -> str | None:
        """The method to bring out, if it is among those that are drawn."""
        return next((name for name in self.names if self.lines[name].ours), None)

    @property
    def reference(self) -> str:
        """The method that changes are relative to."""
        return "persistence" if "persistence" in self.names else self.names[0]

    def rmse(self, name: str, lead: int, scale: str = "1 km", place: str = "all") -> float:
        """RMSE (ug m-3) of a method; NaN where it is not known."""
        value = self.scores.of(name, lead).fields[scale][place].rmse
        return float("nan") if value is None else value

    def few(self, most: int, lead: int) -> list[str]:
        """Ours, the reference and the best of the others, where all would be too many to distinguish."""
        if len(self.names) <= most:
            return list(self.names)
        first = [name for name in (self.ours, self.reference) if name is not None]
        others = sorted((name for name in self.names if name not in first), key=lambda name: self.rmse(name, lead))
        chosen = list(dict.fromkeys([*first, *others]))[:most]
        return [name for name in self.names if name in chosen]

    def not_drawn(self, drawn: Sequence[str]) -> list[str]:
        """A note on the methods that were left out, if any."""
        away = [name for name in self.names if name not in drawn]
        return [f"not drawn: {', '.join(away)} (choose with --methods)"] if away else []

    def notes(self) -> list[str]:
        """Where the numbers are from."""
        days, archive, left = self.scores.days, self.scores.archive, len(self.scores.left_out)
        found = [
            source_label(archive.source),
            f"{days.count} start days {days.first}..{days.last}",
            f"archive snapshot {archive.snapshot}",
        ]
        return found + ([f"{left} days left out (see scores.json)"] if left else [])

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
