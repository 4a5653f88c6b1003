"""A site served by granian, whose HTTP/2 is hyper's (Rust) and shares nothing with ours; and how it is started.

It says of each request what it was: over which protocol, in which connection, with which headers.
"""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import trustme
from leashed import leashed

Scope = MutableMapping[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
PAGE = b"<html><title>%s</title><p>This is %s, one of a few pages.</p>%s</html>"
PATHS = ("/packed", "/large", "/moved", "/drip", "/same", "/image", "/missing")
LARGE = b"<p>" + b"golden silk of orb weavers " * 20_000
START_S = 20.0


class Site(NamedTuple):
    """Where it is, and the authority that vouches for it."""

    port: int
    authority: Path

    def url(self, path: str = "/", name: str = "127.0.0.1") -> str:
        """Of a page."""
        return f"https://{name}:{self.port}{path}"


class Given(NamedTuple):
    """What is answered."""

    status: int
    body: bytes
    fields: tuple[tuple[bytes, bytes], ...] = ()
    kind: bytes = b"text/html; charset=utf-8"


def _answer(path: str, version: str, asked: dict[str, str]) -> Given:
    page = _page(path, version)
    same = asked.get("if-none-match") == '"1"'
    given = {
        "/packed": Given(200, gzip.compress(page), ((b"content-encoding", b"gzip"),)),
        "/large": Given(200, LARGE),
        "/moved": Given(301, b"", ((b"location", b"/drip"),)),
        "/same": Given(304 if same else 200, b"" if same else page, ((b"etag", b'"1"'),)),
        "/image": Given(200, bytes(400_000), kind=b"image/png"),
        "/said": Given(200, json.dumps(asked).encode()),
        "/robots.txt": Given(404, b""),
        "/sitemap.xml": Given(404, b""),
        "/missing": Given(404, b""),
    }
    return given.get(path, Given(200, page))


async def app(scope: Scope, receive: object, send: Send) -> None:
    """The site itself, by ASGI."""
    del receive
    if scope["type"] != "http":
        return
    asked = {name.decode(): value.decode() for name, value in scope["headers"]}
    status, body, more, kind = _answer(scope["path"], scope["http_version"], asked)
    drips = scope["path"] == "/drip"
    fields = [(b"x-peer", json.dumps(scope["client"]).encode()), (b"content-type", kind), *more]
    if not drips and status != 304:
        fields.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    if drips:
        for at in range(0, len(body), 10):
            await send({"type": "http.response.body", "body": body[at : at + 10], "more_body": True})
        body = b""
    await send({"type": "http.response.body", "body": body})


def _page(path: str, version: str) -> bytes:
    name = f"{path} over {version}".encode()
    links = b"".join(b"<a href='%s'>x</a>" % link.encode() for link in PATHS) if path == "/" else b""
    return PAGE % (name, name, links)


@contextmanager
def http2_site(folder: Path, *, only: bool, authority: trustme.CA | None = None) -> Iterator[Site]:
    """Serve it while the block runs; `only`: whoever offers nothing but HTTP/1.1 is refused in the handshake."""
    vouching = authority or trustme.CA()
    certificate = vouching.issue_cert("127.0.0.1", "a.test")
    pem, chain, key = folder / "authority.pem", folder / "chain.pem", folder / "key.pem"
    vouching.cert_pem.write_to_path(str(pem))
    certificate.private_key_pem.write_to_path(str(key))
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "granian", "--interface", "asginl", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--http", "2" if only else "auto", "--no-ws", "--no-log", "--ssl-certificate", str(chain)]
    command += ["--ssl-keyfile", str(key), "--working-dir", str(Path(__file__).parent), "http2_site:app"]
    with (
        (folder / "granian.log").open("wb") as log,
        subprocess.Popen(leashed(command), stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            _wait(port, process, folder / "granian.log")
            yield Site(port, pem)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until it takes connections."""
    by = time.monotonic() + START_S
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    while time.monotonic() < by and process.poll() is None:
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 1) as plain,
            context.wrap_socket(plain, server_hostname="a.test"),
        ):
            return
        time.sleep(0.05)
    raise RuntimeError(f"granian did not start: {log.read_text()}")
