"""Serve the explorer on a port of this machine."""

import asyncio
import contextlib
import importlib
import socket
from collections.abc import Callable
from typing import Any

from ...common.checks import require_whole
from ...common.errors import InputError
from .job_queue import JobQueue
from .limits import VisitorLimits

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADER_SECONDS = 10.0  # for a request to arrive on an open connection
READING_SECONDS = 60.0  # for a client to read what was sent
MOST_CONNECTIONS = 400  # at once: some file descriptors must stay free for workers


def serve(
    port: int = 8000,
    host: str = "127.0.0.1",
    *,
    workers: int = 1,
    limits: VisitorLimits | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted; `started` is called with the address once the page can be opened. Port 0 picks a free port."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError("the packages of the explorer", f"{error}", 'pip install "onelayer[web]"') from None
    with _bound(host, port) as listening:
        port = listening.getsockname()[1]
        shown = LOOPBACK[0] if host in ("127.0.0.1", "localhost") else host
        names = frozenset(f"{name}:{port}" for name in (*LOOPBACK, host))
        names |= frozenset((*LOOPBACK, host)) if port == 80 else frozenset()
        call = started or (lambda address: None)
        running = _running(
            listening, names, limits or VisitorLimits(), workers, lambda: call(f"http://{shown}:{port}/")
        )
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(running)


async def _running(
    listening: socket.socket, names: frozenset[str], limits: VisitorLimits, workers: int, ready: Callable[[], None]
) -> None:
    """Workers and server load the same packages, which takes a second or two: both at the same time."""
    import uvicorn

    building, training = JobQueue(limits, workers), JobQueue(limits, workers)
    warming = asyncio.create_task(_warm_up(building, training))
    try:
        application = (await asyncio.to_thread(importlib.import_module, ".app", __package__)).application
        config = uvicorn.Config(
            application(limits, names, building, training), http=_strict_protocol(), ws="none", log_level="warning",
            server_header=False, date_header=False, timeout_keep_alive=5, timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=2**15,
        )  # fmt: skip
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not task.done():
            await asyncio.sleep(0.02)
        ready()
        await task
    finally:
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        for queue in (building, training):
            await queue.close()


async def _warm_up(*queues: JobQueue) -> None:
    """Builders first: the page opens with a layer."""
    for queue in queues:
        await queue.warm_up()


@contextlib.contextmanager
def _bound(host: str, port: int) -> Any:
    """A socket bound to this address, or an InputError."""
    require_whole("port", port, 0, 2**16 - 1)
    listening: socket.socket | None = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        if listening is not None:
            listening.close()
        raise InputError(f"port {port} of {host}", f"{error.strerror or error}", "choose another --port") from None
    with listening:
        yield listening


def _strict_protocol() -> Any:
    """uvicorn's protocol, with no patience for clients that send or read too slowly."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class StrictProtocol(H11Protocol):
        """Closes connections that exceed the limit, that send no whole request in time, or that do not read."""

        idling: asyncio.TimerHandle | None = None
        stalling: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > MOST_CONNECTIONS:
                self.transport.abort()
            self._update_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self.idling, self.stalling):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._update_timer()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._update_timer()

        def _update_timer(self) -> None:
            """Between two responses the timer runs, whatever trickles in."""
            idle = self.cycle is None or self.cycle.response_complete
            if self.idling is not None and not idle:
                self.idling.cancel()
                self.idling = None
            elif self.idling is None and idle:
                self.idling = self.loop.call_later(HEADER_SECONDS, self.transport.close)

        def pause_writing(self) -> None:
            super().pause_writing()
            self.stalling = self.loop.call_later(READING_SECONDS, self.transport.abort)

        def resume_writing(self) -> None:
            if self.stalling is not None:
                self.stalling.cancel()
                self.stalling = None
            super().resume_writing()

        def send_400_response(self, msg: str) -> None:
            """The same line and headers as any refusal; nothing if a response has already begun."""
            if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                self.transport.close()
                return
            from .guard import HEADERS, error_response

            response = error_response(InputError("an HTTP request", msg, "use a browser or an HTTP library"))
            headers = [*response.raw_headers, *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            start = h11.Response(status_code=400, headers=[*headers, (b"connection", b"close")], reason=b"Bad Request")
            for event in (start, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return StrictProtocol
