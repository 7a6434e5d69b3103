"""Commands as a user types them, in a process of their own where exit codes and output matter."""

import json
import subprocess
import sys

import pytest
from released_cases import checkpoint
from typer.testing import CliRunner

from cranpm import __version__, cli

BOX = "48,7,42.75,12.25"
runner = CliRunner()


def shell(*arguments):
    return subprocess.run([sys.executable, "-m", "cranpm", *map(str, arguments)], capture_output=True, text=True)


def test_simulate_info_map_and_forecast_in_a_row(tmp_path):
    path = str(tmp_path / "a")
    made = shell("simulate", "--domain", BOX, "--days", "2021-12-30..2022-01-01", path, "--quiet")
    assert made.returncode == 0, made.stderr
    assert "3 days added" in made.stdout
    facts = json.loads(shell("info", path, "--json").stdout)
    assert (facts["first_day"], facts["last_day"], facts["days"]) == ("2021-12-30", "2022-01-01", 3)
    readable = shell("info", path).stdout
    assert "2021-12-30" in readable
    assert "snapshot" in readable
    drawn = shell("map", path, "--day", "2022-01-01", "--out", tmp_path / "m.png")
    assert drawn.returncode == 0
    assert (tmp_path / "m.png").exists()
    made = ("--day", "2021-12-31", "--leads", "1,2", "--weights", "persistence", "--out", tmp_path / "f")
    forecast = shell("forecast", "--archive", path, *made)
    assert "T+1" in forecast.stdout
    assert "no truth" in forecast.stdout
    assert len(list((tmp_path / "f" / "2021-12-31").glob("*.png"))) == 2
    again = shell("simulate", "--domain", BOX, "--days", "2022-01-01", path)
    assert "0 days added, 1 were there already" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("simulate", "--domain", "42,4,50,16", "--days", "2021"), "north above south"),
        (("simulate", "--domain", "91,4,50,16", "--days", "2021"), "latitude in -90..90"),
        (("simulate", "--domain", "50,4,49,5", "--days", "2021"), "at least one tile"),
        (("simulate", "--domain", BOX, "--days", "2021-02-01..2021-01-01"), "runs forward"),
        (("simulate", "--days", "2021"), "domain"),
        (("simulate", "--domain", BOX, "--days", "2021", "--set", "simulation.sed=1"), "simulation.seed"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(tmp_path, arguments, words):
    place = tmp_path / "a"
    result = shell(*arguments, place)
    assert result.returncode == 1
    assert words in result.stderr
    assert "remedy" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(tmp_path):
    result = shell("--debug", "info", tmp_path / "none")
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_usage_errors_have_their_own_exit_code():
    assert shell("simulate", "--nonsense").returncode == 2


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["simulate"],
        ["info"],
        ["map"],
        ["forecast"],
        ["bench"],
        ["bench", "model"],
        ["model", "summary"],
        ["weights", "import"],
    ],
)
def test_help_teaches(command):
    result = runner.invoke(cli.app, [*command, "--help"])
    assert result.exit_code == 0
    assert len(result.output) > 300


def test_version():
    assert runner.invoke(cli.app, ["--version"]).output.strip() == __version__


