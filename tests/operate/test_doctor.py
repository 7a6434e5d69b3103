"""A look before a run says what this machine has and what the run will cost."""

from pathlib import Path

import requests
from command import run_cli

from cranpm.operate.doctor import machine_checks, run_checks, source_checks
from cranpm.training import load_settings


def test_the_doctor_says_what_a_run_costs(month, tmp_path, monkeypatch):
    checks = {check.name: check for check in run_checks(load_settings(Path("tiny.toml")), month, tmp_path)}
    assert checks["the run"].found.startswith("12 steps: about")
    assert checks["days"].found == "16 train, 3 validation, 3 test"
    assert checks["memory"].verdict == "good"
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("cranpm.operate.doctor.free_memory_gb", lambda: 0.5)
    checks = {check.name: check for check in run_checks(load_settings(Path("tiny.toml")), month, tmp_path)}
    assert checks["memory"].verdict == "bad"
    assert {check.name for check in machine_checks(tmp_path)} >= {"versions", "free memory", "free disk", "bf16"}


def test_the_doctor_looks_at_keys_and_providers(monkeypatch):
    class Answer:
        status_code = 200

    def head(url, **_):
        if "zenodo" in url:
            raise requests.ConnectionError("no route")
        return Answer()

    monkeypatch.setattr("cranpm.operate.doctor.requests.head", head)
    monkeypatch.setattr("cranpm.operate.doctor.find_key", lambda: "secret")
    checks = {check.name: check for check in source_checks()}
    assert checks["key of the data stores"].found == "found"
    assert checks["Zenodo"].verdict == "note"
    assert checks["EEA"].found == "answers (200)"
    assert "secret" not in str(checks)
    monkeypatch.setattr("cranpm.operate.doctor.find_key", lambda: None)
    assert source_checks()[0].verdict == "note"


def test_the_doctors_command(month, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("cranpm.operate.doctor.gemm_peak", lambda _: 100.0)
    line = ["doctor", "tiny.toml", "--out", str(tmp_path)]
    assert run_cli(monkeypatch, *line, "--archive", month.location) == 0
    assert "12 steps" in capsys.readouterr().out
    assert run_cli(monkeypatch, *line) == 1
    assert "settings and --archive together" in capsys.readouterr().err
    monkeypatch.setattr("cranpm.operate.doctor.free_memory_gb", lambda: 0.5)
    assert run_cli(monkeypatch, *line, "--archive", month.location) == 1
