"""Scores as files: JSON, and every table as Markdown and CSV."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from cranpm.verification.scores import Scores
from cranpm.verification.table import Table


def write(scores: Scores, tables: Sequence[Table], folder: Path) -> None:
    """`scores.json`, `tables.md` with all tables, one CSV a table, and `series.csv`: means of regions day by day."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scores.json").write_text(json.dumps(scores.to_json(), indent=1, allow_nan=False) + "\n")
    (folder / "tables.md").write_text("\n".join(table.markdown() for table in tables))
    for table in tables:
        (folder / f"{table.name}.csv").write_text(table.csv())
    series = scores.series()
    with (folder / "series.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(series[0]) if series else ["place"])
        writer.writeheader()
        writer.writerows(series)
