"""Runs: the points of a sweep that are not stored yet, in processes of their own, each stored the moment it is done.

Processes are joblib's (loky), with one thread each; one worker is this very process. A run that is interrupted or killed is
gone on with by running it again; processes end with the one that started them. A point whose process dies is recorded as
failed; those that ran beside it are done again, one at a time, to find out which one it was.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ...common.errors import InputError
from ...common.interrupts import at_once
from ...common.table import duration
from .axes import Task
from .measurement import measure_point
from .store import Outcome, Store

Progress = Callable[[str, float], None]
Outcomes = Iterator[tuple[Task, Outcome]]
LOOK = 0.5  # seconds between two looks at whether the process that started this one is there


@dataclass
class Watch:
    """Counts points and tells how long the rest will take."""

    total: int
    progress: Progress | None
    before: int = 0  # stored by earlier runs
    done: int = 0
    failed: int = 0
    started: float = field(default_factory=time.perf_counter)

    def tell(self) -> None:
        if self.progress is None:
            return
        finished = self.before + self.done
        text = f"{finished} of {self.total} points" + (f", {self.failed} failed" if self.failed else "")
        if self.done and finished < self.total:
            each = (time.perf_counter() - self.started) / self.done
            text += f", {duration(each * (self.total - finished))} left"
        self.progress(text, finished / max(1, self.total))

    def seen(self, outcome: Outcome) -> None:
        self.done += 1
        self.failed += outcome.status == "failed"
        self.tell()


def workers_of(given: int | None) -> int:
    """How many processes: as many as there are cores for us, unless asked otherwise."""
    if given is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InputError("workers, a whole number above 0", f"{given!r}", "say how many processes may run")
    return given


def run(store: Store, tasks: Sequence[Task], workers: int, watch: Watch) -> None:
    """Measure these points and store each at once."""
    watch.tell()
    for task, outcome in outcomes(tasks, workers):
        store.write(task, outcome)
        watch.seen(outcome)


def outcomes(tasks: Sequence[Task], workers: int) -> Outcomes:
    """(point, what came of it), in the order in which they finish."""
    if workers == 1:
        for task in tasks:
            with at_once():  # the best so far is not what the point asks for: it would be stored as if it were
                outcome = measure_point(task.measure.function, task.point)
            yield task, outcome
        return
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = list(tasks)
    while left:
        drawn: list[Task] = []
        finished: set[str] = set()
        try:
            for task, outcome in _parallel(left, workers, drawn):
                finished.add(task.key)
                yield task, outcome
        except BrokenProcessPool:
            for task in [task for task in drawn if task.key not in finished]:
                finished.add(task.key)
                yield task, _alone(task)
        left = [task for task in left if task.key not in finished]


def _parallel(tasks: Sequence[Task], workers: int, drawn: list[Task]) -> Outcomes:
    """As many at a time as there are workers; `drawn` collects the points that were started."""
    from joblib import Parallel, delayed, parallel_config

    def calls() -> Iterator[Any]:
        for task in tasks:
            drawn.append(task)
            yield delayed(_numbered)(len(drawn) - 1, os.getpid(), task.measure.function, task.point)

    with parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = Parallel(workers, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
        for number, outcome in parallel(calls()):
            yield drawn[number], outcome


def _numbered(number: int, parent: int, function: Callable[[Any], Any], point: Any) -> tuple[int, Outcome]:
    _leave_with(parent)
    return number, measure_point(function, point)


@cache
def _leave_with(parent: int) -> None:
    """End this process when the one that started it is gone: what it measures could not be stored any more."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True).start()


def _alone(task: Task) -> Outcome:
    """A point in a process that nothing else runs in."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    started = time.perf_counter()
    try:
        return next(_parallel([task], 2, []))[1]
    except BrokenProcessPool as error:
        first = " ".join(str(error).split(". ")[0].split())
        return Outcome("failed", {}, f"the process died: {first}", time.perf_counter() - started, {})
