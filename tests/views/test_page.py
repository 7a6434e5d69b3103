"""The page in a real browser: what people see is what the files hold, without any outside request."""

import shutil
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import uvicorn

from cranpm.forecasting.engine import predict
from cranpm.forecasting.publication import find_product, publish
from cranpm.forecasting.publication.points import point
from cranpm.views.serve import create_app

ROOT = Path(__file__).parents[2]
PAGE, AXE = ROOT / "src/cranpm/views/serve/page/index.html", ROOT / "web/node_modules/axe-core/axe.min.js"
CHROMIUM = shutil.which("chromium")
PO = (45.2, 9.7)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"),
    pytest.mark.skipif(not PAGE.exists(), reason="the page is not built: make page"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def folder(archive, tmp_path_factory):
    """Three runs; the middle one is degraded."""
    place = tmp_path_factory.mktemp("shown")
    for number, day in enumerate(archive.days[1:4]):
        today = predict(archive, day, None)
        fields = np.stack([today.fields[0] * (1.1 + number), today.fields[0] * 0.7 + 3.033, today.fields[0] * 1.3])
        faults = ("yesterday is missing",) if number == 1 else ()
        publish(replace(today, fields=fields, degraded=faults), archive, place, ("nc", "tif"))
    return place


@pytest.fixture(scope="module")
def address(folder, archive_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_app(folder, str(archive_path)), port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = player.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address):
    """Open the page; afterwards no error was logged and nothing was asked of any other host."""
    opened = []

    def visit(fragment="", **context):
        page = browser.new_context(**({"viewport": {"width": 1000, "height": 600}} | context)).new_page()
        page.problems = []
        page.on("console", lambda line: page.problems.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("request", lambda r: page.problems.append(r.url) if not _ours(r.url, address) else None)
        page.goto(f"{address}/{fragment}")
        ready(page)
        opened.append(page)
        return page

    yield visit
    for page in opened:
        assert not [text for text in page.problems if "GPU stall" not in text]
        page.context.close()


def _ours(url, address):
    return url.startswith((address, "blob:", "data:"))


def ready(page):
    page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=60_000)


def held(folder, day, lead, lat, lon):
    """What the NetCDF has at a point."""
    return point(find_product(folder / day), lat, lon).forecast[lead - 1].pm25


def click_at(page, lat, lon):
    """The point that was hit, to a pixel of the screen."""
    place = page.evaluate("([lat, lon]) => window.cranpmMap.project([lon, lat])", [lat, lon])
    x, y = round(place["x"]), round(place["y"])
    hit = page.evaluate("([x, y]) => window.cranpmMap.unproject([x, y])", [x, y])  # the map moves when it answers
    box = page.locator(".maplibregl-canvas").bounding_box()
    page.mouse.click(box["x"] + x, box["y"] + y)
    page.get_by_test_id("point-value-1").wait_for()
    return hit["lat"], hit["lng"]


def choose(page, name):
    page.get_by_test_id(name).check(force=True)
    ready(page)


def test_a_click_tells_what_the_netcdf_has(visit, folder, archive):
    page = visit()
    newest = str(archive.days[3])
    hit = click_at(page, *PO)
    assert hit == pytest.approx(PO, abs=0.02)
    for lead in (1, 2, 3):
        said = float(page.get_by_test_id(f"point-value-{lead}").inner_text())
        assert said == pytest.approx(held(folder, newest, lead, *hit), abs=0.051)
    assert page.get_by_test_id("point").locator("svg").count() >= 1
    page.keyboard.press("Escape")
    assert not page.get_by_test_id("point").is_visible()


def test_leads_and_variables_change_what_is_asked_for(visit):
    page = visit()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    choose(page, "lead-2")
    assert any("/tiles/pm25/2/" in url for url in asked)
    choose(page, "variable-change")
    assert any("/tiles/change/2/" in url for url in asked)
    assert "change" in page.get_by_test_id("legend").inner_text().lower()
    choose(page, "variable-index")
    assert "extremely poor" in page.get_by_test_id("legend").inner_text().lower()


SEEN = """() => { const map = window.cranpmMap; return map.getStyle().layers
    .filter(l => l.type === "raster" && l.layout?.visibility !== "none" && l.paint?.["raster-opacity"] !== 0)
    .map(l => map.getSource(l.source).tiles[0]) }"""


def test_no_layer_is_seen_under_the_legend_of_another(visit):
    """Also while the new one has not come yet."""
    page = visit()
    assert any("/pm25/" in tiles for tiles in page.evaluate(SEEN))
    held_back = []
    page.route("**/tiles/change/**", lambda route: held_back.append(route))
    page.get_by_test_id("variable-change").check(force=True)
    page.wait_for_timeout(500)
    assert held_back
    assert "change" in page.get_by_test_id("legend").inner_text().lower()
    assert not any("/pm25/" in tiles for tiles in page.evaluate(SEEN))
    page.unroute_all()  # lets them go
    ready(page)
    assert any("/change/" in tiles for tiles in page.evaluate(SEEN))


def test_what_is_simulated_or_degraded_says_so(visit, archive):
    page = visit(f"#run={archive.days[2]}")
    assert page.get_by_test_id("badge-simulated").is_visible()
    assert "yesterday is missing" in page.get_by_test_id("badge-degraded").inner_text()
    assert page.get_by_test_id("badge-age").is_visible()


SHOWN = "() => window.cranpmMap.querySourceFeatures('stations').length"


def test_stations_come_and_go(visit):
    page = visit()
    assert page.evaluate(SHOWN) == 0
    choose(page, "stations-observed")
    assert page.evaluate(SHOWN) > 5
    choose(page, "stations-off")
    assert page.evaluate(SHOWN) == 0


def test_replay_walks_through_the_runs(visit, archive):
    page = visit()
    page.get_by_test_id("play").click()
    for day in (archive.days[1], archive.days[2], archive.days[3]):
        page.wait_for_event("request", lambda request, day=day: f"/api/runs/{day}" in request.url, timeout=60_000)
    page.get_by_test_id("play").click()


def test_a_link_restores_everything(visit, archive):
    page = visit()
    choose(page, "lead-3")
    choose(page, "variable-exceedance")
    click_at(page, *PO)
    page.wait_for_timeout(600)
    value, link = page.get_by_test_id("point-value-3").inner_text(), page.evaluate("location.hash")
    other = visit(link)
    other.get_by_test_id("point-value-3").wait_for()
    assert other.get_by_test_id("point-value-3").inner_text() == value
    assert "thresholds" in other.get_by_test_id("legend").inner_text().lower()
    here, there = (p.evaluate("window.cranpmMap.getCenter().toArray()") for p in (page, other))
    assert there == pytest.approx(here, abs=0.01)


def test_a_broken_link_is_harmless(visit):
    page = visit("#run=../../etc&lead=99&variable=<script>&point=nan,inf&view=1e99,x,y&stations=maybe&theme=9")
    assert page.get_by_test_id("legend").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_problem_of_accessibility(visit, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not there: make page")
    page = visit(color_scheme=scheme, bypass_csp=True)
    if scheme == "light":
        click_at(page, *PO)
    page.evaluate(AXE.read_text())
    found = page.evaluate("async () => (await axe.run()).violations.map(v => [v.impact, v.id, v.nodes[0].html])")
    assert not [problem for problem in found if problem[0] in ("serious", "critical")]


def test_it_works_by_keyboard(visit):
    page = visit()
    page.locator(".maplibregl-canvas").focus()
    page.keyboard.press("Enter")
    page.get_by_test_id("point-value-1").wait_for()
    page.keyboard.press("Escape")
    assert not page.get_by_test_id("point").is_visible()


def test_it_fits_a_phone(visit):
    page = visit(viewport={"width": 390, "height": 844}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    click_at(page, *PO)
    box = page.get_by_test_id("point-value-1").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_no_forecast_is_told_kindly(browser, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_app(tmp_path), port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    page = browser.new_page()
    try:
        while not server.started:
            time.sleep(0.05)
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_timeout(1500)
        assert "no forecast" in page.inner_text("body").lower()
    finally:
        page.close()
        server.should_exit = True
        thread.join()
