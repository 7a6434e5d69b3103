"""The API: what it says is what the files hold, of one run at a time, and nothing that is asked breaks it."""

import http.client
import io
import os
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import matplotlib
import numpy as np
import pytest
import rasterio
import schemathesis
import uvicorn
from command import run_cli
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import booleans
from matplotlib import colors
from PIL import Image
from rio_tiler.io import Reader

from cranpm.archive.day_data import DayData
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.errors import CranpmError
from cranpm.core.files import write_sums
from cranpm.core.grid import Grid
from cranpm.core.packing import PUBLISHED
from cranpm.forecasting.engine import predict
from cranpm.forecasting.publication import Publication, find_product, publish, rasters, writer
from cranpm.forecasting.publication.geotiff import write_cog
from cranpm.forecasting.publication.points import point
from cranpm.views.figures.style import EXCEEDANCE, INDEX, PM25
from cranpm.views.serve import archive_view, connections, create_app, raster_cache, service, tiles
from cranpm.views.serve.tiles import colours

PO = (45.2, 9.7)
TILE = (9, 269, 183)
"""Around 45.3 N, 9.4 E, at about the size of the raster's pixels."""


def forecast_from(archive, day, scale=1.0, **changes):
    """Three leads that differ."""
    today = predict(archive, day, None)
    fields = np.stack([today.fields[0] * scale, today.fields[0] * 0.7 * scale + 3.033, today.fields[0] * 1.3 * scale])
    return replace(today, fields=fields, **changes)


@pytest.fixture(scope="module")
def folder(archive, tmp_path_factory):
    """Two runs: all days after the first one's start are known, and none after the second's."""
    place = tmp_path_factory.mktemp("served")
    publish(forecast_from(archive, archive.days[1]), archive, place, ("nc", "tif"))
    publish(forecast_from(archive, archive.days[-1], degraded=("yesterday is missing",)), archive, place, ("tif",))
    return place


@pytest.fixture(scope="module")
def client(folder, archive_path):
    with TestClient(create_app(folder, str(archive_path))) as client:
        yield client


@pytest.fixture(scope="module")
def run(client):
    """The one with the known days."""
    return client.get("/api/runs").json()["runs"][-1]


@pytest.fixture(scope="module")
def below(run):
    return f"/api/runs/{run['id']}/{run['version']}"


def raster_of(folder, run, lead):
    return folder / run["id"] / f"pm25_{run['id']}_T+{lead}.tif"


def image_of(response):
    return np.asarray(Image.open(io.BytesIO(response.content)).convert("RGBA"))


def test_runs_say_what_they_are(client, run, archive):
    answer = client.get("/api/runs").json()
    newest, oldest = answer["runs"]
    assert answer["archive"] == {"source": "simulation", "simulated": True}
    assert len(answer["style"]) == 8
    assert (oldest["stale"], oldest["stale_reason"]) == (False, "")
    assert (newest["id"], oldest["id"]) == (str(archive.days[-1]), str(archive.days[1]))
    assert newest["degraded"] == ["yesterday is missing"]
    assert oldest["degraded"] == []
    assert oldest["simulated"]
    grid = archive.domain.fine
    assert oldest["bounds"] == pytest.approx([grid.west, grid.south, grid.east, grid.north])
    assert [lead["valid"] for lead in run["leads"]] == [str(archive.days[1] + timedelta(days=n)) for n in (1, 2, 3)]
    assert set(run["leads"][0]["variables"]) == {"pm25", "exceedance", "index", "change", "truth", "error"}
    assert set(newest["leads"][0]["variables"]) == {"pm25", "exceedance", "index", "change"}


def test_health_fails_when_the_newest_run_is_old_or_there_is_none(folder, client, tmp_path):
    assert client.get("/api/health").json()["status"] == "ok"
    stale = TestClient(create_app(folder, stale_after_hours=0)).get("/api/health")
    assert (stale.status_code, stale.json()["status"]) == (503, "stale")
    empty = TestClient(create_app(tmp_path)).get("/api/health")
    assert (empty.status_code, empty.json()["status"]) == (503, "empty")


def test_what_cannot_be_shown_is_named(archive, tmp_path):
    publish(forecast_from(archive, archive.days[1]), archive, tmp_path, ("nc",))
    (tmp_path / "2020-01-01").mkdir()
    broken = publish(forecast_from(archive, archive.days[2]), archive, tmp_path, ("tif",))
    for path in broken.glob("*.tif"):
        path.write_bytes(b"no raster")
    left_out = TestClient(create_app(tmp_path)).get("/api/health").json()["left_out"]
    assert set(left_out) == {"2020-01-01", str(archive.days[1]), str(archive.days[2])}
    assert "--format tif" in left_out[str(archive.days[1])]
    assert "Make the forecast again" in left_out[str(archive.days[2])]


