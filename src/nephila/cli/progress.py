"""One line on standard error that says how far something is, where that is a terminal; else nothing."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from .output import printable

REFRESH_S = 0.25
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Written over at most four times a second, and gone at the end of the block."""

    def __init__(self) -> None:
        self._shown = False
        self._next_at = 0.0
        self._wanted = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def __enter__(self) -> Self:
        return self

    def show(self, text: str) -> None:
        """How far it is."""
        if not self._wanted or time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + REFRESH_S
        self._shown = True
        self._write(_CLEAR + printable(text))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave no trace."""
        if self._shown:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # nobody looks any more
            sys.stderr.write(text)
            sys.stderr.flush()
