"""Seeds from documents that list URLs: sitemaps, feeds, OPML outlines, JSON feeds, compressed or not (S1).

A file is read here, in a stream; what is found is a seed like a line of a list. A URL is not read here: it is a seed
that says of itself to be a list, and the crawl fetches it as politely as anything else; what it names are seeds then.
"""

from __future__ import annotations

import io
import stat
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from nephila.model.errors import UsageError
from nephila.model.listing import ListKind
from nephila.parse import ListReader, list_kind
from nephila.seeds import FileLines, Seed, SeedSource, StreamLines, TextSeeds

PIECE = 65_536
MAX_BYTES = 1 << 40
"""Of a file that somebody gave there may be any amount: it is read piece by piece."""


class UrlSeeds:
    """One URL whose entries are the seeds."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __iter__(self) -> Iterator[Seed]:
        yield Seed(self._url, "list of seeds", lists=True)


class StreamSeeds:
    """What a stream lists: the entries of a document, or one seed a line."""

    def __init__(self, name: str, stream: Callable[[], io.BufferedReader]) -> None:
        self._name = name
        self._stream = stream

    def __iter__(self) -> Iterator[Seed]:
        try:
            with self._stream() as stream:
                if is_list(stream.peek(PIECE)[:PIECE]):
                    yield from self._entries(stream)
                else:
                    yield from TextSeeds(StreamLines(stream, self._name))
        except OSError as error:
            hint = "check that it can be read"
            raise UsageError(f"the seeds in {self._name} cannot be read: {error.strerror or error}", hint) from error

    def _entries(self, stream: io.BufferedReader) -> Iterator[Seed]:
        reader = ListReader("", max_bytes=MAX_BYTES)
        number = 0
        going = True
        while going and not reader.over:
            piece = stream.read(PIECE)
            going = bool(piece)
            for entry in chain.from_iterable(reader.feed(piece) if piece else [reader.close()]):
                number += 1
                lists = entry.is_list and reader.kind is ListKind.INDEX
                yield Seed(entry.url, f"{self._name}: entry {number}", lists=lists)
        if not number:
            raise UsageError(f"{self._name} names no URL", "give a sitemap, a feed or an outline with absolute URLs")


def is_list(head: bytes) -> bool:
    """Whether these are the first bytes of a document that lists URLs; a plain text with one a line is none."""
    if head.startswith(b"\x1f\x8b"):
        return list_kind(head, "", "application/gzip") is not None
    start = head[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{"):
        return b"jsonfeed.org" in head
    return start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")) and list_kind(head, "", "text/xml") is not None


def seeds_in(path: Path) -> SeedSource:
    """The seeds of a file, whatever it lists them as; `UsageError` at once for what cannot be read."""
    try:
        mode, head = path.stat().st_mode, b""
        if stat.S_ISREG(mode):
            with path.open("rb") as stream:
                head = stream.read(PIECE)
    except OSError:
        return TextSeeds(FileLines(path))  # says what is wrong with it
    if stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and not is_list(head)):
        return TextSeeds(FileLines(path))
    return StreamSeeds(f"file {path.name}", lambda: path.open("rb"))