def test_a_tile_is_the_pixels_of_the_raster_through_the_colours(client, below, run, folder):
    z, x, y = TILE
    shown = image_of(client.get(f"{below}/tiles/pm25/2/{z}/{x}/{y}.png"))
    across = (np.arange(256) + 0.5) / 256
    lon = (x + across) / 2**z * 360 - 180
    lat = np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * (y + across) / 2**z))))
    with rasterio.open(raster_of(folder, run, 2)) as raster:
        for row, col in ((0, 0), (13, 200), (128, 128), (255, 31), (255, 255)):
            steps = next(raster.sample([(lon[col], lat[row])]))[0]
            if steps == PUBLISHED.missing:
                assert shown[row, col, 3] == 0
                continue
            wanted = matplotlib.colormaps[PM25.palette](PM25.norm(steps * 0.1), bytes=True)
            assert np.abs(shown[row, col].astype(int) - wanted).max() <= 3
    assert (shown[..., 3] == 255).mean() > 0.5


@pytest.fixture(scope="module")
def ramp(tmp_path_factory):
    """Two rasters that hold their own longitude and latitude, of a size that no overview divides."""
    grid = Grid(55.0, 3.0, 0.01, 1616, 1712)
    folder = tmp_path_factory.mktemp("ramp")
    for name, field in (("lon", grid.lon[None] + 0 * grid.lat[:, None]), ("lat", grid.lat[:, None] + 0 * grid.lon)):
        write_cog(np.float32(50 * field), grid, folder / f"{name}.tif", name, {})
    return grid, folder


@pytest.mark.parametrize("z", [3, 4, 5, 6, 7, 8, 9, 10])
def test_every_pixel_of_a_tile_is_where_it_says(ramp, z):
    grid, folder = ramp
    x, y = (int(part) for part in _tile_of(47.0, 11.0, z))
    across = (np.arange(256) + 0.5) / 256
    lon = (x + across) / 2**z * 360 - 180
    lat = np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * (y + across) / 2**z))))
    wide = max(0.01, 360 / 2**z / 256)  # of the overview's cells at most
    for name, wanted in (("lon", np.broadcast_to(lon, (256, 256))), ("lat", np.broadcast_to(lat[:, None], (256, 256)))):
        steps = rasters.tile(folder / f"{name}.tif", z, x, y)
        inside = grid.contains(lat[:, None], lon[None])
        assert np.array_equal(steps != PUBLISHED.missing, inside)
        assert np.abs(steps * 0.1 / 50 - wanted)[inside].max() <= 0.51 * wide + 0.002
    assert len(rasters.opened(folder / "lon.tif").overviews(1)) >= 2


def test_tiles_agree_with_another_reader(ramp):
    _, folder = ramp
    z, x, y = 7, *(int(part) for part in _tile_of(47.0, 11.0, 7))
    ours = rasters.tile(folder / "lat.tif", z, x, y)
    with Reader(str(folder / "lat.tif")) as reader:
        image = reader.tile(x, y, z, tilesize=256, resampling_method="nearest", reproject_method="nearest")
    theirs = image.array[0].filled(PUBLISHED.missing)
    both = (ours != PUBLISHED.missing) & (theirs != PUBLISHED.missing)
    assert both.mean() > 0.9
    assert np.abs(ours[both].astype(int) - theirs[both]).max() * 0.1 / 50 <= 0.021  # they read one overview finer


def test_differences_and_classes(client, below, run):
    z, x, y = TILE
    path = f"{below}/tiles/{{}}/1/{z}/{x}/{y}.png"
    steps = rasters.tile(_raster(client, run), z, x, y)
    here = steps != PUBLISHED.missing
    index = image_of(client.get(path.format("index")))
    numbers = np.searchsorted(INDEX.edges, np.round(steps * 0.1, 6))
    wanted = np.array([colors.to_rgb(c) for c in INDEX.colours])[numbers] * 255
    assert np.abs(index[here][:, :3] - wanted[here]).max() < 1
    exceeded = image_of(client.get(path.format("exceedance")))
    above = np.all(np.abs(exceeded[..., :3] - 255 * np.array(colors.to_rgb(EXCEEDANCE.colours[0]))) < 1, axis=-1)
    assert np.array_equal(above[here], steps[here] <= 150)
    change = image_of(client.get(path.format("change")))  # T+1 equals the start day here
    middle = matplotlib.colormaps["RdBu_r"](0.5, bytes=True)
    assert np.abs(change[here].astype(int) - middle).max() <= 3


