"""Calls on an existing Dask scheduler: when a worker dies, the scheduler gives its calls to another, and nothing is lost."""

import gc
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .errors import InputError

CONNECT_TIMEOUT = "20s"  # for the scheduler to answer
RETRIES = 3  # for failures that are not the call's fault, such as a lost connection


@dataclass(frozen=True)
class LostCall:
    """A call without a result: it kept raising, or it killed several workers."""

    why: str  # one line


def cluster_results(
    address: str, function: Callable[..., Any], calls: Mapping[str, tuple[Any, ...]], *shared: Any
) -> Iterator[tuple[str, Any]]:
    """(key, function(*shared, *arguments) or LostCall) of every call, in the order in which they finish.

    What is `shared` travels once, not with every call. An error that the function raises is tried again: results that are to be
    final are returned.
    """
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise InputError(
            "the package Dask, to use a cluster", "not installed", "pip install 'onelayer[cluster]'"
        ) from None
    found = None
    try:
        with quiet():
            client = Client(address, timeout=CONNECT_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        found = " ".join(str(error).split())
    if found is not None:
        gc.collect()  # the failed client closes itself now: later it might wait for a lock that its own thread holds
        change = "start one there" if "://" in address else "write tcp://HOST:PORT"
        raise InputError("a Dask scheduler such as tcp://host:8786", f"{address}: {found}", change)
    with quiet(), client:
        once = {"retries": RETRIES, "pure": False}
        common = [client.submit(_itself, value, **once) for value in shared]
        futures = {
            client.submit(function, *common, *arguments, key=f"onelayer-{key}", **once): key
            for key, arguments in calls.items()
        }
        for future in as_completed(list(futures)):
            key = futures.pop(future)
            if future.status == "finished":
                yield key, future.result()
            else:
                if future.status != "error":
                    raise InputError("a scheduler that stays", f"{address} is gone", "start it and run again")
                fault = future.exception()
                died = isinstance(fault, KilledWorker)
                yield key, LostCall("several workers died" if died else " ".join(str(fault).split()))
            future.release()


def _itself(value: Any) -> Any:
    """A value that the cluster holds, and computes again when its worker dies."""
    return value


@contextmanager
def quiet() -> Iterator[None]:
    """Inside the block Dask logs only critical errors: a dead worker is no news, its calls are made elsewhere."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
