"""Figures of scores and experiments: the numbers that are drawn, how they look, and what is refused."""

import csv
import json
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run_cli
from golden_pictures import check_golden, check_inside
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from plugins import install, run_with_plugins

from benchmarks import bench_figures
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Grid
from cranpm.experiments.results import (
    Circumstances,
    ErrorSums,
    ExperimentResult,
    Results,
    Row,
    RunResult,
    write_results,
)
from cranpm.verification.means import Means, write_means
from cranpm.views.figures.catalogue import FIGURES, draw_figure
from cranpm.views.figures.counterfactuals import lost_points
from cranpm.views.figures.experiment_data import ExperimentData
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.leads import spread
from cranpm.views.figures.region_series import broken
from cranpm.views.figures.reliability import mean_truth
from cranpm.views.figures.scores_data import ScoresData
from cranpm.views.figures.sheet import source_label
from cranpm.views.figures.spectra import KM_PER_PIXEL
from cranpm.views.figures.style import HIGHLIGHT, drawing, method_lines
from cranpm.views.figures.transfer import CELLS, density, read_means

METHODS = {"persistence": "persistence", "cran-pm": "cran-pm", "simvp": "simvp", "cams": "cams", "climax": "climax"}
RMSE = {"persistence": 8.0, "cran-pm": 6.0, "simvp": 6.4, "cams": 9.0, "climax": 7.0}
BINS = (5.0, 10.0, 15.0, 20.0, 25.0, 50.0, 75.0)


def lead_scores(name, lead):
    """What `scores.json` says of one method and lead, with round numbers."""
    rmse, rng = RMSE[name] + 2 * lead, np.random.default_rng([lead, len(name)])
    joint = np.eye(8) * 0.1 + np.eye(8, k=1) * 0.02
    plain = dict.fromkeys(("mae", "correlation", "r2", "mean_truth", "index_same", "index_within_one"))
    bins = {part: [None] * 8 for part in ("rmse", "bias", "share")}
    errors = plain | {"rmse": rmse, "bias": 0.1, "bins": bins, "exceedance": {}}
    fields = errors | {"joint": joint.tolist(), "bin_truth": [3, 8, 12, 17, 22, 35, 60, 90]}
    points = rng.normal((-0.5, -0.1), 0.25, (40, 2)).round(3).tolist()
    return {
        "fields": {"1 km": {"all": fields, "Po Valley": errors | {"rmse": rmse + 1}}, "25 km": {"all": fields}},
        "power_ratio": [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, None],
        "pairs_by_forecast": {
            "pairs": [50, 60, 70, 80, 90, 40, 30, 4],
            "forecast": [4, 8, 12, 17, 22, 35, 60, None],
            "truth": [6, 9, 13, 18, 24, 40, 70, None],
        },
        "stations": {},
        "fairmode": fairmode(0.7, {f"s{number}": pair for number, pair in enumerate(points)}),
    }


def fairmode(mqi, target):
    return {"stations": len(target), "mqi_90": mqi, "mqi_year_90": None, "mqi_forecast_90": None, "target": target}


def make_scores():
    changes = [
        {"method": one, "against": "persistence", "lead": lead, "at": at, "value": -10.0, "interval": [-15.0, -5.0]}
        for one in METHODS
        for lead in (1, 2, 3)
        for at in ("1 km", "25 km")
    ]
    return {
        "format": 2,
        "days": {"count": 20, "first": "2021-01-01", "last": "2021-01-20"},
        "left_out": {"2021-01-21": "no truth"},
        "archive": {"snapshot": "SNAP", "source": "simulation"},
        "reference": "persistence",
        "stations": {"all": 40},
        "wavelengths_px": [2, 4, 8, 16, 32, 64, 128],
        "bins_ugm3": list(BINS),
        "rmse_change_percent": changes,
        "metrics": [],
        "methods": {
            name: {
                "kind": kind,
                "uncovered_pixels": 0,
                "leads": {f"T+{lead}": lead_scores(name, lead) for lead in (1, 2, 3)},
            }
            for name, kind in METHODS.items()
        },
    }


