"""The points of a sweep, measured in parallel processes of this machine or on a Dask cluster.

Processes are joblib's (loky), with one thread each; a single worker is this process itself. They end when the process that
started them ends. If one dies, the points that were running are measured again, one at a time, to find out which one killed
it; that one is recorded as failed. On a cluster a point that kills several workers is. Outcomes come back to this process, which
alone writes the store; a point is stored once.

Measuring one point: what runs in the processes of a study, here or on a cluster.
"""

import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

from ...common.checks import require_whole
from ...common.cluster import LostCall, cluster_results
from ...common.interrupts import immediate_interrupt
from ...common.progress import Progress
from ...common.table import duration
from .axes import Task
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


Outcomes = Iterator[tuple[Task, Outcome]]
MOST_WORKERS = 4096
PARENT_CHECK = 0.5  # seconds between checks that the process that started this one is alive


@dataclass
class ProgressCounter:
    """Counts points and reports how long the remaining ones will take."""

    total: int
    progress: Progress | None
    before: int = 0  # stored by earlier runs
    done: int = 0
    failed: int = 0
    started: float = field(default_factory=time.perf_counter)

    def report(self) -> None:
        if self.progress is None:
            return
        finished = self.before + self.done
        text = f"{finished} of {self.total} points" + (f", {self.failed} failed" if self.failed else "")
        if self.done and finished < self.total:
            each = (time.perf_counter() - self.started) / self.done
            text += f", {duration(each * (self.total - finished))} left"
        self.progress(text, finished / max(1, self.total))

    def add(self, outcome: Outcome) -> None:
        self.done += 1
        self.failed += outcome.status == "failed"
        self.report()


def workers_of(given: int | None) -> int:
    """How many processes to run: as given, or one per core that this process may use."""
    if given is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    require_whole("workers", given, 1, MOST_WORKERS)
    return given


def cluster_outcomes(address: str, tasks: Sequence[Task]) -> Outcomes:
    """(point, outcome), in the order in which they finish on an existing Dask scheduler."""
    by_key = {task.key: task for task in tasks}
    calls = {key: (task.measure.function, task.point) for key, task in by_key.items()}
    for key, found in cluster_results(address, measure_point, calls):
        yield by_key[key], Outcome("failed", {}, found.why, 0.0, {}) if isinstance(found, LostCall) else found


def local_outcomes(tasks: Sequence[Task], workers: int) -> Outcomes:
    """(point, outcome), in the order in which they finish."""
    if workers == 1:
        for task in tasks:
            with immediate_interrupt():  # otherwise an interrupted point would store the best so far as its result
                outcome = measure_point(task.measure.function, task.point)
            yield task, outcome
        return
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = list(tasks)
    while left:
        started: list[Task] = []
        finished: set[str] = set()
        try:
            for task, outcome in _parallel(left, workers, started):
                finished.add(task.key)
                yield task, outcome
        except BrokenProcessPool:
            for task in [task for task in started if task.key not in finished]:
                finished.add(task.key)
                yield task, _measure_alone(task)
        left = [task for task in left if task.key not in finished]


def _parallel(tasks: Sequence[Task], workers: int, started: list[Task]) -> Outcomes:
    """(point, outcome), as many at a time as there are workers; `started` collects the points that were started."""
    from joblib import Parallel, delayed, parallel_config

    def calls() -> Iterator[Any]:
        for task in tasks:
            started.append(task)
            yield delayed(_numbered)(len(started) - 1, os.getpid(), task.measure.function, task.point)

    with parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = Parallel(workers, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
        for number, outcome in parallel(calls()):
            yield started[number], outcome


def _numbered(number: int, parent: int, function: Callable[[Any], Any], point: Any) -> tuple[int, Outcome]:
    _exit_with(parent)
    return number, measure_point(function, point)


@cache
def _exit_with(parent: int) -> None:
    """End this process when its parent is gone: nothing it measures could be stored any more."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK)
        os._exit(1)

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True).start()


def _measure_alone(task: Task) -> Outcome:
    """Measure a point in a process that runs nothing else."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    started = time.perf_counter()
    try:
        return next(_parallel([task], 2, []))[1]
    except BrokenProcessPool as error:
        first = " ".join(str(error).split(". ")[0].split())
        return Outcome("failed", {}, f"the process died: {first}", time.perf_counter() - started, {})
