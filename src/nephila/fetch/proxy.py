"""Through somebody else's machine: HTTP and HTTPS proxies, SOCKS5.

The guard holds behind a proxy too (H6): the target's name is resolved and judged by us first, and the proxy is asked
for a tunnel (CONNECT, SOCKS5) to the judged *address*, so that it has no name left to resolve differently. That goes
for plain http as well. Some HTTP proxies allow tunnels to port 443 only: for those the user may give up tunnels for
plain http; the name is then in the request line, and the proxy's own resolver has the last word. The proxy's own
address is the user's explicit choice and is not judged.
"""

from __future__ import annotations

import base64
import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

import can_ada

from nephila.model.errors import UsageError
from nephila.model.exchange import FailureKind

from .connection import Connection
from .head import Malformed, find_end, read_head

_MAX_ANSWER_BYTES = 65_536
_HINT = "write it as http://HOST:PORT, https://HOST:PORT or socks5://USER:PASSWORD@HOST:PORT"


class ProxyKind(StrEnum):
    """How a proxy is spoken to."""

    HTTP = "http"
    HTTPS = "https"
    SOCKS5 = "socks5"


_DEFAULT_PORTS = {ProxyKind.HTTP: 80, ProxyKind.HTTPS: 443, ProxyKind.SOCKS5: 1080}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy as the user named it."""

    kind: ProxyKind
    host: str
    port: int
    user: str = ""
    password: str = ""

    def authorization(self) -> str:
        """The Proxy-Authorization line, empty without credentials."""
        if not self.user:
            return ""
        secret = base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")
        return f"Proxy-Authorization: Basic {secret}\r\n"


def read_proxy(url: str) -> Proxy | None:
    """The proxy that the setting names, None for an empty one. Raises `UsageError`."""
    if not url:
        return None
    scheme, _, rest = url.partition("://")
    if scheme not in set(ProxyKind) or not rest:
        raise UsageError(f"{_masked(url)!r} is no proxy that can be used", _HINT)
    if " " in url:
        raise UsageError(f"the proxy URL {_masked(url)!r} has a space in it", f"{_HINT}, with %20 for a space")
    try:  # read as http: the WHATWG rules give hosts of other schemes no structure
        parsed = can_ada.parse(f"http://{rest}")
    except (ValueError, TypeError) as error:  # TypeError: text that has no UTF-8 form
        raise UsageError(f"{_masked(url)!r} is no proxy URL", _HINT) from error
    if parsed.pathname != "/" or parsed.search:
        raise UsageError(f"the proxy URL {_masked(url)!r} has a path", _HINT)
    kind = ProxyKind(scheme)
    port = int(parsed.port) if parsed.port else _written_port(rest) or _DEFAULT_PORTS[kind]
    user, password = unquote(parsed.username), unquote(parsed.password)
    if kind is ProxyKind.SOCKS5 and max(len(user.encode()), len(password.encode())) > 255:
        raise UsageError("user and password of a SOCKS5 proxy have at most 255 bytes (RFC 1929)")
    return Proxy(kind, parsed.hostname.strip("[]"), port, user, password)


def _written_port(rest: str) -> int:
    """80 is dropped by the parser as http's default, and may yet have been written."""
    return 80 if rest.rstrip("/").endswith(":80") else 0


def _masked(url: str) -> str:
    scheme, separator, rest = url.rpartition("@")
    return f"...@{rest}" if separator and scheme else url


class TunnelReader(ABC):
    """Reads bytes until a given answer is whole; the end and the deadline leave `detail` behind."""

    def __init__(self) -> None:
        self.finished = False
        self.detail = ""
        self.data = bytearray()

    @abstractmethod
    def whole(self) -> bool:
        """Whether the answer is there."""

    def feed(self, data: bytes) -> bool:
        """Gather."""
        self.data += data
        if self.whole():
            self.finished = True
        elif len(self.data) > _MAX_ANSWER_BYTES:
            self._fail("proxy sends without end")
        return self.finished

    def end(self, error: Exception | None = None) -> None:
        """The proxy hung up."""
        if not self.finished:
            self._fail("proxy closed the connection" + (f": {error}" if error else ""))

    def expire(self) -> None:
        """The proxy was too slow."""
        if not self.finished:
            self._fail("proxy did not answer in time")

    def conclude(self) -> None:
        """Nobody says so of a tunnel."""
        self.end()

    def refuse(self, kind: FailureKind, detail: str) -> None:
        """Nor this."""
        if not self.finished:
            self._fail(f"{kind}: {detail}")

    def _fail(self, detail: str) -> None:
        self.finished, self.detail = True, detail


class _HeadReader(TunnelReader):
    def whole(self) -> bool:
        return find_end(self.data) >= 0


class _ReplyReader(TunnelReader):
    """A SOCKS5 reply: two bytes, or as long as its address type says."""

    def __init__(self, *, with_address: bool) -> None:
        super().__init__()
        self._with_address = with_address

    def whole(self) -> bool:
        if not self._with_address or (len(self.data) > 1 and self.data[1]):  # a refusal need not be whole
            return len(self.data) >= 2
        if len(self.data) < 5:
            return False
        sizes = {1: 4, 3: 1 + self.data[4], 4: 16}
        return len(self.data) >= 6 + sizes.get(self.data[3], 0)


async def open_tunnel(connection: Connection, proxy: Proxy, address: str, port: int, deadline: float) -> str:
    """Ask the proxy for a way to the address; what went wrong, or an empty string."""
    if proxy.kind is ProxyKind.SOCKS5:
        return await _open_socks(connection, proxy, address, port, deadline)
    where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    reader = _HeadReader()
    request = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{proxy.authorization()}\r\n"
    await connection.converse(request.encode("ascii"), reader, deadline)
    if reader.detail:
        return reader.detail
    end = find_end(reader.data)
    head = read_head(bytes(reader.data[:end]))
    if isinstance(head, Malformed):
        return f"proxy does not speak HTTP: {head.detail}"
    if not 200 <= head.status < 300:
        return f"proxy refused the tunnel with status {head.status}"
    return "proxy sent more than its answer" if len(reader.data) > end else ""


_SOCKS_REFUSALS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}
"""RFC 1928 6."""


async def _open_socks(connection: Connection, proxy: Proxy, address: str, port: int, deadline: float) -> str:
    hello = _ReplyReader(with_address=False)
    await connection.converse(b"\x05\x02\x00\x02" if proxy.user else b"\x05\x01\x00", hello, deadline)
    if hello.detail or hello.data[0] != 5:
        return hello.detail or "proxy does not speak SOCKS5"
    if hello.data[1] == 2 and proxy.user:
        user, password = proxy.user.encode(), proxy.password.encode()
        login = _ReplyReader(with_address=False)
        request = b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password
        await connection.converse(request, login, deadline)
        if login.detail or login.data[1]:
            return login.detail or "proxy refused user and password"
    elif hello.data[1] != 0:
        return "proxy wants credentials" if hello.data[1] in {2, 255} else "proxy wants an unknown way to log in"
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    reply = _ReplyReader(with_address=True)
    kind = b"\x04" if family == socket.AF_INET6 else b"\x01"
    await connection.converse(b"\x05\x01\x00" + kind + packed + port.to_bytes(2), reply, deadline)
    if reply.detail:
        return reply.detail
    refusal = reply.data[1]
    return f"proxy: {_SOCKS_REFUSALS.get(refusal, 'unknown failure')}" if refusal else ""
