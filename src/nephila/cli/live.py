"""The live view: a handful of lines on a terminal, redrawn four times a second.

`frame` is a pure function from a snapshot to lines of styled text, none wider than the terminal; `watch_live` redraws
them in place. The cursor is never hidden and the screen never switched, so there is nothing to restore: even a
process that is killed leaves a usable terminal. Every frame leaves in one write, which keeps it from flickering.

Lines are put together by hand: a table of rich costs five times the processor time (6 ms against 1.2), and this runs
on the crawl's own loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from nephila.model.events import Event, EventKind
from nephila.model.summary import CrawlSnapshot
from nephila.urls import mask_secrets

from .figures import clock, rate, short_count, size
from .needs import RunningCrawl
from .output import printable

REFRESH_S = 0.25
RECENT = 5
"""Lines of URLs fetched last."""
CELL_LEAST, CELL_MOST, GAP = 19, 28, 2
"""Columns of one figure with its label: the longest label and a seven character figure fit the least."""
MARK_WIDTH = 9
BAR_MOST = 60


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The few characters that not every terminal has."""

    full: str = "\N{BOX DRAWINGS HEAVY HORIZONTAL}"
    rest: str = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    cut: str = "\N{HORIZONTAL ELLIPSIS}"


ASCII = Glyphs("#", "-", "~")


class RecentUrls:
    """An event sink that keeps the last answers and failures to show."""

    glances = True

    def __init__(self, size: int = RECENT) -> None:
        self._events: deque[Event] = deque(maxlen=size)

    def emit(self, event: Event) -> None:
        """Keep it if it tells of an exchange with a page."""
        if event.kind in (EventKind.FETCH_OK, EventKind.ERROR) and event.url:
            self._events.append(event)

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """Nothing is open."""

    def latest(self) -> list[Event]:
        """The last ones, oldest first."""
        return list(self._events)


async def watch_live(crawl: RunningCrawl, console: Console, recent: RecentUrls, title: str) -> None:
    """Redraw until cancelled, then leave no trace."""
    glyphs = ASCII if console.options.ascii_only else Glyphs()
    live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop")
    with live:
        console.show_cursor(True)  # it was hidden by the line before
        while True:
            seeds = f"seeds: {crawl.seed_report.sentence()}" if crawl.seed_report else "reading seeds"
            lines = frame(
                crawl.snapshot(), recent.latest(), title=title, seeds=seeds, width=console.width, glyphs=glyphs
            )
            live.update(Group(*lines[: max(1, console.height - 1)]), refresh=True)
            await asyncio.sleep(REFRESH_S)


def frame(
    now: CrawlSnapshot,
    recent: Iterable[Event],
    *,
    title: str,
    width: int,
    seeds: str = "",
    glyphs: Glyphs = Glyphs(),  # noqa: B008 - frozen
) -> list[Text]:
    """The lines of one moment, the most important ones first, none wider than `width`."""
    lines = [_ends(Text(printable(title), "bold"), Text(clock(now.elapsed_s), "bold"), width, glyphs)]
    lines += _grid(_figures(now), width)
    if now.limit:
        lines.append(_limit(now, width, glyphs))
    if now.spool is not None:
        spool = Text().append(f"{'spool':<{MARK_WIDTH}}", "dim").append(now.spool.words())
        lines.append(_fitted(spool.append(printable(now.spool.trouble()), "yellow"), width, glyphs))
    lines += [_tally("errors", now.errors, "red", width, glyphs)] if now.errors else []
    lines += [_tally("refused", now.refused, "yellow", width, glyphs)] if now.refused else []
    lines += [_exchange(event, width, glyphs) for event in recent]
    if now.stopping:
        foot = Text(f"stopping: {now.in_flight} still in flight; Ctrl-C again ends at once", "bold yellow")
    else:
        foot = Text(
            "Ctrl-C stops cleanly; the same command goes on" + (f"  ({printable(seeds)})" if seeds else ""), "dim"
        )
    return [*lines, _fitted(foot, width, glyphs)]


