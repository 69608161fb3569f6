"""`onelayer serve`: the explorer, a page in the browser."""

import sys
from typing import Annotated

import typer

from ...common.errors import InputError

LOCAL = ("127.0.0.1", "localhost", "::1")


def serve(
    port: Annotated[int, typer.Option(metavar="PORT", help="Port to listen on; 0 picks a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; unless it is loopback, other machines can reach it.")
    ] = "127.0.0.1",
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of layers to build at a time.")] = 1,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> int:
    """Serve the explorer: type a function, move ε, click a point. Needs the extra `web`; Ctrl-C stops it."""
    if not host.strip():
        raise InputError("an address to listen on", f"{host!r}", "leave --host out")
    from ..web.server import serve as run

    def started(address: str) -> None:
        print(f"onelayer explorer at {address} (Ctrl-C stops it)", flush=True)
        if host not in LOCAL:
            print("anyone who can reach this address can use this machine", file=sys.stderr)
        if browser:
            import webbrowser

            webbrowser.open(address)

    run(port, host, workers=workers, started=started)
    return 0
