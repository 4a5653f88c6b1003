from __future__ import annotations

import errno
import gc
import gzip
import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from nephila.store import wacz
from nephila.store.wacz import PageLine, WaczFile
from nephila.testing.contracts.catalogue import sample_row


def make(stream: io.BytesIO, scratch: Path) -> WaczFile:
    return WaczFile(stream, scratch, software="Nephila", title="a crawl", created_at=1_767_225_600_000)


def fill(file: WaczFile, captures: int) -> None:
    for number in range(captures):
        row = sample_row(number)
        file.add(row, b"x" * (row.end - row.offset), ())
        file.add_page(PageLine(row.url, row.at, "a\ud800", "text"))


def test_an_empty_one_is_whole(tmp_path: Path) -> None:
    """W6: a crawl of which nothing fits gives a file that can be opened."""
    stream = io.BytesIO()
    make(stream, tmp_path).close()
    with zipfile.ZipFile(stream) as file:
        assert "archive/data-00000.warc.gz" in file.namelist()
        assert gzip.decompress(file.read("archive/data-00000.warc.gz")).startswith(b"WARC/1.1\r\nWARC-Type: warcinfo")
        assert file.read("indexes/index.idx").startswith(b"!meta 0 ")


def test_files_and_index_are_cut_into_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """W6: WARC files of a bounded size, index members of a bounded number of lines, each found by its offset."""
    monkeypatch.setattr(wacz, "FILE_BYTES", 5_000)
    monkeypatch.setattr(wacz, "INDEX_LINES", 3)
    stream = io.BytesIO()
    file = make(stream, tmp_path)
    fill(file, 10)
    file.close()
    with zipfile.ZipFile(stream) as made:
        names = [name for name in made.namelist() if name.startswith("archive/")]
        assert len(names) == 3
        index, listing = made.read("indexes/index.cdx.gz"), made.read("indexes/index.idx").decode().splitlines()
        assert len(listing) == 1 + 4
        lines = []
        for line in listing[1:]:
            place = json.loads(line[line.index("{") :])
            lines += gzip.decompress(index[place["offset"] : place["offset"] + place["length"]]).splitlines()
        assert len(lines) == 10
        for line in lines:
            fields = json.loads(line[line.index(b"{") :])
            data = made.read(f"archive/{fields['filename']}")
            offset, length = int(fields["offset"]), int(fields["length"])
            assert data[offset : offset + length] == b"x" * 700


def test_the_same_captures_give_the_same_bytes(tmp_path: Path) -> None:
    """W6: no time of the day and no chance is in it."""
    streams = []
    for number in range(2):
        stream, scratch = io.BytesIO(), tmp_path / str(number)
        scratch.mkdir()
        file = make(stream, scratch)
        fill(file, 5)
        file.close()
        streams.append(stream.getvalue())
    assert streams[0] == streams[1]


def test_a_304_is_kept_and_not_listed(tmp_path: Path) -> None:
    """W6, H3: a reader is led to the page that it found unchanged."""
    stream = io.BytesIO()
    file = make(stream, tmp_path)
    file.add(replace(sample_row(0), status=304, kind="revisit"), b"x" * 1_000, ())
    file.close()
    with zipfile.ZipFile(stream) as made:
        assert b"x" * 1_000 in made.read("archive/data-00000.warc.gz")
        assert made.read("indexes/index.cdx.gz") == b""


def test_one_that_is_given_up_writes_nothing_more(tmp_path: Path) -> None:
    """W6: a disk that is full is not asked for more."""

    class Full(io.BytesIO):
        full = False

        def write(self, data: object) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)  # type: ignore[arg-type]  # bytes

    stream = Full()
    file = make(stream, tmp_path)
    fill(file, 3)
    stream.full = True
    with pytest.raises(OSError, match="No space"):
        file.close()
    file.abandon()


def test_one_that_is_dropped_writes_nothing_to_a_file_that_is_closed() -> None:
    """W6, C4: an interrupt may come while it is made; nothing is said of that later on, when memory is collected."""
    stream = io.BytesIO()
    file = wacz._Zip(stream, "w")
    stream.close()
    del file
    gc.collect()  # whatever raises now ends the test: warnings are errors
