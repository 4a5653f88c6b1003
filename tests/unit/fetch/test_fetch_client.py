"""Whole exchanges over a network in memory, under virtual time."""

from __future__ import annotations

import asyncio
import errno
import gzip
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from nephila.interfaces.fetcher import Fetcher
from nephila.model.errors import UsageError
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, FetchRequest, Truncation
from nephila.testing.loop import run_virtual

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n"
OK = [HEAD + b"hello"]
CLOSE, RESET, HANG = "close", "reset", "hang"
PUBLIC = "93.184.216.34"

Once = Callable[..., tuple[Answer, Any]]


def fetched(answer: Answer) -> Fetched:
    assert isinstance(answer, Fetched), answer
    return answer


def failed(answer: Answer) -> FetchFailed:
    assert isinstance(answer, FetchFailed), answer
    return answer


def test_an_answer_tells_all_about_its_exchange(once: Once) -> None:
    """H1: request, head, payload, body, address and times."""
    answer, bench = once([[[0.25, *OK]]], url="http://a.example/page?q=1")
    got = fetched(answer)
    assert got.request == bench.dialer.transports[0].written[0]
    assert got.request.startswith(b"GET /page?q=1 HTTP/1.1\r\nHost: a.example\r\n")
    assert (got.head, got.payload, got.body, got.status) == (HEAD, b"hello", b"hello", 200)
    assert got.header("content-type") == "text/html"
    assert (got.address, got.elapsed_ms, got.ended_at - got.sent_at) == (PUBLIC, 250, 250)
    fetcher: Fetcher = bench.fetcher
    assert fetcher is bench.fetcher


def test_codings_are_undone_and_the_payload_kept(once: Once) -> None:
    """H1, W1: the body is decoded, the payload is what was on the wire."""
    page = gzip.compress(b"hello")
    payload = b"%x\r\n%s\r\n0\r\n\r\n" % (len(page), page)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
    got = fetched(once([[[head, payload]]])[0])
    assert (got.payload, got.body) == (payload, b"hello")


def test_a_bomb_is_cut_and_marked(once: Once) -> None:
    """H2, Q5: decompressed size bounded."""
    page = gzip.compress(bytes(5_000_000))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(page)
    got = fetched(once([[[head + page]]], settings={"max_decoded_bytes": 1000})[0])
    assert (len(got.body), got.truncated, got.payload) == (1000, Truncation.LENGTH, page)


def test_a_coding_that_cannot_be_undone_is_bad_content(once: Once) -> None:
    """H5: typed, and the request counts as sent."""
    got = failed(once([[[b"HTTP/1.1 200 OK\r\nContent-Encoding: rot13\r\nContent-Length: 1\r\n\r\nx"]]])[0])
    assert (got.kind, got.sent) == (FailureKind.BAD_CONTENT, True)


UNREADABLE = (
    (b"Content-Encoding: gzip\r\nContent-Length: 5\r\n", b"plain"),
    (b"Content-Encoding: rot13\r\nContent-Length: 5\r\n", b"cynva"),
    (b"Transfer-Encoding: chunked\r\n", b"no chunks\r\n"),
)


@pytest.mark.parametrize(("told", "body"), UNREADABLE)
@pytest.mark.parametrize("status", [301, 404, 429, 503])
def test_what_an_answer_says_in_its_head_counts_whatever_its_body_is(
    once: Once, status: int, told: bytes, body: bytes
) -> None:
    """P1, P3, H2: where it leads, that it is gone, when to come again; what came of the body is kept as it came."""
    head = b"HTTP/1.1 %d Said\r\nLocation: /there\r\nRetry-After: 5000\r\n%b\r\n" % (status, told)
    got = fetched(once([[[head + body]]])[0])
    assert (got.status, got.header("location"), got.header("retry-after")) == (status, "/there", "5000")
    assert (got.head, got.body) == (head, b"")
    assert body.startswith(got.payload)


@pytest.mark.parametrize(("told", "body"), UNREADABLE)
def test_a_page_that_cannot_be_read_is_none(once: Once, told: bytes, body: bytes) -> None:
    """H5: its body is what it says."""
    got = failed(once([[[b"HTTP/1.1 200 OK\r\n" + told + b"\r\n" + body]]])[0])
    assert got.kind in {FailureKind.BAD_CONTENT, FailureKind.PROTOCOL}


