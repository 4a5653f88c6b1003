"""Progress while a crawl runs: which kind, where to, and the plain kind.

Three kinds. *Live*: a few lines that are redrawn, on a terminal. *Plain*: a line every ten seconds without any control
character, for pipes, dumb terminals and beside log lines. *None*: when asked to be quiet, or when standard output
belongs to JSON and standard error is no terminal.

A display never harms the crawl: when the reader of its pipe has gone, it falls silent and the crawl goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

from nephila.model.summary import CrawlSnapshot

from .figures import clock, count, rate, size
from .needs import RunningCrawl

PLAIN_EVERY_S = 10.0


class Kind(Enum):
    """How progress is shown."""

    LIVE = "live"
    PLAIN = "plain"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Choice:
    """How, and on which stream."""

    kind: Kind
    on_error: bool = False
    """Standard error instead of standard output."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at the stream; it may be closed or missing."""
    return stream is not None and not stream.closed and stream.isatty()


def style_allowed(environ: Mapping[str, str]) -> bool | None:
    """What `click.echo` wants to hear as `color`: False forbids any style, None leaves it to the stream."""
    return False if _is_dumb(environ) or environ.get("NO_COLOR") else None


def _is_dumb(environ: Mapping[str, str]) -> bool:
    return environ.get("TERM", "") in ("", "dumb")


def choose(
    *,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    out_terminal: bool,
    error_terminal: bool,
    environ: Mapping[str, str],
) -> Choice:
    """The display for a run, from what it was asked and from where its streams lead."""
    if quiet:
        return Choice(Kind.NONE)
    smart = not _is_dumb(environ)
    if as_json:
        if not error_terminal:
            return Choice(Kind.NONE)
        return Choice(Kind.LIVE if smart and not verbose else Kind.PLAIN, on_error=True)
    return Choice(Kind.LIVE if out_terminal and smart and not verbose else Kind.PLAIN)


def progress_line(now: CrawlSnapshot) -> str:
    """All figures in one line of plain text."""
    parts = [
        f"{clock(now.elapsed_s)}: {count(now.pages)} pages ({rate(now.pages_per_s)})",
        f"{size(now.bytes)}",
        f"{count(now.in_flight)} in flight",
        f"{count(now.queued)} queued",
        f"{count(now.hosts)} hosts",
        f"{count(now.domains)} domains",
        f"{count(sum(now.errors.values()))} errors",
        f"{count(now.duplicates)} duplicates",
    ]
    if now.limit:
        left = f", {clock(now.limit_left_s)} left" if now.limit_left_s is not None else ""
        parts.append(f"--{now.limit} {now.limit_share:.0%}{left}")
    if now.spool is not None:
        parts.append(f"spool: {now.spool.words()}" + now.spool.trouble())
    if now.stopping:
        parts.append("stopping")
    return ", ".join(parts)


async def watch_plainly(crawl: RunningCrawl, write: Callable[[str], None], *, every_s: float = PLAIN_EVERY_S) -> None:
    """A line every so often, and one when the crawl ends; the seeds' report once it is there."""
    told = False
    try:
        while True:
            await asyncio.sleep(every_s)
            if crawl.seed_report is not None and not told:
                write(f"Seeds: {crawl.seed_report.sentence()}.")
                told = True
            write(progress_line(crawl.snapshot()))
    except OSError:  # its reader has gone, or its disk is full: the crawl goes on unwatched
        return
    except asyncio.CancelledError:
        write_quietly(write, progress_line(crawl.snapshot()))
        raise


def write_quietly(write: Callable[[str], None], line: str) -> None:
    """Write to a reader who may have gone, or to a disk that may be full."""
    with suppress(OSError):
        write(line)
