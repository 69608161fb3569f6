"""The worker: a process that takes jobs as JSON lines on stdin and answers with events as JSON lines on stdout.

It dies with the server: when stdin ends it exits, whatever it is doing. Its memory is limited.
"""

import json
import os
import queue
import resource
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TextIO

from ...common.errors import InputError
from .input import LayerSpec
from .limits import VisitorLimits


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not look like an event
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    limits = VisitorLimits(**json.loads(lines.get()))

    def emit(event: dict[str, Any]) -> None:
        out.write(json.dumps(event, allow_nan=False, separators=(",", ":")) + "\n")
        out.flush()

    warm_up()
    limit_memory(limits.memory)
    emit({"event": "ready"})
    while True:
        run_job(json.loads(lines.get()), limits, emit)
        emit({"event": "done"})


def _listen(lines: "queue.Queue[str]") -> None:
    source: TextIO = sys.stdin
    for line in source:
        lines.put(line)
    os._exit(0)


def run_job(job: dict[str, Any], limits: VisitorLimits, emit: Callable[[dict[str, Any]], None]) -> None:
    """Do one job; errors become events."""
    from .job import build_job, train_job

    try:
        spec = LayerSpec(**job["spec"])
        if job["kind"] == "train":
            train_job(spec, job["parameters"], limits, emit)
        else:
            build_job(spec, limits, emit)
    except InputError as error:
        emit({"event": "error", "asked": error.asked, "found": error.found, "change": error.change})
    except (MemoryError, RuntimeError, ArithmeticError, ValueError) as error:
        found = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        out_of_memory = "lloc" in found or isinstance(error, MemoryError)
        asked = f"a job within {limits.memory / 2**30:.3g} GiB" if out_of_memory else "a layer"
        emit({"event": "error", "asked": asked, "found": found, "change": "enlarge ε or simplify the formula"})


def warm_up() -> None:
    """Load what a job needs and run one, so that the first visitor does not have to wait for that."""
    from .job import build_job

    build_job(LayerSpec("sin(x1) + x2**2", "0:1", 0.1), VisitorLimits(), lambda event: None)


def limit_memory(more: int) -> None:
    """Allow this many bytes of addresses on top of those in use now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


def settings(limits: VisitorLimits) -> str:
    """The first line a worker receives."""
    return json.dumps(asdict(limits)) + "\n"


if __name__ == "__main__":
    main()
