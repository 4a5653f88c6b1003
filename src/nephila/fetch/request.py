"""What is sent: the target of a URL and the exact bytes of its GET.

Nothing is sent that was not asked for: no cookies, no credentials (userinfo in a URL is dropped), no referrer. Values
are checked before they go on a wire, so that no header can smuggle a second one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from nephila.model.errors import UsageError
from nephila.model.noun import quick
from nephila.urls import resolve

from .coding import ACCEPT_ENCODING

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
"""What browsers send, less the image types: some servers answer 406 to anything unusual."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # token, RFC 9110 5.6.2
_VALUE = re.compile(r"[^\x00\r\n\u0100-\U0010ffff]*")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@quick
class Target(NamedTuple):
    """Where a URL leads."""

    scheme: str
    host: str
    """A name without trailing dot, or an address literal without brackets."""
    port: int
    authority: str
    """As the Host header has it: port only when it is not the default."""
    path: str
    """With the query; what a request line has."""
    literal: bool
    """The host is an address, not a name."""
    origin: str
    """Scheme, host and port: the key of kept connections."""


_PLAIN_PATH = re.compile(r"/[A-Za-z0-9_~!$&*+,;=:@()|/-][A-Za-z0-9_~!$&*+,;=:@()|./?-]*|/")
"""Paths, with their queries, that are spelled as the standard spells them if there is no dot segment in them."""


def target_of(url: str) -> Target:
    """Read a URL by the WHATWG rules, so that ``0x7f.1`` is the address it means. Raises `UsageError`.

    What an origin means is found once; behind it, plain paths are taken as they are.
    """
    slash = url.find("/", 8)
    path = url[slash:]
    if slash > 0 and "/." not in path and _PLAIN_PATH.fullmatch(path):
        site = _site(url[:slash])
        if site is not None:
            scheme, host, port, authority, _, literal, origin = site
            return Target(scheme, host, port, authority, path, literal, origin)
    return _read(url)


@lru_cache(maxsize=4096)
def _site(origin: str) -> Target | None:
    """The target of an origin's root; None where the origin is not spelled as the standard spells it."""
    whole = resolve(None, f"{origin}/")
    return _read(f"{origin}/") if whole == f"{origin}/" and "@" not in origin else None


def _read(url: str) -> Target:
    whole = resolve(None, url)
    if whole is None:
        raise UsageError(f"{url!r} is no URL")
    scheme, _, rest = whole.partition("://")
    if scheme not in _DEFAULT_PORTS:
        raise UsageError(f"{url!r} is no http or https URL")
    # Of the serialisation, not of its parts: an empty query is part of what the site wrote, and is sent.
    authority, slash, path = rest.partition("#")[0].partition("/")
    authority = authority.rpartition("@")[2]
    bracketed = authority.startswith("[")
    host, _, port = authority.rpartition(":") if authority[-1:] != "]" and ":" in authority else (authority, "", "")
    return Target(
        scheme,
        host[1:-1] if bracketed else host.rstrip("."),
        int(port) if port else _DEFAULT_PORTS[scheme],
        authority,
        slash + path,
        bracketed or _is_address(host),
        f"{scheme}://{authority}",
    )


def _is_address(host: str) -> bool:
    """The WHATWG parser has made an IPv4 address of every host whose last label is a number."""
    return host[-1:].isdigit() and host.replace(".", "").isdigit()


class RequestSpelling:
    """Spells requests; what is the same for all of them is checked and encoded once."""

    def __init__(self, user_agent: str, *, keep_alive: bool) -> None:
        self._agent = _line("User-Agent", user_agent)
        self._fixed = (
            _line("Accept", ACCEPT)
            + _line("Accept-Encoding", ACCEPT_ENCODING)
            + _line("Connection", "keep-alive" if keep_alive else "close")
        )

    def spell(
        self,
        target: Target,
        headers: tuple[tuple[str, str], ...] = (),
        *,
        user_agent: str = "",
        absolute: bool = False,
    ) -> bytes:
        """The request, whole; in absolute form for a proxy. Raises `UsageError` for a header that cannot be sent.

        `user_agent` is said instead of our own where it is given.
        """
        agent = _line("User-Agent", user_agent) if user_agent else self._agent
        where = f"{target.origin}{target.path}" if absolute else target.path
        lines = f"GET {where} HTTP/1.1\r\nHost: {target.authority}\r\n{agent}{self._fixed}"
        for name, value in headers:
            lines += _line(name, value)
        return (lines + "\r\n").encode("latin-1")


def _line(name: str, value: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no header name")
    if not _VALUE.fullmatch(value):
        raise UsageError(f"the header {name} cannot hold {value!r}")
    return f"{name}: {value}\r\n"
