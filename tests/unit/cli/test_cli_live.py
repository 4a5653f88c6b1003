from __future__ import annotations

import asyncio
import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, Group

from nephila.cli.live import ASCII, RecentUrls, frame, watch_live
from nephila.model.events import Event, EventKind
from nephila.model.summary import CrawlSnapshot

from .conftest import SEEDS, SNAPSHOT, FakeCrawl

EVENTS = [
    Event(EventKind.FETCH_OK, 1, url="https://example.org/" + "long/" * 60, status=200),
    Event(EventKind.ERROR, 2, url="https://slow.example.org/x", reason="timeout"),
    Event(EventKind.FETCH_OK, 3, url="https://example.org/gone", status=404),
]


def rendered(width: int, now: CrawlSnapshot = SNAPSHOT, height: int = 50) -> list[str]:
    console = Console(file=io.StringIO(), record=True, width=width, height=height, force_terminal=True, highlight=False)
    console.print(Group(*frame(now, EVENTS, title="nephila crawl-example.org", width=width, seeds=SEEDS.sentence())))
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_live_view_fits_any_terminal(width: int) -> None:
    """C4: no line is wider than the screen, none wraps."""
    lines = rendered(width)
    assert all(cell_len(line) <= width for line in lines)
    assert len(lines) == len(frame(SNAPSHOT, EVENTS, title="t", width=width))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_live_view_shows_what_a_person_asks_for(width: int) -> None:
    """C4: rate, in flight, queued, errors by kind, hosts, domains, bytes, duplicates, elapsed, time left, last URLs."""
    text = "\n".join(rendered(width))
    figures = " ".join(text.split())
    for fact in ("pages 1,234", "pages/s 14.8", "in flight 35", "queued 1.02 M", "errors 17", "hosts 12", "domains 4"):
        assert fact in figures
    for fact in ("bytes 31.2 MB", "duplicates 3", "slow hosts 2", "refused 40,352", "timeout 12", "1:23", "2:11 left"):
        assert fact in figures
    assert "--max-pages" in text
    assert "43%" in text
    assert "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in text
    assert "https://slow.example.org/x" in text
    assert "Ctrl-C stops cleanly" in text


def test_eighty_columns_hold_the_figures_in_few_rows() -> None:
    """C4: the view is small enough to leave the screen to others."""
    assert len(rendered(80)) <= 12
    assert len(rendered(200)) <= 10


def test_stopping_is_said() -> None:
    """F10: a person who pressed Ctrl-C sees that it is being obeyed."""
    text = "\n".join(rendered(80, replace(SNAPSHOT, stopping=True)))
    assert "stopping: 35 still in flight; Ctrl-C again ends at once" in text


def test_a_crawl_without_limits_and_errors_has_no_lines_for_them() -> None:
    """C4: nothing is shown that is not there."""
    text = "\n".join(rendered(80, replace(SNAPSHOT, limit="", errors={}, refused={})))
    assert "left" not in text
    assert "timeout 12" not in text


def test_a_terminal_without_unicode_gets_ascii() -> None:
    """C4: sensible everywhere."""
    lines = frame(SNAPSHOT, EVENTS, title="t", width=60, glyphs=ASCII)
    assert all(line.plain.isascii() for line in lines)


def test_text_of_strangers_cannot_act_on_the_terminal() -> None:
    """K4, C4: escape sequences are shown, not obeyed; secrets in queries are masked."""
    hostile = [Event(EventKind.ERROR, 1, url="https://x.org/\x1b]0;owned\x07?password=hunter2", reason="\x1b[2Jbad")]
    text = "".join(line.plain for line in frame(SNAPSHOT, hostile, title="\x1b[31m", width=200))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "hunter2" not in text


@settings(max_examples=100, deadline=None)
@given(
    width=st.integers(1, 250),
    numbers=st.lists(st.integers(0, 10**15), min_size=8, max_size=8),
    share=st.floats(-1, 2),
    kind=st.text(max_size=30),
)
def test_no_figure_breaks_the_frame(width: int, numbers: list[int], share: float, kind: str) -> None:
    """C4: whatever the figures are, lines stay within the screen."""
    now = CrawlSnapshot(
        float(numbers[0]),
        *numbers[:8],
        errors={kind: numbers[0]},
        limit="max-time",
        limit_share=share,
        limit_left_s=3.0,
    )
    events = [Event(EventKind.ERROR, 1, url="https://x.org/" + kind, reason=kind)]
    for line in frame(now, events, title=kind, width=width):
        assert line.cell_len <= width
        assert "\n" not in line.plain


def test_recent_urls_keeps_the_last_exchanges_only() -> None:
    """C4: the last few URLs fetched."""
    recent = RecentUrls(2)
    for number in range(4):
        recent.emit(Event(EventKind.FETCH_OK, number, url=f"https://x.org/{number}", status=200))
        recent.emit(Event(EventKind.HEARTBEAT, number))
        recent.emit(Event(EventKind.ROBOTS_FETCHED, number, url="https://x.org/robots.txt"))
    recent.flush()
    recent.close()
    assert [event.at for event in recent.latest()] == [2, 3]


class CountingCrawl(FakeCrawl):
    """Ends its own watching after some looks."""

    looks = 0

    def snapshot(self) -> CrawlSnapshot:
        self.looks += 1
        if self.looks == 3:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        return super().snapshot()


def watched(monkeypatch: pytest.MonkeyPatch, *, no_color: bool = False, height: int = 30) -> str:
    monkeypatch.setattr("nephila.cli.live.REFRESH_S", 0)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, height=height, no_color=no_color, highlight=False)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watch_live(CountingCrawl(), console, RecentUrls(), "nephila x"))
    return screen.getvalue()


def test_the_terminal_is_left_as_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """C4: the cursor is shown at once after it was hidden, and the view is wiped away at the end."""
    written = watched(monkeypatch)
    assert written.index("\x1b[?25h") - written.index("\x1b[?25l") == len("\x1b[?25l")
    assert "\x1b[?1049h" not in written
    assert written.endswith("\x1b[1A\x1b[2K")


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """C4: NO_COLOR leaves no colour codes (rich keeps bold and dim)."""
    assert "\x1b[1;32m" in watched(monkeypatch)
    assert "32m" not in watched(monkeypatch, no_color=True)


def test_a_low_terminal_is_not_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """C4: never more lines than the screen has."""
    written = watched(monkeypatch, height=4)
    assert "pages" in written
    assert "Ctrl-C" not in written