def _raster(client, run):
    service_folder = client.app.state.service.publication.folder
    return service_folder / f".{run['id']}.{run['version']}" / f"pm25_{run['id']}_T+1.tif"


def test_the_error_is_the_forecast_minus_what_came(client, below, archive, run):
    row, col = (round(float(part)) for part in archive.domain.fine.row_col(*PO))
    came = archive.pm25(archive.days[2])[row, col]
    said = client.get(f"{below}/point", params={"lat": PO[0], "lon": PO[1]}).json()["forecast"][0]["pm25"]
    z = 12
    x, y = _tile_of(*PO, z)
    shown = image_of(client.get(f"{below}/tiles/error/1/{z}/{int(x)}/{int(y)}.png"))
    pixel = shown[int(y % 1 * 256), int(x % 1 * 256)]
    step = round((said - came) * 10)
    palette = np.frombuffer(colours("error").palette, np.uint8).reshape(-1, 3)
    assert np.array_equal(pixel[:3], palette[colours("error").numbers[np.int16(step).view(np.uint16)]])
    assert abs(said - came) > 0.2


def _tile_of(lat, lon, z):
    return (lon + 180) / 360 * 2**z, (1 - np.arcsinh(np.tan(np.radians(lat))) / np.pi) / 2 * 2**z


def test_a_point_is_what_the_netcdf_has(client, below, run, folder):
    answer = client.get(f"{below}/point", params={"lat": PO[0], "lon": PO[1]}).json()
    netcdf = replace(find_product(folder / run["id"] / f"pm25_{run['id']}.nc"), formats=frozenset({"nc"}))
    found = point(netcdf, *PO)
    assert [lead["pm25"] for lead in answer["forecast"]] == pytest.approx([row.pm25 for row in found.forecast])
    assert answer["lat"] == pytest.approx(found.lat)
    assert answer["forecast"][0]["index"] in INDEX.names
    assert answer["quality"] == "good"


def test_the_sea_has_no_value(client, below, archive):
    row, col = np.argwhere(~archive.land())[0]
    lat, lon = archive.domain.fine.lat_lon(row, col)
    answer = client.get(f"{below}/point", params={"lat": float(lat), "lon": float(lon)}).json()
    assert [lead["pm25"] for lead in answer["forecast"]] == [None] * 3


def test_a_box_by_hand(client, below, run, folder, archive):
    box = {"north": 46.0, "west": 8.0, "south": 44.9, "east": 9.5}
    answer = client.get(f"{below}/box", params=box).json()["leads"][1]
    rows, cols = archive.domain.fine.slices(**box)
    with rasterio.open(raster_of(folder, run, 2)) as raster:
        steps = raster.read(1)[rows, cols]
    area = np.broadcast_to(archive.domain.fine.row_area_km2[rows, None], steps.shape)[steps != PUBLISHED.missing]
    values = steps[steps != PUBLISHED.missing] * 0.1
    assert answer["mean"] == pytest.approx((values * area).sum() / area.sum(), abs=1e-3)
    assert answer["area_km2"] == pytest.approx(area.sum(), abs=0.1)
    assert (answer["low"], answer["high"]) == pytest.approx((values.min(), values.max()))
    assert answer["median"] == pytest.approx(np.median(values), abs=0.2)
    assert answer["above"][0]["share"] == pytest.approx(area[values > 15.05].sum() / area.sum(), abs=1e-6)


def test_a_box_at_sea_has_no_numbers(client, below, archive):
    row, col = np.argwhere(~archive.land())[0]
    lat, lon = (float(part) for part in archive.domain.fine.lat_lon(row, col))
    edges = {"north": lat + 0.001, "south": lat - 0.001, "west": lon - 0.001, "east": lon + 0.001}
    answer = client.get(f"{below}/box", params=edges).json()
    assert (answer["leads"][0]["mean"], answer["leads"][0]["area_km2"]) == (None, 0.0)


def test_stations_stand_where_they_are_and_differ_by_what_they_say(client, below, archive):
    found = client.get(f"{below}/stations/1").json()["features"]
    assert len(found) == len(archive.stations)
    observed = archive.stations_pm25(archive.days[2])
    for feature, lat, lon, value in zip(found, archive.stations.lat, archive.stations.lon, observed, strict=True):
        assert feature["geometry"]["coordinates"] == pytest.approx([lon, lat])
        figures = feature["properties"]
        if np.isfinite(value):
            assert figures["observed"] == pytest.approx(value, abs=0.06)
            here = client.get(f"{below}/point", params={"lat": lat, "lon": lon}).json()["forecast"][0]["pm25"]
            assert figures["forecast"] == here
            if here is not None:
                assert figures["difference"] == pytest.approx(here - value, abs=0.11)
    start = client.get(f"{below}/stations/0").json()["features"][0]["properties"]
    assert (start["forecast"], start["difference"]) == (None, None)


