"""The web application: the page, its files, and the JSON that page and tests use.

GET  /                       the page
GET  /assets/NAME            its scripts and styles, and plotly's own JavaScript
GET  /api/about              version, limits, presets
POST /api/parse              formula and domain → variables and outputs, or what is wrong
POST /api/build, /api/train  a stream of events, a JSON object per line; closing it cancels the job
GET  /api/folders/KEY        a model folder that was built, as a zip file
"""

import asyncio
import base64
import contextlib
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ... import __version__
from ...common.errors import InputError
from ...views.pages import asset, plotly_source
from .guard import Guard, Refused, body_of, told
from .input import read_wish, training_of, wish_of
from .lane import Full, Job, Lane
from .limits import Limits
from .presets import PRESETS

OWN = ("explorer.js", "stream.js", "form.js", "point.js", "numbers.js", "speech.js", "training.js", "explorer.css")
SHARED = ("layer.js", "picture.js", "report.css")
KINDS = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
BEAT = 2.0  # seconds: a line at least so often tells that the stream is alive


class Events(Response):
    """A stream of events as JSON lines; when the visitor goes, the job ends."""

    media_type = "application/x-ndjson"

    def __init__(self, explorer: "Explorer", lane: Lane, job: Job) -> None:
        super().__init__()
        self.explorer, self.lane, self.job = explorer, lane, job
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = self.lane.events(self.job)
        gone = asyncio.create_task(_disconnected(receive))
        following: asyncio.Task[Any] = asyncio.create_task(anext(stream, None))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while True:
                await asyncio.wait({gone, following}, timeout=BEAT, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    return
                event = following.result() if following.done() else {"event": "beat"}
                if event is None:
                    break
                line = json.dumps(self.explorer.kept(event)) + "\n"
                await send({"type": "http.response.body", "body": line.encode(), "more_body": True})
                if following.done():
                    following = asyncio.create_task(anext(stream, None))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await following
            await stream.aclose()  # type: ignore[attr-defined]
            self.lane.leave(self.job)  # where the stream had no time to begin


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Explorer:
    """Lanes, files and folders of one server."""

    def __init__(self, limits: Limits, workers: int = 1) -> None:
        self.limits = limits
        self.building, self.training = Lane(limits, workers), Lane(limits, workers)
        own = resources.files("onelayer.apps.web") / "assets"
        self.files = {name: (own / name).read_text(encoding="utf-8") for name in (*OWN, "index.html")}
        self.files |= {name: asset(name) for name in SHARED} | {"plotly.js": plotly_source()}
        self.folders: OrderedDict[str, bytes] = OrderedDict()
        self.reader = ThreadPoolExecutor(1, "reader")  # one: flint's precision belongs to the whole process

    @contextlib.asynccontextmanager
    async def life(self, app: Starlette) -> AsyncIterator[None]:
        warming = [asyncio.create_task(lane.warm()) for lane in (self.building, self.training)]
        try:
            yield
        finally:
            for task in warming:
                task.cancel()
            await asyncio.gather(*warming, return_exceptions=True)
            for lane in (self.building, self.training):
                await lane.close()
            self.reader.shutdown(wait=False, cancel_futures=True)

    def kept(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event as the page gets it: a folder stays here, under a key."""
        if event["event"] != "folder":
            return event
        key = secrets.token_urlsafe(16)
        self.folders[key] = base64.b64decode(event["zip"])
        while len(self.folders) > self.limits.kept or sum(map(len, self.folders.values())) > self.limits.kept_bytes:
            self.folders.popitem(last=False)
        return {"event": "folder", "key": key}

    async def page(self, request: Request) -> Response:
        response = Response(self.files["index.html"], media_type="text/html")
        if not _visitor(request):
            response.set_cookie("visitor", secrets.token_urlsafe(16), httponly=True, samesite="strict")
        return response

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.files or name == "index.html":
            raise HTTPException(404)
        return Response(self.files[name], media_type=KINDS[name.rpartition(".")[2]])

    async def about(self, request: Request) -> Response:
        limits = {"formula": self.limits.formula, "variables": self.limits.variables, "units": self.limits.units}
        return _json({"version": __version__, "limits": limits, "presets": list(PRESETS)})

    async def parse(self, request: Request) -> Response:
        record = await body_of(request, self.limits)
        return _json(await self._read(_described, record))

    async def build(self, request: Request) -> Response:
        record = await body_of(request, self.limits)
        wish = await self._read(wish_of, record)
        return self._admitted(self.building, request, {"kind": "build", "wish": wish.record()})

    async def train(self, request: Request) -> Response:
        record = await body_of(request, self.limits)
        wish, parameters = await self._read(training_of, record)
        return self._admitted(
            self.training, request, {"kind": "train", "wish": wish.record(), "parameters": parameters}
        )

    async def _read(self, reading: Callable[[Any, Limits], Any], record: Any) -> Any:
        """What a record says, beside the loop."""
        return await asyncio.get_running_loop().run_in_executor(self.reader, reading, record, self.limits)

    def _admitted(self, lane: Lane, request: Request, asked: dict[str, Any]) -> Response:
        try:
            job = lane.admit(_visitor(request) or (request.client.host if request.client else "?"), asked)
        except Full as full:
            raise Refused(429, "a place in the queue", f"{full} waiting", "try again later") from None
        return Events(self, lane, job)

    async def folder(self, request: Request) -> Response:
        content = self.folders.get(request.path_params["key"])
        if content is None:
            raise Refused(404, "a folder that was built", "none under this key (it may be forgotten)", "build it again")
        headers = {"Content-Disposition": 'attachment; filename="layer.zip"'}
        return Response(content, media_type="application/zip", headers=headers)


def application(limits: Limits, names: frozenset[str], workers: int = 1) -> Guard:
    """The whole application; `names` are the hosts, with their ports, that it answers to."""
    explorer = Explorer(limits, workers)
    routes = [
        Route("/", explorer.page),
        Route("/assets/{name}", explorer.file),
        Route("/api/about", explorer.about),
        Route("/api/parse", explorer.parse, methods=["POST"]),
        Route("/api/build", explorer.build, methods=["POST"]),
        Route("/api/train", explorer.train, methods=["POST"]),
        Route("/api/folders/{key}", explorer.folder),
    ]
    handlers: dict[Any, Any] = {Refused: _refused, InputError: _bad_input, HTTPException: _http}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=explorer.life)
    app.router.redirect_slashes = False
    return Guard(app, names)


async def _refused(request: Request, error: Refused) -> Response:
    return told(error.error, error.status)


async def _bad_input(request: Request, error: InputError) -> Response:
    return told(error)


async def _http(request: Request, error: HTTPException) -> Response:
    return told(InputError("something that is here", error.detail, "see the page"), error.status_code)


def _described(record: Any, limits: Limits) -> dict[str, Any]:
    """Variables, outputs, domain and code of a wish."""
    wish = wish_of(record, limits)
    formula, domain = read_wish(wish, limits)
    return {
        "names": list(domain.names),
        "outputs": len(formula.outputs),
        "domain": str(domain),
        "code": wish.code(limits),
    }


def _json(record: dict[str, Any]) -> Response:
    return Response(json.dumps(record), media_type="application/json")


def _visitor(request: Request) -> str | None:
    """The name that the page was given, if it looks like one."""
    name = request.cookies.get("visitor", "")
    return name if len(name) == 22 and name.isascii() else None
