"""From a line of the catalogue to the capture in the archive, and from there to what a writer is given."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial

from nephila.engines.disk import DiskFile
from nephila.export import Document, LeftOut
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import StorageError
from nephila.model.exchange import Fetched
from nephila.model.record import Capture, SegmentId
from nephila.model.settings import Settings
from nephila.node.archiving import payload_decoder
from nephila.node.reading import HTML_TYPES, page_reader, type_of
from nephila.parse import MAX_BYTES, decide_charset, decode, readable_markdown, readable_text
from nephila.pipeline.capturing import NOTES
from nephila.pipeline.extending import NOTE_FIELD, links_in
from nephila.pipeline.rendering import rendered_view
from nephila.store.originals import Originals
from nephila.store.readback import capture_of, units
from nephila.store.reader import DamagedArchiveError, WarcReader, WarcRecord
from nephila.store.tombstone import is_tombstone

from .order import View
from .source import Source

KEPT_BYTES = 32_000_000
"""Of bodies that others are copies of: most copies are of a few."""
_NOT_MODIFIED = 304
_NOT_FOUND = frozenset(NOTES.values())
"""How metadata say that a capture is no page: it stands for a missing one, or a probe brought it."""


class LeftOutError(Exception):
    """A capture that was chosen by its row turns out not to belong, or cannot be read."""

    def __init__(self, reason: LeftOut, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Found:
    """A capture as it lies in the archive."""

    row: CaptureRow
    unit: list[WarcRecord]
    last_seen_at: int


class ArchiveReading:
    """Opens files of the archive, one at a time in their order, and a second for copies."""

    def __init__(self, source: Source, originals: Originals) -> None:
        self._source = source
        self._originals = originals
        self._decode = payload_decoder(source.settings)
        self._file = _OpenFile(source)
        self._other = _OpenFile(source)
        self._kept: OrderedDict[str, Fetched] = OrderedDict()
        self._kept_bytes = 0

    def found(self, row: CaptureRow, last_seen_at: int) -> Found:
        """The records of a capture. Raises `LeftOutError`."""
        unit = self._file.unit(row.segment, row.offset)
        if unit[-1].end != row.end or unit[0].kind not in {"response", "revisit"}:
            raise LeftOutError(LeftOut.DAMAGED, f"{row.segment} holds something else at byte {row.offset}")
        return Found(row, unit, last_seen_at)

    def raw(self, found: Found) -> bytes:
        """Its bytes as they lie in the file."""
        return self._file.bytes(found.row.segment, found.row.offset, found.row.end)

    def capture(self, found: Found) -> Capture:
        """What its records say; a copy has no body. Raises `LeftOutError`."""
        try:
            return capture_of(found.unit, found.row.segment, self._decode)[0]
        except DamagedArchiveError as error:
            raise LeftOutError(LeftOut.DAMAGED, str(error)) from error

    def whole(self, found: Found, capture: Capture) -> Fetched:
        """The answer with its body, that of a copy from where it lies. Raises `LeftOutError`."""
        fetched = capture.fetched
        if found.row.kind != "revisit":
            return fetched
        original = self._original(found.row.payload_digest)
        if found.row.status == _NOT_MODIFIED:
            return replace(original, url=fetched.url)
        return replace(fetched, payload=original.payload, body=original.body)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        self._other.close()

    def _original(self, digest: str) -> Fetched:
        if digest in self._kept:
            self._kept.move_to_end(digest)
            return self._kept[digest]
        place = self._originals.find(digest)
        if place is None:
            raise LeftOutError(LeftOut.NO_ORIGINAL)
        unit = self._other.unit(place.segment, place.offset)
        try:
            fetched = capture_of(unit, place.segment, self._decode)[0].fetched
        except DamagedArchiveError as error:
            raise LeftOutError(LeftOut.DAMAGED, str(error)) from error
        self._keep(digest, fetched)
        return fetched

    def _keep(self, digest: str, fetched: Fetched) -> None:
        size = len(fetched.body) + len(fetched.payload)
        if size > KEPT_BYTES:
            return
        self._kept[digest] = fetched
        self._kept_bytes += size
        while self._kept_bytes > KEPT_BYTES:
            _, old = self._kept.popitem(last=False)
            self._kept_bytes -= len(old.body) + len(old.payload)


class _OpenFile:
    """The file of the archive that was asked for last."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._name = SegmentId("")
        self._file: DiskFile | None = None
        self._reader: WarcReader | None = None

    def unit(self, name: SegmentId, offset: int) -> list[WarcRecord]:
        """The records of the capture at an offset. Raises `LeftOutError`."""
        try:
            unit = next(units(self._opened(name).at(offset)), None)
        except DamagedArchiveError as error:
            raise LeftOutError(LeftOut.DAMAGED, str(error)) from error
        except OSError as error:
            raise StorageError(f"the archive file {name} cannot be read: {error.strerror or error}") from error
        if unit is None:
            raise LeftOutError(LeftOut.DAMAGED, f"{name} ends before byte {offset}")
        if is_tombstone(unit[0]):
            raise LeftOutError(LeftOut.TAKEN_DOWN)
        return unit

    def bytes(self, name: SegmentId, start: int, end: int) -> bytes:
        """A stretch of a file."""
        self._opened(name)
        if self._file is None:
            raise RuntimeError("an open file has a file")
        try:
            return self._file.read_at(start, end - start)
        except OSError as error:
            raise StorageError(f"the archive file {name} cannot be read: {error.strerror or error}") from error

    def _opened(self, name: SegmentId) -> WarcReader:
        if self._reader is None or name != self._name:
            self.close()
            try:
                self._file = self._source.disk.open(self._source.archives / name)
            except FileNotFoundError as error:
                raise LeftOutError(LeftOut.DAMAGED, f"the archive file {name} is missing") from error
            self._name, self._reader = name, WarcReader(self._file, name)
        return self._reader

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._reader = None