def test_history_is_the_archive_around_the_start_day(client, below, archive):
    answer = client.get(f"{below}/history", params={"lat": PO[0], "lon": PO[1]}).json()
    assert [entry["day"] for entry in answer["days"]] == [str(day) for day in archive.days]
    row, col = (round(float(part)) for part in archive.domain.fine.row_col(*PO))
    values = [archive.pm25(day)[row, col] for day in archive.days]
    assert [entry["pm25"] for entry in answer["days"]] == pytest.approx(values, abs=0.06)
    away = [station["distance_km"] for station in answer["stations"]]
    assert away == sorted(away)
    assert 0 < len(away) <= 3
    assert max(away) <= 50
    first = answer["stations"][0]
    index = list(archive.stations.ids).index(first["id"])
    north_km = (archive.stations.lat[index] - PO[0]) * 111.19
    east_km = (archive.stations.lon[index] - PO[1]) * 111.19 * np.cos(np.radians(PO[0]))
    assert first["distance_km"] == pytest.approx(np.hypot(north_km, east_km), rel=0.01, abs=0.06)


def test_without_an_archive_what_needs_one_is_refused(folder):
    client = TestClient(create_app(folder))
    run = client.get("/api/runs").json()["runs"][-1]
    assert set(run["leads"][0]["variables"]) == {"pm25", "exceedance", "index"}
    below = f"/api/runs/{run['id']}/{run['version']}"
    for path in ("/history?lat=45&lon=9", "/stations/1", "/tiles/error/1/6/33/22.png"):
        answer = client.get(below + path)
        assert answer.status_code == 404
        assert "archive" in answer.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "{below}/point?lat=nan&lon=9",
        "{below}/point?lat=inf&lon=9",
        "{below}/point?lat=1e308&lon=9",
        "{below}/point?lat=89&lon=9",
        "{below}/point?lat=45",
        "{below}/box?north=45&south=46&west=8&east=9",
        "{below}/box?north=1e400&south=46&west=8&east=9",
        "{below}/tiles/pm25/1/-1/0/0.png",
        "{below}/tiles/pm25/1/99999999999999999999/0/0.png",
        "{below}/tiles/pm25/1/3/8/0.png",
        "{below}/tiles/pm25/1/3/0/-4.png",
        "{below}/tiles/pm25/4/3/0/0.png",
        "{below}/tiles/secret/1/3/0/0.png",
        "{below}/tiles/..%2F..%2Fetc/1/3/0/0.png",
        "{below}/stations/7",
        "/api/runs/2020-01-01/00000000/point?lat=45&lon=9",
        "/api/runs/..%2f..%2fetc/passwd0/point?lat=45&lon=9",
        "/api/runs/2020-02-28/zzzzzzzz/point?lat=45&lon=9",
        "/api/runs/2020-02-28%00/00000000/point?lat=45&lon=9",
        "/api/nothing",
        "/..%2f..%2fapp.py",
        "/assets/%2e%2e/%2e%2e/app.py",
    ],
)
def test_hostile_requests_are_refused_in_one_sentence(client, below, path):
    answer = client.get(path.format(below=below))
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in answer.text
    assert len(answer.text) < 1000


def test_monitors_may_ask_for_heads_alone(client):
    answer = client.head("/api/health")
    assert (answer.status_code, answer.content) == (200, b"")


def test_other_methods_and_other_sites_are_refused(client, folder, below):
    assert client.post("/api/runs").status_code == 405
    assert client.delete(below + "/point").status_code == 405
    assert "access-control-allow-origin" not in client.get("/api/runs", headers={"Origin": "https://other.org"}).headers
    narrow = TestClient(create_app(folder, origins=("https://ours.org",)))
    for origin, allowed in (("https://ours.org", True), ("https://other.org", False)):
        headers = narrow.get("/api/runs", headers={"Origin": origin}).headers
        assert ("access-control-allow-origin" in headers) is allowed


def test_a_browser_asks_twice_and_is_told_that_nothing_changed(client, below):
    z, x, y = TILE
    for variable, lasts in (("pm25", True), ("error", False)):
        path = f"{below}/tiles/{variable}/1/{z}/{x}/{y}.png"
        first = client.get(path)
        assert ("immutable" in first.headers["cache-control"]) is lasts
        again = client.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get("/api/legend").headers["etag"] == client.get("/api/legend").headers["etag"]
    assert client.get("/api/legend").headers["content-encoding"] == "gzip"
    assert "default-src 'self'" in client.get("/api/legend").headers["content-security-policy"]


