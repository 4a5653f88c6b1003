"""HTTP/2 over TLS and real sockets, spoken to granian's server, and to servers of our own that are at fault."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme
from http2_line import SETTINGS, data, goodbye, headers, reset
from http2_site import LARGE, Site, http2_site

from nephila.fetch.budget import ByteBudget
from nephila.fetch.connect import Connector
from nephila.fetch.http2 import Http2Transport
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, FetchRequest, Truncation

Run = Callable[[Any], Any]


@pytest.fixture(scope="module")
def only(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[Site]:
    with http2_site(tmp_path_factory.mktemp("only"), only=True, authority=authority) as site:
        yield site


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[Site]:
    with http2_site(tmp_path_factory.mktemp("both"), only=False, authority=authority) as site:
        yield site


async def get(stand: Any, site: Site, *paths: str, trust: bool = True, **options: Any) -> list[Answer]:
    fetcher = stand.fetcher(authority=site.authority.read_bytes() if trust else b"", **options)
    try:
        return [await fetcher.fetch(FetchRequest(site.url(path), accept_types=("text/html",))) for path in paths]
    finally:
        await fetcher.close()


def only_fetched(answers: list[Answer]) -> list[Fetched]:
    assert all(isinstance(answer, Fetched) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Fetched)]


@pytest.mark.parametrize(
    ("http2", "protocol_of_both", "protocol_of_only"),
    [("fallback", "", "h2"), ("prefer", "h2", "h2"), ("off", "", None)],
)
def test_servers_are_spoken_to_as_the_setting_says(
    run: Run, stand: Any, both: Site, only: Site, http2: str, protocol_of_both: str, protocol_of_only: str | None
) -> None:
    """H1: HTTP/1.1 first, HTTP/2 to those that insist; or HTTP/2 first; or never."""
    got = only_fetched(run(get(stand, both, "/", "/drip", http2=http2)))
    version = b"2" if protocol_of_both else b"1.1"
    assert [(one.protocol, one.status, version in one.body) for one in got] == [(protocol_of_both, 200, True)] * 2
    answer = run(get(stand, only, "/", http2=http2))[0]
    if protocol_of_only is None:
        assert isinstance(answer, FetchFailed)
        assert (answer.kind, answer.sent) == (FailureKind.TLS, True)
        assert answer.detail == "the server speaks no HTTP that it was offered"
    else:
        assert (answer.protocol, answer.status) == (protocol_of_only, 200)


def test_all_kinds_of_answers_come_over_one_connection(run: Run, stand: Any, only: Site) -> None:
    """H1, H7, R1: packed, without a length, moved, missing; what is not wanted ends it."""
    paths = ("/", "/packed", "/drip", "/moved", "/missing", "/large", "/image", "/")
    got = only_fetched(run(get(stand, only, *paths)))
    assert [one.status for one in got] == [200, 200, 200, 301, 404, 200, 200, 200]
    assert {one.protocol for one in got} == {"h2"}
    index, packed, drip, moved, missing, large, image, _ = got
    assert gzip.decompress(packed.payload) == packed.body
    assert packed.body.startswith(b"<html><title>/packed over 2")
    assert drip.payload == drip.body
    assert drip.header("content-length") == ""
    assert drip.body.endswith(b"</html>")
    assert (moved.header("location"), moved.payload, missing.payload) == ("/drip", b"", b"")
    assert large.body == LARGE
    assert (image.unwanted, image.payload, image.truncated) == (True, b"", Truncation.UNSPECIFIED)
    peers = [one.header("x-peer") for one in got]
    assert len(set(peers[:7])) == 1
    assert peers[7] != peers[0]
    assert index.head.startswith(b"HTTP/1.1 200 \r\n")
    assert b"Connection" not in index.request


def test_a_large_body_is_cut_and_a_condition_is_answered(run: Run, stand: Any, only: Site) -> None:
    """H2, R1: as over HTTP/1.1; our headers arrive, and none that speaks of connections."""

    async def ask() -> None:
        fetcher = stand.fetcher(authority=only.authority.read_bytes(), max_bytes=100_000)
        try:
            cut = await fetcher.fetch(FetchRequest(only.url("/large")))
            assert (cut.truncated, cut.payload) == (Truncation.LENGTH, LARGE[:100_000])
            same = await fetcher.fetch(FetchRequest(only.url("/same"), headers=(("If-None-Match", '"1"'),)))
            assert (same.status, same.payload) == (304, b"")
            said = await fetcher.fetch(FetchRequest(only.url("/said"), user_agent="Other/1"))
            heard = json.loads(said.body)
            assert heard["user-agent"] == "Other/1"
            assert not {"connection", "host", "te"} & (heard.keys() - {"host"})
        finally:
            await fetcher.close()

    run(ask())


def test_the_second_handshake_is_paid_once(run: Run, stand: Any, only: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: what a server wants is remembered, and its session; connections are new each time here."""
    dialled = []
    dial = Connector._dial

    async def counting(self: Connector, *arguments: Any) -> Any:
        outcome = await dial(self, *arguments)
        wire = getattr(outcome, "transport", None)
        dialled.append(None if wire is None else wire.get_extra_info("ssl_object").session_reused)
        return outcome

    monkeypatch.setattr(Connector, "_dial", counting)
    got = only_fetched(run(get(stand, only, *["/"] * 6, keep_alive_s=0.0)))
    assert len({one.header("x-peer") for one in got}) == 6
    assert len(dialled) == 7
    assert (dialled[:3], True in dialled) == ([None, False, False], True)  # the second one leaves its session behind


