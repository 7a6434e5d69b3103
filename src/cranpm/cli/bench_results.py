"""How benchmarks print what they measured: with the processor's name, as a table or JSON, or against an earlier run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cranpm.cli.console import out
from cranpm.core.errors import CranpmError
from cranpm.core.machine import processor

Compare = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Show what changed since an earlier run of the same command with --json."),
]
MACHINE = ("processor", "vector units")
"""By these names every result says where it was measured."""


def show(what: str, facts: Mapping[str, Any], as_json: bool, compare: Path | None) -> None:
    """Print figures of this machine; with `compare`, each beside that of a file that `--json` wrote."""
    facts = processor() | dict(facts)
    before = None if compare is None else read_facts(compare)
    if as_json:
        print(json.dumps(facts if before is None else _changes(before, facts), indent=1))
        return
    table = Table(show_header=before is not None, title=f"bench {what}")
    for column in ("", "before", "now", "now / before") if before is not None else ("", ""):
        table.add_column(column, justify="left" if not column else "right", overflow="fold")
    for name, value in facts.items():
        if before is None:
            table.add_row(name, _text(value))
        else:
            then = before.get(name)
            ratio = _ratio(then, value)
            table.add_row(name, _text(then), _text(value), "" if ratio is None else f"{ratio:.2f}")
    out.print(table)
    if before is not None and any(before.get(name) != facts[name] for name in MACHINE):
        out.print("Measured on another processor before: compare ratios of one run, not seconds.")


def read_facts(path: Path) -> dict[str, Any]:
    """What a benchmark wrote with --json."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CranpmError(
            expected=f"figures of an earlier run in {path}",
            found=f"{type(error).__name__}: {error}",
            remedy="Write them with the same command and --json: cranpm bench forecast --json > before.json.",
        ) from None
    if not isinstance(found, dict) or not set(MACHINE) <= set(found):
        raise CranpmError(
            expected=f"figures by name in {path}, with {' and '.join(MACHINE)}",
            found="something else",
            remedy="Write them with the same command and --json: cranpm bench forecast --json > before.json.",
        )
    return found


def _changes(before: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {"before": before.get(name), "now": value, "ratio": _ratio(before.get(name), value)}
        for name, value in facts.items()
    }


def _ratio(before: Any, now: Any) -> float | None:
    """Now over before; None where they are not two numbers."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, now))
    return now / before if numbers and before else None


def _text(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
