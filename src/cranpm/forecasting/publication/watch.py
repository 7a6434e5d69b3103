"""Checksums compared again while forecasts are served: a disk can lose a bit after a file was opened."""

import threading

from cranpm.forecasting.publication.reader import Publication

EVERY_SECONDS = 300.0
NEWEST = 3
BYTES_PER_SECOND = 20e6
"""So that requests keep the disk for themselves."""


class Watch:
    """A thread that compares the newest runs with their checksums at intervals; it withdraws what differs."""

    def __init__(self, publication: Publication):
        self.publication = publication
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin, unless it is at work already."""
        if not self.alive:
            self._stop.clear()
            self._thread = threading.Thread(target=self._work, name="checksums", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End, and wait until it has."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def check(self) -> None:
        """Compare the newest runs once, slowly."""
        for run in self.publication.runs()[0][:NEWEST]:
            if not self._stop.is_set():
                self.publication.recheck(run, lambda size: self._stop.wait(size / BYTES_PER_SECOND))

    def _work(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            self.check()
