"""Events for Python's `logging`, under the name ``nephila``: how a crawl in somebody's program tells of trouble (E2).

Warnings about the crawl as a whole are warnings, which Python writes to standard error unless the program says
otherwise; what ``-v`` shows of the command is logged as INFO, all else as DEBUG, in the same lines.
"""

from __future__ import annotations

import logging

from nephila.model.events import Event, EventKind

from .log import NOTABLE, log_line
from .masking import mask_text, printable

LOGGER = logging.getLogger("nephila")


class LoggingSink:
    """An `EventSink` that logs."""

    def __init__(self, started_at: int) -> None:
        """`started_at` is in UTC milliseconds."""
        self._started_at = started_at

    def emit(self, event: Event) -> None:
        """Log the event, if anybody listens."""
        if event.kind is EventKind.WARNING and not event.url:
            LOGGER.warning("%s", printable(mask_text(event.detail)))
            return
        level = logging.INFO if event.kind in NOTABLE else logging.DEBUG
        if LOGGER.isEnabledFor(level):
            LOGGER.log(level, "%s", log_line(event, self._started_at))

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Handlers belong to the program."""
