"""Which requests are answered, and the headers of every response.

Only requests to the server's own host names are answered (another site cannot reach it under a name of its choosing), and
none made by another site's page. Bodies are limited in size and time. Responses forbid everything the page does not need.
"""

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...common.errors import InputError
from .limits import VisitorLimits

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)  # plotly writes its styles into the page
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """A request that is refused, with a status and one line."""

    def __init__(self, status: int, asked: str, found: str, change: str) -> None:
        super().__init__(found)
        self.status, self.error = status, InputError(asked, found, change)


def error_response(error: InputError, status: int = 400) -> Response:
    """The error as JSON, in ASCII whatever was sent."""
    line = {"error": {"asked": error.asked, "found": error.found, "change": error.change}}
    return Response(json.dumps(line), status, media_type="application/json")


class Guard:
    """Middleware: refuses foreign requests, adds the headers."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self.app, self.names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
                given = [(k, v) for k, v in message.get("headers", []) if k.lower() not in own]
                message["headers"] = [*given, *own.items()]
            await send(message)

        try:
            self.require_own(Request(scope))
        except Refused as refused:
            await error_response(refused.error, refused.status)(scope, receive, guarded)
            return
        await self.app(scope, receive, guarded)

    def require_own(self, request: Request) -> None:
        """Refuse foreign hosts and requests made by another site's page."""
        if request.scope["http_version"] not in ("1.0", "1.1"):
            raise Refused(400, "HTTP/1.1", "another version", "use a browser or an HTTP library")
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.names:
            raise Refused(421, "a request to this server", "another host name", f"open http://{sorted(self.names)[0]}/")
        headers = request.headers
        start_page = request.method == "GET" and request.scope["path"] == "/"
        opened = start_page and headers.get("sec-fetch-mode") == "navigate"
        foreign = any(origin.lower() != f"http://{hosts[0].lower()}" for origin in headers.getlist("origin"))
        own = all(site in ("none", "same-origin") for site in headers.getlist("sec-fetch-site"))
        if foreign or not (own or opened):
            raise Refused(403, "a request from the explorer's page", "one from another site", "open the page itself")


async def body_of(request: Request, limits: VisitorLimits) -> Any:
    """The JSON body of a request, limited in size and time."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "Content-Type application/json", "another type", "send JSON")
    content = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                content += part
                if len(content) > limits.body:
                    raise Refused(413, f"at most {limits.body:,} bytes", "more", "send a shorter request")
    except TimeoutError:
        raise Refused(408, f"a request within {limits.body_seconds:g} s", "a slower one", "send it at once") from None
    except ClientDisconnect:
        raise Refused(400, "a whole request", "part of one", "send all of it") from None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise Refused(400, "JSON", "something else", "send one JSON object") from None
