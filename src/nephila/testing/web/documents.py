"""The bodies that pages serve: HTML in several charsets, PDF, PNG, JSON.

A body is a function of the page and of its version, and of nothing else. Links stand where browsers look for them: in
`a`, `area`, `iframe` and `link`; among them what is no link to follow: mail addresses, scripts.
"""

from __future__ import annotations

import json
import struct
import zlib
from functools import lru_cache
from html import escape
from typing import NamedTuple

from .atlas import Atlas, Spot
from .draw import Salt, draw, fraction
from .links import Link, article_links, family_links, links_of, menu_links
from .roles import Role
from .spelling import Speller
from .words import PHRASES, SentenceBank, title

_HEADER, _META, _BOM = "header", "meta", "bom"
_CHARSETS = (
    (_META, "utf-8"),
    (_BOM, "utf-8"),
    (_HEADER, "iso-8859-1"),
    (_META, "windows-1252"),
    (_HEADER, "windows-1251"),
    (_META, "windows-1251"),
    (_META, "shift_jis"),
    (_HEADER, "koi8-r"),
)
_NO_LINKS = (
    '<a href="mailto:post@example.test">write to us</a> <a href="javascript:void(0)">open</a> '
    '<a href="tel:+490000000">call</a> <a name="here">here</a>'
)
_LEAF_BYTES = 600
_NEAR_BYTES = 16_000
"""Long enough that a word more or less hardly shows in what pages are compared by."""
_MENUS_KEPT = 2048


class Document(NamedTuple):
    """A body and its Content-Type."""

    body: bytes
    content_type: str