def test_a_bad_certificate_is_recorded_over_http2_as_well(run: Run, stand: Any, only: Site) -> None:
    """H1: refused by default."""
    refused = run(get(stand, only, "/", trust=False))[0]
    assert (refused.kind, "unknown" in refused.detail) == (FailureKind.TLS, True)
    got = only_fetched(run(get(stand, only, "/", trust=False, bad_certificates=True)))[0]
    assert (got.protocol, "unknown" in got.bad_certificate) == ("h2", True)


def test_bodies_in_flight_are_bounded_and_all_of_them_finish(
    run: Run, stand: Any, only: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q5: as over HTTP/1.1; a server is held back by TCP, and by the windows of its streams."""
    held, most, pause, grow = [], [0], Http2Transport.pause_reading, ByteBudget.grow

    def pausing(self: Http2Transport) -> None:
        held.append(self)
        pause(self)

    def growing(self: ByteBudget, source: Any, count: int) -> None:
        grow(self, source, count)
        most[0] = max(most[0], self.total)

    monkeypatch.setattr(Http2Transport, "pause_reading", pausing)
    monkeypatch.setattr(ByteBudget, "grow", growing)
    limit, times = 1_000_000, 8

    async def ask() -> list[Answer]:
        fetcher = stand.fetcher(authority=only.authority.read_bytes(), http2="prefer", max_in_flight_bytes=limit)
        try:
            requests = [FetchRequest(only.url("/large")) for _ in range(times)]
            return list(await asyncio.gather(*(fetcher.fetch(request) for request in requests)))
        finally:
            await fetcher.close()

    got = only_fetched(run(ask()))
    assert [(one.protocol, one.body == LARGE) for one in got] == [("h2", True)] * times
    assert held
    assert most[0] <= limit + len(LARGE) + times * 65_536  # the oldest goes on; each other one has a read at most


@pytest.mark.parametrize("secured", [False, True])
def test_it_goes_through_a_tunnel(run: Run, stand: Any, authority: trustme.CA, only: Site, secured: bool) -> None:
    """H1: a proxy passes bytes on, and is not offered HTTP/2 itself; also where it is spoken to over TLS."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if secured else None
    offered: list[str | None] = []
    if tls is not None:
        authority.issue_cert("127.0.0.1").configure_cert(tls)
        tls.set_alpn_protocols(["h2", "http/1.1"])

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if secured:
            offered.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        head = await reader.readuntil(b"\r\n\r\n")
        host, _, port = head.split()[1].decode().rpartition(":")
        theirs, ours = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 yes\r\n\r\n")

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while some := await source.read(65_536):
                target.write(some)
            target.close()

        try:
            await asyncio.gather(copy(reader, ours), copy(theirs, writer))
        finally:
            ours.transport.abort()
            writer.transport.abort()

    async def ask() -> list[Answer]:
        scheme = "https" if secured else "http"
        async with stand.listening(pass_on, tls) as proxy:
            answers = await get(stand, only, "/", "/large", proxy=f"{scheme}://127.0.0.1:{proxy.port}")
            assert proxy.connections == 2  # one that was refused in the handshake, one for both answers
            return answers

    got = only_fetched(run(ask()))
    assert [(one.protocol, one.status, len(one.body) > 9) for one in got] == [("h2", 200, True)] * 2
    assert "h2" not in offered


def faulty(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.test").configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


async def ask_faulty(stand: Any, authority: trustme.CA, wire: bytes, times: int = 1, **options: Any) -> Any:
    """What comes of asking a server that sends this to everybody who speaks HTTP/2 to it."""
    plain = stand.answering(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            await plain(reader, writer)
        await reader.readexactly(24)
        writer.write(wire)
        await reader.read()

    fetcher = stand.fetcher(authority=authority.cert_pem.bytes(), http2="prefer", **options)
    async with stand.listening(serve, faulty(authority)) as server:
        try:
            return [await fetcher.fetch(FetchRequest(f"https://a.test:{server.port}/")) for _ in range(times)]
        finally:
            await fetcher.close()
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
        (SETTINGS + headers((b"a", b"x\r\n\r\n<html>"), ends=True), FailureKind.PROTOCOL),
        (SETTINGS + reset(7), FailureKind.RESET),
        (SETTINGS + goodbye(0), FailureKind.RESET),
        (SETTINGS + headers((b"a", b"x" * 15_000)) * 9, FailureKind.PROTOCOL),
        (SETTINGS + headers((b"a", b"x" * 15_000), status=b"103") * 9, FailureKind.TOO_LARGE),
        (SETTINGS * 30_000, FailureKind.PROTOCOL),
        (SETTINGS, FailureKind.TIMEOUT),
    ],
)
def test_a_server_at_fault_is_a_failure_of_its_kind(
    run: Run, stand: Any, authority: trustme.CA, wire: bytes, kind: FailureKind
) -> None:
    """H1, H5: within the time limit, whatever comes."""
    got = run(ask_faulty(stand, authority, wire, timeout_s=1.0))[0]
    assert isinstance(got, FetchFailed)
    assert (got.kind, got.sent) == (kind, True)


def test_an_answer_that_does_not_end_is_cut_in_time(run: Run, stand: Any, authority: trustme.CA) -> None:
    """H2: with what there is of it."""
    got = run(ask_faulty(stand, authority, SETTINGS + headers() + data(b"hel"), timeout_s=0.5))[0]
    assert (got.protocol, got.truncated, got.body) == ("h2", Truncation.TIME, b"hel")


def test_a_server_that_asks_for_http1_gets_it_from_then_on(run: Run, stand: Any, authority: trustme.CA) -> None:
    """H1: the first request is a failure in passing (it was sent), the next ones go over HTTP/1.1."""
    first, second = run(ask_faulty(stand, authority, SETTINGS + reset(13), times=2))
    assert (first.kind, "HTTP_1_1_REQUIRED" in first.detail) == (FailureKind.RESET, True)
    assert (second.protocol, second.body) == ("", b"old")
