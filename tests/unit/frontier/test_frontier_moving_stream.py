"""The file that a frontier travels in."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from nephila.frontier.moving import (
    VERSION,
    CaptureRow,
    CrawlRow,
    HostRow,
    Row,
    Shift,
    UrlRow,
    UrlState,
    check_stream,
    read_stream,
    tally_in,
    tally_row,
    write_stream,
)
from nephila.frontier.traps import SkeletonTally, TrapState
from nephila.model.errors import FrontierError, StorageError

HEAD = CrawlRow(version=VERSION, secret="ff" * 8, exported_at=1_000_000, step=10, step_ms=1_000, mean_rank=7)
CAPTURE = CaptureRow(200, "a.warc.gz", 10, 90, digest="ab" * 32, etag='"ä"', pending=True)
ROWS: list[Row] = [
    HEAD,
    HostRow("example.org", delay_ms=1000, referrers=(1 << 64) - 1),
    UrlRow(fp="11" * 16, url="http://example.org/", rank=3, level=1, depth=0, admitted_s=5, lane=1, step=9, tie="00"),
    UrlRow(
        fp="22" * 16, url="http://example.org/ä", state=UrlState.DONE, rank=3, level=1, depth=1, admitted_s=5,
        asked=True, fetched=2, history=(1, 2, 3, 4, 5, 6), trail=("http://example.org/x",), capture=CAPTURE,
    ),
]  # fmt: skip


def lines(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    """N2: every field of every row, and counts at the end."""
    end = write_stream(tmp_path / "file", ROWS)
    assert end.rows == {"crawl": 1, "host": 1, "url": 2}
    assert list(read_stream(tmp_path / "file")) == ROWS
    assert check_stream(tmp_path / "file") == (HEAD, end)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_tally_comes_back() -> None:
    """N2, T2: rings of hashes and all."""
    tally = SkeletonTally("/calendar/{date}", TrapState.SLOWED, barren=7, texts=b"\0\xff" * 8, example="http://a/")
    assert tally_in(tally_row(tally)) == tally


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9, 0.99])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, kept: float) -> None:
    """N2: in a sentence, wherever it was cut."""
    write_stream(tmp_path / "file", ROWS)
    whole = (tmp_path / "file").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(FrontierError, match="is cut short"):
        check_stream(tmp_path / "cut")


@pytest.mark.parametrize("left_out", range(len(ROWS) + 1))
def test_a_file_that_lacks_a_line_is_refused(tmp_path: Path, left_out: int) -> None:
    """N2: the digest and the counts are over all of them; without the last line it is cut."""
    write_stream(tmp_path / "file", ROWS)
    found = lines(tmp_path / "file")
    del found[left_out]
    (tmp_path / "less").write_bytes(gzip.compress(b"".join(found)))
    with pytest.raises(FrontierError, match=r"is cut short|was damaged"):
        check_stream(tmp_path / "less")


def test_a_file_with_more_after_its_end_is_refused(tmp_path: Path) -> None:
    """N2: two files glued together are none."""
    write_stream(tmp_path / "file", ROWS)
    (tmp_path / "two").write_bytes((tmp_path / "file").read_bytes() * 2)
    with pytest.raises(FrontierError, match="was damaged"):
        check_stream(tmp_path / "two")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is cut short"),
        (b"no gzip", "holds no exported frontier"),
        (gzip.compress(b"no json\n"), "was damaged"),
        (gzip.compress(b'{"kind":"nobody"}\n'), "was damaged"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, data: bytes, sentence: str) -> None:
    """N2: whatever is in it."""
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(FrontierError, match=sentence):
        check_stream(tmp_path / "file")


def test_another_version_is_refused(tmp_path: Path) -> None:
    """N2: a stream says which version it is of."""
    other = CrawlRow(version=2, secret="0" * 16, exported_at=1, step=1, step_ms=1, mean_rank=1)
    write_stream(tmp_path / "file", [other])
    with pytest.raises(FrontierError, match="version 2"):
        check_stream(tmp_path / "file")


def test_nothing_is_overwritten_and_nothing_left_half(tmp_path: Path) -> None:
    """N2: a file that is in the way stays; rows that fail leave no file."""

    def failing() -> Iterator[Row]:
        yield HEAD
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_stream(tmp_path / "file", failing())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="exists already"):
        write_stream(tmp_path / "file", ROWS)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(("step_ms", "step", "expected"), [(1_000, 10, 1_000), (1_000, 7, 997), (500, 7, 1_994)])
def test_steps_keep_their_distance_from_the_present_one(step_ms: int, step: int, expected: int) -> None:
    """F7, N2: what has waited for three steps has waited as long in the new crawl, whatever a step is worth there."""
    assert Shift(HEAD, step_ms).step(step) == expected
