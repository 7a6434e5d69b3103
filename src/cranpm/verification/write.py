"""Scores as files: JSON, and every table as Markdown and CSV."""

import csv
from collections.abc import Sequence
from pathlib import Path

from cranpm.verification.scores import Scores
from cranpm.verification.scores_file import ScoresFile
from cranpm.verification.table import TextTable


def write(scores: Scores, summary: ScoresFile, tables: Sequence[TextTable], folder: Path) -> None:
    """`scores.json`, `tables.md` with all tables, one CSV per table, and `series.csv`: means of regions day by day."""
    folder.mkdir(parents=True, exist_ok=True)
    summary.write(folder)
    (folder / "tables.md").write_text("\n".join(table.markdown() for table in tables))
    for table in tables:
        (folder / f"{table.name}.csv").write_text(table.csv())
    series = scores.series()
    with (folder / "series.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(series[0]) if series else ["place"])
        writer.writeheader()
        writer.writerows(series)
