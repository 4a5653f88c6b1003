"""Documents that list URLs, from bytes to entries, in a stream: what a sitemap, a feed or an outline says (X3, S1).

What a document is, its content decides: the first element of XML, the first lines of text, whatever its type or its
name claim. Compressed ones (``sitemap.xml.gz``, sometimes twice) are unpacked on the way. Pieces go in, entries come
out as soon as they are whole; a broken document gives what was read so far.

What must stay true: memory is bounded by the piece and one entry, not by the document; no more than `max_bytes` are
read after unpacking (the protocol's 50 MB, whatever they were packed into), nor come out of any of the packings; any
bytes are read without an exception.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from nephila.model.listing import Listed, ListKind
from nephila.urls import Base, resolve

from .feeds import MAX_JSON, FeedReader, OutlineReader, json_feed
from .labels import encoding_of
from .markup_stream import START, MarkupStream, Token
from .media import media_type_in
from .sitemaps import SitemapReader

MAX_LIST_BYTES = 50 * 1024 * 1024
"""sitemaps.org: a sitemap must be no larger than 50 MB (52,428,800 bytes) uncompressed."""
PIECE = 65_536
_HEAD = 1024
_UNPACKED = 262_144
"""Bytes that are unpacked at once."""
_PACKED_TWICE = 2
LEAST_MEMBERS, MEMBER_BYTES = 1_000, 4096
"""Members that packed streams may have: a thousand, or as if each held so many bytes of the most that is read.
Compression by blocks makes them of 64 KB; one that holds nothing costs some ten microseconds."""
KIND_BYTES = 1 << 18
"""What is unpacked of a body to tell whether it is a list: its root stands at its beginning."""
_LINES_TRIED = 10
_MAX_LINE = 65_536

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_ROOTS = {
    "urlset": ListKind.SITEMAP,
    "url": ListKind.SITEMAP,
    "sitemapindex": ListKind.INDEX,
    "sitemap": ListKind.INDEX,
    "rss": ListKind.FEED,
    "rdf": ListKind.FEED,
    "feed": ListKind.FEED,
    "opml": ListKind.OUTLINE,
}
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_LIST_STARTS = (b"<?xml", b"<urlset", b"<sitemapindex", b"<rss", b"<feed", b"<rdf:RDF", b"<opml", b"\x1f\x8b")
_NEVER = ("image/", "audio/", "video/", "font/", "text/css", "text/javascript", "application/pdf")
_BARE = re.compile(r"www\.[^\s/]+\.", re.IGNORECASE)
_LINE = re.compile(r"(?:https?://|www\.)\S+$", re.IGNORECASE)
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"


class ListReader:
    """Reads one document. `kind` is known after the first pieces; while it is None nothing was found to be listed."""

    def __init__(self, url: str, content_type: str = "", max_bytes: int = MAX_LIST_BYTES) -> None:
        self._url = url
        self._base = Base.parse(url)
        self._content_type = content_type
        self._left = max_bytes
        self._unpackers: list[zlib._Decompress] = []
        self._rooms = [max_bytes] * _PACKED_TWICE
        """Bytes that may still come out of each packing: what is packed twice may be empty after all."""
        self._members = max(LEAST_MEMBERS, max_bytes // MEMBER_BYTES)
        self._head: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._stream: MarkupStream | None = None
        self._reader: SitemapReader | FeedReader | OutlineReader | None = None
        self._json: list[str] | None = None
        self._json_length = 0
        self._lines: str | None = None
        self._strange = 0
        self._found: list[Listed] = []
        self.kind: ListKind | None = None
        self.counts: Counter[str] = Counter()
        """What is in it beside entries: images, videos, news, alternates (link), what is no address (malformed)."""
        self.over = False
        """There is nothing more to be had: it is no list, or its limit is reached."""

    def feed(self, piece: bytes) -> Iterator[list[Listed]]:
        """The entries that are whole with these bytes, some at a time: a few bytes may hold very many when unpacked."""
        if self.over or self.counts["damaged"]:
            return
        for _ in self._bytes(piece, 0):
            if found := self._taken():
                yield found

    def close(self, *, cut: bool = False) -> list[Listed]:
        """The last entries; `cut` where the document did not end here by itself."""
        if self._head is not None and not self.over:
            self._begin(self._head)
        if not self.over and self._decoder is not None:
            self._text(self._decoder.decode(b"", final=True))
        if self._stream is not None and self._reader is not None:
            self._stream.close()
            self._reader.close()
        if self._lines is not None and not cut and not self.over:
            self._line(self._lines)
        if self._json is not None and not self.over:
            self._whole_json()
        if self._lines is not None and self.kind is None:
            self._found = []
        self.over = True
        return self._taken()

    def clean(self, text: str) -> str:
        """A location as an absolute URL of the web, or nothing."""
        text = text.strip().strip(_INVISIBLE).strip() if not text.isascii() else text.strip()
        if not text or len(text) > _MAX_LINE:
            return ""
        if text[0] in "wW" and _BARE.match(text):
            text = "http://" + text
        url = self._base.join(text) if self._base is not None else resolve(None, text)
        if url is None or not url.startswith(("http://", "https://")):
            return ""
        return url.partition("#")[0] if "#" in url else url

    def _taken(self) -> list[Listed]:
        found, self._found = self._found, []
        if self._reader is not None:
            found += self._reader.found
            self._reader.found = []
        return found

    # Bytes: packed, then counted, then decoded

    def _bytes(self, piece: bytes, depth: int) -> Iterator[None]:
        """Take bytes that were unpacked `depth` times; stops now and then, for what was found to be taken."""
        if depth < len(self._unpackers):
            yield from self._unpack(piece, depth)
            return
        if self._head is None:
            self._counted(piece)
            yield
            return
        self._head += piece
        if self._head.startswith(b"\x1f\x8b") and depth < _PACKED_TWICE:
            head, self._head = self._head, b""
            self._unpackers.append(zlib.decompressobj(wbits=31))
            yield from self._unpack(head, depth)
        elif len(self._head) >= _HEAD:
            self._begin(self._head)
            yield

    def _unpack(self, piece: bytes, depth: int) -> Iterator[None]:
        unpacker = self._unpackers[depth]
        while piece and not self.over:
            if unpacker.eof:  # further members; what is no member is padding
                if not piece.startswith(b"\x1f\x8b"):
                    return
                unpacker = self._unpackers[depth] = zlib.decompressobj(wbits=31)
                self._members -= 1
            before = unpacker.copy()
            try:
                out = unpacker.decompress(piece, _UNPACKED)
            except zlib.error:
                yield from self._bytes(_until_damage(before, piece), depth + 1)
                self._end_of_packed()
                return
            piece = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            self._rooms[depth] -= len(out)
            if out:
                yield from self._bytes(out, depth + 1)
            elif not unpacker.eof:
                return
            if self._rooms[depth] < 0 or self._members < 0:
                self._end_of_room()

    def _end_of_room(self) -> None:
        """More than is unpacked: what was read so far counts, and nothing behind it."""
        if self._head is not None:
            self._begin(self._head)
        self.counts["over_limit"] += not self.counts["over_limit"]
        self.over = True

    def _end_of_packed(self) -> None:
        """What cannot be unpacked ends the document: what came before it counts."""
        self.counts["damaged"] += 1
        if self._head is not None:
            self._begin(self._head)
        self.over = self.over or self.kind is None
        self._left = 0

    def _begin(self, head: bytes) -> None:
        """The first bytes are there: decide the charset."""
        self._head = None
        name = _charset(head, self._content_type)
        self._decoder = codecs.getincrementaldecoder(name)("replace")
        for mark, _ in _BOMS:
            head = head.removeprefix(mark)
        self._counted(head)

    def _counted(self, piece: bytes) -> None:
        if len(piece) > self._left:
            piece = piece[: self._left]
            self.counts["over_limit"] += 1
        self._left -= len(piece)
        if piece and self._decoder is not None:
            self._text(self._decoder.decode(piece))
        if self.counts["over_limit"]:
            self.over = True

    # Text: markup, lines or JSON

    def _text(self, text: str) -> None:
        if self._stream is None and self._lines is None and self._json is None:
            text = text.lstrip().lstrip("\ufeff").lstrip()
            if not text:
                return
            if text[0] == "<":
                self._stream = MarkupStream(self._token, self._skim)
            elif text[0] == "{":
                self._json = []
            else:
                self._lines = ""
        if self._stream is not None:
            self._stream.feed(text)
        elif self._json is not None:
            self._json.append(text)
            self._json_length += len(text)
            self.over = self.over or self._json_length > MAX_JSON
        else:
            self._text_lines(text)

    def _token(self, token: Token) -> None:
        if self._reader is not None:
            self._reader.take(token)
        elif token[0] == START:
            self._root(token[1], token[2])
            if self.over and self._stream is not None:
                self._stream.over = True

    def _skim(self, text: str, at: int) -> int:
        return self._reader.skim(text, at) if isinstance(self._reader, SitemapReader) else at

    def _root(self, name: str, inside: str) -> None:
        self.kind = _ROOTS.get(name.rpartition(":")[2].lower())
        match self.kind:
            case ListKind.SITEMAP | ListKind.INDEX:
                self._reader = SitemapReader(name, self.clean, self.counts)
                if name.rpartition(":")[2].lower() in {"url", "sitemap"}:
                    self._reader.take((START, name, inside))
            case ListKind.FEED:
                self._reader = FeedReader(inside, self.clean, self.counts)
            case ListKind.OUTLINE:
                self._reader = OutlineReader(self.clean, self.counts)
            case _:
                self.over = True

    def _text_lines(self, text: str) -> None:
        lines = ((self._lines or "") + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._lines = lines.pop()[:_MAX_LINE]
        for line in lines:
            if self.over:
                return
            self._line(line)

    def _line(self, line: str) -> None:
        line = line.strip().strip(_INVISIBLE)
        if not line or line.startswith("#"):
            return
        url = self.clean(line) if _LINE.match(line) else ""
        if url:
            self.kind = ListKind.TEXT
            self._found.append(Listed(url))
            return
        self.counts["malformed"] += 1
        self._strange += 1
        if self.kind is None and self._strange >= _LINES_TRIED:
            self.over = True

    def _whole_json(self) -> None:
        found = json_feed("".join(self._json or ()), self.clean)
        if found is not None:
            self.kind = ListKind.FEED
            self._found += found


def read_list(
    body: bytes, url: str, content_type: str = "", max_bytes: int = MAX_LIST_BYTES, *, cut: bool = False
) -> Iterator[tuple[ListReader, list[Listed]]]:
    """The entries of a whole document, piece by piece, with the reader that knows what it is. Ends with the close."""
    reader = ListReader(url, content_type, max_bytes)
    view = memoryview(body)
    for at in range(0, len(body), PIECE):
        if reader.over:
            break
        for found in reader.feed(bytes(view[at : at + PIECE])):
            yield reader, found
    yield reader, reader.close(cut=cut)


def list_kind(body: bytes, content_type: str, essence: str) -> ListKind | None:
    """What a body is a list of, by its content; `essence` is its media type. Most bodies are not looked into.

    A page is taken for a list only where it says so itself: it begins as XML, packed or not, and its root is that of a
    list. A text is one only where each of its first lines is an address.
    """
    if essence in _HTML_TYPES and not body[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_LIST_STARTS):
        return None
    if essence.startswith(_NEVER):
        return None
    reader = ListReader("http://list.invalid/", content_type, KIND_BYTES)
    for _ in reader.feed(body[:PIECE]):
        break  # there is an entry: that is enough
    if reader.kind is None:
        reader.close(cut=len(body) > PIECE)
    return None if reader.kind is ListKind.TEXT and reader.counts["malformed"] else reader.kind


def _until_damage(unpacker: zlib._Decompress, piece: bytes) -> bytes:
    """What comes before the byte that cannot be unpacked: of a piece with one in it zlib gives nothing at all."""
    found = bytearray()
    with suppress(zlib.error):
        for at in range(len(piece)):
            found += unpacker.decompress(piece[at : at + 1])
    return bytes(found)


def _charset(head: bytes, content_type: str) -> str:
    """By the byte order mark, the header, the XML declaration, in this order; else UTF-8 (RFC 7303, 3).

    What says that it is UTF-16 and has no zero byte is none: so do programs that write a text as if to memory, and then
    send it as UTF-8.
    """
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    if head[:2] == b"<\0" and head[3:4] == b"\0":
        return "utf-16-le"
    if head[:3] == b"\0<\0":
        return "utf-16-be"
    media = media_type_in(content_type) if content_type else None
    declared = _DECLARED.match(head)
    labels = [media.parameters.get("charset", "") if media else "", declared[1].decode() if declared else ""]
    name = next((known for label in labels if label and (known := encoding_of(label))), "utf-8")
    if name.startswith("UTF-16") and b"\0" not in head:
        return "utf-8"
    try:
        codecs.getincrementaldecoder(name)
    except LookupError:  # an encoding that only browsers know; addresses are ASCII in all of them
        return "latin-1"
    return name