def run_main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["cranpm", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code


def test_report_of_an_archive(archive_path, monkeypatch, capsys):
    arguments = ("--domain", BOX, "--days", "2020-02-27..2020-03-02", "--set", "simulation.spin_up_days=2", "--report")
    assert run_main(monkeypatch, "simulate", *arguments, archive_path, "-q") == 0
    table = capsys.readouterr().out
    assert "persistence RMSE at T+1" in table
    assert run_main(monkeypatch, "simulate", *arguments, archive_path, "-q", "--json") == 0
    names = [check["name"] for check in json.loads(capsys.readouterr().out)]
    assert "median PM2.5, ug m-3" in names


def test_report_without_an_archive(monkeypatch, capsys):
    assert run_main(monkeypatch, "simulate", "--domain", BOX, "--days", "2021-01-01..2021-01-05", "--report", "-q") == 0
    assert "Realism" in capsys.readouterr().out
    assert run_main(monkeypatch, "simulate", "--domain", BOX, "--days", "2021-01-01") == 1
    assert "an ARCHIVE or --report" in capsys.readouterr().err


def test_commands_in_this_process(archive_path, tmp_path, monkeypatch, capsys):
    assert run_main(monkeypatch, "info", archive_path) == 0
    assert run_main(monkeypatch, "map", archive_path, "--field", "elevation", "--out", tmp_path / "e.png") == 0
    forecast = ("forecast", "--archive", archive_path, "--day", "2020-02-28", "--out", tmp_path)
    assert run_main(monkeypatch, *forecast, "--weights", "persistence") == 0
    assert "T+3" in capsys.readouterr().out
    assert run_main(monkeypatch, *forecast) == 1
    assert "the weights were trained on europe" in capsys.readouterr().err
    assert run_main(monkeypatch, "map", archive_path, "--day", "2031-01-01", "--out", tmp_path / "x.png") == 1
    assert "2031-01-01 in" in capsys.readouterr().err


def test_bench_prints_a_table(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.store", lambda *_: {"ratio": 1.234567, "domain": "alps"})
    assert run_main(monkeypatch, "bench", "store") == 0
    assert "1.23" in capsys.readouterr().out
    assert run_main(monkeypatch, "bench", "store", "--json") == 0
    assert json.loads(capsys.readouterr().out)["domain"] == "alps"


def test_a_bench_is_compared_with_an_earlier_run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("benchmarks.store", lambda *_: {"seconds": 2.0, "domain": "alps"})
    run_main(monkeypatch, "bench", "store", "--json")
    earlier = tmp_path / "before.json"
    earlier.write_text(capsys.readouterr().out)
    monkeypatch.setattr("benchmarks.store", lambda *_: {"seconds": 5.0, "domain": "alps", "new": 1.0})
    assert run_main(monkeypatch, "bench", "store", "--compare", earlier) == 0
    table = capsys.readouterr().out
    assert "2.50" in table
    assert "not measured" in table
    assert "another processor" not in table
    assert run_main(monkeypatch, "bench", "store", "--compare", earlier, "--json") == 0
    assert json.loads(capsys.readouterr().out)["seconds"] == {"before": 2.0, "now": 5.0, "ratio": 2.5}
    earlier.write_text(json.dumps(json.loads(earlier.read_text()) | {"processor": "1 x another"}))
    run_main(monkeypatch, "bench", "store", "--compare", earlier)
    assert "another processor" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", '{"seconds": 1}'])
def test_a_file_that_no_bench_wrote_is_refused(monkeypatch, capsys, tmp_path, text):
    monkeypatch.setattr("benchmarks.store", lambda *_: {"seconds": 2.0})
    (tmp_path / "before.json").write_text(text)
    assert run_main(monkeypatch, "bench", "store", "--compare", tmp_path / "before.json") == 1
    assert "--json" in capsys.readouterr().err


def test_the_networks_bench_prints_parts_and_memory(monkeypatch, capsys):
    monkeypatch.setattr("cranpm.network.precision.SIDES", (256,))
    assert run_main(monkeypatch, "bench", "model", "--preset", "tiny", "--batch", 1, "--precision", "fp32") == 0
    table = capsys.readouterr().out
    assert "GEMM peak" in table
    assert "decoder" in table
    assert (
        run_main(monkeypatch, "bench", "model", "--preset", "tiny", "--batch", 1, "--precision", "fp32", "--json") == 0
    )
    facts = json.loads(capsys.readouterr().out)
    assert facts["fp32, 1 at a time, peak resident memory, GB"] > 0
    assert facts["fp32, 1 at a time, tile: decoder, ms"] > 0
    assert facts["processor"]


def test_a_networks_summary(monkeypatch, capsys):
    assert run_main(monkeypatch, "model", "summary", "--preset", "small", "--set", "fusion=add") == 0
    assert "bridge" in capsys.readouterr().out
    assert run_main(monkeypatch, "model", "summary", "--preset", "small", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["parameters"] == sum(part["parameters"] for part in facts["parts"]) < 6e6
    assert run_main(monkeypatch, "model", "summary", "--set", "fusion=magic") == 1
    assert "fusion" in capsys.readouterr().err


def test_weights_are_imported_and_shown(tmp_path, monkeypatch, capsys):
    checkpoint(tmp_path / "theirs.ckpt")
    assert run_main(monkeypatch, "weights", "import", tmp_path / "theirs.ckpt", "--out", tmp_path / "w") == 0
    assert "released" in capsys.readouterr().out
    assert run_main(monkeypatch, "weights", "show", tmp_path / "w", "--json") == 0
    assert json.loads(capsys.readouterr().out)["leads"] == [1, 2, 3, 4]
    assert run_main(monkeypatch, "weights", "show", tmp_path / "theirs.ckpt") == 1
    assert "is a pickle" in capsys.readouterr().err


def test_names_from_a_checkpoint_cannot_command_the_terminal(tmp_path, monkeypatch, capsys):
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps({"model": {"\x1b]0;owned\x07": 1}}))
    assert run_main(monkeypatch, "weights", "show", tmp_path) == 1
    assert "\x1b" not in capsys.readouterr().err
