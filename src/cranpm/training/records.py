"""What a person finds in a run's folder: tables of every step and epoch, curves, TensorBoard's files."""

import csv
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

STEPS, EPOCHS, CURVES = "steps.csv", "metrics.csv", "curves.png"
SKILL = "skill_damped_t"
COLOURS = ("#0072b2", "#e69f00", "#cc79a7", "#009e73", "#d55e00", "#56b4e9")


class TrainingLog:
    """Rows of figures, appended as they come. A resumed run first forgets what lies beyond its state."""

    def __init__(self, folder: Path, step: int, epoch: int):
        from torch.utils.tensorboard import SummaryWriter

        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        _keep(folder / STEPS, "step", step)
        _keep(folder / EPOCHS, "epoch", epoch)
        self._board = SummaryWriter(folder / "tensorboard", purge_step=step)

    def step(self, row: Mapping[str, float]) -> None:
        append_row(self.folder / STEPS, row)
        for name, value in row.items():
            self._board.add_scalar(f"step/{name}", value, int(row["step"]))

    def epoch(self, row: Mapping[str, float]) -> None:
        append_row(self.folder / EPOCHS, row)
        for name, value in row.items():
            self._board.add_scalar(f"epoch/{name}", value, int(row["step"]))
        self._board.flush()
        draw_curves(self.folder)


def scored_leads(row: Mapping[str, float]) -> list[int]:
    """The leads that a row of scores holds, in order."""
    return sorted(int(name.removeprefix(SKILL)) for name in row if name.startswith(SKILL))


def rows(path: Path) -> list[dict[str, float]]:
    """A table as numbers; none where the file is not there."""
    if not path.exists():
        return []
    with path.open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def append_row(path: Path, row: Mapping[str, float]) -> None:
    """Add a row to a table; the first one names the columns."""
    new = not path.exists()
    with path.open("a", newline="\n") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def _keep(path: Path, column: str, below: int) -> None:
    """Drop the rows from `below` on."""
    if path.exists():
        header, *lines = path.read_text().splitlines()
        where = header.split(",").index(column)
        kept = [line for line in lines if float(line.split(",")[where]) < below]
        path.write_text("\n".join([header, *kept]) + "\n")


def draw_curves(folder: Path) -> None:
    """Loss by step, and skill by epoch relative to both references, as a PNG."""
    steps, epochs = rows(folder / STEPS), rows(folder / EPOCHS)
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.plot([row["step"] for row in steps], [row["loss"] for row in steps], color="#7d97b5", linewidth=0.7)
    left.plot(*_smooth(steps), color="#1b3a5c", linewidth=1.8)
    left.set(xlabel="step", ylabel="training loss", yscale="log", title="Loss (bold: running mean)")
    for colour, lead in zip(cycle(COLOURS), scored_leads(epochs[0]), strict=False):
        for reference, style in (("damped", "-"), ("persistence", ":")):
            values = [100 * row[f"skill_{reference}_t{lead}"] for row in epochs]
            label = f"T+{lead}" if reference == "damped" else None
            right.plot([row["epoch"] + 1 for row in epochs], values, style, color=colour, label=label, marker=".")
    right.axhline(0, color="#555555", linewidth=0.8)
    right.set(xlabel="epoch", ylabel="skill, %", title="Skill on validation days")
    right.plot([], [], ":", color="#555555", label="relative to persistence")
    right.plot([], [], "-", color="#555555", label="relative to damped")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / CURVES, dpi=120)


def _smooth(steps: list[dict[str, float]], width: int = 25) -> tuple[list[float], list[float]]:
    losses = [row["loss"] for row in steps]
    means = [
        sum(losses[max(0, i - width) : i + 1]) / len(losses[max(0, i - width) : i + 1]) for i in range(len(losses))
    ]
    return [row["step"] for row in steps], means
