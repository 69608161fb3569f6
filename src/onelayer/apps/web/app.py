"""The web application: the page, its files, and the JSON that the page and the tests use.

GET  /                       the page
GET  /sequences              the page of layers for sequences
GET  /story                  why one layer is enough, in seven steps
GET  /assets/NAME            its scripts and styles, and plotly's JavaScript
GET  /api/about              version, limits, presets
GET  /api/opening            the layer that the page opens with, as the events of a build
POST /api/parse              formula and domain → variables, outputs and the formula typeset, or what is wrong
POST /api/build, /api/train  a stream of events, a JSON object per line; closing it cancels the job
GET  /api/sequences/NAME     a layer for sequences, out of a fixed menu
GET  /api/folders/KEY        the folder of a built model, as a zip file

The explorer's page of layers for sequences: a fixed menu, each entry built once and kept.
"""

import asyncio
import base64
import contextlib
import html
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
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
from ...views.mathml import formula_mathml
from ...views.page_files import asset, plotly_source
from ...views.story_page import SCRIPTS as STORY_SCRIPTS
from ...views.story_page import story_page
from .guard import Guard, Refused, body_of, error_response
from .input import building_of, read_spec, spec_of, training_of
from .job_queue import Job, JobQueue, QueueFull
from .limits import VisitorLimits
from .presets import PRESETS

MENU: dict[str, tuple[int, ...]] = {  # the longest length and other sizes; visitors choose a name, nothing else
    "running_max": (24,),
    "depth": (24,),
    "histogram": (24, 6),
    "look_up": (24, 4, 5),
    "sort": (5,),
}


@cache
def sequence_view(name: str) -> dict[str, Any]:
    """What the page shows of an entry of the menu: HTML, and the weights as numbers."""
    from ...construction.gallery import any_length  # loads torch, which the server does without
    from ...views.pages import facts_html
    from ...views.sections import certificate_section, facts
    from ...views.sequence_page import intro, sequence_section, title_of
    from ...views.sequence_record import sequence_record

    layer = getattr(any_length, name)(*MENU[name])
    return {
        "title": title_of(layer),
        "intro": intro(layer),
        "facts": facts_html(facts(layer)),
        "sequence": sequence_section(layer),
        "story": f"<p>{html.escape(layer.facts.story)}</p>",
        "certificate": certificate_section(layer),
        "record": sequence_record(layer),
    }


SHARED_FILES = (  # with the report
    "formula.js", "walk_steps.js", "walk.js", "walk.css",
    "layer.js", "picture.js", "report.css", "sequence.js", "sequence_text.js", "sequence_view.js", "sequence.css",
)  # fmt: skip
MEDIA_TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
JSON_LINES = "application/x-ndjson"
OPENING_KEY = "opening"  # of the folder of the layer that the page opens with
HEARTBEAT_SECONDS = 2.0  # longest silence in a stream: a line at least this often shows that it is alive


