"""What hostile servers send: one function for each kind of malice, seeded, over plain HTTP.

A behaviour gets the request's path and a source of chance and yields pieces; a number in between is a pause in seconds,
`RESET` ends the connection with a reset, and the end of the pieces closes it. Honest pages for comparison are here too.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Iterator

import brotlicffi
import zstandard

RESET = "reset"
HOLD_S = 60.0
"""Longer than any limit of the crawls."""
Piece = bytes | float | str
Behaviour = Callable[[str, random.Random], Iterator[Piece]]

HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
PRIVATE = ("10.66.0.1", "169.254.169.254", "192.168.66.1")
"""Addresses that redirects and links lead to; nobody may connect to them."""
PAGES = 4
"""Pages that each hostile host links to, so that it is asked again and again."""
BODY_BYTES = 300_000
"""More than the limit for a body, where that is small."""


def links(count: int = PAGES) -> bytes:
    """Links to the host's own pages."""
    return b"".join(b'<a href="/p/%d">page</a> ' % number for number in range(count))


def counted(body: bytes, head: bytes = HTML, extra: bytes = b"") -> bytes:
    """A whole answer."""
    return head + extra + b"Content-Length: %d\r\n\r\n" % len(body) + body


def honest_page(name: str, number: int, count: int) -> bytes:
    """A page of an honest host: some words, and links to all of its pages."""
    chance = random.Random(f"{name}{number}")
    words = " ".join(chance.choices(["river", "stone", "morning", "garden", "letter", "window", "paper"], k=400))
    listed = "".join(f'<li><a href="/page/{other}">page {other}</a>' for other in range(count))
    body = f"<html lang=en><title>{name} {number}</title><ul>{listed}</ul><p>{words}</p></html>".encode()
    return counted(body)


def _whole(body: bytes) -> Behaviour:
    return lambda _path, _chance: iter((counted(links() + body),))


