"""The control API in process, without sockets: its loop runs in a thread, and tests ask it plainly."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nephila.control.access import Gate, Token
from nephila.control.app import Control
from nephila.control.bounds import Bounds
from nephila.node.desk import Desk, desk_beside

GENEROUS = Bounds(
    reads_per_s=1e6, reads_at_once=1e6, changes_per_s=1e6, changes_at_once=1e6, streams=1000, stream_s=0.05
)
"""So that a test may ask as much as it likes, and a stream ends."""

Application = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class InProcess:
    """Asks an application that lives on a loop of its own."""

    def __init__(self, application: Application, loop: asyncio.AbstractEventLoop, desk: Desk) -> None:
        self.application = application
        self.loop = loop
        self.desk = desk

    def ask(
        self, method: str, target: str, body: object = None, headers: Mapping[str, str] | None = None, raw: bytes = b""
    ) -> Answer:
        """One request; `body` is sent as JSON, `raw` as it is."""
        sent = {"host": "127.0.0.1:8470", **(headers or {})}
        if body is not None:
            raw = json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8470),
        }
        return asyncio.run_coroutine_threadsafe(self._ask(scope, raw), self.loop).result(30)

    async def _ask(self, scope: dict[str, Any], raw: bytes) -> Answer:
        pieces = [{"type": "http.request", "body": raw, "more_body": False}]
        told: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if pieces:
                return pieces.pop()
            await asyncio.sleep(3600)
            raise AssertionError("nobody waits that long")

        async def send(message: dict[str, Any]) -> None:
            told.append(message)

        await self.application(scope, receive, send)
        start = told[0]
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(message.get("body", b"") for message in told[1:]))

    def run(self, doing: Awaitable[Any]) -> Any:
        """Run something on its loop."""

        async def wait() -> Any:
            return await doing

        return asyncio.run_coroutine_threadsafe(wait(), self.loop).result(30)

    async def bridge(self, scope: Any, receive: Any, send: Any) -> None:
        """The application for a client that brings a loop of its own."""
        if scope["type"] != "http":
            return
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        names = [(name, value) for name, value in scope["headers"] if name != b"host"]
        ours = {**scope, "headers": [*names, (b"host", b"127.0.0.1")]}
        future = asyncio.run_coroutine_threadsafe(self._ask(ours, raw), self.loop)
        answer = await asyncio.wrap_future(future)
        headers = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})


@contextmanager
def controlled(
    out: Path,
    tokens: tuple[Token, ...] = (),
    bounds: Bounds = GENEROUS,
    complain: Callable[[str], None] = lambda _: None,
) -> Iterator[InProcess]:
    """The API on a crawl directory."""
    with controlled_by(desk_beside(out), tokens, bounds, complain) as api:
        yield api


@contextmanager
def controlled_by(
    opening: AbstractAsyncContextManager[Desk],
    tokens: tuple[Token, ...] = (),
    bounds: Bounds = GENEROUS,
    complain: Callable[[str], None] = lambda _: None,
) -> Iterator[InProcess]:
    """The API on a desk."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="control-test")
    thread.start()

    async def enter() -> Desk:
        return await opening.__aenter__()

    async def leave(desk: Desk) -> None:
        await desk.roster.close()
        await opening.__aexit__(None, None, None)

    try:
        desk = asyncio.run_coroutine_threadsafe(enter(), loop).result(30)
        try:
            application = Control(desk, Gate(tokens), bounds, complain).application()
            yield InProcess(application, loop, desk)
        finally:
            asyncio.run_coroutine_threadsafe(leave(desk), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
