"""What `cranpm experiment` wrote, as figures read it."""

from dataclasses import dataclass
from pathlib import Path

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.experiments.results import AS_IT_IS, RESULT, Results, read_results
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.maps import data_label


@dataclass(frozen=True)
class ExperimentData:
    """Scores of one experiment: its rows, each with several seeds, each under conditions."""

    results: Results

    @classmethod
    def load(cls, folder: Path) -> "ExperimentData":
        """From the experiment's folder."""
        return cls(read_results(folder))

    @property
    def title(self) -> str:
        return self.results.result.title

    @property
    def reference(self) -> str:
        return self.results.result.reference

    @property
    def leads(self) -> tuple[int, ...]:
        return self.results.result.leads

    @property
    def rows(self) -> list[str]:
        """Rows with at least one run that has ended."""
        return list(dict.fromkeys(run.row for run in self.results.result.runs))

    @property
    def interventions(self) -> list[str]:
        return list(self.results.result.interventions)

    @property
    def worlds(self) -> list[str]:
        return list(self.results.result.worlds)

    @property
    def seeds(self) -> int:
        return len({run.seed for run in self.results.result.runs})

    def rmse(self, row: str, lead: int) -> list[float]:
        """RMSE (ug m-3), one value per seed."""
        return [scores.rmse(lead) for scores in self.results.of(row)]

    def skill(self, row: str, lead: int, condition: str = AS_IT_IS) -> list[float]:
        """Skill relative to persistence under the same condition, one value per seed."""
        return [scores.skill(lead, "persistence") for scores in self.results.of(row, condition)]

    def notes(self, archive: Archive | None) -> list[str]:
        """Where the numbers are from; an archive that is given says it only if the runs were made from it."""
        snapshot = self.results.result.runs[0].archive_snapshot
        if archive is not None and archive.snapshot == snapshot:
            return [data_label(archive), f"archive snapshot {snapshot}"]
        return [f"archive snapshot {snapshot} (its source is shown where --archive is given)"]


def has_experiment(inputs: FigureInputs, name: str) -> bool:
    """Whether the folder of experiments has a result of this one."""
    return inputs.experiments is not None and (inputs.experiments / name / RESULT).is_file()


def experiments_folder(inputs: FigureInputs) -> Path:
    """The folder of experiments, which must be there."""
    if inputs.experiments is None:
        raise CranpmError(expected="--experiments for this figure", found="none", remedy="Add --experiments.")
    return inputs.experiments