def test_the_legend_has_the_colours_of_the_tiles(client):
    legend = client.get("/api/legend").json()
    stop = legend["pm25"]["stops"][4]
    number = colours("pm25").numbers[np.int16(round(stop["value"] * 10)).view(np.uint16)]
    swatch = np.frombuffer(colours("pm25").palette, np.uint8).reshape(-1, 3)[number]
    assert np.abs(swatch - 255 * np.array(colors.to_rgb(stop["colour"]))).max() <= 3
    classes = legend["index"]["classes"]
    assert [c["to"] for c in classes] == [*INDEX.edges, None]
    assert classes[0]["from"] is None


def test_towns_are_on_the_map(client, run):
    west, south, east, north = run["bounds"]
    towns = client.get("/api/places").json()
    assert "Milan" in [town["name"] for town in towns[:3]]
    assert all(south <= town["lat"] <= north and west <= town["lon"] <= east for town in towns)


def test_a_publish_never_shows_a_mixed_run(archive, tmp_path):
    """Readers ask for all leads of one version while two forecasts replace each other."""
    day, factors = archive.days[1], (1.0, 2.0)
    versions = [forecast_from(archive, day, scale) for scale in factors]
    expected = [[float(f[rc]) for f in v.fields] for v in versions for rc in [_row_col(archive)]]
    publish(versions[0], archive, tmp_path, ("tif",))
    stop, seen, drawn = threading.Event(), [], {}

    def write():
        for turn in range(12):
            publish(versions[(turn + 1) % 2], archive, tmp_path, ("tif",))
        stop.set()

    with TestClient(create_app(tmp_path)) as client:
        writer = threading.Thread(target=write)
        writer.start()
        while not stop.is_set():
            run = client.get("/api/runs").json()["runs"][0]
            below = f"/api/runs/{run['id']}/{run['version']}"
            answer = client.get(f"{below}/point", params={"lat": PO[0], "lon": PO[1]})
            assert answer.status_code in (200, 404, 503)
            tile = client.get(f"{below}/tiles/pm25/1/5/16/11.png")
            assert tile.status_code in (200, 404, 503)
            if tile.status_code == 200:
                drawn.setdefault(run["version"], set()).add(tile.content)
            if answer.status_code == 200:
                values = [lead["pm25"] for lead in answer.json()["forecast"]]
                seen.append(values)
                assert any(values == pytest.approx(wanted, abs=0.06) for wanted in expected)
        writer.join()
    assert len(seen) > 3
    assert all(len(pictures) == 1 for pictures in drawn.values())


def _row_col(archive):
    return tuple(round(float(part)) for part in archive.domain.fine.row_col(*PO))


def test_the_archive_may_grow_while_it_is_served(folder, archive, archive_path, tmp_path, monkeypatch):
    place = tmp_path / "archive"
    shutil.copytree(archive_path, place)
    monkeypatch.setattr(archive_view, "REOPEN_SECONDS", -1.0)
    with TestClient(create_app(folder, str(place))) as client:
        newest = client.get("/api/runs").json()["runs"][0]
        assert "truth" not in newest["leads"][0]["variables"]
        with ArchiveWriter(str(place)) as writer:
            last = archive.days[-1]
            fields = DayData(
                day=last + timedelta(days=1),
                coarse=archive.coarse(last),
                pm25_ugm3=archive.pm25(last) + 1,
                stations_ugm3=archive.stations_pm25(last),
                provenance={"source": "test"},
            )
            writer.put(fields)
        newest = client.get("/api/runs").json()["runs"][0]
        assert "truth" in newest["leads"][0]["variables"]
        path = f"/api/runs/{newest['id']}/{newest['version']}/tiles/error/1/9/269/183.png"
        shown = image_of(client.get(path))
    wanted = colours("error").numbers[
        np.int16(-10).view(np.uint16)
    ]  # the forecast is like the last day, the truth one more
    palette = np.frombuffer(colours("error").palette, np.uint8).reshape(-1, 3)
    assert np.abs(shown[shown[..., 3] > 0][:, :3].astype(int) - palette[wanted]).max() <= 4


def test_an_archive_that_cannot_be_read_for_a_moment_is_served_as_it_was(archive_path, tmp_path, monkeypatch):
    place = tmp_path / "archive"
    shutil.copytree(archive_path, place)
    held = archive_view.GrowingArchive(str(place))
    first = held.now()
    monkeypatch.setattr(archive_view, "REOPEN_SECONDS", -1.0)
    place.rename(tmp_path / "away")
    assert held.now() is first


