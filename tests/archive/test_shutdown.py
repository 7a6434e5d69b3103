"""The end of a process that used an archive, while icechunk's threads are still busy."""

import _thread
import subprocess
import sys
import threading

import pytest

from cranpm.archive.shutdown import foreign_threads, wait_for_foreign_threads

SLOW_THREADS = """
import asyncio.selector_events, sys, threading, time

wake = asyncio.selector_events.BaseSelectorEventLoop._write_to_self
foreign = set()

def slowly(loop, sleep=time.sleep, threads=threading):
    wake(loop)
    if threads.get_ident() not in {thread.ident for thread in threads.enumerate()}:
        foreign.add(threads.get_ident())
        sleep(0.3)

class Last:
    "Among the last things to go: the end of the interpreter takes long enough for the slow threads to return."
    def __del__(self, sleep=time.sleep):
        sleep(1.0)

from cranpm.archive.store import Archive
archive = Archive(sys.argv[1])
sys.last = Last()
asyncio.selector_events.BaseSelectorEventLoop._write_to_self = slowly
archive.coarse(archive.days[0])
assert foreign, "icechunk no longer wakes zarr's loop from its threads"
"""


def test_a_slow_thread_of_icechunk_does_not_abort_the_end(archive_path):
    """Without the wait this ends with SIGABRT (-6), every time."""
    ended = subprocess.run([sys.executable, "-c", SLOW_THREADS, str(archive_path)], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_foreign_threads_are_waited_for():
    """`_thread` starts threads that `threading` does not know, as a library in another language does."""
    before, go, started = frozenset(foreign_threads()), threading.Event(), threading.Event()

    def stay():
        started.set()
        go.wait(30)

    _thread.start_new_thread(stay, ())
    assert started.wait(30)
    assert foreign_threads() > before
    assert not wait_for_foreign_threads(0.05, before)
    go.set()
    assert wait_for_foreign_threads(30, before)
    assert foreign_threads() <= before


def test_our_threads_are_not_foreign():
    before, stop = frozenset(foreign_threads()), threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    assert thread.ident not in foreign_threads()
    assert wait_for_foreign_threads(30, before)
    stop.set()
    thread.join()


@pytest.mark.long
def test_two_hundred_simulations_end_well(tmp_path):
    """The last days are stored just before the end; four of 270 such runs aborted on a busy machine."""
    line = ["simulate", "--quiet", "--domain", "48,7,42.75,12.25", "--days", "2020-02-27"]
    for number in range(200):
        place = str(tmp_path / str(number))
        command = [sys.executable, "-m", "cranpm", *line, "--set", "simulation.spin_up_days=0", place]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, ""), f"run {number}"
