"""Serve: the explorer on a port of this machine."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

from ..errors import InputError
from .limits import Limits

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADER_SECONDS = 10.0  # for the first request of a connection to arrive


def serve(
    port: int = 8000,
    host: str = "127.0.0.1",
    *,
    workers: int = 1,
    limits: Limits | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Answer until interrupted; `started` gets the address once the page can be opened. Port 0 takes a free one."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise InputError("the packages of the explorer", f"{error}", 'pip install "onelayer[web]"') from None
    with _bound(host, port) as listening:
        port = listening.getsockname()[1]
        from .app import application

        names = frozenset(f"{name}:{port}" for name in (*LOOPBACK, host))
        names |= frozenset((*LOOPBACK, host)) if port == 80 else frozenset()
        config = uvicorn.Config(
            application(limits or Limits(), names, workers),
            http=_prompt(),
            ws="none",
            log_level="warning",
            server_header=False,
            date_header=False,
            timeout_keep_alive=5,
            h11_max_incomplete_event_size=2**15,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        shown = LOOPBACK[0] if host in ("127.0.0.1", "localhost") else host
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_running(server, listening, lambda: started(f"http://{shown}:{port}/") if started else None))


async def _running(server: Any, listening: socket.socket, ready: Callable[[], None]) -> None:
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not task.done():
        await asyncio.sleep(0.02)
    ready()
    await task


@contextlib.contextmanager
def _bound(host: str, port: int) -> Any:
    """A socket that listens there, or one clear line."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 2**16:
        raise InputError("a port from 0 to 65535", f"{port!r}", "choose another one")
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


def _prompt() -> Any:
    """uvicorn's protocol, for clients that say at once what they want: silent connections are closed."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Prompt(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.waiting = self.loop.call_later(HEADER_SECONDS, self._give_up)

        def connection_lost(self, exc: Exception | None) -> None:
            self.waiting.cancel()
            super().connection_lost(exc)

        def _give_up(self) -> None:
            if self.cycle is None:
                self.transport.close()

    return Prompt
