"""A lane: worker processes and the queue in front of them, one job at a time for every visitor.

A job is a stream of events. When the stream is closed before its end (cancelled, or the visitor has gone), or takes longer
than it may, the worker is killed and another one started; the server itself computes nothing.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from .limits import Limits
from .worker import settings

LINE = 2**26  # bytes of one event, at most
STARTING = 120.0  # seconds for a worker to load everything
THREADS = max(1, (os.cpu_count() or 1) // 2)  # of a worker: one lane builds while the other trains


class Full(Exception):
    """No room in the queue, in words."""


@dataclass(eq=False)
class Job:
    """What a worker is asked, and whose it is."""

    visitor: str
    asked: dict[str, Any]


class Worker:
    """One process, started ahead of the work."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.process: asyncio.subprocess.Process | None = None
        self.changing = asyncio.Lock()  # one start or end at a time

    async def ready(self) -> None:
        """A process that has loaded everything: this one, or a fresh one."""
        async with self.changing:
            if self.process is not None and self.process.returncode is None:
                return
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "onelayer.apps.web.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE, start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": str(THREADS)},
            )  # fmt: skip
            try:
                await self.send(settings(self.limits))
                async with asyncio.timeout(STARTING):
                    while (event := await self.event())["event"] != "ready":
                        if event["event"] == "died":
                            raise ConnectionError("a worker could not be started")
            except BaseException:  # a half-started process is no worker
                await self._end()
                raise

    async def send(self, line: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode())
        await self.process.stdin.drain()

    async def event(self) -> dict[str, Any]:
        """The next event; a process that died says so."""
        assert self.process is not None
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else {"event": "died"}

    async def kill(self) -> None:
        async with self.changing:
            await self._end()

    async def _end(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
            self.process = None


class Lane:
    """A queue and its workers."""

    def __init__(self, limits: Limits, workers: int = 1) -> None:
        self.limits = limits
        self.free = [Worker(limits) for _ in range(workers)]
        self.waiting: list[Job] = []
        self.running: dict[Job, Worker] = {}
        self.moved = asyncio.Condition()
        self.tasks: set[asyncio.Task[None]] = set()

    async def warm(self) -> None:
        """Start all workers."""
        for worker in list(self.free):
            await self._warmed(worker)

    async def _warmed(self, worker: Worker) -> None:
        """Started ahead of the next job; if that fails, the job will try again and tell."""
        with contextlib.suppress(TimeoutError, OSError):
            await worker.ready()

    def admit(self, visitor: str, asked: dict[str, Any]) -> Job:
        """A place in the queue, or Full."""
        own = sum(job.visitor == visitor for job in self.waiting)
        if len(self.waiting) >= self.limits.waiting or own >= self.limits.each:
            whose = "yours" if own >= self.limits.each else "of everybody"
            raise Full(f"{own if whose == 'yours' else len(self.waiting)} jobs {whose}")
        job = Job(visitor, asked)
        self.waiting.append(job)
        return job

    async def events(self, job: Job) -> AsyncIterator[dict[str, Any]]:
        """The place in the queue while it changes, then what the worker says. Close it to cancel the job."""
        worker: Worker | None = None
        asked = finished = False
        try:
            place = 0
            while worker is None:
                if (worker := await self._turn(job, place)) is None:
                    place = self._place(job)
                    yield {"event": "queued", "position": place}
            yield {"event": "started"}
            await worker.ready()  # a fresh process takes its own time
            end = asyncio.get_running_loop().time() + self.limits.seconds
            async with asyncio.timeout_at(end):  # never around a yield: the next event may be awaited by another task
                asked = True
                await worker.send(json.dumps(job.asked) + "\n")
            while not finished:
                async with asyncio.timeout_at(end):
                    event = await worker.event()
                if event["event"] == "died":
                    raise ConnectionError
                finished = event["event"] == "done"
                yield event
        except TimeoutError:
            yield _stopped(f"{self.limits.seconds:g} s were not enough", "enlarge ε or simplify the formula")
        except (OSError, ValueError):  # it died, could not be started, or told more than fits a line
            yield _stopped("the worker ended", "enlarge ε or simplify the formula")
        finally:
            self.leave(job)
            if worker is not None:
                self.running.pop(job, None)
                self._give_back(worker, finished or not asked)
            self._tell()

    def leave(self, job: Job) -> None:
        """Out of the queue, if it is there."""
        if job in self.waiting:
            self.waiting.remove(job)

    def _place(self, job: Job) -> int:
        return self.waiting.index(job) + 1

    async def _turn(self, job: Job, place: int) -> Worker | None:
        """Wait for a worker, or (None) for another place in the queue."""
        async with self.moved:  # held between look and wait, so that no move is missed
            while (worker := self._taken(job)) is None and self._place(job) == place:
                await self.moved.wait()
            return worker

    def _taken(self, job: Job) -> Worker | None:
        """A worker, if it is this job's turn: the first in the queue whose visitor has none running."""
        busy = {other.visitor for other in self.running}
        first = next((other for other in self.waiting if other.visitor not in busy), None)
        if first is not job or not self.free:
            return None
        self.waiting.remove(job)
        self.running[job] = worker = self.free.pop()
        return worker

    def _give_back(self, worker: Worker, idle: bool) -> None:
        """A worker that is not done with its job is killed and started anew."""

        async def renewed() -> None:
            if not idle:
                await worker.kill()
            self.free.append(worker)
            self._tell()
            await self._warmed(worker)

        self._do(renewed())

    def _tell(self) -> None:
        async def tell() -> None:
            async with self.moved:
                self.moved.notify_all()

        self._do(tell())

    def _do(self, work: Any) -> None:
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
