"""The worker: a process that has loaded everything, takes jobs as JSON lines on stdin and answers with events on stdout.

Each job runs in a fork of it: it starts within milliseconds, can be killed at any moment without a trace, and leaves nothing
behind for the next one. A line that arrives while a job runs cancels it. The worker dies with the server, and a job with the
worker. The memory of a job is limited.
"""

import json
import os
import resource
import select
import signal
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from ...common.errors import InputError
from .input import LayerSpec
from .limits import VisitorLimits
from .presets import OPENING
from .protocol import DONE, line_of

Emit = Callable[[dict[str, Any]], None]


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not look like an event
    orders = os.fdopen(0, "rb", buffering=0, closefd=False)  # unbuffered: `select` sees all there is
    settings = json.loads(orders.readline())
    limits, threads = VisitorLimits(**settings["limits"]), settings["threads"]

    def emit(event: dict[str, Any]) -> None:
        out.write(line_of(event))
        out.flush()

    opening = warm_up(limits)
    if settings["opening"]:
        emit({"event": "opening", "events": opening})
    emit({"event": "ready"})
    while line := orders.readline():
        if not line.strip():
            continue  # it came too late: the job had ended
        whole = fork_job(json.loads(line), limits, threads, emit, orders)
        out.write("" if whole else "\n")  # whatever the job was saying ends here
        emit(DONE)


def fork_job(job: dict[str, Any], limits: VisitorLimits, threads: int, emit: Emit, orders: BinaryIO) -> bool:
    """Run a job in a fork until it ends, or until the next order kills it; whether it ended by itself."""
    held, holding = os.pipe()  # its other end closes when the worker dies
    child = os.fork()
    if child == 0:
        os.close(holding)
        threading.Thread(target=_die_with, args=(held,), daemon=True).start()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _run_and_leave(job, limits, threads, emit)
    os.close(held)
    ended = os.pidfd_open(child)
    cancelled = ended not in select.select([orders.fileno(), ended], [], [])[0]
    if cancelled:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(ended)
    os.close(holding)
    if cancelled and not orders.readline():
        os._exit(0)  # the server is gone
    if status and not cancelled:
        os._exit(1)  # a crash: the server starts another worker
    return not cancelled


def _run_and_leave(job: dict[str, Any], limits: VisitorLimits, threads: int, emit: Emit) -> None:
    """What the fork does: the job, and nothing after it."""
    status = 1
    try:
        import torch

        torch.set_num_threads(threads)
        limit_memory(limits.memory)
        run_job(job, limits, emit)
        status = 0
    finally:
        os._exit(status)


def _die_with(held: int) -> None:
    os.read(held, 1)  # returns when the other end is closed
    os._exit(1)


def run_job(job: dict[str, Any], limits: VisitorLimits, emit: Emit) -> None:
    """Do one job; errors become events."""
    from .job import build_job, train_job

    try:
        spec = LayerSpec(**job["spec"])
        if job["kind"] == "train":
            train_job(spec, job["parameters"], limits, emit)
        else:
            build_job(spec, limits, emit, job["coarse"])
    except InputError as error:
        emit({"event": "error", "asked": error.asked, "found": error.found, "change": error.change})
    except (MemoryError, RuntimeError, ArithmeticError, ValueError) as error:
        found = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        out_of_memory = "lloc" in found or isinstance(error, MemoryError)
        asked = f"a job within {limits.memory / 2**30:.3g} GiB" if out_of_memory else "a layer"
        emit({"event": "error", "asked": asked, "found": found, "change": "enlarge ε or simplify the formula"})


def warm_up(limits: VisitorLimits) -> list[dict[str, Any]]:
    """Load what a job needs and build the layer that the page opens with; its events.

    One thread: a process that has started others cannot be forked safely.
    """
    import torch

    from .job import build_job

    torch.set_num_threads(1)
    events: list[dict[str, Any]] = []
    build_job(LayerSpec(**OPENING), limits, events.append, coarse=True)
    return [event for event in events if event["event"] not in ("coarse", "progress")]


def limit_memory(more: int) -> None:
    """Allow this many bytes of addresses on top of those in use now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


if __name__ == "__main__":
    main()
