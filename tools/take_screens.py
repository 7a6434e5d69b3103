"""Pictures of the web map for the documents. Usage: take_screens.py PRODUCTS ARCHIVE FOLDER"""

import shutil
import sys
import threading
import time
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from cranpm.views.serve import create_app

PORT = 8765
BERLIN = (52.52, 13.4)
SCREENS = {
    "europe": ({"width": 1280, "height": 800}, "light", "", None),
    "point": ({"width": 1280, "height": 800}, "light", "#variable=index", BERLIN),
    "dark": ({"width": 1280, "height": 800}, "dark", "#variable=error&lead=2", None),
    "phone": ({"width": 390, "height": 844}, "light", "", BERLIN),
}
"""Size, theme, link and the point that is asked, by name."""


def main(products: str, archive: str, folder: str) -> None:
    server = uvicorn.Server(uvicorn.Config(create_app(Path(products), archive), port=PORT, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.1)
    Path(folder).mkdir(parents=True, exist_ok=True)
    with sync_playwright() as player:
        arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for name, (size, theme, link, point) in SCREENS.items():
            page = browser.new_page(viewport=size, color_scheme=theme)
            page.goto(f"http://127.0.0.1:{PORT}/{link}")
            wait(page)
            if point:
                ask(page, *point)
            path = Path(folder) / f"{name}.png"
            page.screenshot(path=path)
            Image.open(path).convert("RGB").save(path, optimize=True)
            page.close()
        browser.close()
    server.should_exit = True


def wait(page: Page) -> None:
    page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=120_000)
    page.wait_for_timeout(800)  # the last fade


def ask(page: Page, lat: float, lon: float) -> None:
    page.evaluate("([lat, lon]) => window.cranpmMap.jumpTo({center: [lon, lat], zoom: 5.2})", [lat, lon])
    wait(page)
    place = page.evaluate("([lat, lon]) => window.cranpmMap.project([lon, lat])", [lat, lon])
    box = page.locator(".maplibregl-canvas").bounding_box()
    page.mouse.click(box["x"] + place["x"], box["y"] + place["y"])
    page.get_by_test_id("point-value-1").wait_for()
    wait(page)


if __name__ == "__main__":
    main(*sys.argv[1:])