class Documents:
    """Makes documents of captures."""

    def __init__(self, reading: ArchiveReading, settings: Settings, view: View, *, bodies: bool) -> None:
        """Without `bodies`, pages whose bytes are not at hand are told by what was written down beside them."""
        self._reading = reading
        self._read = page_reader(settings)
        self._view = view
        self._bodies = bodies

    def document(self, found: Found) -> Document:
        """What a writer is given. Raises `LeftOutError`."""
        capture = self._reading.capture(found)
        if any(name in _NOT_FOUND for name, _ in capture.notes):
            raise LeftOutError(LeftOut.NOT_FOUND)
        try:
            shown = self._reading.whole(found, capture)
        except LeftOutError as error:
            if self._bodies or error.reason is not LeftOut.NO_ORIGINAL:
                raise
            shown = capture.fetched
        rendered = capture.rendered if self._view is View.RENDERED else None
        if rendered is not None:
            shown = rendered_view(shown, rendered)
        return self._made(found, capture, shown, rendered=rendered is not None)

    def _made(self, found: Found, capture: Capture, shown: Fetched, *, rendered: bool) -> Document:
        row, body, kind = found.row, shown.body, type_of(shown)
        page = self._read(shown) if body else None
        charset = page.charset if page is not None else _charset_of(shown, kind)
        directives = dict(capture.notes).get("directives", "").split()
        fields = [value.partition(" ") for note, value in capture.notes if note == NOTE_FIELD]
        return Document(
            row=row,
            headers=capture.fetched.headers,
            body=body,
            media_type=kind,
            charset=charset,
            title=page.title if page is not None else row.title,
            language=(page.language if page is not None else "") or row.language,
            links=page.links if page is not None else links_in(capture),
            nofollow=page.directives.nofollow if page is not None else "nofollow" in directives,
            noindex=row.noindex or (page is not None and page.directives.noindex),
            noarchive=row.noarchive or (page is not None and page.directives.noarchive),
            rendered=rendered,
            last_seen_at=found.last_seen_at,
            extracted=[(name, text) for name, _, text in fields],
            text=partial(_text_of, body, kind, charset),
            markdown=partial(_markdown_of, body, kind, charset, page.base if page is not None else row.url),
        )


def _charset_of(shown: Fetched, kind: str) -> str:
    return decide_charset(shown.body, shown.header("content-type")) if shown.body and kind.startswith("text/") else ""


def _decoded(body: bytes, charset: str) -> str:
    return decode(body[:MAX_BYTES], charset) if charset else ""


def _text_of(body: bytes, kind: str, charset: str) -> str:
    """The main text of HTML, all of any other text, nothing of what is none."""
    text = _decoded(body, charset)
    return readable_text(text) if kind in HTML_TYPES else text


def _markdown_of(body: bytes, kind: str, charset: str, base: str) -> str:
    text = _decoded(body, charset)
    return readable_markdown(text, base) if kind in HTML_TYPES else text
