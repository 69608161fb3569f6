"""Measuring one point: what runs in the processes of a study, here or on a cluster."""

import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from .measures import Point, Result
from .store import Outcome

PACKAGES = ("onelayer", "torch", "numpy", "scipy")
TRACEBACK_LENGTH = 2000  # characters kept, the last ones


def measure_point(function: Callable[[Point], Result], point: Point) -> Outcome:
    """Call a measure at a point, on one thread; an exception becomes part of the outcome."""
    started = time.perf_counter()
    try:
        with one_torch_thread():
            result = checked(function(dict(point)))
    except Exception as error:
        last = " ".join("".join(traceback.format_exception_only(error)).split())
        trace = "".join(traceback.format_exception(error))[-TRACEBACK_LENGTH:]
        return Outcome("failed", {"traceback": trace}, last, time.perf_counter() - started, versions())
    return Outcome("done", result, "", time.perf_counter() - started, versions())


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """One thread for torch, if the measure's module has imported it: most processes of a study start with NumPy alone."""
    if "torch" not in sys.modules:
        yield
        return
    from ...common.machine import one_thread

    with one_thread():
        yield


def checked(result: Any) -> Result:
    """The result, if it is a dictionary of plain values."""
    if not isinstance(result, Mapping):
        raise TypeError(f"a measure returns a dictionary, not {type(result).__name__}")
    for key, value in result.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str | int | float)):
            raise TypeError(f"a measure returns plain numbers and texts; {key!r} is {type(value).__name__}")
    return dict(result)


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that compute."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
