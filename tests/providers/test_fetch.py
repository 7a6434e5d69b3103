"""Fetching against a server that behaves as the real ones do: queues, licences, too many requests, broken lines."""

import hashlib
import json
import threading
from dataclasses import replace
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from command import run_cli

from cranpm.core.errors import CranpmError
from cranpm.core.grid import Domain
from cranpm.providers import PROVIDERS
from cranpm.providers.datastore import find_key
from cranpm.providers.download import download
from cranpm.providers.fetch import fetch, plan
from cranpm.providers.provider import FetchQuery
from cranpm.providers.request import Request

KEY = "0f3a-secret-key-77"
DATA = bytes(range(256)) * 4000
EUROPE = Domain("europe", 72, -25, 30, 45)


class Provider(BaseHTTPRequestHandler):
    """The Climate Data Store, Zenodo, EEA and a plain file server, with their moods."""

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    @property
    def state(self):
        return self.server.state

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or "{}")
        self.state["posted"].append((self.path, body, self.headers.get("PRIVATE-TOKEN")))
        if self.path.endswith("/execution"):
            if self.state.get("licence"):
                self.answer(403, {"title": "required licences not accepted", "detail": "accept the licence"})
            else:
                self.state["submitted"] = self.state.get("submitted", 0) + 1
                self.answer(201, self.job("accepted"))
        elif self.path == "/urls":
            here = f"http://{self.headers['Host']}"
            urls = self.state.get("urls", ["/plain/CZ/SPO.A.parquet", "/plain/CZ/SPO.B.parquet"])
            self.answer(200, "\r\n".join(["ParquetFileUrl", *(f"{here}{url}" for url in urls), ""]).encode())

    def job(self, status):
        here = f"http://{self.headers['Host']}/api/retrieve/v1/jobs/j1"
        links = [{"rel": name, "href": here} for name in ("monitor", "self")]
        return {"jobID": "j1", "processID": "p", "status": status, "links": links}

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.endswith("/jobs/j1"):
            states = self.state.setdefault("states", ["accepted", "running", "successful"])
            self.answer(200, self.job(states.pop(0) if len(states) > 1 else states[0]))
        elif path.endswith("/jobs/j1/results"):
            if self.state.get("failed"):
                self.answer(400, {"title": "the job has failed", "traceback": "no data for these dates"})
            else:
                href = f"http://{self.headers['Host']}/plain/result.nc"
                asset = {"href": href, "file:size": len(DATA), "type": "application/netcdf"}
                self.answer(200, {"asset": {"value": asset}})
        elif "/processes/" in path:
            self.answer(200, {"id": path.rpartition("/")[2], "links": []})
        elif path.startswith("/records/"):
            here = f"http://{self.headers['Host']}"
            checksum = self.state.get("md5") or hashlib.md5(DATA).hexdigest()
            names = ("GHAP_PM2.5_D1K_202201_V1.zip", "GHAP_PM2.5_D1K_202201_V2.zip", "GHAP_PM2.5_D1K_202202_V1.zip")
            same = {"size": len(DATA), "checksum": f"md5:{checksum}"}
            files = [{"key": name, **same, "links": {"self": f"{here}/plain/{name}"}} for name in names]
            self.answer(200, {"files": files})
        elif path.startswith("/plain/"):
            self.plain(path)
        else:
            self.answer(404, {})

    def plain(self, path):
        self.state["asked"].append((path, self.headers.get("Range")))
        moods = self.state.get("moods", [])
        mood = moods.pop(0) if moods else ""
        if mood.isdigit():
            self.answer(int(mood), {})
            return
        start = 0
        if self.headers.get("Range") and not self.state.get("no ranges"):
            start = int(self.headers["Range"].removeprefix("bytes=").partition("-")[0])
        body = DATA[start:]
        if start >= len(DATA):
            self.answer(416, b"")
            return
        tag = self.state.get("tag", '"one"')
        if self.headers.get("If-Range") not in (None, tag):
            start, body = 0, DATA
        self.send_response(206 if start else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if mood == "break":
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.connection.close()
        elif mood == "garbage":
            self.wfile.write(bytes(len(body)))
        else:
            self.wfile.write(body)


@pytest.fixture
def server():
    found = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    found.state = {"asked": [], "posted": []}
    threading.Thread(target=found.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{found.server_port}"
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture
def wait(server, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CDSAPI_KEY", KEY)
    monkeypatch.delenv("ECMWF_DATASTORES_KEY", raising=False)
    for name, path in (("era5", "api"), ("cams", "api"), ("ghap", "records")):
        monkeypatch.setattr(PROVIDERS[name], "service", f"{server.url}/{path}")
    return 0.001


def request_for(days=("2022-01-05",)):
    return plan("era5", FetchQuery([date.fromisoformat(day) for day in days], EUROPE))[0]


def test_a_request_is_queued_waited_for_and_downloaded(server, wait, tmp_path):
    request, states = request_for(), []
    (path,) = fetch([request], tmp_path / "to", wait, lambda number, request, state: states.append(state))
    assert path.read_bytes() == DATA
    assert sorted(p.name for p in path.parent.iterdir()) == [request.name]
    posted = server.state["posted"][0]
    assert posted[1]["inputs"] == request.ask["request"]
    assert posted[2] == KEY
    assert states == [""]
    fetch([request], tmp_path / "to", wait, lambda number, request, state: states.append(state))
    assert states[-1] == "is there already"
    assert server.state["submitted"] == 1


def test_a_stopped_fetch_waits_for_the_same_request(server, wait, tmp_path):
    request = request_for()
    target = tmp_path / "to" / request.name
    server.state["moods"] = ["500"] * 20
    with pytest.raises(CranpmError, match="within 6 tries"):
        fetch([request], tmp_path / "to", wait)
    assert not target.exists()
    server.state["moods"] = []
    fetch([request], tmp_path / "to", wait)
    assert target.read_bytes() == DATA
    assert server.state["submitted"] == 1


def test_a_licence_that_was_not_accepted(server, wait, tmp_path):
    server.state["licence"] = True
    with pytest.raises(CranpmError, match=r"Accept the licence at https://cds\.climate") as e:
        fetch([request_for()], tmp_path, wait)
    assert KEY not in str(e.value)


def test_a_request_that_fails(server, wait, tmp_path):
    server.state |= {"states": ["running", "failed"], "failed": True}
    with pytest.raises(CranpmError, match="the job has failed"):
        fetch([request_for()], tmp_path, wait)
    assert list(tmp_path.glob("*.job")) == []


def test_no_key(wait, tmp_path, monkeypatch):
    monkeypatch.delenv("CDSAPI_KEY")
    with pytest.raises(CranpmError, match="a key for"):
        fetch([request_for()], tmp_path, wait)


def test_keys_are_found_where_other_clients_keep_them(wait, tmp_path, monkeypatch):
    monkeypatch.delenv("CDSAPI_KEY")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".cdsapirc").write_text("url: https://x\nkey: abc-def\n")
    assert find_key() == "abc-def"
    (home / ".ecmwfdatastoresrc").write_text("url: https://x\nkey: other\n")
    assert find_key() == "other"
    monkeypatch.setenv("ECMWF_DATASTORES_KEY", "first")
    assert find_key() == "first"


def test_a_broken_line_goes_on_where_it_broke(server, wait, tmp_path):
    server.state["moods"] = ["break", "429", "break"]
    download(f"{server.url}/plain/a.nc", tmp_path / "a.nc", wait)
    assert (tmp_path / "a.nc").read_bytes() == DATA
    ranges = [asked for _, asked in server.state["asked"]]
    assert ranges[0] is None
    begun = [int(asked.removeprefix("bytes=").removesuffix("-")) for asked in ranges[1:]]
    assert len(DATA) // 4 < begun[0] == begun[1] <= len(DATA) // 2 < begun[2] < len(DATA)


def test_a_server_without_ranges_begins_anew(server, wait, tmp_path):
    server.state |= {"moods": ["break"], "no ranges": True}
    download(f"{server.url}/plain/a.nc", tmp_path / "a.nc", wait)
    assert (tmp_path / "a.nc").read_bytes() == DATA


def test_what_arrived_before_was_another_file(server, wait, tmp_path):
    """Longer, of another address, or of another version under the same address: never spliced."""
    url, target = f"{server.url}/plain/a.nc", tmp_path / "a.nc"
    for part_of in ({"url": url, "tag": '"one"'}, {"url": "elsewhere", "tag": '"one"'}, {"url": url, "tag": '"old"'}):
        for length in (len(DATA) + 10, 1000):
            (tmp_path / "a.nc.part").write_bytes(b"x" * length)
            (tmp_path / "a.nc.part-of").write_text(json.dumps(part_of))
            if part_of == {"url": url, "tag": '"one"'} and length == 1000:
                (tmp_path / "a.nc.part").write_bytes(DATA[:1000])
            download(url, target, wait)
            assert target.read_bytes() == DATA
            assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.nc"]


def test_zenodo_by_its_record_with_checksum(server, wait, tmp_path):
    (request,) = plan("ghap", FetchQuery([date(2022, 1, 5)], EUROPE))
    server.state["moods"] = ["garbage"]
    (path,) = fetch([request], tmp_path, wait)
    assert path.read_bytes() == DATA
    assert server.state["asked"][-1][0] == "/plain/GHAP_PM2.5_D1K_202201_V2.zip"
    path.unlink()
    server.state["md5"] = "0" * 32
    with pytest.raises(CranpmError, match="checksum"):
        fetch([request], tmp_path, wait)
    assert list(tmp_path.iterdir()) == []
    (other,) = plan("ghap", FetchQuery([date(2022, 7, 5)], EUROPE))
    with pytest.raises(CranpmError, match="a file GHAP"):
        fetch([other], tmp_path, wait)


def test_stations_by_their_list(server, wait, tmp_path):
    files, _ = plan("eea", FetchQuery([date(2022, 1, 5)], EUROPE, countries=["CZ"]))
    local = replace(files, ask={**files.ask, "post": f"{server.url}/urls"})
    found = fetch([local], tmp_path, wait)
    assert [path.name for path in found] == ["CZ_SPO.A.parquet", "CZ_SPO.B.parquet"]
    server.state["urls"] = []
    with pytest.raises(CranpmError, match="an empty one"):
        fetch([local], tmp_path, wait)
    server.state["urls"] = ["/.."]
    with pytest.raises(CranpmError, match="addresses of Parquet files"):
        fetch([local], tmp_path, wait)
    assert server.state["posted"][0][1]["countries"] == ["CZ"]


def test_a_tile_over_the_sea_is_no_error(server, wait, tmp_path):
    server.state["moods"] = ["404", "403"]
    states = []
    tile = Request("elevation", "a.tif", {"url": f"{server.url}/plain/a.tif", "missing": "sea"}, 0.0)
    assert fetch([tile], tmp_path, wait, lambda number, request, state: states.append(state)) == []
    assert states == ["", "is not there: sea"]
    with pytest.raises(CranpmError, match="403"):
        fetch([tile], tmp_path, wait)


def test_refusals():
    with pytest.raises(CranpmError, match="a provider:"):
        plan("merra", FetchQuery([], EUROPE))
    with pytest.raises(CranpmError, match="--country"):
        plan("eea", FetchQuery([], EUROPE))
    with pytest.raises(CranpmError, match="--location"):
        plan("openaq", FetchQuery([], EUROPE))
    with pytest.raises(CranpmError, match=r"channels that cams gives; found blh, which is given by era5"):
        plan("cams", FetchQuery([], EUROPE, channels=["blh"]))


def test_the_command_prints_requests_and_never_the_key(wait, monkeypatch, capsys, tmp_path):
    line = ["fetch", "era5", "--domain", "alps", "--days", "2022-01-30..2022-01-31", "--to", str(tmp_path), "--dry-run"]
    assert run_cli(monkeypatch, *line) == 0
    printed = capsys.readouterr().out
    requests = [json.loads(text) for text in printed.splitlines() if text.startswith("{")]
    assert [request["request"]["day"] for request in requests] == [["30", "31"]] * 2 + [["01"]]
    assert "accept once: https://cds" in printed
    assert KEY not in printed
    assert list(tmp_path.glob("*.nc")) == []
    assert run_cli(monkeypatch, "fetch", "cams", "--domain", "alps", "--to", str(tmp_path)) == 1
    assert "days for cams" in capsys.readouterr().err
