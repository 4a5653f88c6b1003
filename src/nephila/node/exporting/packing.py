"""A crawl as WACZ: records as they lie in the archive, copies that a replay can resolve, pages with their text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from nephila.export import LeftOut
from nephila.export.selection import NOT_MODIFIED, OK
from nephila.export.target import draft_file
from nephila.model.record import Original
from nephila.node.clock import SystemClock
from nephila.node.reading import HTML_TYPES
from nephila.store.originals import Originals
from nephila.store.repacking import as_gzip
from nephila.store.wacz import PageLine, WaczFile
from nephila.store.warc import parse_date

from .reading import ArchiveReading, Documents, Found, LeftOutError


class WaczSink:
    """Implements `forms.Sink`."""

    def __init__(self, file: WaczFile, reading: ArchiveReading, documents: Documents, originals: Originals) -> None:
        self._file = file
        self._reading = reading
        self._documents = documents
        self._originals = originals

    def add(self, found: Found) -> None:
        """As the protocol."""
        page = self._page(found)
        row, unit, raw = as_gzip(found.row, found.unit, self._reading.raw(found))
        found = replace(found, row=row, unit=unit)
        if found.row.kind == "revisit" and found.row.status != NOT_MODIFIED:
            self._copy(found, raw)
        else:
            self._file.add(found.row, raw, found.unit)
            if found.row.kind == "response" and not found.row.truncated:
                self._originals.note(_as_original(found))
        if page is not None:
            self._file.add_page(page)

    def _copy(self, found: Found, raw: bytes) -> None:
        """A copy refers to a record that is in the file, or gets its payload and is one that others refer to."""
        row, answer = found.row, found.unit[0]
        noted, rest = self._originals.noted(row.payload_digest), raw[answer.length :]
        capture = self._reading.capture(found)
        if noted is None:
            whole = self._reading.whole(found, capture)
            self._file.add_filled(row, answer, rest, whole.head, whole.payload)
            self._originals.note(_as_original(found))
        elif answer.get("warc-refers-to").strip("<>") == noted.record_id:
            self._file.add(row, raw, found.unit)
        else:
            self._file.add_referring(row, answer, rest, capture.fetched.head, noted)

    def _page(self, found: Found) -> PageLine | None:
        """What the list of pages says of it; None for what is no page to begin with."""
        row = found.row
        if row.status != OK or not row.fingerprint or not row.content_hash:
            return None
        try:
            document = self._documents.document(found)
        except LeftOutError as error:
            if error.reason is LeftOut.NOT_FOUND:
                return None
            raise
        if document.media_type not in HTML_TYPES:
            return None
        return PageLine(row.url, row.at, document.title, document.text())


def _as_original(found: Found) -> Original:
    answer = found.unit[0]
    date = parse_date(answer.get("warc-date"))
    return Original(answer.target, answer.record_id, date, found.row.payload_digest, "")


@contextmanager
def wacz_sink(
    target: Path, scratch: Path, title: str, reading: ArchiveReading, documents: Documents, originals: Originals
) -> Iterator[WaczSink]:
    """The sink of a WACZ file, which is in its place at the end of the block."""
    from nephila import VERSION  # noqa: PLC0415 - the package is whole by now

    with draft_file(target) as draft, draft.open("w+b") as stream:
        now = SystemClock().wall_ms()
        file = WaczFile(stream, scratch, software=f"Nephila {VERSION}", title=title, created_at=now)
        try:
            yield WaczSink(file, reading, documents, originals)
            file.close()
        except BaseException:
            file.abandon()
            raise
