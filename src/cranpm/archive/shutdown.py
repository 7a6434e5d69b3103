"""An orderly end of a process that used an archive.

A thread of icechunk's runtime hands over what it read by waking zarr's event loop, in Python. The main thread can have
the data, finish its work and end the interpreter while that thread still waits for its turn to return. Python then
ends the thread by force, which Rust's code does not survive: the process aborts (SIGABRT) although all was stored.
So before the interpreter ends, we wait until every such thread has left Python.
"""

import atexit
import sys
import threading
import time
from functools import cache

LONGEST_WAIT_S = 10.0
LOOK_EVERY_S = 0.01
LOOKS = 2
"""In a row without a foreign thread: one that waits to enter Python shows only while the main thread sleeps."""


@cache
def wait_at_exit() -> None:
    """Let the process wait for icechunk's threads when it ends; further calls change nothing.

    What is registered last runs first: this is called when an archive is used, so zarr's loop is still open then.
    """
    atexit.register(wait_for_foreign_threads, before=frozenset(foreign_threads()))


def wait_for_foreign_threads(longest_s: float = LONGEST_WAIT_S, before: frozenset[int] = frozenset()) -> bool:
    """Wait until no thread that Python did not start is inside Python; False if one still is after `longest_s`.

    Threads of `before` do not count: they were there before an archive was used, and are not icechunk's.
    """
    end, quiet = time.monotonic() + longest_s, 0
    while quiet < LOOKS and time.monotonic() < end:
        time.sleep(LOOK_EVERY_S)
        quiet = 0 if foreign_threads() - before else quiet + 1
    return quiet == LOOKS


def foreign_threads() -> set[int]:
    """The threads inside Python that were not started by its `threading` module."""
    ours = {thread.ident for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}
    return {ident for ident in sys._current_frames() if ident not in ours}
