"""Connections after the first two: resumed sessions, and servers that have trouble with them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme

from nephila.fetch import SocketDialer
from nephila.fetch.sessions import TlsSessions

WIRE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
Run = Callable[[Any], Any]
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


class Asking(asyncio.Protocol):
    """One question, and its answer."""

    def __init__(self) -> None:
        self.answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        if not self.answered.done():
            self.answered.set_result(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


def contexts(authority: trustme.CA, version: ssl.TLSVersion) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("a.test").configure_cert(server)
    server.maximum_version = version
    authority.configure_trust(client)
    return server, client


async def ask(dialer: SocketDialer, context: ssl.SSLContext, port: int) -> bool:
    """One connection to its end; whether it was resumed."""
    asking = Asking()
    transport = await dialer.open(lambda: asking, "127.0.0.1", port, tls=context, server_name="a.test")
    transport.write(b"GET / HTTP/1.1\r\n\r\n")
    assert await asking.answered == WIRE
    reused: bool = transport.get_extra_info("ssl_object").session_reused
    transport.close()
    await asking.lost
    return reused


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_that_is_called_again_and_again_is_shown_its_session(
    run: Run, stand: Any, authority: trustme.CA, version: ssl.TLSVersion
) -> None:
    """H1, Q1: from the third connection on; the second one shows that it is worth taking the session."""
    server, client = contexts(authority, version)

    async def main() -> list[bool]:
        dialer = SocketDialer()
        async with stand.listening(stand.answering(WIRE), server) as listening:
            return [await ask(dialer, client, listening.port) for _ in range(5)]

    assert run(main()) == [False, False, True, True, True]


def test_sessions_are_of_one_context_and_one_port(run: Run, stand: Any, authority: trustme.CA) -> None:
    """H1: what was begun without verification is never resumed with it."""
    server, client = contexts(authority, ssl.TLSVersion.TLSv1_3)
    other = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    other.check_hostname = False
    other.verify_mode = ssl.CERT_NONE

    async def main() -> list[bool]:
        dialer = SocketDialer()
        async with stand.listening(stand.answering(WIRE), server) as listening:
            found = [await ask(dialer, other, listening.port) for _ in range(3)]
            found += [await ask(dialer, client, listening.port) for _ in range(3)]
            async with stand.listening(stand.answering(WIRE), server) as neighbour:
                return [*found, await ask(dialer, client, neighbour.port)]

    assert run(main()) == [False, False, True, False, False, True, False]


def test_a_server_that_has_forgotten_the_session_gets_a_whole_handshake(
    run: Run, stand: Any, authority: trustme.CA
) -> None:
    """H1: restarted, or another one behind the same name; its new session is taken instead."""
    server, client = contexts(authority, ssl.TLSVersion.TLSv1_3)
    restarted, _ = contexts(authority, ssl.TLSVersion.TLSv1_3)

    async def main() -> list[bool]:
        dialer = SocketDialer()
        found = []
        async with stand.listening(stand.answering(WIRE), server) as first:
            found += [await ask(dialer, client, first.port) for _ in range(3)]
            port = first.port
        again = await asyncio.start_server(answering, "127.0.0.1", port, ssl=restarted)
        try:
            found += [await ask(dialer, client, port) for _ in range(2)]
        finally:
            again.close()
        return found

    assert run(main()) == [False, False, True, False, True]


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(WIRE)
        await reader.read()
    finally:
        writer.close()


@asynccontextmanager
async def stumbling(port: int, seen: list[bool]) -> AsyncIterator[int]:
    """Passes connections on to a server, and hangs up on those that want to resume: they bring a pre-shared key."""

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = await reader.read(65_536)
        resuming = b"\x00\x29" in hello[-400:]
        seen.append(resuming)
        if resuming:
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        far_writer.write(hello)

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65_536):
                sink.write(data)
            sink.close()

        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    server = await asyncio.start_server(passed, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_a_server_that_stumbles_over_a_session_is_called_once_more_without(
    run: Run, stand: Any, authority: trustme.CA
) -> None:
    """H1, H5: no verdict on a server comes from a session that we have chosen to bring."""
    server, client = contexts(authority, ssl.TLSVersion.TLSv1_3)
    seen: list[bool] = []

    async def main() -> list[bool]:
        dialer = SocketDialer()
        async with (
            stand.listening(stand.answering(WIRE), server) as listening,
            stumbling(listening.port, seen) as port,
        ):
            return [await ask(dialer, client, port) for _ in range(4)]

    assert run(main()) == [False, False, False, False]
    assert seen == [False, False, True, False, False], "the third with the session, then without, as from then on"


def test_a_server_that_never_takes_its_sessions_back_is_brought_no_more(
    run: Run, stand: Any, authority: trustme.CA
) -> None:
    """Q1: behind one name there may be many servers that do not know each other's tickets."""
    _, client = contexts(authority, ssl.TLSVersion.TLSv1_3)
    brought: list[bool] = []

    async def main() -> None:
        sessions, dialer = TlsSessions(), SocketDialer()
        dialer._sessions = sessions
        port = 0
        for _ in range(7):
            server, _ = contexts(authority, ssl.TLSVersion.TLSv1_3)
            listening = await asyncio.start_server(answering, "127.0.0.1", port, ssl=server)
            port = listening.sockets[0].getsockname()[1]
            brought.append(next(iter(sessions._known.values())).session is not None if len(sessions) else False)
            assert not await ask(dialer, client, port)
            listening.close()

    run(main())
    assert brought == [False, False, True, True, True, False, False]


def test_servers_that_were_not_called_for_longest_are_forgotten_first() -> None:
    """Q5: memory is bounded."""
    sessions, context = TlsSessions(2), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    class Ended:
        session_reused = False
        taken = 0

        @property
        def session(self) -> None:
            Ended.taken += 1

    for name in ("a", "b", "a", "c", "a", "b"):
        sessions.call(context, name, 443).ended(Ended())  # type: ignore[arg-type]
    assert len(sessions) == 2
    assert Ended.taken == 2, "of a at its second and third call; b was forgotten for c"
