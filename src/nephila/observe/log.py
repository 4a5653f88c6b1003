"""Events as lines for people: what ``-v`` and ``-vv`` show while a crawl runs (C4).

    12.3s  fetch_ok         200  14.2 KB   88 ms  https://example.org/a
    12.9s  retry            https://example.org/b  timeout: no answer within 30 s

``-v`` shows what went another way than wished: errors, retries, redirects, robots.txt, dead letters, warnings, and
where the crawl begins and ends. ``-vv`` shows everything. Texts are masked and made harmless for a terminal.
"""

from __future__ import annotations

from collections.abc import Callable

from nephila.model.events import Event, EventKind
from nephila.urls import mask_secrets

from .masking import mask_text, printable

NOTABLE = frozenset(
    {
        EventKind.CRAWL_START,
        EventKind.CRAWL_END,
        EventKind.ERROR,
        EventKind.ROBOTS_FETCHED,
        EventKind.ROBOTS_DISALLOW,
        EventKind.SEED_REFUSED,
        EventKind.REDIRECT,
        EventKind.RETRY,
        EventKind.DEAD_LETTER,
        EventKind.LATE_RESULT,
        EventKind.WARNING,
    }
)
"""What one ``-v`` shows."""

_KIND_WIDTH = max(len(kind) for kind in EventKind)


class LogSink:
    """An `EventSink` that writes one line an event through `write`, which gets it without a line end."""

    def __init__(self, write: Callable[[str], None], verbosity: int, started_at: int) -> None:
        """`verbosity` counts the v's; with none of them nothing is written. `started_at` is in UTC milliseconds."""
        self._write = write
        self._shown = frozenset() if verbosity <= 0 else NOTABLE if verbosity == 1 else frozenset(EventKind)
        self._started_at = started_at

    def emit(self, event: Event) -> None:
        """Write the event's line, when it is one of those to be shown."""
        if event.kind in self._shown:
            self._write(log_line(event, self._started_at))

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is to be closed."""


def log_line(event: Event, started_at: int) -> str:
    """One event as one printable line."""
    parts = [f"{(event.at - started_at) / 1000:8.1f}s", f"{event.kind:<{_KIND_WIDTH}}"]
    if event.status is not None:
        parts.append(f"{event.status:3d}")
    if event.bytes is not None:
        parts.append(f"{human_bytes(event.bytes):>8}")
    if event.elapsed_ms is not None:
        parts.append(f"{event.elapsed_ms:5d} ms")
    if event.url or event.host:
        parts.append(mask_secrets(event.url) if event.url else event.host)
    if because := ": ".join(text for text in (event.reason, mask_text(event.detail)) if text):
        parts.append(because)
    if event.via:
        parts.append(f"<- {mask_secrets(event.via)}")
    parts.extend(f"{name}={value}" for name, value in event.counts)
    return printable("  ".join(parts))


def human_bytes(count: int) -> str:
    """A size as people read it, in decimal units: ``14.2 KB``."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
