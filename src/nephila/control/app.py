"""The application: every request goes through the gate, the bounds and its types before anything else sees it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from nephila.model.errors import NephilaError, StorageError, UsageError
from nephila.model.events import EventKind
from nephila.node.desk import Desk
from nephila.node.present import told_last

from . import handlers_orders, handlers_sight, handlers_takedowns, handlers_tasks
from .access import Caller, Gate, Role
from .asked import Asked, EventsAsked
from .bounds import Bounds, RateLimit
from .changes import Changes
from .description import PREFIX, describe
from .endpoint import Call, Endpoint
from .exposition import MEDIA_TYPE as METRICS_TYPE
from .exposition import expose
from .given import HealthAnswer
from .pages import Asset, read_assets
from .problems import TITLES, ProblemError, problem
from .stream import stream_events

ENDPOINTS = (
    *handlers_sight.ENDPOINTS,
    *handlers_orders.ENDPOINTS,
    *handlers_takedowns.ENDPOINTS,
    *handlers_tasks.ENDPOINTS,
)
PREFIXES = (PREFIX, f"{PREFIX}/crawler", "/crawler")
"""The same answers under each (C1)."""
CHANGING = frozenset({"POST", "PUT", "DELETE"})
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
CONTENT_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_JSON = "application/json"
_encode = msgspec.json.Encoder().encode
_KINDS = frozenset(map(str, EventKind))

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Control:
    """One crawl's API."""

    def __init__(
        self,
        desk: Desk,
        gate: Gate,
        bounds: Bounds = Bounds(),  # noqa: B008 - frozen
        complain: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        """`complain` is told of bugs of ours, in a sentence."""
        self._desk = desk
        self._complain = complain
        self._gate = gate
        self._bounds = bounds
        self._rates = RateLimit(bounds)
        self._changes = Changes(desk.directory.changes, desk.clock)
        self._streams = 0
        self.stopping = asyncio.Event()
        """Set when the server ends: streams end with it."""
        self._described = _encode(describe(ENDPOINTS, tokens=gate.wants_token))

    def application(self) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
        """The ASGI application."""
        routes = [Route(path, self._method(name), methods=["GET"]) for path, name in _PLAIN]
        routes.append(Route("/healthz", self._healthz, methods=["GET"]))
        routes += [Route(path, self._shown(asset), methods=["GET"]) for path, asset in read_assets().items()]
        for prefix in PREFIXES:
            routes.append(Route(f"{prefix}/events", self._wrapped(self._events), methods=["GET"]))
            routes.append(Route(f"{prefix}/openapi.json", self._wrapped(self._description), methods=["GET"]))
            routes.append(Route(f"{prefix}/metrics", self._wrapped(self._metrics), methods=["GET"]))
            by_path: dict[str, list[Endpoint]] = {}
            for endpoint in ENDPOINTS:
                by_path.setdefault(endpoint.path, []).append(endpoint)
                if endpoint.path.startswith("/blocklist"):
                    by_path.setdefault(endpoint.path.replace("/blocklist", "/blacklist"), []).append(endpoint)
            for path, endpoints in by_path.items():
                methods = {endpoint.method: endpoint for endpoint in endpoints}
                routes.append(Route(prefix + path, self._routed(methods), methods=list(methods)))
        inner = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _refused, Exception: self._broke},
            lifespan=_lifespan,
        )
        inner.router.redirect_slashes = False
        return _secured(inner)

    def _method(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        return self._wrapped(getattr(self, name))

    def _wrapped(
        self, answer: Callable[[Request, Caller], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            try:
                return await answer(request, self._admitted(request, Role.READ))
            except ProblemError as error:
                return problem(error)
            except NephilaError as error:  # an engine that is away
                return problem(ProblemError(503, str(error), error.hint))

        return handle

    def _shown(self, asset: Asset) -> Callable[[Request], Awaitable[Response]]:
        """A file of the dashboard: for everybody who reaches us by our name, without a token."""

        async def handle(request: Request) -> Response:
            try:
                self._gate.check_name(request.headers)
                self._rates.take(f"page {request.client.host if request.client else ''}", change=False)
            except ProblemError as error:
                return problem(error)
            return asset.answer(request)

        return handle

    def _routed(self, methods: dict[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            endpoint = methods.get(request.method)
            if endpoint is None:  # HEAD, where there is a GET
                raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})
            try:
                return await self._answer(endpoint, request)
            except ProblemError as error:
                return problem(error)
            except UsageError as error:
                return problem(ProblemError(422, str(error), error.hint))
            except (StorageError, NephilaError) as error:
                return problem(ProblemError(503, str(error), error.hint))

        return handle

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        caller = self._admitted(request, endpoint.role)
        query = _query(endpoint.query, request)
        body = await self._body(endpoint.body, request) if endpoint.body is not None else None
        path = {name: str(value) for name, value in request.path_params.items()}
        call: Call[Any, Any] = Call(self._desk, self._changes, caller, body, query, path)
        answer = await endpoint.handle(call)
        return Response(_encode(answer), endpoint.status, media_type=_JSON)

    def _admitted(self, request: Request, role: Role) -> Caller:
        address = request.client.host if request.client else ""
        try:
            caller = self._gate.admit(request.headers, role)
        except ProblemError:
            self._rates.take(f"refused {address}", change=True)  # whoever tries tokens, or knocks for the sake of it
            raise
        self._rates.take(f"{caller.name} {address}", change=request.method in CHANGING)
        return caller

    async def _body(self, shape: type[Asked], request: Request) -> Asked:
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != _JSON:
            raise ProblemError(415, "the body must be JSON", "send Content-Type: application/json")
        length = request.headers.get("content-length", "")
        if length and (not length.isdigit() or int(length) > self._bounds.body_bytes):
            raise self._too_large()
        block = bytearray()
        try:
            async for piece in request.stream():
                block += piece
                if len(block) > self._bounds.body_bytes:
                    raise self._too_large()
        except ClientDisconnect:
            raise ProblemError(400, "the body was cut off") from None
        try:
            return msgspec.json.decode(bytes(block), type=shape)
        except msgspec.ValidationError as error:
            raise ProblemError(422, str(error), _takes(shape)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProblemError(400, f"the body is no JSON: {error}") from None

    def _too_large(self) -> ProblemError:
        return ProblemError(413, f"a body may have {self._bounds.body_bytes:,} bytes", "send less at a time")

    async def _broke(self, request: Request, error: Exception) -> Response:
        """A bug of ours: the client is told that, whoever runs it what and where."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        self._complain(f"the control API broke on {request.method} {request.url.path}: {told}")
        return problem(ProblemError(500, f"something broke: {type(error).__name__}"))

    # What is no JSON, or no endpoint of the API

    async def _events(self, request: Request, _caller: Caller) -> Response:
        query = _query(EventsAsked, request)
        if not isinstance(query, EventsAsked):
            raise TypeError("a query of events")
        kinds = frozenset(filter(None, query.kinds.split(",")))
        if kinds - _KINDS:
            raise ProblemError(422, f"{min(kinds - _KINDS)!r} is no kind of event", "docs/events.md lists them")
        if self._streams >= self._bounds.streams:
            raise ProblemError(503, "there are too many streams of events", "close one", {"Retry-After": "30"})
        stream = stream_events(
            self._desk.events(),
            kinds=kinds,
            backlog=query.backlog,
            max_per_s=query.max_per_s,
            follow=query.follow,
            after=request.headers.get("last-event-id", ""),
            stream_s=self._bounds.stream_s,
            stopping=self.stopping,
        )
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._counted(stream), headers=headers, media_type="text/event-stream")

    async def _counted(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            async for piece in stream:
                yield piece
        finally:
            self._streams -= 1

    async def _description(self, request: Request, _caller: Caller) -> Response:
        _query(None, request)
        return Response(self._described, media_type=_JSON)

    async def _metrics(self, request: Request, _caller: Caller) -> Response:
        _query(None, request)
        desk = self._desk
        now = desk.clock.wall_ms()
        frontier = await desk.counters()
        text = expose(
            told_last(desk, desk.figures()),
            frontier,
            desk.at_work(),
            running=desk.is_running(),
            now=now,
            outside=desk.workers.active(now),
        )
        return Response(text, media_type=METRICS_TYPE)

    async def _healthz(self, request: Request) -> Response:
        """That it answers: for everybody who reaches us by our name; who looks after containers bears no token."""
        try:
            self._gate.check_name(request.headers)
            self._rates.take(f"health {request.client.host if request.client else ''}", change=False)
            _query(None, request)
        except ProblemError as error:
            return problem(error)
        return Response(_encode(HealthAnswer(status="ok")), media_type=_JSON)

    async def _readyz(self, request: Request, _caller: Caller) -> Response:
        """Ready is who can answer from the frontier and the catalogue."""
        _query(None, request)
        await self._desk.look(lambda view: view.snapshot())
        await self._desk.ask_catalogue(lambda catalogue: catalogue.capture_count())
        return Response(_encode(HealthAnswer(status="ok")), media_type=_JSON)


_PLAIN = (("/metrics", "_metrics"), ("/readyz", "_readyz"))


def _query(shape: type[Asked] | None, request: Request) -> Asked | None:
    """The query as its type; what it does not know, or knows twice, is refused."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise ProblemError(422, f"{name!r} is given twice")
        given[name] = value
    if shape is None:
        if given:
            raise ProblemError(422, f"{min(given)!r} is no parameter here")
        return None
    try:
        return msgspec.convert(given, shape, strict=False)
    except msgspec.ValidationError as error:
        raise ProblemError(422, str(error), _takes(shape)) from None


def _takes(shape: type[Asked]) -> str:
    """What may be said there: most mistakes are names."""
    names = [
        f"{one.encode_name} (needed)" if one.required else one.encode_name for one in msgspec.structs.fields(shape)
    ]
    return f"it takes {', '.join(names)}" if names else "it takes nothing"


async def _refused(_request: Request, error: Exception) -> Response:
    """What the router refuses."""
    if not isinstance(error, HTTPException):
        raise TypeError("an HTTP exception")
    status = error.status_code if error.status_code in TITLES else 400
    told = "there is nothing at this path" if status == 404 else str(error.detail)
    return problem(ProblemError(status, told, "GET /api/v1/openapi.json tells what there is", error.headers))


@asynccontextmanager
async def _lifespan(_app: Starlette) -> AsyncIterator[None]:
    yield


def _secured(inner: Starlette) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Add the headers that close frames, sniffing and caches to every answer."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *SECURITY_HEADERS]
                names = {name for name, _ in headers}
                if CONTENT_POLICY[0] not in names:
                    headers.append(CONTENT_POLICY)
                if b"cache-control" not in names:
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        await inner(scope, receive, sending if scope["type"] == "http" else send)  # type: ignore[arg-type] # the same, in its words

    return application
