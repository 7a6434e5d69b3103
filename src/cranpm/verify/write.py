"""Scores as files: JSON, and every table as Markdown and CSV."""

import json
from collections.abc import Sequence
from pathlib import Path

from cranpm.verify.scores import Scores
from cranpm.verify.tables import Table


def write(scores: Scores, tables: Sequence[Table], folder: Path) -> None:
    """`scores.json`, `tables.md` with all tables, and one CSV a table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scores.json").write_text(json.dumps(scores.to_json(), indent=1, allow_nan=False) + "\n")
    (folder / "tables.md").write_text("\n".join(table.markdown() for table in tables))
    for table in tables:
        (folder / f"{table.name}.csv").write_text(table.csv())