def test_errors_at_low_zoom_are_means_of_errors(archive, archive_path, tmp_path):
    """A forecast without error must look so, on a part of the domain and beside gaps, at every zoom."""
    day = archive.days[1]
    rows, cols = slice(30, 451), slice(17, 505)
    whole = predict(archive, day, None)
    grid = archive.domain.fine.window(rows, cols)
    came = np.stack([archive.pm25(day + timedelta(days=lead))[rows, cols] for lead in (1, 2, 3)])
    came[:, 100:140, 200:300] = np.nan
    publish(replace(whole, fields=came, grid=grid), archive, tmp_path, ("tif",))
    with TestClient(create_app(tmp_path, str(archive_path))) as client:
        run = client.get("/api/runs").json()["runs"][0]
        for z in (4, 5, 6, 8):
            x, y = (int(part) for part in _tile_of(45.3, 9.5, z))
            shown = image_of(client.get(f"/api/runs/{run['id']}/{run['version']}/tiles/error/1/{z}/{x}/{y}.png"))
            there = shown[shown[..., 3] > 0][:, :3].astype(int)
            assert len(there)
            assert np.abs(there - matplotlib.colormaps["PuOr_r"](0.5, bytes=True)[:3]).max() <= 3


def test_an_archive_of_other_places_offers_nothing(archive):
    known, fine = archive_view.ArchiveView.of(archive), archive.domain.fine
    assert known.window(fine.window(slice(5, 100), slice(7, 50))) == (slice(5, 100), slice(7, 50))
    for other in (
        Grid(fine.north + 10, fine.west, 0.01, 50, 50),
        Grid(fine.north - 0.005, fine.west + 0.005, 0.01, 50, 50),
        Grid(fine.north + 0.1, fine.west, 0.01, 50, 50),
    ):
        assert known.window(other) is None


def test_who_waits_for_heavy_work_stops_nobody_else(folder, monkeypatch):
    app, free = create_app(folder), threading.Event()
    with TestClient(app) as client:
        run = client.get("/api/runs").json()["runs"][0]
        for _ in range(service.AT_ONCE):
            app.state.service.workers.submit(free.wait, 60)
        box = f"/api/runs/{run['id']}/{run['version']}/box?north=46&south=45&west=8&east=9.123"
        asked = [threading.Thread(target=client.get, args=(box,)) for _ in range(12)]
        for thread in asked:
            thread.start()
        assert client.get("/api/health").status_code == 200
        assert all(thread.is_alive() for thread in asked)
        monkeypatch.setattr(service, "PATIENCE_SECONDS", 0.2)
        refused = client.get(box)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        free.set()
        for thread in asked:
            thread.join()
        monkeypatch.undo()
        assert client.get(box).status_code == 200


def test_only_some_made_rasters_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(raster_cache, "MOST", 1)
    grid = Grid(50.0, 8.0, 0.01, 32, 32)
    with ThreadPoolExecutor(1) as workers:
        kept = raster_cache.RasterCache(workers)
        one = kept.raster("one", grid, lambda: np.ones(grid.shape)).result()
        assert kept.raster("one", grid, lambda: 1 / 0).result() == one
        failed = kept.raster("bad", grid, lambda: 1 / 0)
        assert isinstance(failed.exception(), ZeroDivisionError)
        two = kept.raster("bad", grid, lambda: np.ones(grid.shape)).result()
        assert (one.exists(), two.exists()) == (False, True)
        kept.close()


def test_what_files_cannot_hold_is_refused():
    field = np.float32([[-0.34, 0.34, np.nan, -2000]])
    assert np.array_equal(
        PUBLISHED.unpack(PUBLISHED.pack(field)), np.float32([[-0.3, 0.3, np.nan, -2000]]), equal_nan=True
    )
    with pytest.raises(CranpmError, match="files cannot hold"):
        PUBLISHED.pack(np.float32([[3300]]))


def test_the_command_serves_and_says_what_it_leaves_out(folder, archive_path, monkeypatch, capsys):
    asked = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **how: asked.update(how))
    assert run_cli(monkeypatch, "serve", str(folder), "--archive", str(archive_path), "--port", "8123") == 0
    assert (asked["host"], asked["port"]) == ("127.0.0.1", 8123)
    assert "2 forecasts" in capsys.readouterr().out
    assert run_cli(monkeypatch, "serve", str(folder / "none")) == 1
    assert "a folder of forecasts" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(CranpmError, match="cranpm forecast --out"):
        create_app(tmp_path / "none")


