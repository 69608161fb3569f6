"""The worker: a process that takes jobs as JSON lines on stdin and answers with events as JSON lines on stdout.

It dies with the server: the end of stdin ends it, whatever it is doing. What it may allocate is limited.
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
from .input import Wish
from .limits import Limits


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no event
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    limits = Limits(**json.loads(lines.get()))

    def emit(event: dict[str, Any]) -> None:
        out.write(json.dumps(event, allow_nan=False, separators=(",", ":")) + "\n")
        out.flush()

    warm_up()
    limit_memory(limits.memory)
    emit({"event": "ready"})
    while True:
        answered(json.loads(lines.get()), limits, emit)
        emit({"event": "done"})


def _listen(lines: "queue.Queue[str]") -> None:
    source: TextIO = sys.stdin
    for line in source:
        lines.put(line)
    os._exit(0)


def answered(asked: dict[str, Any], limits: Limits, emit: Callable[[dict[str, Any]], None]) -> None:
    """Do one job; what goes wrong becomes an event."""
    from .job import build_job, train_job

    try:
        wish = Wish(**asked["wish"])
        if asked["kind"] == "train":
            train_job(wish, asked["parameters"], limits, emit)
        else:
            build_job(wish, limits, emit)
    except InputError as error:
        emit({"event": "error", "asked": error.asked, "found": error.found, "change": error.change})
    except (MemoryError, RuntimeError, ArithmeticError, ValueError) as error:
        found = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        short = "lloc" in found or isinstance(error, MemoryError)
        asked_for = f"a job within {limits.memory / 2**30:.3g} GiB" if short else "a layer"
        emit({"event": "error", "asked": asked_for, "found": found, "change": "enlarge ε or simplify the formula"})


def warm_up() -> None:
    """Load what a job needs and run it once, so that the first visitor does not wait for it."""
    from .job import build_job

    build_job(Wish("sin(x1) + x2**2", "0:1", 0.1), Limits(), lambda event: None)


def limit_memory(more: int) -> None:
    """So many bytes of addresses on top of those in use now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


def settings(limits: Limits) -> str:
    """The first line that a worker gets."""
    return json.dumps(asdict(limits)) + "\n"


if __name__ == "__main__":
    main()
