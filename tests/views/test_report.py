"""Reports: one file that needs nothing else, with the numbers of the products, and what was wrong with them."""

import re
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from command import run_cli

from cranpm.baselines import simple
from cranpm.core.errors import CranpmError
from cranpm.forecasting.engine import predict
from cranpm.forecasting.publication import Publication, publish
from cranpm.forecasting.publication.points import box
from cranpm.verification import Plan, Product, Simple, all_tables, mean_maps, score, summarise, write, write_means
from cranpm.views.figures import product_maps  # noqa: F401  registers png
from cranpm.views.report import write_report


def forecast_from(archive, day, **changes):
    today = predict(archive, day, None)
    fields = np.stack([today.fields[0] * 1.1, today.fields[0] * 0.7 + 3.033, today.fields[0] * 1.3])
    return replace(today, fields=fields, **changes)


@pytest.fixture(scope="module")
def folder(archive, tmp_path_factory):
    """A sound run whose valid days are known, and a degraded one."""
    place = tmp_path_factory.mktemp("reported")
    faults = ("yesterday <script>alert(1)</script> is missing", "t850 has gaps: the training mean stands in")
    publish(forecast_from(archive, archive.days[1]), archive, place, ("nc", "tif", "png"))
    publish(forecast_from(archive, archive.days[2], degraded=faults), archive, place, ("tif",))
    return place


def checked(path):
    """The text of a report that asks nothing of any network."""
    text = path.read_text()
    assert len(text) < 10_000_000
    without_pictures = re.sub(r'src="data:image/png;base64,[^"]+"', "", text)
    assert not re.search(r"https?://|<script|<link|@import|url\(|src=", without_pictures)
    assert 'name="viewport"' in text
    assert "@media print" in text
    return text


def test_a_forecast_with_what_came(folder, archive, archive_path, tmp_path, monkeypatch, capsys):
    path = tmp_path / "report.html"
    day = folder / str(archive.days[1])
    assert run_cli(monkeypatch, "report", str(day), "--archive", str(archive_path), "--out", str(path)) == 0
    assert str(path) in capsys.readouterr().out
    text = checked(path)
    run = Publication(folder).run(archive.days[1])
    grid = run.grid
    for lead in box(run, grid.north, grid.west, grid.south, grid.east).leads:
        assert f"<td>{lead.mean:.1f}</td><td>{lead.median:.1f}</td>" in text
    truth, area = archive.pm25(archive.days[2]), grid.row_area_km2[:, None] * np.ones(grid.shape)
    error = np.round(archive.pm25(archive.days[1]) * np.float32(1.1), 1) - truth
    known = np.isfinite(error)
    rmse = np.sqrt((area * error**2)[known].sum() / area[known].sum())
    assert f"<td>{rmse:.2f}</td>" in text
    assert text.count("<figure>") == 4
    assert "Simulated data" in text
    assert "Nothing was missing" in text
    assert "Milan" in text
    assert archive.snapshot in text


def test_what_was_degraded_and_what_lacks_is_said(folder, archive, tmp_path):
    text = checked(write_report(folder, tmp_path / "newest.html"))
    assert f"from {archive.days[2]:%A}" in text
    assert "Degraded input" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "t850 has gaps" in text
    assert "made without --format png" in text
    assert "How it turned out" not in text


def test_a_verification(folder, archive, tmp_path):
    verified = tmp_path / "verified"
    days = [archive.days[1], archive.days[0]]
    plan = Plan(
        archive,
        [Simple("persistence", simple("persistence", archive)), Product("ours", folder, archive.domain.fine)],
        (1,),
        ("errors", "spectra"),
    )
    scores = score(plan, days, verified)
    summary = summarise(scores, "persistence")
    tables = all_tables(scores, summary)
    write(scores, summary, tables, verified)
    text = checked(write_report(verified, tmp_path / "verified.html"))
    for table in tables:
        assert table.rows[-1][-1].replace("'", "&#39;") in text
        assert f"<h3>{table.title}" in text.replace("&gt;", ">")
    assert str(archive.days[0]) in text  # left out: no forecast from it
    assert text.count("<figure>") == 5
    write_means(mean_maps(plan, scores.days, 1), verified / "means.nc")
    assert checked(write_report(verified, tmp_path / "with.html")).count("<figure>") == 6


def test_other_folders_are_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(CranpmError, match="what `cranpm verify` or `cranpm forecast` wrote"):
        write_report(tmp_path, tmp_path / "x.html")
    assert run_cli(monkeypatch, "report", str(tmp_path / "none")) == 1
    assert "Name their --out folder" in capsys.readouterr().err


def test_too_large_a_report_is_refused(folder, tmp_path, monkeypatch):
    from cranpm.views.report import write as writing

    monkeypatch.setattr(writing, "MOST_BYTES", 1000)
    with pytest.raises(CranpmError, match="a report below"):
        write_report(folder, tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


def test_what_an_archive_cannot_say_is_said(folder, archive, archive_path, tmp_path):
    """Of a run whose start day it lacks there is no persistence to compare with."""
    from cranpm.views.report.forecast import forecast_report

    run = Publication(folder).run(archive.days[1])
    lacking = replace(run, day=archive.days[0] - timedelta(days=1))
    outcome = {section.title: section for section in forecast_report(run, archive).sections}["How it turned out"]
    assert len(outcome.tables[0].rows) == 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(run), "raster", lambda self, lead: run.folder / f"pm25_{run.day}_T+{lead}.tif")
        sections = {section.title: section for section in forecast_report(lacking, archive).sections}
    assert "does not hold" in sections["How it turned out"].texts[0]