def test_stale_is_what_is_old_or_past_or_from_the_future(folder):
    now = datetime.now(UTC)
    run = replace(Publication(folder).newest(), made=now - timedelta(hours=5))
    assert run.age_hours == pytest.approx(5, abs=0.01)
    assert run.stale_reason(36) == ""
    assert run.stale_reason(4) == "made 5 h ago"
    assert "is past" in replace(run, simulated=False).stale_reason(36)
    assert replace(run, simulated=False, day=now.date()).stale_reason(36) == ""
    assert "check the clocks" in replace(run, made=now + timedelta(hours=2)).stale_reason(36)


@pytest.mark.parametrize(
    "tags", [{"provenance": "[]"}, {"provenance": "{}"}, {"date_created": "2020-01-01T00:00:00"}, {"degraded": None}]
)
def test_an_odd_product_does_not_take_the_others_down(archive, tmp_path, tags):
    publish(forecast_from(archive, archive.days[1]), archive, tmp_path, ("tif",))
    odd = publish(forecast_from(archive, archive.days[2]), archive, tmp_path, ("tif",))
    for path in odd.glob("*.tif"):
        with rasterio.open(path) as raster:
            profile, values, kept = raster.profile, raster.read(), raster.tags()
            scales, what = raster.scales, raster.descriptions[0]
        path.unlink()
        with rasterio.open(path, "w", **{**profile, "driver": "GTiff"}) as raster:
            raster.write(values)
            raster.update_tags(**{name: value for name, value in (kept | tags).items() if value is not None})
            raster.scales, raster.offsets = scales, (0.0,)
            raster.set_band_description(1, what)
    write_sums(odd)
    client = TestClient(create_app(tmp_path))
    assert [run["id"] for run in client.get("/api/runs").json()["runs"]] == [str(archive.days[1])]
    assert set(client.get("/api/health").json()["left_out"]) == {str(archive.days[2])}