class Events(Response):
    """A stream of events as JSON lines; when the visitor disconnects, or the tab asks for something else, the job ends."""

    media_type = JSON_LINES

    def __init__(self, explorer: "Explorer", queue: JobQueue, job: Job) -> None:
        super().__init__()
        self.explorer, self.queue, self.job = explorer, queue, job
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = self.queue.events(self.job)
        gone, replaced = asyncio.create_task(_disconnected(receive)), asyncio.create_task(self.job.replaced.wait())
        following: asyncio.Task[Any] = asyncio.create_task(anext(stream, None))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while True:
                waited = {gone, replaced, following}
                await asyncio.wait(waited, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    return
                if replaced.done():
                    line = json.dumps({"event": "replaced"}) + "\n"
                    await send({"type": "http.response.body", "body": line.encode(), "more_body": True})
                    break
                event = following.result() if following.done() else {"event": "beat"}
                if event is None:
                    break
                line = json.dumps(self.explorer.for_page(event)) + "\n"
                await send({"type": "http.response.body", "body": line.encode(), "more_body": True})
                if following.done():
                    following = asyncio.create_task(anext(stream, None))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            for task in (gone, replaced, following):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await following
            await stream.aclose()  # type: ignore[attr-defined]
            self.queue.leave(self.job)  # in case the stream never began


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Explorer:
    """Job queues, files and folders of one server."""

    def __init__(self, limits: VisitorLimits, building: JobQueue, training: JobQueue) -> None:
        self.limits, self.building, self.training = limits, building, training
        own = (resources.files("onelayer.apps.web") / "assets").iterdir()
        self.files = {file.name: file.read_text(encoding="utf-8") for file in own}
        self.files |= {name: asset(name) for name in (*SHARED_FILES, *STORY_SCRIPTS)} | {"plotly.js": plotly_source()}
        self.folders: OrderedDict[str, bytes] = OrderedDict()
        self.reader = ThreadPoolExecutor(1, "reader")  # one: flint's precision is global to the process

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.reader.shutdown(wait=False, cancel_futures=True)

    def for_page(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event as the page receives it: a folder stays here, and the page gets its key."""
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

    async def sequences(self, request: Request) -> Response:
        return Response(self.files["sequences.html"], media_type="text/html")

    async def story(self, request: Request) -> Response:
        links = ("Build your own layer", "/"), ("Sequences of any length", "/sequences")
        return Response(story_page(links, assets="/assets/", home=("← Explorer", "/")), media_type="text/html")

    async def sequence(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in MENU:
            raise Refused(404, "a layer for sequences", "a name that is not on the menu", "choose from the menu")
        return _json(await asyncio.get_running_loop().run_in_executor(self.reader, sequence_view, name))

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.files or name.endswith(".html"):
            raise HTTPException(404)
        return Response(self.files[name], media_type=MEDIA_TYPES[name.rpartition(".")[2]])

    async def about(self, request: Request) -> Response:
        limits = {"formula": self.limits.formula, "variables": self.limits.variables, "units": self.limits.units}
        return _json({"version": __version__, "limits": limits, "presets": list(PRESETS)})

    async def opening(self, request: Request) -> Response:
        """The layer that the page opens with, from the worker that has built it."""
        opening = self.building.opening
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.seconds):
                await opening.there.wait()
        if not opening.events:
            raise Refused(404, "the layer that the page opens with", "none yet", "build one")
        lines = [{"event": "folder", "key": OPENING_KEY} if e["event"] == "folder" else e for e in opening.events]
        return Response("".join(json.dumps(line) + "\n" for line in lines), media_type=JSON_LINES)

    async def parse(self, request: Request) -> Response:
        record = await body_of(request, self.limits)
        return _json(await self._read(_described, record))

    async def build(self, request: Request) -> Response:
        record = await body_of(request, self.limits)
        spec, coarse, tab = await self._read(building_of, record)
        return self._admit(self.building, request, {"kind": "build", "spec": spec.record(), "coarse": coarse}, tab)

    async def train(self, request: Request) -> Response:
        record = await body_of(request, self.limits)
        spec, parameters = await self._read(training_of, record)
        return self._admit(self.training, request, {"kind": "train", "spec": spec.record(), "parameters": parameters})

    async def _read(self, reading: Callable[[Any, VisitorLimits], Any], record: Any) -> Any:
        """Read a record in a thread, so that the event loop stays free."""
        return await asyncio.get_running_loop().run_in_executor(self.reader, reading, record, self.limits)

    def _admit(self, queue: JobQueue, request: Request, work: dict[str, Any], tab: str = "") -> Response:
        try:
            job = queue.admit(_visitor(request) or (request.client.host if request.client else "?"), work, tab)
        except QueueFull as full:
            raise Refused(429, "a place in the queue", f"{full} waiting", "try again later") from None
        return Events(self, queue, job)

    async def folder(self, request: Request) -> Response:
        key = request.path_params["key"]
        content = self.folders.get(key)
        if key == OPENING_KEY:
            content = next((base64.b64decode(e["zip"]) for e in self.building.opening.events if "zip" in e), None)
        if content is None:
            raise Refused(404, "a model folder", "none under this key (it may have been dropped)", "build it again")
        headers = {"Content-Disposition": 'attachment; filename="layer.zip"'}
        return Response(content, media_type="application/zip", headers=headers)


def application(limits: VisitorLimits, names: frozenset[str], building: JobQueue, training: JobQueue) -> Guard:
    """The whole application; `names` are the hosts, with ports, that it answers to."""
    explorer = Explorer(limits, building, training)
    routes = [
        Route("/", explorer.page),
        Route("/sequences", explorer.sequences),
        Route("/story", explorer.story),
        Route("/assets/{name}", explorer.file),
        Route("/api/about", explorer.about),
        Route("/api/opening", explorer.opening),
        Route("/api/parse", explorer.parse, methods=["POST"]),
        Route("/api/build", explorer.build, methods=["POST"]),
        Route("/api/train", explorer.train, methods=["POST"]),
        Route("/api/sequences/{name}", explorer.sequence),
        Route("/api/folders/{key}", explorer.folder),
    ]
    handlers: dict[Any, Any] = {Refused: _refused, InputError: _bad_input, HTTPException: _http}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=explorer.lifespan)
    app.router.redirect_slashes = False
    return Guard(app, names)


async def _refused(request: Request, error: Refused) -> Response:
    return error_response(error.error, error.status)


async def _bad_input(request: Request, error: InputError) -> Response:
    return error_response(error)


async def _http(request: Request, error: HTTPException) -> Response:
    return error_response(InputError("an existing page", error.detail, "see the start page"), error.status_code)


def _described(record: Any, limits: VisitorLimits) -> dict[str, Any]:
    """Variables, outputs, domain and code of a request."""
    spec = spec_of(record, limits)
    formula, domain = read_spec(spec, limits)
    about = {"names": list(domain.names), "outputs": len(formula.outputs), "domain": str(domain)}
    return about | {"mathml": formula_mathml(formula), "code": spec.code(limits)}


def _json(record: dict[str, Any]) -> Response:
    return Response(json.dumps(record), media_type="application/json")


def _visitor(request: Request) -> str | None:
    """The name in the page's cookie, if it looks like one of ours."""
    name = request.cookies.get("visitor", "")
    return name if len(name) == 22 and name.isascii() else None
