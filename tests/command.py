"""The command line as tests call it."""

import sys

import pytest

from cranpm import cli


def run_cli(monkeypatch: pytest.MonkeyPatch, *line: str) -> int:
    """The exit code of `cranpm LINE`."""
    monkeypatch.setattr(sys, "argv", ["cranpm", *line])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code