def _figures(now: CrawlSnapshot) -> Sequence[tuple[str, str, str]]:
    """Label, figure and style, in the order to read them."""
    errors = sum(now.errors.values())
    return (
        ("pages", short_count(now.pages), "bold green"),
        ("queued", short_count(now.queued), "bold"),
        ("hosts", short_count(now.hosts), "bold"),
        ("pages/s", rate(now.pages_per_s).removesuffix("/s"), "bold green"),
        ("in flight", short_count(now.in_flight), "bold"),
        ("domains", short_count(now.domains), "bold"),
        ("bytes", size(now.bytes), "bold"),
        ("errors", short_count(errors), "bold red" if errors else "bold"),
        ("slow hosts", short_count(now.slow_hosts), "bold"),
        ("answers", short_count(now.responses), "bold"),
        ("duplicates", short_count(now.duplicates), "bold"),
        ("refused", short_count(sum(now.refused.values())), "bold"),
    )


def _grid(figures: Sequence[tuple[str, str, str]], width: int) -> list[Text]:
    """The figures in as many columns as there is room for, in rows of equal length."""
    columns = max(1, min(6, (width + GAP) // (CELL_LEAST + GAP)))
    while len(figures) % columns:
        columns -= 1
    cell = min(CELL_MOST, (width - GAP * (columns - 1)) // columns)
    rows = []
    for start in range(0, len(figures), columns):
        row = Text(no_wrap=True, overflow="crop")
        for number, (label, figure, style) in enumerate(figures[start : start + columns]):
            row.append(" " * (GAP if number else 0))
            row.append(label, "dim")
            row.append(figure.rjust(cell - len(label)), style)
        row.truncate(width)
        rows.append(row)
    return rows


def _limit(now: CrawlSnapshot, width: int, glyphs: Glyphs) -> Text:
    """How far it is to the limit that ends the crawl."""
    share = min(1.0, max(0.0, now.limit_share))
    after = f" {share:4.0%}" + (f"  {clock(now.limit_left_s)} left" if now.limit_left_s is not None else "")
    line = Text().append(f"--{now.limit} ", "dim")
    room = min(BAR_MOST, width - len(line) - len(after))
    if room >= 5:
        done = int(room * share)
        line.append(glyphs.full * done, "green").append(glyphs.rest * (room - done), "dim")
    line.append(after)
    return _fitted(line, width, glyphs)


def _tally(label: str, counts: Mapping[str, int], style: str, width: int, glyphs: Glyphs) -> Text:
    """Counts by kind, the largest first."""
    line = Text().append(f"{label:<{MARK_WIDTH}}", "dim")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    line.append("  ".join(f"{printable(kind)} {short_count(number)}" for kind, number in ordered), style)
    return _fitted(line, width, glyphs)


def _exchange(event: Event, width: int, glyphs: Glyphs) -> Text:
    """One URL and what came of it."""
    failed = event.kind is EventKind.ERROR
    mark = event.reason if failed else str(event.status or "")
    style = "red" if failed else "green" if (event.status or 0) < 400 else "yellow"
    line = Text().append(set_cell_size(printable(mark)[: MARK_WIDTH - 1], MARK_WIDTH), style)
    return _fitted(line.append(printable(mask_secrets(event.url))), width, glyphs)


def _ends(left: Text, right: Text, width: int, glyphs: Glyphs) -> Text:
    """One text at each end of a line; the left one gives way."""
    left = _fitted(left, max(0, width - right.cell_len - 1), glyphs)
    gap = " " * max(1, width - left.cell_len - right.cell_len)
    return _fitted(Text.assemble(left, gap, right), width, glyphs)


def _fitted(line: Text, width: int, glyphs: Glyphs) -> Text:
    """The line, cut at its end where it is too wide."""
    line.no_wrap, line.overflow = True, "crop"
    if line.cell_len > width:
        line.truncate(max(0, width - cell_len(glyphs.cut)))
        line.append(glyphs.cut)
    return line
