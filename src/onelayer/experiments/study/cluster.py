"""Clusters: the points of a sweep, measured on an existing Dask scheduler.

When a worker dies, nothing is lost: the scheduler gives its points to another. A point that kills several workers is
recorded as failed. Results come back to this process, which alone writes the store; a point is stored once.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...common.errors import InputError
from .axes import Task
from .measurement import measure_point
from .run import Outcomes
from .store import Outcome

CONNECT_TIMEOUT = "20s"  # for the scheduler to answer
RETRIES = 3  # for failures that are not the point's fault, such as a lost connection


def cluster_outcomes(address: str, tasks: Sequence[Task]) -> Outcomes:
    """(point, outcome), in the order in which they finish."""
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise InputError(
            "the package Dask, to use a cluster", "not installed", "pip install 'onelayer[cluster]'"
        ) from None
    try:
        with quiet():
            client = Client(address, timeout=CONNECT_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        found = " ".join(str(error).split())
        raise InputError("a Dask scheduler such as tcp://host:8786", f"{address}: {found}", "start one there") from None
    with quiet(), client:
        futures = {}
        for task in tasks:
            once = {"key": f"onelayer-{task.key}", "retries": RETRIES, "pure": False}
            futures[client.submit(measure_point, task.measure.function, task.point, **once)] = task
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
    """Inside the block Dask logs only critical errors: a dead worker is no news, its points are measured elsewhere."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
