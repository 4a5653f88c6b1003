"""WACZ 1.1.1: captures, their index and a list of pages in one file, which replay tools open as it is (W6).

It is a ZIP file whose members are read at their offsets: WARC files and the compressed index are stored as they are,
in this order: the WARC files, written as captures come; the index, sorted, in gzip members of some thousand lines with
a list of where each begins (`index.idx`); the pages with their text; and `datapackage.json`, which has the SHA-256 of
all of them, with a digest of its own. Nothing is held in memory but what is being written: index lines are sorted on
disk (`line_sort`), pages wait in a file.

Captures are copied byte for byte, but that Zstandard becomes gzip (`repacking`). A copy of another page (a revisit)
stays one where the record that it refers to is in the file too; else it is given the payload that it stands for, for no
replay could find it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast
from uuid import UUID

from nephila.engines.disk import LocalDisk
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.record import Original, SegmentId

from . import warc
from .cdxj import cdxj_line, resource_line
from .line_sort import LineSort
from .member import deflated
from .reader import WarcRecord

VERSION = "1.1.1"
FILE_BYTES = 1 << 30
"""A WARC file in it is closed at this size, as in an archive."""
INDEX_LINES = 3_000
"""Lines of the index in one gzip member; what cdxj-indexer takes, too."""
_NOT_MODIFIED = 304
_MADE_AT = (1980, 1, 1, 0, 0, 0)
"""The time of every member: the least that a ZIP file can say, so that the same captures give the same bytes."""


class PageLine(NamedTuple):
    """A page as `pages.jsonl` lists it."""

    url: str
    at: int
    title: str
    text: str


class _Member(NamedTuple):
    """A file in it."""

    path: str
    digest: str
    size: int


class WaczFile:
    """Writes one. Every call may raise OSError; what was written then is worth nothing."""

    def __init__(self, stream: BinaryIO, scratch: Path, *, software: str, title: str, created_at: int) -> None:
        """`stream` can be sought; `scratch` is a folder for what waits, and its owner's to remove."""
        self._software, self._title, self._created_at = software, title, created_at
        self._stack = ExitStack()
        self._zip = self._stack.enter_context(_Zip(stream, "w", zipfile.ZIP_STORED, allowZip64=True))
        self._index = self._stack.enter_context(LineSort(LocalDisk(), scratch / "index"))
        self._pages = self._stack.enter_context((scratch / "pages").open("w+b"))
        self._members: list[_Member] = []
        self._file: _WarcMember | None = None
        self._files = 0

    def add(self, row: CaptureRow, raw: bytes, unit: Iterable[WarcRecord]) -> None:
        """A capture as it lies in the archive: `raw` are the bytes of all its records."""
        file = self._opened(len(raw))
        name, start = SegmentId(file.name), file.size
        file.write(raw)
        if row.status != _NOT_MODIFIED:  # as in the index beside an archive (`cdxj`)
            self._list(cdxj_line(replace(row, segment=name, offset=start)))
        for record in unit:
            if record.kind == "resource" and row.robots:
                self._list(resource_line(replace(record, offset=start + record.offset - row.offset), name))

    def add_filled(self, row: CaptureRow, answer: WarcRecord, rest: bytes, head: bytes, payload: bytes) -> None:
        """A copy with the payload that it stands for; `rest` are the bytes of its other records."""
        wire = warc.Wire(head, payload, row.payload_digest)
        record = deflated(warc.response(_exchange(answer), wire))
        self.add(replace(row, kind="response", record_length=len(record)), record + rest, ())

    def add_referring(self, row: CaptureRow, answer: WarcRecord, rest: bytes, head: bytes, original: Original) -> None:
        """A copy that refers to another record than it did."""
        revisit = warc.revisit(_exchange(answer), original, head, profile=warc.PROFILE_SAME_PAYLOAD, cut=True)
        record = deflated(revisit)
        self.add(replace(row, record_length=len(record)), record + rest, ())

    def add_page(self, page: PageLine) -> None:
        """A page that readers can begin with."""
        number = UUID(bytes=hashlib.sha256(f"{page.at} {page.url}".encode("utf-8", "replace")).digest()[:16])
        line = {"id": str(number), "url": page.url, "ts": warc.warc_date(page.at), "title": page.title}
        self._pages.write(_json({**line, "text": page.text}) + b"\n")

    def close(self) -> None:
        """Write what comes last. Not called after a failure."""
        self._finish_file()
        self._write_index()
        self._write_pages()
        resources = [
            {"name": one.path.rpartition("/")[2], "path": one.path, "hash": one.digest, "bytes": one.size}
            for one in self._members
        ]
        created = warc.warc_date(self._created_at)
        package = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "title": self._title,
            "created": created,
            "modified": created,
            "software": self._software,
            "resources": resources,
        }
        data = json.dumps(package, indent=2).encode()
        self._add_member("datapackage.json", [data], zipfile.ZIP_DEFLATED)
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(data).hexdigest()}"}
        self._add_member("datapackage-digest.json", [json.dumps(digest, indent=2).encode()], zipfile.ZIP_DEFLATED)
        self._stack.close()

    def abandon(self) -> None:
        """Let go of everything after a failure."""
        file, self._file = self._file, None
        if file is not None:
            file.abandon()
        self._zip.fp = None  # else it would write its directory, to a disk that may be full
        self._stack.close()

    # -- parts

    def _list(self, line: str) -> None:
        self._index.add(line.encode("ascii", "replace"))

    def _opened(self, more: int) -> _WarcMember:
        if self._file is not None and self._file.size + more > FILE_BYTES:
            self._finish_file()
        if self._file is None:
            self._file = _WarcMember(self._zip, f"data-{self._files:05d}.warc.gz")
            self._files += 1
            self._file.write(self._warcinfo(self._file.name))
        return self._file

    def _finish_file(self) -> None:
        if self._file is None and self._files:
            return
        file = self._opened(0)
        self._members.append(file.finished())
        self._file = None

    def _warcinfo(self, name: str) -> bytes:
        named = UUID(bytes=hashlib.sha256(f"{self._created_at} {name}".encode()).digest()[:16])
        fields = [("software", self._software), ("format", "WARC File Format 1.1"), ("isPartOf", self._title)]
        return deflated(warc.warcinfo(f"urn:uuid:{named}", self._created_at, name, fields))

    def _write_index(self) -> None:
        listing: list[str] = []
        with self._member("indexes/index.cdx.gz") as member:
            for lines in _grouped(self._index.blocks()):
                packed = gzip.compress(b"".join(lines), mtime=0)
                key = lines[0].split(b" {", 1)[0].decode("ascii")
                place = {"offset": member.size, "length": len(packed)}
                digest = f"sha256:{hashlib.sha256(packed).hexdigest()}"
                listing.append(f"{key} {json.dumps({**place, 'digest': digest, 'filename': 'index.cdx.gz'})}\n")
                member.write(packed)
        meta = json.dumps({"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"})
        text = f"!meta 0 {meta}\n{''.join(listing)}"
        self._add_member("indexes/index.idx", [text.encode("ascii")])

    def _write_pages(self) -> None:
        head = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages", "hasText": True}
        self._pages.seek(0)
        pieces = iter(lambda: self._pages.read(1 << 20), b"")
        self._add_member("pages/pages.jsonl", [_json(head) + b"\n"], zipfile.ZIP_DEFLATED, pieces)

    def _add_member(
        self, path: str, first: Iterable[bytes], packing: int = zipfile.ZIP_STORED, more: Iterable[bytes] = ()
    ) -> None:
        with self._member(path, packing) as member:
            for pieces in (first, more):
                for piece in pieces:
                    member.write(piece)

    @contextmanager
    def _member(self, path: str, packing: int = zipfile.ZIP_STORED) -> Iterator[_ZipMember]:
        member = _ZipMember(self._zip, path, packing)
        try:
            yield member
        except BaseException:
            member.abandon()
            raise
        self._members.append(member.finished())