@pytest.fixture
def verified(tmp_path):
    """A folder as `cranpm verify --means` leaves it."""
    folder = tmp_path / "verified"
    folder.mkdir()
    (folder / "scores.json").write_text(json.dumps(make_scores()))
    with (folder / "series.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["place", "start", "valid", "lead", "truth", *METHODS])
        for place in ("all", "Po Valley"):
            for lead in (1, 2, 3):
                for day in (1, 2, 3, 4, 9, 10):
                    truth = 20 + 5 * np.sin(day) + lead
                    values = [truth + number for number in range(len(METHODS))]
                    writer.writerow([place, f"2021-01-{day:02}", f"2021-01-{day + lead:02}", lead, truth, *values])
    grid = Grid(46, 8, 0.01, 60, 80)
    truth = np.add.outer(np.linspace(5, 30, 60), np.linspace(0, 10, 80)).astype(np.float32)
    truth[:5, :5] = np.nan
    fields = {name: (0.5 * truth + 4).astype(np.float32) for name in METHODS}
    write_means(Means(1, 20, grid, truth, fields), folder / "means.nc")
    return folder


def make_runs(folder, name, rows, seeds=(0, 1, 2), interventions=(), worlds=(), reference=None):
    """An experiment as `cranpm experiment` leaves it; row r, seed s: RMSE 7 + r + s / 10 at the first lead."""
    conditions, leads = ("as it is", *interventions, *worlds), (1, 2, 3)

    def scores(number, seed, worse):
        rmse = np.array([6 + lead + number + seed / 10 + worse for lead in leads])
        sums = {"network": rmse, "persistence": np.full(3, 20.0)}
        arrays = {method: np.stack([100 + 0 * of, 100 * of**2, 80 * of], axis=-1)[None] for method, of in sums.items()}
        return ErrorSums((date(2021, 1, 1),), leads, arrays)

    runs = [
        RunResult(
            row=row, seed=seed, settings={}, learned_from="", archive_snapshot="SNAP", parameters=1, weights_sha256=""
        )
        for row in rows
        for seed in seeds
    ]
    found = [
        {condition: scores(number, seed, worse) for worse, condition in enumerate(conditions)}
        for number in range(len(rows))
        for seed in seeds
    ]
    result = ExperimentResult(
        title=f"The title of {name}",
        question="",
        rows=tuple(Row(name=row) for row in rows),
        reference=reference or rows[0],
        seeds=seeds,
        interventions=interventions,
        worlds=worlds,
        leads=leads,
        conditions=conditions,
        circumstances=Circumstances(date=date(2021, 1, 1), software="", processor=""),
        runs=tuple(runs),
    )
    write_results(Path(folder) / name, Results(result, found))
    return Path(folder) / name


@pytest.fixture
def experiments(tmp_path):
    folder = tmp_path / "experiments"
    make_runs(folder, "table3a", ["none", "add", "cross"], reference="cross")
    make_runs(folder, "table3c", ["whole", "R1 a part"])
    make_runs(folder, "counterfactuals", ["cran-pm", "simvp"], interventions=("wind zero",), worlds=("reverse-wind",))
    return folder


SCORED = ("leads", "regions", "transfer", "target", "reliability", "spectra")


def drawn(name, given):
    with drawing():
        return FIGURES[name].draw(given)


@pytest.mark.parametrize("name", [*SCORED, "ablation", "counterfactuals"])
def test_figures_look_as_they_did(verified, experiments, name):
    given = FigureInputs(verified=verified, experiments=experiments)
    with drawing():
        figure = FIGURES[name].draw(given)
        check_golden(name, figure)
        check_inside(figure)


# Scores


def test_errors_by_lead_are_drawn_and_named(verified):
    figure = drawn("leads", FigureInputs(verified=verified))
    lines = {tuple(line.get_ydata()): line for line in figure.axes[0].lines}
    ours = lines[8.0, 10.0, 12.0]
    assert (ours.get_color(), ours.get_linewidth()) == (HIGHLIGHT, 2.6)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == len(METHODS)
    assert not [1 for i, one in enumerate(boxes) for other in boxes[:i] if one.overlaps(other)]
    changes = [line.get_xdata() for line in figure.axes[2].lines if len(line.get_xdata()) == 2]
    assert [-15, -5] in [list(part) for part in changes]


@pytest.mark.parametrize("values", [[1, 1, 1, 1], [0, 5, 5.1, 9.9], [9, 9.5, 10, 10], [0, 0, 0, 10]])
def test_labels_are_moved_apart_and_keep_their_order(values):
    places = spread(values, 1.5, 0, 10)
    assert np.diff(places).min() > 1.5 - 1e-9
    assert min(places) >= 0
    assert max(places) <= 10
    assert spread([2, 8], 1.5, 0, 10) == [2, 8]


def test_series_break_where_days_are_missing(verified):
    days = np.array(["2021-01-01", "2021-01-02", "2021-01-03", "2021-01-09"], "datetime64[D]")
    shown, values = broken(days, np.array([1.0, 2, 3, 4]))
    assert str(shown[3]) == "2021-01-04"
    assert np.isnan(values).tolist() == [False, False, False, True, False]
    figure = drawn("regions", FigureInputs(verified=verified, region="Po Valley", lead=2))
    axes, bars = figure.axes
    assert [line.get_label() for line in axes.lines] == ["truth", "persistence", "cran-pm", "simvp"]
    assert [bar.get_width() for bar in bars.patches] == [11, 11.4, 12, 13, 14]  # the best above
    assert bars.get_yticklabels()[0].get_text() == "cran-pm"


def test_the_density_of_pixels_has_truth_across_and_forecast_up():
    counts = density(np.array([9.9, 9.9, np.nan]), np.array([0.0, 0.0, 1.0]), 10.0)
    assert counts.sum() == counts[CELLS - 2, 0] == 2


def test_mean_maps_tell_slope_and_number(verified):
    figure = drawn("transfer", FigureInputs(verified=verified, methods=("cran-pm",)))
    (told,) = [text.get_text() for axes in figure.axes for text in axes.texts if "RMSE" in text.get_text()]
    assert "y = 0.50 x + 4.00" in told
    assert f"N {60 * 80 - 25:,}" in told
    means = read_means(verified / "means.nc")
    assert (means.grid, means.days) == (Grid(46, 8, 0.01, 60, 80), 20)
    assert figure.axes[0].images[0].get_array()[-1, -1] == pytest.approx(40, abs=0.01)  # most in the south-east


def test_the_target_counts_what_is_met_and_what_lies_beyond(verified):
    scores = make_scores()
    target = {"in": [0.3, 0.4], "out": [1.2, 0.0], "far": [9.0, 0.0], "too few days": [None, None]}
    scores["methods"]["cran-pm"]["leads"]["T+1"]["fairmode"] = fairmode(1.5, target)
    (verified / "scores.json").write_text(json.dumps(scores))
    (axes,) = drawn("target", FigureInputs(verified=verified, methods=("cran-pm",))).axes
    assert axes.get_title("left") == "(a) cran-pm\nMQI$_{90}$ 1.50"
    assert [text.get_text() for text in axes.texts] == ["1 of 3 met, 1 beyond"]
    assert axes.lines[-1].get_xydata().tolist() == [[0.3, 0.4], [1.2, 0.0], [9.0, 0.0]]


def test_reliability_is_the_mean_truth_of_the_forecasts_bin():
    joint = np.array([[0.3, 0.1], [0.0, 0.0]])
    assert mean_truth(joint, np.array([2.0, 10.0])) == pytest.approx([4.0, np.nan], nan_ok=True)
    assert mean_truth(joint * [1, 0], np.array([2.0, np.nan]))[0] == 2


def test_reliability_is_drawn_from_both_tables(verified):
    pixels, stations, cells, _ = drawn("reliability", FigureInputs(verified=verified, methods=("cran-pm",))).axes
    assert pixels.lines[0].get_ydata()[0] == pytest.approx((3 * 0.1 + 8 * 0.02) / 0.12)
    assert stations.lines[0].get_xydata()[-1].tolist() == [60, 70]  # the last bin has too few pairs
    share = cells.images[0].get_array()
    assert (share[1, 0], share[0, 1]) == (pytest.approx(100 / 6), 0)  # forecasts across, truth up


def test_spectra_have_kilometres(verified):
    figure = drawn("spectra", FigureInputs(verified=verified, lead=1))
    line = figure.axes[0].lines[0]
    assert line.get_xdata()[0] == pytest.approx(2 * 2**0.5 * KM_PER_PIXEL)
    assert pytest.approx(1.112, abs=0.001) == KM_PER_PIXEL
    assert np.isnan(line.get_ydata()[-1])


def test_many_methods_are_told_apart():
    lines = method_lines({f"m{number}": "simvp" for number in range(15)} | METHODS)
    assert len({(line.colour, str(line.dashes), line.marker) for line in lines.values()}) == len(lines)
    assert [name for name, line in lines.items() if line.ours] == ["cran-pm"]


def test_notes_tell_source_days_and_what_is_left_away(verified):
    told = drawn("transfer", FigureInputs(verified=verified)).texts[1].get_text().replace("\n", " ")
    assert "simulated data · not a real observation" in told
    assert "20 start days 2021-01-01..2021-01-20 · archive snapshot SNAP · 1 days left out" in told
    assert "not drawn: cams, climax (choose with --methods)" in told
    assert source_label("CAMS and GHAP") == "source: CAMS and GHAP"


def test_scores_that_do_not_serve_are_refused(verified, tmp_path):
    path = tmp_path / "x.png"
    for changes, message in (
        ({"methods": ("sunset",)}, r"--methods among persistence, cran-pm.*found sunset"),
        ({"lead": 7}, r"--lead among 1, 2, 3; found 7"),
        ({"region": "Mars"}, r"--region among all, Po Valley; found Mars"),
    ):
        with pytest.raises(CranpmError, match=message):
            draw_figure("regions", FigureInputs(verified=verified, **changes), path)
    with pytest.raises(CranpmError, match=r"of this version at .*; found no such file\. Verify again: `cranpm verify"):
        ScoresData.of(FigureInputs(verified=tmp_path))
    for missing in ("format", "metrics"):
        old = make_scores()
        del old[missing]
        (verified / "scores.json").write_text(json.dumps(old))
        with pytest.raises(CranpmError, match=r"found scores of another version\. Verify again.*sums are still valid"):
            draw_figure("reliability", FigureInputs(verified=verified), path)
    (verified / "scores.json").write_text("{")
    with pytest.raises(CranpmError, match=r"scores of this version at .*Invalid JSON"):
        draw_figure("leads", FigureInputs(verified=verified), path)
    (verified / "series.csv").unlink()
    (verified / "scores.json").write_text(json.dumps(make_scores()))
    with pytest.raises(CranpmError, match=r"rows in .*series\.csv; found none"):
        draw_figure("regions", FigureInputs(verified=verified), path)
    assert not path.exists()


# Experiments


def test_an_ablation_shows_seeds_mean_and_reference(experiments):
    figure = drawn("ablation", FigureInputs(experiments=experiments, lead=1))
    first, second = figure.axes
    assert first.get_title("left") == "(a) The title of table3a"
    assert second.get_title("left") == "(b) The title of table3c"
    (level,) = [line for line in first.lines if line.get_linestyle() == "--"]
    assert level.get_xdata()[0] == pytest.approx(9.1)  # cross: 9, 9.1, 9.2
    dots = [list(line.get_xdata()) for line in first.lines if line.get_marker() == "o"]
    assert dots[0] == pytest.approx([7, 7.1, 7.2])
    bars = [part.get_segments()[0][:, 0] for part in first.collections]
    assert np.diff(bars[0])[0] == pytest.approx(0.2)  # twice the standard deviation


def test_what_is_lost_is_skill(experiments):
    data = ExperimentData.load(experiments / "counterfactuals")
    assert (data.interventions, data.worlds) == (["wind zero"], ["reverse-wind"])
    assert lost_points(data, ["wind zero", "reverse-wind"], 1) == pytest.approx(np.array([[5, 10], [5, 10]]))


def test_an_archive_names_the_source_of_runs_only_if_they_came_from_it(experiments, archive):
    data = ExperimentData.load(experiments / "table3a")
    assert "its source is shown where --archive is given" in data.notes(archive)[0]


def test_experiments_that_do_not_serve_are_refused(experiments, tmp_path):
    with pytest.raises(CranpmError, match="at least one of table3a"):
        drawn("ablation", FigureInputs(experiments=tmp_path))
    pq.write_table(pa.table({"row": ["a"]}), experiments / "table3a" / "sums.parquet")
    with pytest.raises(CranpmError, match=r"experiment\.json and sums\.parquet in .*; found KeyError: .*seed"):
        draw_figure("ablation", FigureInputs(experiments=experiments), tmp_path / "x.png")
    (experiments / "counterfactuals" / "sums.parquet").unlink()
    with pytest.raises(CranpmError, match=r"sums\.parquet in .*; found FileNotFoundError"):
        draw_figure("counterfactuals", FigureInputs(experiments=experiments), tmp_path / "x.png")
    (experiments / "counterfactuals" / "experiment.json").write_text('{"title": "no rows"}')
    with pytest.raises(CranpmError, match=r"experiment\.json and .*; found ValidationError"):
        draw_figure("counterfactuals", FigureInputs(experiments=experiments), tmp_path / "x.png")


def test_a_figure_of_a_plugin_is_drawn_by_name_and_with_all(verified, tmp_path):
    """By name is how `--all` draws it, too."""
    install(tmp_path, "own_figure")
    options = ["--verified", str(verified)]
    every = run_with_plugins(tmp_path, "figure", "--all", *options, "--out", str(tmp_path / "all"), "--dpi", "30")
    assert every.returncode == 0, every.stderr
    with Image.open(tmp_path / "all" / "bias.png") as picture:
        assert picture.width > 100
    wrong = run_with_plugins(tmp_path, "figure", "sunset", *options, "--out", str(tmp_path / "x.png"))
    assert wrong.returncode == 1
    assert "spectra, bias" in " ".join(wrong.stderr.split())


# Commands


def test_all_draws_what_it_can_and_names_the_rest(verified, tmp_path, monkeypatch, capsys):
    out = str(tmp_path / "out")
    assert run_cli(monkeypatch, "figure", "--all", "--out", out, "--verified", str(verified), "--dpi", "30") == 0
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert told["overview"] == "left out: needs --archive, --day"
    assert told["maps"] == "left out: needs --archive, --day, --forecasts"
    assert told["counterfactuals"] == "left out: needs --experiments with counterfactuals"
    assert {name for name in told if not told[name].startswith("left out")} == set(SCORED)
    assert {path.stem for path in (tmp_path / "out").iterdir()} == set(SCORED)


def test_all_goes_on_after_a_refusal_and_says_so(verified, tmp_path, monkeypatch, capsys):
    (verified / "series.csv").unlink()
    (verified / "means.nc").unlink()
    line = ("--all", "--out", str(tmp_path / "out"), "--verified", str(verified), "--methods", "cran-pm,cams")
    assert run_cli(monkeypatch, "figure", *line, "--dpi", "30", "--small") == 1
    told = capsys.readouterr().out
    assert "regions          refused: expected rows in" in told
    assert str(tmp_path / "out" / "spectra.png") in told
    with Image.open(tmp_path / "out" / "spectra.png") as picture:
        assert picture.mode == "P"  # small: a table of colours


def test_commands_are_refused_before_they_draw(archive_path, tmp_path, monkeypatch, capsys):
    out = ("--out", str(tmp_path / "x.png"))
    assert run_cli(monkeypatch, "figure", *out) == 1
    assert "either --all or one figure: overview" in capsys.readouterr().err
    assert run_cli(monkeypatch, "figure", "maps", "--forecasts", f"a={tmp_path}", *out) == 1
    assert "--archive with --forecasts" in capsys.readouterr().err
    line = ("--archive", str(archive_path), "--days", "2020-02-27..2020-02-28", "--out", str(tmp_path / "x.txt"))
    assert run_cli(monkeypatch, "animate", *line) == 1
    assert "ends in .gif or .mp4" in capsys.readouterr().err


def test_an_episode_from_the_command_line(archive_path, tmp_path, monkeypatch, capsys):
    path = tmp_path / "x.gif"
    line = ("--archive", str(archive_path), "--days", "2020-02-27..2020-02-28", "--out", str(path), "--quiet")
    assert run_cli(monkeypatch, "animate", *line) == 0
    assert "(2 days, " in capsys.readouterr().out
    assert path.read_bytes().startswith(b"GIF89a")


def test_drawing_is_measured(archive_path, monkeypatch):
    monkeypatch.setattr("benchmarks.drawing.ROUNDS", 1)
    facts = bench_figures(location=str(archive_path))
    goal, plain = facts["map as PNG from these pixels, s (goal 5)"], facts["sum of the valid pixels by numpy, s"]
    assert facts["map / sum"] == pytest.approx(goal / plain)
    assert facts["pixels"] == 512 * 512


def test_every_figure_is_in_the_documents():
    text = (Path(__file__).parents[2] / "docs" / "figures.md").read_text()
    assert [name for name in FIGURES if f"| `{name}` |" not in text] == []
    assert [name for name in FIGURES if not (Path(__file__).parents[2] / f"docs/figures/{name}.png").is_file()] == []
