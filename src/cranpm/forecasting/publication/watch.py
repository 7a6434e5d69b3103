"""Checksums compared again while forecasts are served: a disk can lose a bit after a file was opened."""

import logging
import threading
from datetime import date

from cranpm.core.errors import CranpmError
from cranpm.forecasting.publication.reader import Publication

EVERY_SECONDS = 300.0
AT_A_TIME = 3
"""Runs."""
BYTES_PER_SECOND = 20e6
"""So that requests keep the disk for themselves."""


class Watch:
    """A thread that compares a few runs with their checksums at intervals and withdraws what differs.

    It goes round all runs, newest first.
    """

    def __init__(self, publication: Publication):
        self.publication = publication
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._last: date | None = None

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def failed(self) -> bool:
        """Whether the thread ended though nobody closed it."""
        return self._thread is not None and not self._thread.is_alive() and not self._stop.is_set()

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
        """Compare the next runs once, slowly; after the oldest comes the newest."""
        days = self.publication.days()
        older = [day for day in days if self._last is not None and day < self._last]
        for day in (older or days)[:AT_A_TIME]:
            if not self._stop.is_set():
                self._compare(day)
                self._last = day

    def _compare(self, day: date) -> None:
        """One run; whatever is wrong with it, the others are compared too."""
        try:
            run = self.publication.run(day)
            self.publication.recheck(run, lambda size: self._stop.wait(size / BYTES_PER_SECOND))
        except CranpmError:
            pass  # the list of runs says why it is left out
        except Exception:
            logging.getLogger(__name__).exception("the checksums of %s could not be compared", day)

    def _work(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            self.check()
