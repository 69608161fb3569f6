"""Worker processes and the queue in front of them; each visitor has one job running at a time, each tab one job in all.

A job is a stream of events. If the stream is closed early (cancelled, or the visitor has left), if it takes too long or if its
tab asks for something else, the job is killed; the worker that it was forked from is ready for the next one at once. The
server itself computes nothing.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from .limits import VisitorLimits
from .protocol import CANCEL, DONE, line_of, settings

LONGEST_LINE = 2**26  # bytes of one event, at most
START_SECONDS = 120.0  # for a worker to load everything
CANCEL_SECONDS = 2.0  # for a worker to kill its job; then it is killed itself
THREADS = max(1, (os.cpu_count() or 1) // 2)  # per worker: one queue builds while the other trains


class QueueFull(Exception):
    """The queue has no room; the message says whose jobs fill it."""


@dataclass(eq=False)
class Job:
    """What a worker is to do, and for whom; `replaced` when its tab has asked for something else."""

    visitor: str
    work: dict[str, Any]
    tab: str = ""
    replaced: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Opening:
    """The events of the layer that the page opens with, once a worker has built it."""

    events: list[dict[str, Any]] = field(default_factory=list)
    there: asyncio.Event = field(default_factory=asyncio.Event)


class Worker:
    """One process, started before there is work for it."""

    def __init__(self, limits: VisitorLimits, opening: Opening) -> None:
        self.limits, self.opening = limits, opening
        self.process: asyncio.subprocess.Process | None = None
        self.changing = asyncio.Lock()  # one start or end at a time

    async def ready(self) -> None:
        """Make sure that a process runs and has loaded everything."""
        async with self.changing:
            if self.process is not None and self.process.returncode is None:
                return
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "onelayer.apps.web.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LONGEST_LINE, start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},  # its jobs may have more
            )  # fmt: skip
            try:
                await self.send(settings(self.limits, THREADS, not self.opening.events))
                async with asyncio.timeout(START_SECONDS):
                    while (event := await self.event())["event"] != "ready":
                        if event["event"] == "died":
                            raise ConnectionError("a worker could not be started")
                        if event["event"] == "opening":
                            self.opening.events = event["events"]
                            self.opening.there.set()
            except BaseException:  # do not keep a half-started process
                await self._end()
                raise

    async def send(self, line: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode())
        await self.process.stdin.drain()

    async def event(self) -> dict[str, Any]:
        """The next event; `died` if the process has ended."""
        assert self.process is not None
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else {"event": "died"}

    async def cancel(self) -> None:
        """End the job that runs; the worker stays."""
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self.send(CANCEL)
                assert self.process is not None
                assert self.process.stdout is not None
                while (line := await self.process.stdout.readline()) != line_of(DONE).encode():
                    if not line:
                        raise ConnectionError
        except (TimeoutError, OSError, ValueError):
            await self.kill()

    async def kill(self) -> None:
        async with self.changing:
            await self._end()

    async def _end(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
            self.process = None


class JobQueue:
    """A queue and its workers."""

    def __init__(self, limits: VisitorLimits, workers: int = 1) -> None:
        self.limits = limits
        self.opening = Opening()
        self.free = [Worker(limits, self.opening) for _ in range(workers)]
        self.waiting: list[Job] = []
        self.running: dict[Job, Worker] = {}
        self.changed = asyncio.Condition()
        self.tasks: set[asyncio.Task[None]] = set()

    async def warm_up(self) -> None:
        """Start all workers."""
        for worker in list(self.free):
            await self._start(worker)

    async def _start(self, worker: Worker) -> None:
        """Start a worker before its next job; if that fails, the job tries again and reports the error."""
        with contextlib.suppress(TimeoutError, OSError):
            await worker.ready()

    def admit(self, visitor: str, work: dict[str, Any], tab: str = "") -> Job:
        """A place in the queue; raises QueueFull. A tab has one job: the new one takes the place of the last one."""
        job = Job(visitor, work, tab)
        last = [
            other for other in (*self.waiting, *self.running) if tab and (other.visitor, other.tab) == (visitor, tab)
        ]
        place = next((self.waiting.index(other) for other in last if other in self.waiting), None)
        own = sum(other.visitor == visitor for other in self.waiting)
        if place is not None:
            self.waiting[place] = job
        elif len(self.waiting) >= self.limits.waiting or own >= self.limits.each:
            raise QueueFull(f"{own} of your jobs" if own >= self.limits.each else f"{len(self.waiting)} jobs")
        else:
            self.waiting.append(job)
        for other in last:
            other.replaced.set()
        return job

    async def events(self, job: Job) -> AsyncIterator[dict[str, Any]]:
        """The place in the queue whenever it changes, then the worker's events. Close the stream to cancel the job."""
        worker: Worker | None = None
        sent = finished = False
        try:
            place = 0
            while worker is None:
                if (worker := await self._turn(job, place)) is None:
                    place = self._place(job)
                    yield {"event": "queued", "position": place}
            yield {"event": "started"}
            await worker.ready()  # the time to start a fresh process does not count
            end = asyncio.get_running_loop().time() + self.limits.seconds
            async with asyncio.timeout_at(end):  # never around a yield: the next event may be awaited by another task
                sent = True
                await worker.send(line_of(job.work))
            while not finished:
                async with asyncio.timeout_at(end):
                    event = await worker.event()
                if event["event"] == "died":
                    raise ConnectionError
                finished = event["event"] == "done"
                yield event
        except TimeoutError:
            yield _stopped(f"{self.limits.seconds:g} s were not enough", "enlarge ε or simplify the formula")
        except (OSError, ValueError):  # it died, could not be started, or sent too long a line
            yield _stopped("the worker ended", "enlarge ε or simplify the formula")
        finally:
            self.leave(job)
            if worker is not None:
                self.running.pop(job, None)
                self._give_back(worker, finished or not sent)
            self._notify()

    def leave(self, job: Job) -> None:
        """Remove the job from the queue, if it is there."""
        if job in self.waiting:
            self.waiting.remove(job)

    def _place(self, job: Job) -> int:
        return self.waiting.index(job) + 1

    async def _turn(self, job: Job, place: int) -> Worker | None:
        """Wait for a worker, or for a new place in the queue (then None)."""
        async with self.changed:  # held between check and wait, so that no change is missed
            while (worker := self._take(job)) is None and (job.replaced.is_set() or self._place(job) == place):
                await self.changed.wait()
            return worker

    def _take(self, job: Job) -> Worker | None:
        """A worker, if it is this job's turn: it is the first in the queue whose visitor has no job running."""
        busy = {other.visitor for other in self.running}
        first = next((other for other in self.waiting if other.visitor not in busy), None)
        if first is not job or not self.free:
            return None
        self.waiting.remove(job)
        self.running[job] = worker = self.free.pop()
        return worker

    def _give_back(self, worker: Worker, idle: bool) -> None:
        """Return a worker; if it is still working, its job is killed first."""

        async def restart() -> None:
            if not idle:
                await worker.cancel()
            self.free.append(worker)
            self._notify()
            await self._start(worker)

        self._spawn(restart())

    def _notify(self) -> None:
        async def notify() -> None:
            async with self.changed:
                self.changed.notify_all()

        self._spawn(notify())

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def close(self) -> None:
        """Kill all workers."""
        for task in list(self.tasks):
            task.cancel()
        for worker in (*self.free, *self.running.values()):
            await worker.kill()


def _stopped(found: str, change: str) -> dict[str, Any]:
    return {"event": "error", "asked": "a job within the limits of this server", "found": found, "change": change}
