"""The one way to run things side by side: in this process, in local processes, or on somebody's dask cluster.

A worker that dies is replaced and its task is done again; what comes out does not depend on who did what.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast

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

    @property
    def workers(self) -> int:
        """How many things are done at the same time."""
        return 1 if self.client is None else max(1, len(self.client.scheduler_info()["workers"]))

    def share(self, value: Value) -> Value:
        """A value that many tasks need, sent once; hand what is returned to `each`.

        The scheduler keeps it, so that it reaches also those workers that replace killed ones.
        """
        if self.client is None:
            return value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the value is large
            return cast(Value, self.client.submit(_same, value, pure=False))

    def each(self, work: Callable[..., Result], items: Iterable[Item], *shared: Any) -> Iterator[tuple[Item, Result]]:
        """`work(item, *shared)` of every item, with the item, in the order in which the tasks end.

        The first task that fails ends all: its error is raised and no other task is begun.
        """
        if self.client is None:
            for item in items:
                yield item, work(item, *shared)
            return
        yield from _each(self.client, work, iter(items), shared)


def _same(value: Value) -> Value:
    return value


def _each(
    client: "Client", work: Callable[..., Result], items: Iterator[Item], shared: tuple[Any, ...]
) -> Iterator[tuple[Item, Result]]:
    from distributed import CancelledError, Future, KilledWorker, as_completed
    from distributed.comm.core import CommClosedError

    given: dict[Future[Result], Item] = {}
    running = as_completed()

    def hand_out() -> None:
        """As many as the workers that are there now need; more of them may have come meanwhile."""
        for item in islice(items, max(0, TASKS_PER_WORKER * Pool(client).workers - len(given))):
            future = client.submit(work, item, *shared, pure=False)
            given[future] = item
            running.add(future)

    hand_out()
    try:
        for future in running:
            item = given.pop(future)
            result = future.result()
            hand_out()
            yield item, result
    except (KilledWorker, CancelledError, CommClosedError) as error:
        raise CranpmError(
            expected="workers that live until their tasks are done",
            found=f"{type(error).__name__}: workers died several times (too little memory?), or the scheduler ended",
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
