"""Clusters: the points of a sweep on an existing Dask scheduler, each stored here the moment it is done.

A worker that dies takes nothing with it: its points are given to another, by the scheduler. A point that takes several workers
with it is recorded as failed. Results come back to this process, which alone writes the store; a point is stored once.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...common.errors import InputError
from .axes import Task
from .measurement import measure_point
from .run import Outcomes, Watch
from .store import Outcome, Store

CONNECT = "20s"  # how long a scheduler may take to answer
RETRIES = 3  # for what is not the point's own fault: a lost connection, say


def run_on(address: str, store: Store, tasks: Sequence[Task], watch: Watch) -> None:
    """Measure these points on the cluster and store each at once."""
    watch.tell()
    for task, outcome in outcomes_on(address, tasks):
        if store.write(task, outcome):
            watch.seen(outcome)


def outcomes_on(address: str, tasks: Sequence[Task]) -> Outcomes:
    """(point, what came of it), in the order in which they finish."""
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise InputError("Dask for --dask", "not installed", "pip install 'onelayer[cluster]'") from None
    try:
        with quiet():
            client = Client(address, timeout=CONNECT)
    except (OSError, ValueError, TimeoutError) as error:
        found = " ".join(str(error).split())
        raise InputError("a Dask scheduler such as tcp://host:8786", f"{address}: {found}", "start one there") from None
    with quiet(), client:
        futures = {}
        for task in tasks:
            key = f"onelayer-{task.key}"
            future = client.submit(
                measure_point, task.measure.function, task.point, key=key, retries=RETRIES, pure=False
            )
            futures[future] = task
        for future in as_completed(list(futures)):
            task = futures.pop(future)
            if future.status == "finished":
                yield task, future.result()
            else:
                if future.status != "error":
                    raise InputError("a scheduler that stays", f"{address} is gone", "start it and run again")
                fault = future.exception()
                words = "several workers died" if isinstance(fault, KilledWorker) else " ".join(str(fault).split())
                yield task, Outcome("failed", {}, words, 0.0, {})
            future.release()


@contextmanager
def quiet() -> Iterator[None]:
    """Dask's log keeps to disasters inside the block: a worker that dies is no news, its points are done elsewhere."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
