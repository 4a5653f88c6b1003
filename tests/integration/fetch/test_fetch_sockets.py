"""Exchanges over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable
from typing import Any

import brotlicffi as brotli
import pytest

from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, FetchRequest, Truncation

PAGE = b"<html>" + b"<p>hello</p>" * 20_000 + b"</html>"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
Run = Callable[[Any], Any]


def chunked(data: bytes) -> bytes:
    pieces = [data[at : at + 7000] for at in range(0, len(data), 7000)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def counted(data: bytes, *headers: bytes) -> bytes:
    return HEAD + b"".join(headers) + b"Content-Length: %d\r\n\r\n" % len(data) + data


async def get(stand: Any, serve: Any, **settings: Any) -> Answer:
    """One exchange with a server that lives as long."""
    fetcher = stand.fetcher(**settings)
    async with stand.listening(serve) as server:
        answer: Answer = await fetcher.fetch(FetchRequest(f"http://a.test:{server.port}/x"))
        await fetcher.close()
        return answer


GZIPPED, BROTLIED = gzip.compress(PAGE), brotli.compress(PAGE, quality=2)


@pytest.mark.parametrize(
    ("wire", "close"),
    [
        (counted(PAGE), False),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(PAGE), False),
        (counted(GZIPPED, b"Content-Encoding: gzip\r\n"), False),
        (HEAD + b"Content-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(BROTLIED), False),
        (b"HTTP/1.0 200 OK\r\n\r\n" + PAGE, True),
    ],
    ids=["plain", "chunked", "gzip", "br-chunked", "until-close"],
)
def test_a_page_comes_whole_and_as_it_was(run: Run, stand: Any, wire: bytes, close: bool) -> None:
    """H1: plain, chunked, coded, close-delimited; the wire's bytes beside the body."""
    got = run(get(stand, stand.answering(wire, close=close)))
    assert isinstance(got, Fetched)
    assert got.body == PAGE
    assert got.head + got.payload == wire
    assert (got.truncated, got.address) == (None, "127.0.0.1")


def test_a_connection_is_reused(run: Run, stand: Any) -> None:
    """H1: keep-alive."""

    async def main() -> int:
        fetcher = stand.fetcher()
        async with stand.listening(stand.answering(counted(b"hello"))) as server:
            for number in range(5):
                got = await fetcher.fetch(FetchRequest(f"http://a.test:{server.port}/{number}"))
                assert isinstance(got, Fetched)
            await fetcher.close()
            return int(server.connections)

    assert run(main()) == 1


def test_a_server_that_hangs_up_early_leaves_what_it_sent(run: Run, stand: Any) -> None:
    """H2: truncated by disconnection."""
    wire = HEAD + b"Content-Length: 1000\r\n\r\nhello"
    got = run(get(stand, stand.answering(wire, close=True)))
    assert isinstance(got, Fetched)
    assert (got.body, got.truncated) == (b"hello", Truncation.DISCONNECT)


def test_a_server_that_hangs_up_at_once_is_a_reset(run: Run, stand: Any) -> None:
    """H5: no byte of an answer."""
    got = run(get(stand, stand.answering(close=True)))
    assert isinstance(got, FetchFailed)
    assert (got.kind, got.sent) == (FailureKind.RESET, True)