def test_the_document_can_be_read(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    assert len(paths) == 9
    assert all(set(operations) == {"get"} for operations in paths.values())


@pytest.mark.filterwarnings("ignore")
def test_random_requests_never_break_it(client, run):
    """Half of them with the day and version of a run, so that they reach beyond."""
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", client.app)
    fixed, sent = {"day": run["id"], "version": run["version"]}, []
    for found in schema.get_all_operations():

        @given(case=found.ok().as_strategy(), real=booleans())
        @settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        def send(case, real):
            if real:
                case.path_parameters |= {name: fixed[name] for name in fixed if name in case.path_parameters}
            response = case.call()
            sent.append(response.status_code)
            case.validate_response(response, excluded_checks=[schemathesis.checks.not_a_server_error])
            assert response.status_code < 500

        send()
    assert {200, 404} <= set(sent)


def test_leads_of_two_digits_are_served(archive, archive_path, tmp_path):
    today = predict(archive, archive.days[1], None, (1, 10))
    publish(replace(today, fields=np.stack([today.fields[0], today.fields[1] * 1.4])), archive, tmp_path, ("tif",))
    with TestClient(create_app(tmp_path, str(archive_path))) as client:
        run = client.get("/api/runs").json()["runs"][0]
        below = f"/api/runs/{run['id']}/{run['version']}"
        assert [lead["lead"] for lead in run["leads"]] == [1, 10]
        one, ten = client.get(f"{below}/point", params={"lat": PO[0], "lon": PO[1]}).json()["forecast"]
        assert ten["pm25"] == pytest.approx(1.4 * one["pm25"], abs=0.15)
        assert client.get(f"{below}/tiles/pm25/10/5/16/11.png").status_code == 200
        assert client.get(f"{below}/stations/10").status_code == 200
        for lead in ("2", "11", "3650000", "9" * 30):
            for path in (f"tiles/pm25/{lead}/5/16/11.png", f"stations/{lead}"):
                assert client.get(f"{below}/{path}").status_code == 404


def two_runs(archive, folder):
    """The older and the newer of two published days."""
    return [publish(forecast_from(archive, archive.days[n]), archive, folder, ("tif",)) for n in (1, 2)]


def test_a_damaged_run_is_withdrawn_and_health_says_so(archive, tmp_path):
    """A bit that the disk lost: the time of change stays, so only the checksums can tell."""
    _, newer = two_runs(archive, tmp_path)
    with TestClient(create_app(tmp_path)) as client:
        run = client.get("/api/runs").json()["runs"][0]
        point = f"/api/runs/{run['id']}/{run['version']}/point?lat={PO[0]}&lon={PO[1]}"
        assert client.get(point).json()["checked"] is True
        raster = raster_of(tmp_path, run, 1)
        state, content = raster.stat(), bytearray(raster.read_bytes())
        content[len(content) // 2] ^= 1
        with raster.open("r+b") as file:
            file.write(content)
        os.utime(raster, ns=(state.st_atime_ns, state.st_mtime_ns))
        client.app.state.service.watch.check()
        refused, health = client.get(point), client.get("/api/health")
        assert (refused.status_code, "SHA256SUMS" in refused.json()["detail"]) == (503, True)
        assert (health.status_code, health.json()["status"]) == (503, "damaged")
        assert run["id"] in health.json()["reason"]
        assert newer.name in health.json()["left_out"]
        assert [run["id"] for run in client.get("/api/runs").json()["runs"]] == [str(archive.days[1])]
        publish(forecast_from(archive, archive.days[2]), archive, tmp_path, ("tif",))
        assert client.get("/api/health").json()["status"] == "ok"


def test_the_newest_run_may_vanish_while_it_is_served(archive, tmp_path):
    """What is open would still answer: every request asks whether the files are there."""
    _, newer = two_runs(archive, tmp_path)
    with TestClient(create_app(tmp_path)) as client:
        run = client.get("/api/runs").json()["runs"][0]
        below = f"/api/runs/{run['id']}/{run['version']}"
        paths = [f"{below}/point?lat={PO[0]}&lon={PO[1]}", f"{below}/tiles/pm25/1/5/16/11.png"]
        assert [client.get(path).status_code for path in paths] == [200, 200]
        shutil.rmtree(newer.resolve())
        assert [client.get(path).status_code for path in paths] == [503, 503]
        assert client.get("/api/health").json()["status"] == "damaged"
        assert [run["id"] for run in client.get("/api/runs").json()["runs"]] == [str(archive.days[1])]
        shutil.rmtree(tmp_path)
        assert client.get("/api/health").json()["status"] == "empty"
        assert client.get("/api/runs").json()["runs"] == []


def test_products_without_checksums_say_so(archive, tmp_path, monkeypatch):
    """Those of old versions; new ones state that they have them."""
    two_runs(archive, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(writer, "_with_contents", lambda forecast: forecast)
        older = publish(forecast_from(archive, archive.days[1]), archive, tmp_path, ("tif",))
    (older / "SHA256SUMS").unlink()
    with TestClient(create_app(tmp_path)) as client:
        assert [run["checked"] for run in client.get("/api/runs").json()["runs"]] == [True, False]


@pytest.mark.parametrize("route", ["point", "history"])
@pytest.mark.parametrize("place", ["nan,9", "inf,9", "1e308,9", "91,9", "45,-181", "45,361"])
def test_coordinates_that_are_no_place_are_refused(client, below, route, place):
    lat, lon = place.split(",")
    assert client.get(f"{below}/{route}?lat={lat}&lon={lon}").status_code == 422
    assert client.get(f"{below}/box?north={lat}&south=44&west=8&east={lon}").status_code == 422


def test_connections_without_a_request_do_not_keep_others_out(folder, monkeypatch):
    """More half-open connections than the server takes: they are closed, and others are answered again."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    how = {"limit_concurrency": 10, "log_level": "error", "http": connections.PromptProtocol}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_app(folder), port=port, **how))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    held[0].sendall(b"GET /api/health HTTP/1.1\r\nHost:")  # and never ends
    try:
        for _ in range(1000):
            with closing(http.client.HTTPConnection("127.0.0.1", port)) as other:
                other.request("GET", "/api/health")
                if other.getresponse().status == 200:
                    break
            time.sleep(0.02)
        else:
            pytest.fail("the half-open connections keep everybody out")
        assert held[0].recv(1) == b""
    finally:
        for connection in held:
            connection.close()
        server.should_exit = True
        thread.join()


def test_a_folder_that_is_replaced_in_place_gives_new_tiles(archive, tmp_path):
    """A copy without links: the path stays, the version does not."""
    copied, bodies = tmp_path / "copied" / str(archive.days[1]), []
    for scale in (1.0, 3.0):
        made = publish(forecast_from(archive, archive.days[1], scale), archive, tmp_path / "made", ("tif",))
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(made, copied)
        run = Publication(copied.parent).newest()
        bodies.append(tiles.tile("pm25", run.raster(1), *TILE))
        assert bodies[-1] == tiles.draw_tile("pm25", made.resolve() / run.raster(1).name, *TILE)
    assert bodies[0] != bodies[1]


def test_health_fails_when_checksums_are_no_longer_compared(folder, monkeypatch):
    with TestClient(create_app(folder)) as client:
        assert client.get("/api/health").json()["status"] == "ok"
        with monkeypatch.context() as patched:
            patched.setattr(client.app.state.service.watch, "_thread", threading.Thread())  # one that is not alive
            answer = client.get("/api/health")
        assert (answer.status_code, answer.json()["status"]) == (503, "unwatched")
