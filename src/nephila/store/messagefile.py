"""Messages as lines of a file: JSON, one a line, appended and synced. Several processes may write to one.

A line that a crash left torn is ended before the next is written, and its message comes again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from nephila.interfaces.stream import Message
from nephila.model.errors import StreamRefusedError, UsageError, remedy


class MessageFile:
    """Implements `interfaces.stream.MessageStream`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.netloc or not parts.path.startswith("/"):
            raise UsageError("stream.url names no file", hint="write file:///ABSOLUTE/PATH")
        self._path = Path(unquote(parts.path))

    def publish(self, messages: Sequence[Message]) -> None:
        """As the interface."""
        block = b"".join(message.body + b"\n" for message in messages)
        try:
            with self._path.open("ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                size = file.seek(0, os.SEEK_END)
                if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                    block = b"\n" + block
                try:
                    file.write(block)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.ftruncate(file.fileno(), size)
                    raise
        except OSError as error:
            raise StreamRefusedError(f"{self._path} cannot be written: {error.strerror}", hint=remedy(error)) from error

    def hurry(self, patience_s: float) -> None:
        """As the interface: a file is never away."""

    def close(self) -> None:
        """As the interface: nothing is held."""
