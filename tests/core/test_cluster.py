"""Results are the same for any number of workers, also when one is killed; failures are told."""

import os
import signal
import time
from pathlib import Path

import pytest

from cranpm.core.cluster import Pool, open_pool
from cranpm.core.errors import CranpmError


def square(number: int, offset: int) -> int:
    return number**2 + offset


def die_once(number: int, folder: str) -> int:
    """The first worker that is given number 3 dies."""
    mark = Path(folder) / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def refuse(number: int, folder: str) -> int:
    (Path(folder) / str(number)).touch()
    if number == 2:
        raise CranpmError(expected="an odd number", found=str(number), remedy="Choose another.")
    time.sleep(0.05)
    return number


@pytest.fixture(scope="module")
def pool():
    with open_pool(2) as opened:
        yield opened


def test_results_are_those_of_one_process(pool):
    alone, together = (dict(p.each(square, range(20), p.share(7))) for p in (Pool(), pool))
    assert alone == together == {number: number**2 + 7 for number in range(20)}


def test_the_task_of_a_killed_worker_is_done_by_another(pool, tmp_path):
    assert dict(pool.each(die_once, range(8), str(tmp_path))) == {number: number**2 for number in range(8)}
    assert (tmp_path / "died").exists()


def die_together(number: int, folder: str, offset: int) -> int:
    """Every worker dies once, in its first task."""
    mark = Path(folder) / str(number)
    if number < 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number + offset


def test_what_is_shared_outlives_all_workers(tmp_path):
    with open_pool(2) as pool:
        found = dict(pool.each(die_together, range(6), str(tmp_path), pool.share(10)))
    assert found == {number: number + 10 for number in range(6)}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("which", ["alone", "together"])
def test_a_failure_is_told_and_nothing_else_is_begun(pool, tmp_path, which):
    chosen = Pool() if which == "alone" else pool
    with pytest.raises(CranpmError, match="expected an odd number; found 2"):
        list(chosen.each(refuse, range(100), str(tmp_path)))
    time.sleep(0.3)
    assert len(list(tmp_path.iterdir())) < 20


def test_a_cluster_is_used_by_its_address(pool):
    with open_pool(address=pool.client.scheduler.address) as theirs:
        assert dict(theirs.each(square, [3], 1)) == {3: 10}


def test_refusals(monkeypatch):
    monkeypatch.setattr("cranpm.core.cluster.PATIENCE_SECONDS", 1)
    with (
        pytest.raises(CranpmError, match="a dask scheduler with workers at tcp:"),
        open_pool(address="tcp://127.0.0.1:9"),
    ):
        pass
    with pytest.raises(CranpmError, match="at least one job"), open_pool(0):
        pass