def test_a_redirect_is_an_answer_and_is_not_followed(once: Once) -> None:
    """H2: one exchange, never more."""
    answer, bench = once([[[b"HTTP/1.1 301 Moved\r\nLocation: http://b.example/\r\nContent-Length: 0\r\n\r\n"]]])
    assert fetched(answer).header("location") == "http://b.example/"
    assert len(bench.dialer.dialled) == 1


def test_a_not_modified_answer_has_no_body(once: Once) -> None:
    """H3: conditional headers go out, a 304 comes back at once."""
    answer, bench = once(
        [[[b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 999\r\n\r\n']]],
        headers=(("If-None-Match", '"a"'),),
    )
    assert (fetched(answer).status, fetched(answer).payload) == (304, b"")
    assert b'If-None-Match: "a"\r\n' in bench.dialer.transports[0].written[0]


def test_a_body_limit_of_the_request_wins(once: Once) -> None:
    """H2, P1: robots.txt has its own."""
    assert fetched(once([[[b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 99]]], max_body_bytes=10)[0]).body == b"x" * 10


def test_what_may_be_long_on_the_wire_may_be_as_long_unpacked(once: Once) -> None:
    """H2, X3: a sitemap of 49 MB is not cut at what pages may have."""
    body = b"x" * 5000
    told = [[[b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + body]]]
    settings = {"max_bytes": 1000, "max_decoded_bytes": 2000}
    got = fetched(once(told, settings=settings, max_body_bytes=10_000)[0])
    assert (got.body, got.truncated) == (body, None)


def test_an_unwanted_type_is_not_read(once: Once) -> None:
    """H7: the connection is closed, the capture says why it has no body."""
    answer, bench = once(
        [[[b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", 1.0, b"x" * 1000]]], accept_types=("text/html",)
    )
    got = fetched(answer)
    assert (got.unwanted, got.truncated, got.payload, got.body) == (True, Truncation.UNSPECIFIED, b"", b"")
    assert got.elapsed_ms == 0
    assert bench.dialer.transports[0].is_closing()


# -- time ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scripts", "kind", "elapsed_ms", "sent"),
    [
        ([HANG], FailureKind.TIMEOUT, 10_000, False),
        ([[[]]], FailureKind.TIMEOUT, 30_000, True),
        ([[[b"HTTP/1.1 200 OK\r\nSer"]]], FailureKind.TIMEOUT, 30_000, True),
    ],
)
def test_every_phase_has_its_limit(once: Once, scripts: Any, kind: FailureKind, elapsed_ms: int, sent: bool) -> None:
    """H2: connect 10 s, whole fetch 30 s, to the millisecond."""
    got = failed(once(scripts)[0])
    assert (got.kind, got.elapsed_ms, got.sent) == (kind, elapsed_ms, sent)


def test_a_resolver_that_hangs_is_ended_by_the_whole_limit(once: Once) -> None:
    """H2: whatever a resolver promises."""
    got = failed(once([], url="http://hangs.example/")[0])
    assert (got.kind, got.elapsed_ms, got.sent) == (FailureKind.TIMEOUT, 30_000, False)


def test_a_body_that_drips_is_cut_at_the_limit(once: Once) -> None:
    """H2: what came is kept, and marked."""
    drip: list[Any] = [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"]
    for _ in range(40):
        drip += [1.0, b"x"]
    got = fetched(once([[drip]])[0])
    assert (got.truncated, got.elapsed_ms) == (Truncation.TIME, 30_000)
    assert 29 <= len(got.body) <= 30


def test_connecting_leaves_the_rest_of_the_time_to_the_answer(once: Once) -> None:
    """H2: the whole fetch is the limit, not each part of it."""
    names = {"a.example": ("1.1.1.1", PUBLIC)}
    got = failed(once([HANG, [[]]], names=names)[0])
    assert got.kind is FailureKind.TIMEOUT
    assert got.elapsed_ms == 25_000, "5 s went to the first address"


# -- connections -----------------------------------------------------------------------------------------------------


def test_a_connection_is_kept_for_the_next_exchange(bench: Callable[..., Any]) -> None:
    """H1: keep-alive, per origin."""
    stand = bench([[OK, OK], [OK]])

    async def run() -> None:
        for url in ("http://a.example/1", "http://a.example/2", "http://b.example/"):
            fetched(await stand.get(url))
        await stand.fetcher.close()

    run_virtual(run, stand.clock)
    assert len(stand.dialer.dialled) == 2
    assert len(stand.dialer.transports[0].written) == 2
    assert all(transport.is_closing() for transport in stand.dialer.transports)


@pytest.mark.parametrize(
    ("header", "wait_s", "kept"),
    [
        ("", 59.0, True),
        ("", 61.0, False),
        ("Keep-Alive: timeout=5\r\n", 3.5, True),
        ("Keep-Alive: timeout=5\r\n", 4.5, False),
        ("Connection: close\r\n", 0.0, False),
    ],
)
def test_idle_connections_are_kept_for_their_time_only(
    bench: Callable[..., Any], header: str, wait_s: float, kept: bool
) -> None:
    """H1: our limit, or the server's when it is shorter."""
    answer = [b"HTTP/1.1 200 OK\r\n" + header.encode() + b"Content-Length: 0\r\n\r\n"]
    stand = bench([[answer, answer], [answer]])

    async def run() -> None:
        fetched(await stand.get())
        await asyncio.sleep(wait_s)
        fetched(await stand.get())
        await stand.fetcher.close()

    run_virtual(run, stand.clock)
    assert len(stand.dialer.dialled) == (1 if kept else 2)


def test_idle_connections_are_swept_without_being_asked_for(bench: Callable[..., Any]) -> None:
    """H1: descriptors are given back."""
    stand = bench([[OK]])

    async def run() -> None:
        fetched(await stand.get())
        await asyncio.sleep(100)

    run_virtual(run, stand.clock)
    assert stand.dialer.transports[0].is_closing()


def test_no_more_idle_connections_are_kept_than_descriptors_allow(bench: Callable[..., Any]) -> None:
    """H1: sized from the descriptors that there are, not by the number of exchanges."""
    names = {f"h{n}.example": (PUBLIC,) for n in range(5)}
    stand = bench([[OK] for _ in names], names, concurrency=1, kept_connections=3)

    async def run() -> list[bool]:
        for name in names:
            fetched(await stand.get(f"http://{name}/"))
        return [transport.is_closing() for transport in stand.dialer.transports]

    assert run_virtual(run, stand.clock) == [True, False, False, False, True], "one was replaced, one turned away"


@pytest.mark.parametrize(("places", "share"), [(0, 1.0), (10, 0.9), (25, 0.5), (45, 0.15), (50, 0.05)])
def test_going_round_more_hosts_than_are_kept_uses_those_that_are(
    bench: Callable[..., Any], places: int, share: float
) -> None:
    """H1, Q1: 50 hosts come round every 10 s; new connections a page are as few as the places allow."""
    names, rounds = {f"h{n}.example": (PUBLIC,) for n in range(50)}, 20
    stand = bench([[OK] * rounds for _ in range(50 * rounds)], names, concurrency=1, kept_connections=places)

    async def run() -> None:
        for _ in range(rounds):
            for name in names:
                fetched(await stand.get(f"http://{name}/"))
                await asyncio.sleep(0.2)
        await stand.fetcher.close()

    run_virtual(run, stand.clock)
    assert len(stand.dialer.dialled) / (50 * rounds) == pytest.approx(share, abs=0.12)


def test_a_full_pool_of_hosts_that_are_done_with_gives_way(bench: Callable[..., Any]) -> None:
    """H1: a host that is asked again and again gets its place in a while."""
    names = {f"h{n}.example": (PUBLIC,) for n in range(31)}
    stand = bench([[OK] * 20 for _ in range(60)], names, concurrency=1, kept_connections=30)

    async def run() -> None:
        for name in names:
            fetched(await stand.get(f"http://{name}/"))
        before = len(stand.dialer.dialled)
        for _ in range(15):
            fetched(await stand.get("http://h30.example/"))
            await asyncio.sleep(1)
        assert len(stand.dialer.dialled) - before <= 6
        await stand.fetcher.close()

    run_virtual(run, stand.clock)


def test_a_kept_connection_that_the_server_has_closed_is_not_used(bench: Callable[..., Any]) -> None:
    """H1: found out before anything is written."""
    stand = bench([[[*OK, 1.0, CLOSE]], [OK]])

    async def run() -> None:
        fetched(await stand.get())
        await asyncio.sleep(2)
        fetched(await stand.get())
        await stand.fetcher.close()

    run_virtual(run, stand.clock)
    assert [len(transport.written) for transport in stand.dialer.transports] == [1, 1]


def test_a_kept_connection_that_dies_under_a_request_is_a_failure_not_a_second_request(
    bench: Callable[..., Any],
) -> None:
    """H1, P2: the server may have seen it: asking again is for whoever keeps the delays."""
    stand = bench([[OK, [RESET]], [OK]])

    async def run() -> FetchFailed:
        fetched(await stand.get())
        return failed(await stand.get())

    got = run_virtual(run, stand.clock)
    assert (got.kind, got.sent) == (FailureKind.RESET, True)
    assert len(stand.dialer.dialled) == 1


def test_a_connection_that_speaks_unasked_is_not_used_again(bench: Callable[..., Any]) -> None:
    """H1, Q5: the next answer must not be somebody else's."""
    stand = bench([[[*OK, 1.0, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"]], [OK]])

    async def run() -> Fetched:
        fetched(await stand.get())
        await asyncio.sleep(2)
        return fetched(await stand.get())

    assert run_virtual(run, stand.clock).body == b"hello"
    assert len(stand.dialer.dialled) == 2


def test_cancelling_closes_the_connection(bench: Callable[..., Any]) -> None:
    """H1: as the interface promises, while connecting and while reading."""
    stand = bench([[[]], HANG])

    async def run() -> None:
        for _ in range(2):
            task = asyncio.create_task(stand.get())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run_virtual(run, stand.clock)
    assert stand.dialer.transports[0].is_closing()


def test_bodies_in_flight_are_bounded_and_all_of_them_finish(bench: Callable[..., Any]) -> None:
    """Q5: the younger ones are held back until the oldest is through."""
    size = 600_000
    body: list[Any] = [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size]
    for _ in range(60):
        body += [b"x" * (size // 60), 0.1]
    names = {f"h{n}.example": (PUBLIC,) for n in range(6)}
    stand = bench([[list(body)] for _ in names], names, max_in_flight_bytes=1_000_000)
    paused = 0

    async def run() -> list[Answer]:
        nonlocal paused
        tasks = [asyncio.create_task(stand.get(f"http://{name}/")) for name in names]
        while not all(task.done() for task in tasks):
            paused = max(paused, sum(transport.paused for transport in stand.dialer.transports))
            await asyncio.sleep(0.05)
        return [task.result() for task in tasks]

    answers = run_virtual(run, stand.clock)
    assert [len(fetched(answer).body) for answer in answers] == [size] * 6
    assert paused >= 4


# -- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("http://127.0.0.1/", {}),
        ("http://0x7f.1/", {}),
        ("http://[::ffff:10.0.0.1]/", {}),
        ("http://169.254.169.254/latest/meta-data", {}),
        ("http://a.example/", {"a.example": ("10.0.0.1",)}),
        ("http://a.example/", {"a.example": ("192.168.0.1", "fd00::1", "64:ff9b::7f00:1")}),
        ("https://a.example/", {"a.example": ("127.0.0.1",)}),
    ],
)
def test_no_connection_is_opened_to_an_address_that_is_not_public(once: Once, url: str, names: dict[str, Any]) -> None:
    """H6: literals in any spelling, and every answer of a name server; nothing is dialled."""
    answer, bench = once([], url=url, names=names)
    got = failed(answer)
    assert (got.kind, got.sent) == (FailureKind.ADDRESS, False)
    assert "refused" in got.detail
    assert bench.dialer.dialled == []


def test_only_the_public_ones_of_several_addresses_are_tried(once: Once) -> None:
    """H6: and the dialler gets the judged literal, never a name."""
    answer, bench = once([[OK]], names={"a.example": ("10.0.0.1", PUBLIC, "127.0.0.1")})
    fetched(answer)
    assert [dialled.address for dialled in bench.dialer.dialled] == [PUBLIC]


def test_a_name_that_changes_its_mind_is_judged_anew_for_every_connection(bench: Callable[..., Any]) -> None:
    """H6: no DNS rebinding: what is judged is what is connected to."""
    stand = bench([[[*OK, CLOSE]]])

    async def run() -> FetchFailed:
        fetched(await stand.get())
        stand.resolver.names = {"a.example": ("127.0.0.1",)}
        await asyncio.sleep(1)
        return failed(await stand.get())

    assert run_virtual(run, stand.clock).kind is FailureKind.ADDRESS
    assert [dialled.address for dialled in stand.dialer.dialled] == [PUBLIC]


def test_the_allow_list_opens_what_the_user_names(once: Once) -> None:
    """H6: exact ranges."""
    assert fetched(once([[OK]], url="http://127.0.0.1/", settings={"allow_addresses": ("127.0.0.1/32",)})[0])


def test_the_next_address_is_tried_when_one_fails(once: Once) -> None:
    """H1: IPv4 and IPv6, in the order given, at most four."""
    addresses = ("1.1.1.1", "2606:4700::1", "1.1.1.2", PUBLIC, "1.1.1.4")
    refused = ConnectionRefusedError(111, "Connection refused")
    answer, bench = once([refused, refused, HANG, [OK]], names={"a.example": addresses})
    assert fetched(answer).address == PUBLIC
    answer, bench = once([refused] * 4, names={"a.example": addresses})
    got = failed(answer)
    assert (got.kind, got.detail, got.sent) == (FailureKind.CONNECT, "Connection refused", False)
    assert len(bench.dialer.dialled) == 4


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_a_shortage_of_our_own_is_no_fault_of_the_host(once: Once, number: int) -> None:
    """H5, F2: nobody was asked; the host is put off, and no other address is tried."""
    answer, bench = once([OSError(number, "none left")], names={"a.example": ("1.1.1.1", "1.1.1.2")})
    got = failed(answer)
    assert (got.kind, got.sent) == (FailureKind.ADDRESS_BUSY, False)
    assert got.wait_ms >= 1000
    assert len(bench.dialer.dialled) == 1


def test_a_name_that_does_not_exist_is_told_as_such(once: Once) -> None:
    """H5: dns failures are typed."""
    got = failed(once([], url="http://nowhere.example/")[0])
    assert (got.kind, got.sent) == (FailureKind.NO_SUCH_NAME, False)


def test_the_source_address_is_fixed_by_the_host(bench: Callable[..., Any]) -> None:
    """H1: never changed to get round a block, and of the right family."""
    names = {f"h{n}.example": (PUBLIC,) for n in range(20)} | {"six.example": ("2606:4700::1",)}
    sources = ("192.0.2.1", "192.0.2.2", "2001:db8::5")
    stand = bench([[[*OK, CLOSE]] for _ in range(42)], names, source_addresses=sources, keep_alive_s=0.0)

    async def run() -> None:
        for _ in range(2):
            for name in names:
                fetched(await stand.get(f"http://{name}/"))

    run_virtual(run, stand.clock)
    used = [dialled.source for dialled in stand.dialer.dialled]
    assert used[:21] == used[21:]
    assert set(used[:20]) == {"192.0.2.1", "192.0.2.2"}
    assert used[20] == "2001:db8::5"


def test_an_address_without_a_source_of_its_family_is_not_dialled(once: Once) -> None:
    """H1: sending from another address than asked for is no choice."""
    answer, bench = once([], names={"a.example": ("2606:4700::1",)}, settings={"source_addresses": ("192.0.2.1",)})
    assert failed(answer).kind is FailureKind.CONNECT
    assert bench.dialer.dialled == []


@pytest.mark.parametrize(
    "settings",
    [{"user_agent": "x\r\ny"}, {"proxy": "nonsense"}, {"source_addresses": ("eth0",)}, {"allow_addresses": ("x",)}],
)
def test_settings_that_make_no_sense_are_told_at_the_start(bench: Callable[..., Any], settings: dict[str, Any]) -> None:
    """H1: before the first request."""
    with pytest.raises(UsageError):
        bench([], **settings)


# -- TLS and proxies -------------------------------------------------------------------------------------------------


def certificate_error(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, "told by OpenSSL"
    return error


@pytest.mark.parametrize(
    ("code", "words"),
    [(10, "expired"), (18, "self-signed"), (20, "unknown authority"), (62, "another name"), (26, "told by OpenSSL")],
)
def test_a_bad_certificate_is_refused_in_words(once: Once, code: int, words: str) -> None:
    """H1, H5: TLS verified, reasons readable."""
    got = failed(once([certificate_error(code)], url="https://a.example/")[0])
    assert (got.kind, got.sent) == (FailureKind.TLS, True)
    assert words in got.detail


def test_a_bad_certificate_may_be_accepted_and_is_recorded(once: Once) -> None:
    """H1: verified first, then without, and the reason stays with the answer."""
    answer, bench = once([certificate_error(10), [OK]], url="https://a.example/", settings={"bad_certificates": True})
    assert fetched(answer).bad_certificate == "certificate has expired"
    verified, lax = [dialled.tls for dialled in bench.dialer.dialled]
    assert verified.verify_mode is ssl.CERT_REQUIRED
    assert verified.check_hostname
    assert verified.minimum_version is ssl.TLSVersion.TLSv1_2
    assert lax.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ssl.SSLError(1, "[SSL: TLSV1_ALERT_PROTOCOL_VERSION] x"), FailureKind.TLS),
        (ssl.SSLEOFError(8, "EOF"), FailureKind.RESET),
        (ConnectionResetError(104, "reset"), FailureKind.RESET),
    ],
)
def test_a_handshake_that_fails_is_typed(once: Once, error: OSError, kind: FailureKind) -> None:
    """H5: a passing disconnection is told apart from a server that we cannot speak to."""
    got = failed(once([error], url="https://a.example/")[0])
    assert (got.kind, got.sent) == (kind, True)


TUNNEL = [b"HTTP/1.1 200 Connection established\r\n\r\n"]


def test_a_tunnel_gets_the_judged_address_and_tls_the_name(once: Once) -> None:
    """H6: behind a proxy there is no name left to be resolved differently."""
    answer, bench = once(
        [[TUNNEL, OK]],
        url="https://a.example/",
        settings={"proxy": "http://user:pw@10.0.0.9:3128"},
    )
    assert fetched(answer).address == "10.0.0.9"
    connect, request = bench.dialer.transports[0].written
    assert connect == (
        b"CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: 93.184.216.34:443\r\n"
        b"Proxy-Authorization: Basic dXNlcjpwdw==\r\n\r\n"
    )
    assert request.startswith(b"GET / HTTP/1.1\r\nHost: a.example\r\n")
    assert bench.dialer.dialled[-1].server_name == "a.example"


def test_plain_http_is_tunnelled_to_the_judged_address_too(once: Once) -> None:
    """H6: the proxy hears no name that it could resolve differently."""
    answer, bench = once([[TUNNEL, OK]], settings={"proxy": "http://10.0.0.9:3128"})
    connect, request = bench.dialer.transports[0].written
    assert connect == b"CONNECT 93.184.216.34:80 HTTP/1.1\r\nHost: 93.184.216.34:80\r\n\r\n"
    assert request.startswith(b"GET / HTTP/1.1\r\nHost: a.example\r\n")
    assert fetched(answer).request == request


def test_through_a_tunnel_a_407_is_the_sites_answer(once: Once) -> None:
    """H5: odd, but not the proxy's doing."""
    odd = [b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"]
    answer, _ = once([[TUNNEL, odd]], settings={"proxy": "http://10.0.0.9:3128"})
    assert fetched(answer).status == 407


def test_without_tunnels_plain_http_goes_in_absolute_form_and_the_password_is_not_recorded(once: Once) -> None:
    """H1, K4: for proxies that allow none; the name is judged first all the same."""
    settings = {"proxy": "http://user:pw@10.0.0.9:3128", "proxy_tunnel": False}
    answer, bench = once([[OK]], url="http://a.example/x", settings=settings)
    got = fetched(answer)
    assert got.request.startswith(b"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n")
    assert b"Proxy-Authorization" not in got.request
    assert b"Proxy-Authorization: Basic dXNlcjpwdw==\r\n\r\n" in bench.dialer.transports[0].written[0]
    answer, bench = once([], url="http://a.example/x", settings=settings, names={"a.example": ("10.0.0.1",)})
    assert failed(answer).kind is FailureKind.ADDRESS
    assert bench.dialer.dialled == []


SOCKS_OK = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


def test_socks5_is_given_the_judged_address(once: Once) -> None:
    """H1, H6: with and without a password."""
    answer, bench = once([[[b"\x05\x00"], [SOCKS_OK], OK]], settings={"proxy": "socks5://10.0.0.9"})
    assert fetched(answer).body == b"hello"
    written = bench.dialer.transports[0].written
    assert written[:2] == [b"\x05\x01\x00", b"\x05\x01\x00\x01" + bytes([93, 184, 216, 34]) + b"\x00\x50"]
    answer, bench = once(
        [[[b"\x05", b"\x02"], [b"\x01\x00"], [SOCKS_OK[:3], SOCKS_OK[3:]], OK]],
        settings={"proxy": "socks5://me:pw@10.0.0.9"},
    )
    assert fetched(answer).body == b"hello"
    assert bench.dialer.transports[0].written[1] == b"\x01\x02me\x02pw"


@pytest.mark.parametrize(
    ("proxy", "script"),
    [
        ("http://10.0.0.9", [[b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"]]),
        ("http://10.0.0.9", [[b"SSH-2.0-x\r\n\r\n"]]),
        ("http://10.0.0.9", [[b"HTTP/1.1 200 OK\r\n\r\nsurprise"]]),
        ("http://10.0.0.9", [[b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000]]),
        ("http://10.0.0.9", [[CLOSE]]),
        ("http://10.0.0.9", [[]]),
        ("http://10.0.0.9", ConnectionRefusedError(111, "Connection refused")),
        ("http://unknown.example", None),
        ("socks5://10.0.0.9", [[b"\x05\xff"]]),
        ("socks5://10.0.0.9", [[b"HT"]]),
        ("socks5://10.0.0.9", [[b"\x05\x02"]]),
        ("socks5://u:p@10.0.0.9", [[b"\x05\x02"], [b"\x01\x01"]]),
        ("socks5://10.0.0.9", [[b"\x05\x00"], [b"\x05\x05\x00\x01"]]),
        ("socks5://10.0.0.9", [[b"\x05\x00"], [RESET]]),
    ],
)
def test_a_proxy_that_fails_is_told_apart_from_the_host(once: Once, proxy: str, script: Any) -> None:
    """H5: typed as proxy, or as a timeout when it hangs; the host was not reached."""
    got = failed(once([script], url="https://a.example/", settings={"proxy": proxy})[0])
    assert got.kind in {FailureKind.PROXY, FailureKind.TIMEOUT}
    assert (got.kind is FailureKind.TIMEOUT) == (script == [[]])
    assert not got.sent


def test_a_proxy_that_wants_credentials_for_a_plain_request_is_a_proxy_failure(once: Once) -> None:
    """H5: a 407 is not the site's answer."""
    script = [[b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"]]
    for tunnel in (True, False):
        settings = {"proxy": "http://10.0.0.9", "proxy_tunnel": tunnel}
        assert failed(once([script], settings=settings)[0]).kind is FailureKind.PROXY


def test_two_exchanges_do_not_disturb_each_other(bench: Callable[..., Any]) -> None:
    """H1: hundreds are in flight at once."""
    names = {f"h{n}.example": (PUBLIC,) for n in range(50)}
    scripts = [[[0.1 * (n % 7), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", 0.05, b"%02d" % n]] for n in range(50)]
    stand = bench(scripts, names)

    async def run() -> list[Answer]:
        requests = [stand.fetcher.fetch(FetchRequest(f"http://{name}/")) for name in names]
        return await asyncio.gather(*requests)

    assert [fetched(answer).body for answer in run_virtual(run, stand.clock)] == [b"%02d" % n for n in range(50)]
