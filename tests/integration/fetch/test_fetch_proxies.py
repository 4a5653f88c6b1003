"""Through real proxies on loopback: each passes bytes on to a real site."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest
import trustme

from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, FetchRequest

WIRE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
Run = Callable[[Any], Any]


async def pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, ready: bytes, first: bytes = b""
) -> None:
    """Join two connections until one of them ends."""
    far_reader, far_writer = await asyncio.open_connection(host, port)
    writer.write(ready)
    far_writer.write(first)

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            sink.write(data)

    copies = [asyncio.create_task(copy(reader, far_writer)), asyncio.create_task(copy(far_reader, writer))]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in copies:
            task.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        far_writer.close()


def http_proxy(log: list[bytes]) -> Any:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        log.append(request)
        verb, where = request.split(b" ", 2)[:2]
        if verb == b"CONNECT":
            host, port = where.decode().rsplit(":", 1)
            await pass_on(reader, writer, host, int(port), b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            port = where.split(b"/")[2].rsplit(b":", 1)[1].decode()
            await pass_on(reader, writer, "127.0.0.1", int(port), b"", request)

    return serve


def socks_proxy(log: list[bytes]) -> Any:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        methods = await reader.readexactly(2)
        offered = await reader.readexactly(methods[1])
        if 2 in offered:
            writer.write(b"\x05\x02")
            await reader.readexactly(1)
            user = await reader.readexactly((await reader.readexactly(1))[0])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            log.append(user + b":" + password)
            writer.write(b"\x01\x00")
        else:
            writer.write(b"\x05\x00")
        command = await reader.readexactly(10)
        log.append(command)
        host = ".".join(str(byte) for byte in command[4:8])
        reply = b"\x05\x00\x00\x01" + bytes(6)
        await pass_on(reader, writer, host, int.from_bytes(command[8:]), reply)

    return serve


async def get(
    stand: Any,
    proxy: tuple[str, Any],
    scheme: str = "http",
    site_tls: SSLContext | None = None,
    proxy_tls: SSLContext | None = None,
    **options: Any,
) -> tuple[Answer, int, str]:
    """The answer through the proxy, how often the site was connected to, and where it was."""
    prefix, serve = proxy
    async with stand.listening(stand.answering(WIRE), site_tls) as site, stand.listening(serve, proxy_tls) as relay:
        fetcher = stand.fetcher(proxy=f"{prefix}:{relay.port}", **options)
        answer = await fetcher.fetch(FetchRequest(f"{scheme}://a.test:{site.port}/x"))
        await fetcher.close()
        return answer, site.connections, f"127.0.0.1:{site.port}"


@pytest.fixture
def site_tls(authority: trustme.CA) -> SSLContext:
    context = SSLContext(PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.test", "127.0.0.1").configure_cert(context)
    return context


@pytest.mark.parametrize("tunnel", [True, False])
def test_plain_http_through_an_http_proxy(run: Run, stand: Any, tunnel: bool) -> None:
    """H1, H6: by a tunnel to the judged address; in absolute form where the user gives up tunnels."""
    log: list[bytes] = []
    got, _, where = run(get(stand, ("http://127.0.0.1", http_proxy(log)), proxy_tunnel=tunnel))
    assert isinstance(got, Fetched)
    assert got.body == b"hello"
    assert log[0].startswith(f"CONNECT {where} ".encode() if tunnel else b"GET http://a.test:")


@pytest.mark.parametrize("tls_to_proxy", [False, True])
def test_https_through_a_tunnel(
    run: Run, stand: Any, authority: trustme.CA, site_tls: SSLContext, tls_to_proxy: bool
) -> None:
    """H1, H6: CONNECT with the judged address, the name verified end to end; TLS in TLS to an https proxy."""
    log: list[bytes] = []
    prefix = "https://127.0.0.1" if tls_to_proxy else "http://127.0.0.1"
    got, _, where = run(
        get(
            stand,
            (prefix, http_proxy(log)),
            "https",
            site_tls,
            site_tls if tls_to_proxy else None,
            authority=authority.cert_pem.bytes(),
        )
    )
    assert isinstance(got, Fetched), got
    assert got.body == b"hello"
    assert log[0].startswith(f"CONNECT {where} HTTP/1.1\r\n".encode())


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("login", ["", "me:secret@"])
def test_through_socks5(
    run: Run, stand: Any, authority: trustme.CA, site_tls: SSLContext, scheme: str, login: str
) -> None:
    """H1, H6: with and without a password; the proxy gets an address, never a name."""
    log: list[bytes] = []
    got, _, _ = run(
        get(
            stand,
            (f"socks5://{login}127.0.0.1", socks_proxy(log)),
            scheme,
            site_tls if scheme == "https" else None,
            authority=authority.cert_pem.bytes(),
        )
    )
    assert isinstance(got, Fetched), got
    assert got.body == b"hello"
    assert log[-1].startswith(b"\x05\x01\x00\x01\x7f\x00\x00\x01")
    assert (b"me:secret" in log) is bool(login)


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_behind_a_proxy_a_refused_address_is_refused_too(run: Run, stand: Any, kind: str) -> None:
    """H6: the proxy itself is the user's choice and needs no permission; the site does, and is never asked for."""
    log: list[bytes] = []
    serve = http_proxy(log) if kind == "http" else socks_proxy(log)
    got, connections, _ = run(get(stand, (f"{kind}://127.0.0.1", serve), allow_addresses=()))
    assert isinstance(got, FetchFailed)
    assert (got.kind, connections, log) == (FailureKind.ADDRESS, 0, [])
