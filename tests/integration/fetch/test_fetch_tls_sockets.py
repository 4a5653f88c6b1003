"""TLS over real sockets, with certificates of an authority made for the test."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from nephila.fetch import read_authorities
from nephila.model.errors import UsageError
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, FetchRequest

WIRE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
PAST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
Run = Callable[[Any], Any]


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def get(stand: Any, context: ssl.SSLContext, host: str = "a.test", times: int = 1, **options: Any) -> Answer:
    fetcher = stand.fetcher(**options)
    async with stand.listening(stand.answering(WIRE), context) as server:
        for _ in range(times):
            answer: Answer = await fetcher.fetch(FetchRequest(f"https://{host}:{server.port}/"))
        if times > 1:
            assert server.connections == 1
        await fetcher.close()
        await asyncio.sleep(0)
        return answer


def test_a_verified_server_answers_over_a_kept_connection(run: Run, stand: Any, authority: trustme.CA) -> None:
    """H1: TLS, keep-alive included."""
    context = server_context(authority.issue_cert("a.test"))
    got = run(get(stand, context, times=3, authority=authority.cert_pem.bytes()))
    assert isinstance(got, Fetched)
    assert (got.body, got.bad_certificate) == (b"hello", "")


def test_an_address_is_verified_as_an_address(run: Run, stand: Any, authority: trustme.CA) -> None:
    """H1: certificates may name addresses."""
    context = server_context(authority.issue_cert("127.0.0.1"))
    got = run(get(stand, context, "127.0.0.1", authority=authority.cert_pem.bytes()))
    assert isinstance(got, Fetched)


@pytest.mark.parametrize(
    ("names", "expires", "trusted", "words"),
    [
        (("b.test",), None, True, "another name"),
        (("a.test",), PAST, True, "expired"),
        (("a.test",), None, False, "unknown authority"),
    ],
)
def test_a_bad_certificate_is_refused_or_recorded(
    run: Run, stand: Any, authority: trustme.CA, names: Any, expires: Any, trusted: bool, words: str
) -> None:
    """H1, H5: refused with the reason by default; accepted and recorded where the user says so."""
    issued = authority.issue_cert(*names, not_after=expires, not_before=expires and PAST - dt.timedelta(days=9))
    trust = authority.cert_pem.bytes() if trusted else b""
    got = run(get(stand, server_context(issued), authority=trust))
    assert isinstance(got, FetchFailed)
    assert (got.kind, got.sent) == (FailureKind.TLS, True)
    assert words in got.detail
    got = run(get(stand, server_context(issued), authority=trust, bad_certificates=True))
    assert isinstance(got, Fetched)
    assert words in got.bad_certificate


def test_a_server_that_speaks_no_tls_is_a_tls_failure(run: Run, stand: Any) -> None:
    """H5: plain HTTP on an https URL."""

    async def main() -> Answer:
        fetcher = stand.fetcher()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            await reader.read()

        async with stand.listening(serve) as server:
            answer: Answer = await fetcher.fetch(FetchRequest(f"https://a.test:{server.port}/"))
            return answer

    got = run(main())
    assert isinstance(got, FetchFailed)
    assert (got.kind, got.sent) == (FailureKind.TLS, True)


def test_a_handshake_that_hangs_is_left_in_time(run: Run, stand: Any) -> None:
    """H2: connecting has its limit, TLS included."""

    async def main() -> Answer:
        fetcher = stand.fetcher(connect_timeout_s=0.15)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with stand.listening(serve) as server:
            answer: Answer = await fetcher.fetch(FetchRequest(f"https://a.test:{server.port}/"))
            return answer

    got = run(main())
    assert isinstance(got, FetchFailed)
    assert got.kind is FailureKind.TIMEOUT
    assert 140 <= got.elapsed_ms < 5000


def test_authorities_are_read_from_a_file_whatever_stands_between_them(
    run: Run, stand: Any, authority: trustme.CA, tmp_path: Path
) -> None:
    """H1: bundles have comments in all languages between their certificates."""
    path = tmp_path / "bundle.pem"
    other = trustme.CA().cert_pem.bytes()
    path.write_bytes("# F\u0151tan\u00fas\u00edtv\u00e1ny\n".encode() + other + b"\xff\n" + authority.cert_pem.bytes())
    context = server_context(authority.issue_cert("a.test"))
    got = run(get(stand, context, authority=read_authorities(str(path))))
    assert isinstance(got, Fetched)
    assert read_authorities("") == b""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"not a certificate", "there is no certificate in"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "something that is no certificate"),
        (b"-----BEGIN CERTIFICATE-----\n\xff\n-----END CERTIFICATE-----\n", "something that is no certificate"),
    ],
)
def test_a_file_without_authorities_is_the_users_mistake(tmp_path: Path, content: bytes | None, words: str) -> None:
    """H1: told before anything is fetched, in a sentence."""
    path = tmp_path / "bundle.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read_authorities(str(path))
