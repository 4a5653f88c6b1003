"""Seeds from documents that list URLs: sitemaps, feeds, OPML outlines, JSON feeds, compressed or not (S1).

A file is read here, in a stream; what is found is a seed like a line of a list. A URL is not read here: it is a seed
that says of itself to be a list, and the crawl fetches it as politely as anything else; what it names are seeds then.
"""

from __future__ import annotations

import io
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

from nephila.interfaces.events import EventSink
from nephila.interfaces.listings import Listings
from nephila.model.errors import UsageError
from nephila.model.events import Event, EventKind
from nephila.model.exchange import Fetched
from nephila.model.listing import Listed, ListKind
from nephila.parse import ListReader, list_kind
from nephila.seeds import FileLines, Seed, SeedSource, SeedUrl, StreamLines, TextSeeds, spell
from nephila.urls import Address, Fingerprint, mask_secrets, resolve

PIECE = 65_536
LINES_TRIED = 100
"""Of an answer to tell whether it is a list: one of them has to be a seed."""
LINES_TOLD = 3
TOLD_CHARACTERS = 80
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


# Of an answer


def has_seeds(fetched: Fetched) -> bool:
    """Whether an answer is a text with a URL or domain a line."""
    if fetched.body[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", b"{")):
        return False
    try:
        return any(isinstance(spell(seed.text), SeedUrl) for seed in islice(_lines_of(fetched), LINES_TRIED))
    except UsageError:  # it is no text
        return False


def read_seeds(fetched: Fetched, other: Counter[str], broken: list[str]) -> Iterator[list[Listed]]:
    """The seeds of such a text, as those of a file; of lines that are none, the first few are told."""
    for seed in _lines_of(fetched):
        spelled = spell(seed.text)
        url = resolve(None, spelled.address_url) if isinstance(spelled, SeedUrl) else None
        if isinstance(spelled, SeedUrl) and url is not None:
            yield [Listed(url.partition("#")[0], bare=spelled.fallback is not None)]
            continue
        other["malformed"] += 1
        if len(broken) < LINES_TOLD:
            why = "it is malformed" if isinstance(spelled, SeedUrl) else spelled.detail
            broken.append(f"{seed.origin.rpartition(':')[2]} ({mask_secrets(seed.text[:TOLD_CHARACTERS])}): {why}")


def _lines_of(fetched: Fetched) -> Iterator[Seed]:
    body = fetched.body
    if fetched.truncated is not None:  # half a line may be another seed
        body = body[: body.rfind(b"\n") + 1]
    yield from TextSeeds(StreamLines(io.BufferedReader(io.BytesIO(body)), "line"))


class UselessLists:
    """An `EventSink` that warns of lists of seeds that give none, and says why."""

    def __init__(self, listings: Listings, identify: Callable[[str], Address | None], to: EventSink) -> None:
        self._listings = listings
        self._identify = identify
        self._to = to

    def emit(self, event: Event) -> None:
        """Look at how a seed has ended."""
        if event.depth or not event.fingerprint or (why := self._why(event)) is None:
            return
        note = self._listings.list_of(Fingerprint(event.fingerprint))
        if note is not None and note.seeds:
            detail = f"the list of seeds {mask_secrets(event.url)} gave none: {why}"
            self._to.emit(Event(EventKind.WARNING, event.at, reason="seeds", detail=detail))

    def _why(self, event: Event) -> str | None:
        """Why what has ended so is of no use; None where it is, or may still be."""
        match event.kind:
            case EventKind.FETCH_OK if event.status is not None:
                return _why_not_read(event.status, event)
            case EventKind.REDIRECT:
                target = self._identify(event.detail)
                same = target is not None and target.fingerprint == event.fingerprint
                return None if same else f"it redirects to {mask_secrets(event.detail)}, which is to be given instead"
            case EventKind.LISTED if not dict(event.counts).get("entries"):
                return "no URL or domain is in it"
            case EventKind.ROBOTS_DISALLOW:
                return "robots.txt forbids it"
            case EventKind.DEAD_LETTER | EventKind.EXCLUDED_BY_RULE if event.reason:
                return event.detail or event.reason
            case _:
                return None

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is to be closed."""


def _why_not_read(status: int, event: Event) -> str | None:
    if status == 429 or status >= 500 or 300 <= status < 400:  # it is asked again, or told by another event
        return None
    if status >= 400:
        return f"HTTP {status}"
    if event.reason in set(ListKind):
        return None
    kind = f" ({event.content_type})" if event.content_type else ""
    return f"what came is no list of URLs or domains{kind}"
