from __future__ import annotations

import asyncio
import io
from dataclasses import replace

import pytest

from nephila.cli.display import (
    Choice,
    Kind,
    choose,
    is_terminal,
    progress_line,
    style_allowed,
    watch_plainly,
    write_quietly,
)
from nephila.model.summary import CrawlSnapshot

from .conftest import SEEDS, SNAPSHOT, FakeCrawl

LIVE, PLAIN, NONE = Choice(Kind.LIVE), Choice(Kind.PLAIN), Choice(Kind.NONE)


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ({"out_terminal": True}, LIVE),
        ({"out_terminal": True, "environ": {"TERM": "dumb"}}, PLAIN),
        ({"out_terminal": True, "environ": {}}, PLAIN),
        ({"out_terminal": True, "verbose": True}, PLAIN),
        ({"error_terminal": True}, PLAIN),
        ({}, PLAIN),
        ({"out_terminal": True, "quiet": True}, NONE),
        ({"as_json": True, "out_terminal": True}, NONE),
        ({"as_json": True, "error_terminal": True}, Choice(Kind.LIVE, on_error=True)),
        ({"as_json": True, "error_terminal": True, "verbose": True}, Choice(Kind.PLAIN, on_error=True)),
        ({"as_json": True, "error_terminal": True, "quiet": True}, NONE),
    ],
)
def test_the_display_follows_the_terminal_and_the_flags(given: dict[str, object], choice: Choice) -> None:
    """C4: live on a terminal, plain in a pipe, never on the standard output of --json."""
    usual: dict[str, object] = dict.fromkeys(("as_json", "quiet", "verbose", "out_terminal", "error_terminal"), False)
    assert choose(**(usual | {"environ": {"TERM": "xterm"}} | given)) == choice  # type: ignore[arg-type]  # as above


def test_styles_are_left_out_where_they_are_not_wanted() -> None:
    """C4: NO_COLOR and TERM=dumb hold for the summary too; elsewhere the stream decides."""
    assert style_allowed({"TERM": "xterm"}) is None
    assert style_allowed({"TERM": "xterm", "NO_COLOR": "1"}) is False
    assert style_allowed({"TERM": "dumb"}) is False
    assert style_allowed({}) is False


def test_a_missing_or_closed_stream_is_no_terminal() -> None:
    """C4: a process may be started without standard streams."""
    closed = io.StringIO()
    closed.close()
    assert not is_terminal(None)
    assert not is_terminal(closed)
    assert not is_terminal(io.StringIO())


def test_the_progress_line_is_plain_and_whole() -> None:
    """C4: all figures, no control characters."""
    line = progress_line(SNAPSHOT)
    assert line == (
        "1:23: 1,234 pages (14.8/s), 31.2 MB, 35 in flight, 1,023,300 queued, 12 hosts, 4 domains, 17 errors, "
        "3 duplicates, --max-pages 43%, 2:11 left"
    )
    assert progress_line(replace(SNAPSHOT, limit="", stopping=True)).endswith("3 duplicates, stopping")


class EndingCrawl(FakeCrawl):
    """Cancels its watcher at the third look."""

    looks = 0

    def snapshot(self) -> CrawlSnapshot:
        self.looks += 1
        if self.looks == 3:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        return super().snapshot()


def test_plain_progress_comes_line_by_line_and_once_more_at_the_end() -> None:
    """S1, C4: the seeds' report once, then figures, the last ones when the crawl ends."""
    lines: list[str] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watch_plainly(EndingCrawl(), lines.append, every_s=0))
    assert lines == [f"Seeds: {SEEDS.sentence()}."] + [progress_line(SNAPSHOT)] * 4


def test_a_reader_who_leaves_silences_the_display_and_not_the_crawl() -> None:
    """C4: `nephila crawl ... | head` crawls on."""

    def gone(_line: str) -> None:
        raise BrokenPipeError

    asyncio.run(watch_plainly(FakeCrawl(), gone, every_s=0))
    write_quietly(gone, "x")