class DocumentMaker:
    """Makes the body of any page."""

    def __init__(self, atlas: Atlas) -> None:
        self._atlas = atlas
        self._spec = atlas.hosts.spec
        self._bank = SentenceBank(self._spec.seed)
        self._menu = lru_cache(maxsize=_MENUS_KEPT)(self._write_menu)

    def lend(self, bank: SentenceBank) -> None:
        """Take the sentences from there: making some costs more than a small crawl."""
        self._bank = bank

    def document(self, spot: Spot, version: int = 0) -> Document:
        """What a page serves when it answers with 200."""
        match self._atlas.role(self._atlas.hosts[spot.host], spot.page):
            case Role.ARTICLE:
                return self._article(spot, version)
            case Role.DUPLICATE:
                return self._family_body(self.family(spot))
            case Role.NEAR:
                return self._near_copy(spot)
            case Role.PDF | Role.PNG | Role.JSON as role if spot.step == 0:
                return self._no_page(spot, role)
            case role:
                return self._leaf(spot, role)

    def family(self, spot: Spot) -> int:
        """The family of a duplicate: every second one keeps to its host, the others are spread over all."""
        spec = self._spec
        bits = draw(spec.seed, Salt.FAMILY, spot.host, spot.page)
        if bits & 1:
            return -1 - spot.host
        return (bits >> 1) % max(1, round(spec.pages * spec.page_mix.duplicate / 6))

    def near_family(self, spot: Spot) -> int:
        """The family of a near-copy: spread over all hosts, some five members each."""
        bits = draw(self._spec.seed, Salt.NEAR, spot.host, spot.page)
        return bits % max(1, round(self._spec.pages * self._spec.page_mix.near / 5))

    def _title(self, spot: Spot) -> str:
        return title(draw(self._spec.seed, Salt.WORDS, spot.host + 1, spot.page << 8))

    def _article(self, spot: Spot, version: int) -> Document:
        spec, atlas = self._spec, self._atlas
        host = atlas.hosts[spot.host]
        bits = draw(spec.seed, Salt.WIRE, spot.host, spot.page)
        told, charset = _HEADER, "utf-8"
        if fraction(bits) < spec.wire.odd_charset:
            told, charset = _CHARSETS[bits % len(_CHARSETS)]
        head = [f'<meta charset="{charset}">'] if told is _META else []
        base_path = atlas.target(spot).partition("?")[0]
        if bits >> 8 & 1023 < 1024 * spec.wire.base_href:
            base_path = "/shelf/one/"
            head.append(f'<base href="{atlas.origin(host)}{base_path}">')
        if bits >> 18 & 3 == 0:
            head.append(_canonical(atlas.identity(spot)))
        menu = self._menu(spot.host)
        links = _write_links(Speller(atlas, host, base_path), article_links(atlas, host, spot.page))
        size = round(spec.page_bytes * (0.5 + fraction(draw(spec.seed, Salt.TEXT, spot.host, spot.page))))
        text_bits = draw(spec.seed, Salt.VERSION, spot.host << 32 | spot.page, version)
        prose = self._bank.passages(text_bits, size - len(menu) - sum(map(len, links)) - 400)
        prose.insert(0, f"{PHRASES[charset]}. Number {spot.page}, edition {version}.")
        text = _html(self._title(spot), head, menu, links, prose)
        mark = b"\xef\xbb\xbf" if told is _BOM else b""
        content_type = f"text/html; charset={charset}" if told is _HEADER else "text/html"
        return Document(mark + text.encode(charset, "xmlcharrefreplace"), content_type)

    def _no_page(self, spot: Spot, role: Role) -> Document:
        if role is Role.PDF:
            home, trunk, behind = (self._atlas.identity(link.spot) for link in links_of(self._atlas, spot))
            drawn, written = ([home, behind], [trunk]) if spot.page % 2 else ([home], [trunk, behind])
            return Document(_pdf(drawn, written), "application/pdf")
        if role is Role.PNG:
            return Document(_png(draw(self._spec.seed, Salt.TEXT, spot.host, spot.page)), "image/png")
        content = {"page": spot.page, "title": self._title(spot)}
        return Document(json.dumps(content).encode(), "application/json")

    def _write_menu(self, number: int) -> str:
        host = self._atlas.hosts[number]
        return "\n".join(_write_links(Speller(self._atlas, host), menu_links(self._atlas, host)))

    def _leaf(self, spot: Spot, role: Role) -> Document:
        atlas = self._atlas
        host = atlas.hosts[spot.host]
        head = []
        if spot.step == 0 and role in (Role.NOINDEX, Role.NOFOLLOW):
            head.append(f'<meta name="robots" content="{role}">')
        if role is Role.CANONICAL:
            article = Spot(spot.host, (spot.page - host.articles) % host.articles)
            head.append(_canonical(atlas.identity(article)))
        links = _write_links(Speller(atlas, host), links_of(atlas, spot))
        prose = self._bank.passages(draw(self._spec.seed, Salt.TEXT, spot.host, spot.page), _LEAF_BYTES)
        prose.append(f"Leaf {spot.page} of {host.name}, step {spot.step}.")
        return Document(_html(self._title(spot), head, "", links, prose).encode(), "text/html; charset=utf-8")

    def _family_body(self, family: int) -> Document:
        atlas, bits = self._atlas, draw(self._spec.seed, Salt.FAMILY, family)
        speller = Speller(atlas, atlas.hosts[0], absolute=True)
        links = _write_links(speller, family_links(atlas, family))
        prose = self._bank.passages(bits, self._spec.page_bytes)
        return Document(_html(title(bits), [], "", links, prose).encode(), "text/html; charset=utf-8")

    def _near_copy(self, spot: Spot) -> Document:
        """The text of the family, printed at a time of its own, with an advertisement of its own in the middle."""
        atlas, bits = self._atlas, draw(self._spec.seed, Salt.NEAR, self.near_family(spot), 1)
        own = draw(self._spec.seed, Salt.NEAR, spot.host << 32 | spot.page, 2)
        links = _write_links(Speller(atlas, atlas.hosts[spot.host]), links_of(atlas, spot))
        prose = self._bank.passages(bits, _NEAR_BYTES)
        prose.insert(len(prose) // 2, f"Advertisement: {title(own).split()[0]}.")
        prose.append(f"Printed at {own % 24:02}:{own // 24 % 60:02}:{own // 1440 % 60:02}.")
        return Document(_html(title(bits), [], "", links, prose).encode(), "text/html; charset=utf-8")


def error_document(status: int) -> Document:
    """What a server says when it has nothing to say."""
    text = f"<!doctype html><html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n"
    return Document(text.encode(), "text/html; charset=utf-8")


def _canonical(url: str) -> str:
    return f'<link rel="canonical" href="{escape(url)}">'


def _write_links(speller: Speller, links: list[Link]) -> list[str]:
    written = []
    for number, link in enumerate(links):
        href = speller.href(link)
        kind = link.bits >> 30 & 31
        if kind > 3 or link.nofollow:
            rel = ' rel="nofollow"' if link.nofollow else ""
            written.append(f'<li><a{rel} href="{href}">place {number}</a></li>')
        elif kind == 0:
            written.append(f'<map name="m{number}"><area shape="default" href="{href}" alt="place"></map>')
        elif kind == 1:
            written.append(f"<iframe src='{href}'></iframe>")
        elif kind == 2:
            written.append(f'<li><A\nclass="x" HREF="{href}" title="a > b">place {number}</A></li>')
        else:
            written.append(f'<link rel="next" href="{href}">')
    return written


def _html(heading: str, head: list[str], menu: str, links: list[str], prose: list[str]) -> str:
    return "".join(
        (
            f'<!doctype html>\n<html lang="en">\n<head>\n{"".join(head)}<title>{heading}</title>\n',
            f"</head>\n<body>\n<nav>{menu}</nav>\n<main>\n<h1>{heading}</h1>\n<p>",
            "</p>\n<p>".join(prose),
            "</p>\n</main>\n<ul>",
            "\n".join(links),
            f"</ul>\n<footer>{_NO_LINKS}</footer>\n</body>\n</html>\n",
        )
    )


def _pdf(drawn: list[str], written: list[str]) -> bytes:
    """A PDF of one page, with some links as annotations and others in its text."""
    lines = b" T* ".join(b"(see " + link.encode() + b" for more) Tj" for link in written)
    text = zlib.compress(b"BT /F1 9 Tf 11 TL 10 180 Td " + lines + b" ET")
    annotations = b"".join(
        b"<< /Type /Annot /Subtype /Link /Rect [10 10 100 30] /A << /S /URI /URI (" + link.encode() + b") >> >>"
        for link in drawn
    )
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Contents 4 0 R /Annots [%b] "
        b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>" % annotations,
        b"<< /Filter /FlateDecode /Length %d >>\nstream\n%b\nendstream" % (len(text), text),
    )
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


def _png(bits: int) -> bytes:
    """A picture of one grey dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    dot = zlib.compress(bytes((0, bits & 255)))
    comment = b"Comment\x00" + str(bits).encode()
    parts = (chunk(b"IHDR", header), chunk(b"tEXt", comment), chunk(b"IDAT", dot), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
