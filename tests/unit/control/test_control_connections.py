"""Clients that are silent, slow or many, under virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn import Config
from uvicorn.server import ServerState

from nephila.control.bounds import Bounds
from nephila.control.connections import connections_within
from nephila.testing.loop import run_virtual

BOUNDS = Bounds(connections=3)
HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
ORDER = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK"


class Wire(asyncio.Transport):
    """The other end of a connection: what it was told, and whether it was hung up on."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.told = b""
        self.protocol = server.kind(config=server.config, server_state=server.state, app_state={})
        self.closed = False
        self.protocol.connection_made(self)

    def write(self, data: Any) -> None:
        self.told += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        """Nothing more comes by itself."""

    resume_reading = pause_reading

    async def send(self, *pieces: bytes, every_s: float = 0.0) -> None:
        """Send piece by piece, as long as somebody listens."""
        for piece in pieces:
            await asyncio.sleep(every_s)
            if not self.closed:
                self.protocol.data_received(piece)


class Server:
    """An application that answers after a while, without a look at bodies unless it is asked for one."""

    def __init__(self, *, reads: bool = True, takes_s: float = 0.0) -> None:
        async def application(_scope: Any, receive: Any, send: Any) -> None:
            while reads and (message := await receive()).get("more_body"):
                assert message["type"] == "http.request"
            await asyncio.sleep(takes_s)
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body"})

        self.kind = connections_within(BOUNDS)
        limits: dict[str, Any] = {"limit_concurrency": BOUNDS.connections, "timeout_keep_alive": 10}
        self.config = Config(
            application, loop="none", http=self.kind, ws="none", lifespan="off", log_config=None, **limits
        )
        self.state = ServerState()


def letters(text: bytes) -> list[bytes]:
    return [text[place : place + 1] for place in range(len(text))]


def test_who_connects_and_says_nothing_keeps_nobody_out() -> None:
    """C2: as many silent clients as are answered at all are hung up on, and the next one is answered."""

    async def go() -> None:
        server = Server()
        silent = [Wire(server) for _ in range(BOUNDS.connections)]
        await (late := Wire(server)).send(HEAD)
        await asyncio.sleep(BOUNDS.head_s - 1)
        assert b" 503 " in late.told
        assert not any(wire.closed for wire in silent)
        await asyncio.sleep(2)
        assert all(wire.closed for wire in silent)
        await (next_one := Wire(server)).send(HEAD)
        await asyncio.sleep(1)
        assert next_one.told.startswith(ANSWER)

    run_virtual(go())


def test_a_head_that_comes_letter_by_letter_is_not_waited_for() -> None:
    """C2: each letter begins nothing anew."""

    async def go() -> None:
        wire = Wire(Server())
        await wire.send(*letters(HEAD), every_s=1)
        assert wire.closed
        assert wire.told == b""

    run_virtual(go())


def test_a_body_that_comes_letter_by_letter_is_not_waited_for() -> None:
    """C2: whether somebody reads it or the answer was given without it."""

    async def go() -> None:
        for server in (Server(), Server(reads=False)):
            wire = Wire(server)
            await wire.send(ORDER, *letters(b"x" * 89), every_s=1)
            assert wire.closed

    run_virtual(go())


def test_a_client_that_goes_on_asking_is_answered() -> None:
    """C1: the time begins anew with every request; a body may take longer than a head, and an answer what it takes."""

    async def go() -> None:
        wire = Wire(Server(takes_s=3600))
        for asked in range(1, 4):
            await wire.send(HEAD[:9], HEAD[9:], every_s=BOUNDS.head_s / 2 - 1)
            await asyncio.sleep(3601)
            assert wire.told.count(ANSWER) == asked
        await wire.send(ORDER + b"x" * 45)
        await wire.send(b"x" * 45, every_s=BOUNDS.head_s + 5)
        await asyncio.sleep(3601)
        assert wire.told.count(ANSWER) == 4
        await asyncio.sleep(11)
        assert wire.closed, "it has nothing more to ask"

    run_virtual(go())


def test_there_are_never_more_connections_than_twice_those_that_are_answered() -> None:
    """C2: each of them is a file that a crawl in the same process may want."""

    async def go() -> None:
        server = Server()
        wires = [Wire(server) for _ in range(2 * BOUNDS.connections + 2)]
        await asyncio.sleep(0)
        assert [wire.closed for wire in wires] == [False] * 2 * BOUNDS.connections + [True] * 2
        await asyncio.sleep(BOUNDS.head_s + 1)
        assert not server.state.connections

    run_virtual(go())