@pytest.mark.parametrize(
    "parts",
    [(), (b"HTTP/1.1 20",), (HEAD,), (HEAD + b"Content-Length: 9\r\n\r\n", b"abc"), (HEAD + b"\r\nabc",)],
    ids=["nothing", "status", "headers", "length", "no-length"],
)
def test_a_server_that_hangs_is_left_in_time(run: Run, stand: Any, parts: tuple[bytes, ...]) -> None:
    """H2: at every phase; what came of a body is kept."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stand.read_request(reader)
        for part in parts:
            writer.write(part)
        await reader.read()

    began = time.monotonic()
    got = run(get(stand, serve, timeout_s=0.15))
    took_s = time.monotonic() - began  # the limit counts from the beginning, `elapsed_ms` from the request
    if isinstance(got, Fetched):
        assert (got.truncated, got.body) == (Truncation.TIME, b"abc")
    else:
        assert got.kind is FailureKind.TIMEOUT
        assert b"\r\n\r\n" not in b"".join(parts)
    assert 0.14 <= took_s < 5
    assert 0 < got.elapsed_ms <= took_s * 1000 + 1


def test_a_body_without_end_is_cut_at_the_limit(run: Run, stand: Any) -> None:
    """H2, Q5: the size limit holds while streaming."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stand.read_request(reader)
        writer.write(HEAD + b"\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    got = run(get(stand, serve, max_bytes=1_000_000))
    assert isinstance(got, Fetched)
    assert (len(got.payload), got.truncated) == (1_000_000, Truncation.LENGTH)


def test_bodies_in_flight_are_held_back_by_the_kernel(run: Run, stand: Any) -> None:
    """Q5: under a tiny budget every body still comes whole."""

    async def main() -> list[Answer]:
        fetcher = stand.fetcher(max_in_flight_bytes=200_000)
        async with stand.listening(stand.answering(counted(PAGE * 4))) as server:
            requests = [FetchRequest(f"http://h{n}.test:{server.port}/") for n in range(8)]
            answers = await asyncio.gather(*(fetcher.fetch(request) for request in requests))
            await fetcher.close()
            return list(answers)

    assert [getattr(got, "body", got) == PAGE * 4 for got in run(main())] == [True] * 8


def test_a_port_that_nobody_listens_on_is_a_connect_failure(run: Run, stand: Any) -> None:
    """H5: refused."""

    async def main() -> Answer:
        fetcher = stand.fetcher()
        async with stand.listening(stand.answering()) as server:
            port = server.port
        answer: Answer = await fetcher.fetch(FetchRequest(f"http://a.test:{port}/"))
        return answer

    got = run(main())
    assert isinstance(got, FetchFailed)
    assert (got.kind, got.sent) == (FailureKind.CONNECT, False)


@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f.1", "2130706433", "a.test", "[::ffff:127.0.0.1]"])
def test_a_listener_on_a_refused_address_sees_no_connection(run: Run, stand: Any, host: str) -> None:
    """H6: nothing allowed, nothing accepted, whatever the spelling."""

    async def main() -> tuple[Answer, int]:
        fetcher = stand.fetcher(allow_addresses=())
        async with stand.listening(stand.answering(counted(b"secret"))) as server:
            answer = await fetcher.fetch(FetchRequest(f"http://{host}:{server.port}/"))
            await asyncio.sleep(0)
            return answer, server.connections

    got, connections = run(main())
    assert isinstance(got, FetchFailed)
    assert (got.kind, got.sent, connections) == (FailureKind.ADDRESS, False, 0)


def test_requests_leave_from_the_source_address(run: Run, stand: Any) -> None:
    """H1: several source addresses may be bound."""
    peers: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(writer.get_extra_info("peername")[0])
        await stand.answering(counted(b"hello"), close=True)(reader, writer)

    got = run(get(stand, serve, source_addresses=("127.0.0.7",)))
    assert isinstance(got, Fetched)
    assert peers == ["127.0.0.7"]


def test_cancelling_a_fetch_closes_its_connection(run: Run, stand: Any) -> None:
    """H1: the server sees the end."""

    async def main() -> bool:
        asked, gone = asyncio.Event(), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await stand.read_request(reader)
            asked.set()
            await reader.read()
            gone.set()

        fetcher = stand.fetcher()
        async with stand.listening(serve) as server:
            task = asyncio.create_task(fetcher.fetch(FetchRequest(f"http://a.test:{server.port}/")))
            await asked.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            async with asyncio.timeout(5):
                await gone.wait()
            return gone.is_set()

    assert run(main())
