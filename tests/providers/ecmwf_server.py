"""A server on this machine that plays ECMWF's open data: files, their indices and ranges of bytes, with faults.

    with serve(folder) as url: ...            # a well-behaved mirror of the files in a folder
    with serve(folder, faults=[...]) as url:  # one fault for each question, then well-behaved

A fault is a status as "404" or "503", "cut" (half of the answer, then the line breaks), or "" (none).
"""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


class _Mirror(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        asked = (unquote(self.path), self.headers.get("Range"))
        self.server.asked.append(asked)
        fault = self.server.faults.pop(0) if self.server.faults else ""
        path = self.server.folder / asked[0].lstrip("/")
        if fault.isdigit() or not path.is_file():
            self.send_response(int(fault) if fault.isdigit() else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data, status = path.read_bytes(), 200
        if asked[1]:
            first, _, last = asked[1].removeprefix("bytes=").partition("-")
            data, status = data[int(first) : int(last) + 1 if last else None], 206
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
        if fault == "cut":
            self.wfile.flush()
            self.connection.close()


class Url(str):
    """The address of a mirror; `asked` lists the questions that it was asked (path, range of bytes)."""

    asked: list


@contextmanager
def serve(folder, faults=()):
    """The address of a mirror of the files in a folder, for as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Mirror)
    server.daemon_threads = True
    server.folder, server.faults, server.asked = Path(folder), list(faults), []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = Url(f"http://127.0.0.1:{server.server_port}")
    url.asked = server.asked
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def nowhere():
    """An address where nobody listens."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Mirror)
    server.server_close()
    return f"http://127.0.0.1:{server.server_port}"