class _Zip(zipfile.ZipFile):
    """A ZIP file that has its directory when it is closed, and not when it is dropped."""

    def __del__(self) -> None:
        """Nothing: whoever is interrupted while it is made has closed the file below it already."""


class _ZipMember:
    """A file that is being written into a ZIP file."""

    def __init__(self, into: zipfile.ZipFile, path: str, packing: int = zipfile.ZIP_STORED) -> None:
        self.path = path
        self.size = 0
        self._digest = hashlib.sha256()
        info = zipfile.ZipInfo(path, _MADE_AT)
        info.compress_type = packing
        info.external_attr = 0o644 << 16
        self._stream = into.open(info, "w", force_zip64=True)

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._stream.write(data)
        self._digest.update(data)
        self.size += len(data)

    def finished(self) -> _Member:
        """It is whole."""
        self._stream.close()
        return _Member(self.path, f"sha256:{self._digest.hexdigest()}", self.size)

    def abandon(self) -> None:
        """It will never be: closing it must not write anything."""
        io.IOBase.close(cast("io.IOBase", self._stream))


class _WarcMember(_ZipMember):
    """A WARC file in it."""

    def __init__(self, into: zipfile.ZipFile, name: str) -> None:
        super().__init__(into, f"archive/{name}")
        self.name = name


def _exchange(answer: WarcRecord) -> warc.Exchanged:
    """What the records of a capture share, read from its answer."""
    ids = answer.record_id[: -len(warc.RESPONSE)]
    where = answer.get("warc-ip-address"), answer.get("warc-protocol")
    return warc.Exchanged(ids, answer.get("warc-date"), warc.target_uri(answer.target), *where)


def _grouped(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Lines of the index, as many as go into one member."""
    group: list[bytes] = []
    for block in blocks:
        for line in block.splitlines(keepends=True):
            group.append(line)
            if len(group) == INDEX_LINES:
                yield group
                group = []
    if group:
        yield group


def _json(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
