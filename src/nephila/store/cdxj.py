"""The index beside each WARC file: one CDXJ line a capture, sorted, so that replay tools find a page by its URL.

A line is `urlkey timestamp {json}`, byte for byte what cdxj-indexer writes for the same record; pywb and the usual
tools take it as it is. The lines come from the catalogue's rows, that is from captures that were settled and are
durable: a record that was refused stays out of the index though it lies in the file. So does a 304: it says that the
page is what it was, and a reader who looks for the page at that time shall find the capture before it (pywb would show
him the bare 304 instead). The robots.txt in force, kept as a
resource record behind the answer that brought it, has no row of its own; it is looked up in the file.

The index is written under another name, synced and renamed: a reader sees the old one or the whole new one. Neither
the rows nor the lines of a segment are ever in memory together (`line_sort`): a segment may have a million.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path

from nephila.engines.disk import Disk, DiskFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.record import SegmentId

from .line_sort import LineSort
from .reader import WarcReader, WarcRecord
from .rotation import index_name
from .segment import refused
from .surt import surt
from .warc import parse_date, target_uri, warc_date

_AFTER_TYPE = re.compile(r"[;,\s]")
_NOT_DIGITS = re.compile(r"\D")
REVISIT_MIME = "warc/revisit"
_REVISIT = f'"mime": "{REVISIT_MIME}", '
_NOT_MODIFIED = 304

Place = Callable[[int], int]


def cdxj_line(row: CaptureRow) -> str:
    """The line of an answer, with its line end."""
    url, mime = target_uri(row.url), ""
    if row.kind == "revisit":
        mime = _REVISIT
    elif row.content_type:
        mime = _mime(row.content_type)
    place = _place(row.payload_digest, row.record_length, row.offset, row.segment)
    return f'{_key(url, row.at)} {{"url": {_quoted(url)}, {mime}"status": "{row.status}", {place}}}\n'


def resource_line(record: WarcRecord, segment: SegmentId) -> str:
    """The line of a resource record, whose block is its payload."""
    url = record.target
    place = _place(record.get("warc-block-digest"), record.length, record.offset, segment)
    key = _key(url, parse_date(record.get("warc-date")))
    return f'{key} {{"url": {_quoted(url)}, {_mime(record.get("content-type"))}{place}}}\n'


# As `json.dumps` spells the fields, without its ways: there is a line for every capture.


def _key(url: str, at: int) -> str:
    return f"{surt(url)} {_timestamp(at // 1000)}"


@lru_cache(maxsize=256)
def _mime(content_type: str) -> str:
    """Of a header, with the comma behind it: there are some dozens."""
    return f'"mime": {_quoted(_AFTER_TYPE.split(content_type, maxsplit=1)[0])}, '


def _place(digest: str, length: int, offset: int, segment: SegmentId) -> str:
    where = f'"length": "{length}", "offset": "{offset}", "filename": {_quoted(segment)}'
    return f'"digest": {_quoted(digest)}, {where}'


@lru_cache(maxsize=256)
def _timestamp(second: int) -> str:
    return _NOT_DIGITS.sub("", warc_date(second * 1000))[:14]


def index_lines(
    file: DiskFile, segment: SegmentId, rows: Iterable[CaptureRow], place: Place | None = None
) -> Iterator[str]:
    """The lines of all captures that can be shown, unsorted; `place` as in `write_index`."""
    for row in rows:
        if row.status == _NOT_MODIFIED:  # a revisit, or whole where nothing was known any more of what it refers to
            continue
        yield cdxj_line(row if place is None else replace(row, offset=place(row.offset)))
        if row.robots:
            following = next(iter(WarcReader(file, segment, row.offset + row.record_length)), None)
            if following is not None and following.kind == "resource":
                found = following if place is None else replace(following, offset=place(following.offset))
                yield resource_line(found, segment)


def write_index(
    disk: Disk, directory: Path, segment: SegmentId, rows: Iterable[CaptureRow], place: Place | None = None
) -> None:
    """Write the index of a segment, replacing an older one. Raises `StorageError` and leaves the old one then.

    `place` says where a record lies that has this offset, where that is elsewhere (`holes`).
    """
    target = directory / index_name(segment)
    draft = target.with_name(target.name + ".part")
    try:
        with LineSort(disk, target.with_name(target.name + ".sort")) as lines:
            with closing(disk.open(directory / segment)) as source:
                for line in index_lines(source, segment, rows, place):
                    lines.add(line.encode("ascii", "replace"))
            disk.remove(draft)
            with closing(disk.create(draft)) as file:
                for block in lines.blocks():
                    file.append(block)
                file.sync()
        disk.rename(draft, target)
        disk.sync_directory(target.parent)
    except OSError as error:
        raise refused(target.name, error) from error