def _heap(piece: bytes) -> Behaviour:
    return _whole(piece * (BODY_BYTES // len(piece)))


def _numbered(pattern: bytes) -> Behaviour:
    body = b"".join(pattern % number for number in range(BODY_BYTES // len(pattern)))
    return _whole(body)


def _wire(*pieces: Piece) -> Behaviour:
    return lambda _path, _chance: iter(pieces)


def _endless(first: bytes, piece: bytes, pause_s: float = 0.0) -> Behaviour:
    def behave(_path: str, _chance: random.Random) -> Iterator[Piece]:
        yield first
        while True:
            yield piece
            yield pause_s

    return behave


def _coded(coding: bytes, body: bytes) -> Behaviour:
    return _wire(counted(body, extra=b"Content-Encoding: " + coding + b"\r\n"))


def _redirect(*places: str) -> Behaviour:
    def behave(_path: str, chance: random.Random) -> Iterator[Piece]:
        where = chance.choice(places).encode("utf-8", "surrogateescape")
        status = chance.choice([b"301", b"302", b"303", b"307", b"308", b"300", b"399"])
        yield counted(
            links(), b"HTTP/1.1 " + status + b" Go\r\nContent-Type: text/html\r\n", b"Location: " + where + b"\r\n"
        )

    return behave


def _loop(path: str, chance: random.Random) -> Iterator[Piece]:
    yield from _redirect(f"/loop/{chance.randrange(3)}", path, f"/a{path}"[:300])(path, chance)


_STATUS = (
    b"HTTP/1.1 200 OK",
    b"HTTP/1.0 404 x",
    b"HTTP/1.1 301",
    b"HTTP/1.1 103 Early",
    b"HTTP/9.9 200 OK",
    b"ICY 200 OK",
    b"http/1.1 200",
)
_FIELDS = (
    *(
        b"Content-Type: text/html",
        b"Content-Length: 30",
        b"Content-Length: -1",
        b"Content-Length: 99999999999999999999",
    ),
    *(
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked",
        b"Content-Encoding: gzip",
        b"Content-Encoding: br",
    ),
    *(
        b"Connection: keep-alive",
        b"Connection: close",
        b"Location: /x",
        b"X: a\r\n b",
        b": ",
        b"\0",
        b"Retry-After: 1e9",
    ),
    *(b"Set-Cookie: a=b", b'ETag: "\xff"', b"Last-Modified: never", b"X-Robots-Tag: none", b"Link: <x>; rel=canonical"),
)
_BODIES = (
    links(),
    b"<html>" * 30,
    b"5\r\nhello\r\n0\r\n\r\n",
    b"\x1f\x8b\x08\0\0\0\0\0",
    b"\xff\xfe<\0a\0",
    b"zz\r\n",
    b"",
)


def fuzzed(_path: str, chance: random.Random) -> Iterator[Piece]:
    """Pieces of HTTP put together by chance, with some bytes changed, cut anywhere."""
    lines = [chance.choice(_STATUS), *chance.sample(_FIELDS, chance.randrange(len(_FIELDS)))]
    wire = bytearray(chance.choice([b"\r\n", b"\n"]).join(lines) + b"\r\n\r\n" + b"".join(chance.sample(_BODIES, 3)))
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(wire) + 1)
        wire[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(4))
    while wire:
        size = chance.randrange(1, 200)
        yield bytes(wire[:size])
        del wire[:size]
        yield 0.0
    if chance.random() < 0.3:
        yield RESET


def fuzzed_html(_path: str, chance: random.Random) -> Iterator[Piece]:
    """A heap of tags in some charset or none."""
    tags = [
        b"<a href='/p/1'>",
        b"</a>",
        b"<b>",
        b"<table>",
        b"<td>",
        b"<svg>",
        b"<select>",
        b"<template>",
        b"<!--",
        b"&#x0;",
        b"\0",
    ]
    tags += [
        b"<meta charset=utf-16>",
        b"<base href='http://[::'>",
        b"<script>",
        b"</title>",
        b"<p>",
        b"\xff",
        b"<frameset>",
        b"word ",
    ]
    charset = chance.choice([b"", b"; charset=utf-8", b"; charset=x-user-defined", b'; charset="', b"; charset=utf-7"])
    body = links() + b"".join(chance.choices(tags, k=3_000))
    yield counted(body, b"HTTP/1.1 200 OK\r\nContent-Type: text/html" + charset + b"\r\n")


def _drip(_path: str, _chance: random.Random) -> Iterator[Piece]:
    for octet in counted(links(), extra=b"Connection: close\r\n"):
        yield bytes([octet])
        yield 0.05


_ZEROS = bytes(30_000_000)
_GZIPPED = gzip.compress(_ZEROS, 6, mtime=0)
_SITEMAP = b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;'>]><urlset><url><loc>&b;</loc></url>"

BEHAVIOURS: dict[str, Behaviour] = {
    "fuzzed": fuzzed,
    "fuzzed-html": fuzzed_html,
    "rubbish": lambda _path, chance: iter((chance.randbytes(100_000),)),
    "nothing": _wire(),
    "reset": _wire(RESET),
    "reset-in-head": _wire(HTML, RESET),
    "reset-in-body": _wire(counted(links())[:-20], RESET),
    "silence": _wire(HOLD_S),
    "silence-in-head": _wire(HTML, HOLD_S),
    "silence-in-body": _wire(HTML + b"Content-Length: 5000\r\n\r\n" + links(), HOLD_S),
    "drip": _drip,
    "endless-line": _endless(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4096),
    "endless-headers": _endless(b"HTTP/1.1 200 OK\r\n", b"X-Flood: 1\r\n" * 300),
    "endless-cookies": _endless(b"HTTP/1.1 200 OK\r\n", b"Set-Cookie: a=b; Path=/\r\n" * 200),
    "endless-provisional": _endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 200),
    "endless-body": _endless(HTML + b"\r\n" + links(), b"<p>more and more " * 4_000),
    "endless-chunks": _endless(HTML + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 4_000),
    "endless-trailers": _endless(HTML + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"T: x\r\n" * 4_000),
    "endless-chunk-size": _endless(HTML + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65_536),
    "header-of-a-megabyte": _wire(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n"),
    "many-headers": _wire(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 15_000 + b"Content-Type: text/html\r\n\r\n" + links(), RESET),
    "folded": _wire(b"HTTP/1.1 200 OK\r\nX: a\r\n" + b" b\r\n" * 9_000 + b"Content-Type: text/html\r\nContent-Length: 2\r\n\r\nok"),
    "lying-short": _wire(HTML + b"Content-Length: 10\r\n\r\n" + links()),
    "lying-long": _wire(HTML + b"Content-Length: 999999\r\n\r\n" + links()),
    "two-lengths": _wire(HTML + b"Content-Length: 10\r\nContent-Length: 20\r\n\r\n" + links()),
    "chunk-nonsense": _wire(HTML + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n" + links() + b"\r\n-1\r\n"),
    "body-after-304": _wire(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n<p>hello\n" * 3),
    "body-after-204": _wire(b"HTTP/1.1 204 No Content\r\n\r\n" + links()),
    "surplus-answers": _wire(counted(links()) * 5),
    "wrong-protocol": _wire(b"SSH-2.0-OpenSSH_9.0\r\n"),
    "http2": _wire(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"),
    "switching": _endless(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", b"\x81\x05hello", 0.05),
    "bomb-gzip": _coded(b"gzip", _GZIPPED),
    "bomb-nested": _coded(b"gzip, gzip", gzip.compress(_GZIPPED, mtime=0)),
    "bomb-brotli": _coded(b"br", brotlicffi.compress(_ZEROS, quality=1)),
    "bomb-zstd": _coded(b"zstd", zstandard.ZstdCompressor().compress(_ZEROS)),
    "bomb-deflate": _coded(b"deflate", zlib.compress(_ZEROS)),
    "many-members": _coded(b"gzip", gzip.compress(b"", mtime=0) * 20_000),
    "broken-gzip": _coded(b"gzip", gzip.compress(links() * 500, mtime=0)[:-50] + b"\xff" * 200),
    "six-codings": _coded(b"gzip, gzip, gzip, gzip, gzip, gzip", _GZIPPED),
    "unknown-coding": _coded(b"x-mystery", links()),
    "redirect-loop": _loop,
    "redirect-anywhere": _redirect(
        *(f"http://{address}/" for address in PRIVATE), "http://[::1]/", "http://2130706433/", "http://localhost/", "file:///etc/passwd",
        "javascript:alert(1)", "gopher://x/", "http://", "//", "\udcff\udcfe", "http://a b/", "data:text/html,<a href=/>", "http://[fe80::1]/",
    ),
    "redirect-huge": _redirect("/" + "x" * 50_000, "http://" + "a" * 5_000 + ".test/", "/?" + "%" * 30_000),
    "million-links": _numbered(b"<a href=/l/%d>"),
    "million-hosts": _numbered(b"<a href=http://h%d.minted.test/>"),
    "names-too-long": _whole(
        b"".join(b"<a href=http://%s.test/>x</a>" % (b"a" * long) for long in range(60, 2000, 20))
        + b"".join(b"<a href=http://a.test%s/>x</a>" % (b"." * long) for long in range(1, 2000, 20))
    ),
    "deep": _heap(b"<div>"),
    "deep-formatting": _heap(b"<b><i><font><p>"),
    "misnested": _heap(b"<b><i><p></b></i>"),
    "tables": _heap(b"<table><tr><td>"),
    "doubtful": _whole(b"\0" + b"<a href=/x><b>" * (BODY_BYTES // 14)),
    "attributes": _whole(b"<a " + b"".join(b"a%d=1 " % number for number in range(120_000)) + b">"),
    "huge-attribute": _whole(b"<a href='" + b"x" * BODY_BYTES + b"'>"),
    "huge-tag": _whole(b"<" + b"x" * BODY_BYTES),
    "huge-title": _whole(b"<title>" + b"word " * (BODY_BYTES // 5)),
    "nulls": _whole(bytes(BODY_BYTES)),
    "metas": _numbered(b"<meta name=robots content=a%d>"),
    "refreshes": _numbered(b"<meta http-equiv=refresh content='0;url=/r/%d'>"),
    "alternates": _numbered(b"<link rel='canonical alternate' hreflang=x href=/c/%d>"),
    "carets": _numbered(b"<a href='^%d'>x"),
    "bad-urls": _numbered(b"<a href='http://[%d'>x"),
    "script": _heap(b"<script><!--<script>"),
    "sitemap": _wire(counted(_SITEMAP, b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n")),
    "charset": _wire(counted(b"<meta charset=iso-2022-jp>" + b'\x1b$B$"\x1b(B' * 100_000, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")),
}  # fmt: skip

_WILD = b"".join(b"Disallow: /*x%d*y\n" % number for number in range(24_000))
ROBOTS: dict[str, Behaviour] = {
    "robots-wild": _wire(counted(b"User-agent: *\n" + _WILD, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")),
    "robots-halfway": _wire(
        counted(
            b"User-agent: *\n" + b"".join(b"Disallow: /*p*%d\n" % number for number in range(24_000)),
            b"HTTP/1.1 200 OK\r\n",
        )
    ),
    "robots-stars": _wire(counted(b"User-agent: *\nDisallow: /z" + b"*" * 400_000, b"HTTP/1.1 200 OK\r\n")),
    "robots-endless": _endless(b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\n", b"Allow: /%s\n" * 500),
    "robots-rubbish": lambda _path, chance: iter((counted(chance.randbytes(400_000), b"HTTP/1.1 200 OK\r\n"),)),
    "robots-html": _wire(counted(b"<html>" * 50_000)),
    "robots-bomb": _coded(b"gzip", _GZIPPED),
    "robots-loop": _redirect("/robots.txt", "/robots.txt?x"),
    "robots-silence": _wire(HOLD_S),
    "robots-reset": _wire(RESET),
    "robots-fuzzed": fuzzed,
}
"""Hosts whose robots.txt is hostile; their pages are ordinary."""
