"""What `cranpm experiment` wrote, as figures read it."""

import csv
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.views.figures.inputs import Given
from cranpm.views.figures.maps import data_label

FACTUAL = "as it is"
"""The condition without any intervention, as experiments name it."""
COLUMNS = ("row", "seed", "condition", "archive_snapshot", "rmse_t1", "skill_persistence_t1")


@dataclass(frozen=True)
class Trials:
    """Runs of one experiment: its rows, each with several seeds, each under conditions."""

    name: str
    title: str
    reference: str
    worlds: list[str]
    """Conditions that are other worlds; the rest are inputs taken away or made false."""
    runs: list[dict[str, object]]

    @classmethod
    def load(cls, folder: Path) -> "Trials":
        """From the experiment's own folder."""
        path = folder / "runs.parquet"
        try:
            runs = pq.read_table(path).to_pylist()
            header, worlds = _header(folder / "table.csv"), _header(folder / "worlds.csv", needed=False)
            title = (folder / "table.md").read_text().splitlines()[0].removeprefix("# ")
        except (OSError, ValueError, IndexError) as error:
            raise _refusal(path, str(error).splitlines()[0]) from None
        if not runs or (missing := [name for name in COLUMNS if name not in runs[0]]):
            raise _refusal(path, "no runs" if not runs else f"no column {', '.join(missing)}")
        reference = next((name.removeprefix("against ") for name in header if name.startswith("against ")), "")
        return cls(folder.name, title, reference, worlds[2:], runs)

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(str(run["row"]) for run in self.runs))

    @property
    def conditions(self) -> list[str]:
        """All but the factual one."""
        return [name for name in dict.fromkeys(str(run["condition"]) for run in self.runs) if name != FACTUAL]

    @property
    def leads(self) -> list[int]:
        return sorted(int(name.removeprefix("rmse_t")) for name in self.runs[0] if name.startswith("rmse_t"))

    @property
    def seeds(self) -> int:
        return len({run["seed"] for run in self.runs})

    def values(self, column: str, row: str, condition: str = FACTUAL) -> list[float]:
        """One value a seed."""
        return [float(str(run[column])) for run in self.runs if (run["row"], run["condition"]) == (row, condition)]

    def notes(self, archive: Archive | None) -> list[str]:
        """Where the numbers are from; an archive that is given says it only if the runs were made from it."""
        snapshot = str(self.runs[0]["archive_snapshot"])
        if archive is not None and archive.snapshot == snapshot:
            return [data_label(archive), f"archive snapshot {snapshot}"]
        return [f"archive snapshot {snapshot} (its source is told where --archive is given)"]


def experiments_folder(given: Given) -> Path:
    """The folder of experiments, which must be there."""
    if given.experiments is None:
        raise CranpmError(expected="--experiments for this figure", found="none", remedy="Add --experiments.")
    return given.experiments


def _header(path: Path, needed: bool = True) -> list[str]:
    if not needed and not path.is_file():
        return []
    with path.open(newline="") as file:
        return next(csv.reader(file), [])


def _refusal(path: Path, found: str) -> CranpmError:
    return CranpmError(
        expected=f"runs of an experiment at {path}, with table.csv and table.md beside",
        found=found,
        remedy="Make them with `cranpm experiment NAME --out FOLDER`.",
    )
