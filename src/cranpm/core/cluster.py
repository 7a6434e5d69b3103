"""The one way to run things side by side: in this process, in local processes, or on somebody's dask cluster.

A worker that dies is replaced and its task is done again; what comes out does not depend on who did what.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from cranpm.core.errors import CranpmError

if TYPE_CHECKING:
    from distributed import Client

TASKS_PER_WORKER = 2
"""Handed out at a time: results that nobody has taken yet do not fill the memory."""
PATIENCE_SECONDS = 30
Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Pool:
    """Workers, or none: then everything is done here, one thing after the other."""

    client: "Client | None" = None

    def share(self, value: Value) -> Value:
        """A value that many tasks need, sent to every worker once; hand what is returned to `each`."""
        return value if self.client is None else self.client.scatter(value, broadcast=True, hash=False)

    def each(self, work: Callable[..., Result], items: Iterable[Item], *shared: Any) -> Iterator[tuple[Item, Result]]:
        """`work(item, *shared)` of every item, with the item, in the order in which the tasks end.

        The first task that fails ends all: its error is raised and no other task is begun.
        """
        if self.client is None:
            for item in items:
                yield item, work(item, *shared)
            return
        yield from _each(self.client, work, iter(items), shared)


def _each(
    client: "Client", work: Callable[..., Result], items: Iterator[Item], shared: tuple[Any, ...]
) -> Iterator[tuple[Item, Result]]:
    from distributed import KilledWorker, as_completed

    given: dict[Any, Item] = {}
    running = as_completed()

    def hand_out(count: int) -> None:
        for item in islice(items, count):
            future = client.submit(work, item, *shared, pure=False)
            given[future.key] = item
            running.add(future)

    hand_out(TASKS_PER_WORKER * max(1, len(client.scheduler_info()["workers"])))
    try:
        for future in running:
            item = given.pop(future.key)
            result = future.result()
            hand_out(1)
            yield item, result
    except KilledWorker as error:
        raise CranpmError(
            expected="workers that live until their tasks are done",
            found="a task whose workers died several times, perhaps for want of memory",
            remedy="Give the same command again with fewer --jobs: what is done is kept.",
        ) from error
    finally:
        client.cancel(list(given))


@contextmanager
def open_pool(jobs: int = 1, address: str | None = None, threads: int | None = None) -> Iterator[Pool]:
    """Workers for the block: of the dask scheduler at `address`, or `jobs` local processes, or none for one job.

    Local workers compute with `threads` threads each; by default they share the cores evenly. On a cluster the
    archive, weights and outputs must lie where every worker finds them under the same path.
    """
    if jobs < 1:
        raise CranpmError(expected="at least one job", found=str(jobs), remedy="For example --jobs 2.")
    if address is None and jobs == 1:
        yield Pool()
        return
    from distributed import Client

    if address is not None:
        with _connected(address) as client:
            yield Pool(client)
        return
    with _local_cluster(jobs, threads or max(1, (os.cpu_count() or 1) // jobs)) as cluster, Client(cluster) as client:
        yield Pool(client)


def _local_cluster(jobs: int, threads: int) -> Any:
    from distributed import LocalCluster

    counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    return LocalCluster(
        n_workers=jobs,
        threads_per_worker=1,
        processes=True,
        memory_limit=0,  # what a task takes is its own affair: archives are read in bounded parts
        dashboard_address="127.0.0.1:0",  # any free port: several commands may run at a time
        env=counts,
    )


@contextmanager
def _connected(address: str) -> Iterator["Client"]:
    from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE_SECONDS)
        client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise CranpmError(
            expected=f"a dask scheduler with workers at {address}",
            found=str(error).splitlines()[0][:200],
            remedy="Start `dask scheduler` and `dask worker ADDRESS`, or use --jobs N for processes of this machine.",
        ) from None
    with client:
        yield client
