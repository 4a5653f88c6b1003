"""A catalogue that tells others of a page before it lists it: so its own mark is the position in the stream.

A page that the catalogue has was told, and the message was acknowledged. What was told and is not in the catalogue when
a process is killed is read from the archive at the next start, told once more under the same id, and listed. So every
page is told at least once, and nothing else needs to be remembered on disk.

A stream that is away is waited for, with jitter. What waits behind it is bounded by the callers of `record`.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from nephila.interfaces.catalogue import (
    CaptureFigures,
    CaptureRow,
    DomainFigures,
    ErrorFigures,
    ErrorRow,
    PageRow,
    WholeCatalogue,
)
from nephila.interfaces.removal import CatalogueRemoval
from nephila.interfaces.stream import Message, MessageStream
from nephila.model.errors import StreamAwayError
from nephila.model.record import SegmentId
from nephila.model.settings import StreamSettings

from .messages import messages_of

TELL_AFTER = 2
"""Failures in a row: a single one, a connection that had been cut, is nobody's concern."""


class Publisher:
    """Brings messages into a stream, however often it is away. Safe for threads; one batch at a time."""

    def __init__(
        self,
        stream: MessageStream,
        settings: StreamSettings,
        crawl: str,
        identity: str,
        tell: Callable[[str, str], None] | None = None,
    ) -> None:
        """`tell` hears, in whatever thread publishes, when the stream goes away and when it is back."""
        self._stream = stream
        self._settings = settings
        self._crawl, self._identity = crawl, identity
        self._tell = tell
        self._draw = random.Random()  # noqa: S311 - jitter
        self._lock = threading.Lock()
        self._hurried = threading.Event()
        self._give_up_at = float("inf")
        self._told = False

    def open(self) -> None:
        """Find out whether the stream is there, as long as a start may wait for it."""
        self._persist((), time.monotonic() + self._settings.open_s)

    def publish(self, rows: Sequence[CaptureRow]) -> None:
        """Tell of these captures; returns when that was acknowledged."""
        with self._lock:
            for start in range(0, len(rows), self._settings.batch):
                piece = rows[start : start + self._settings.batch]
                messages = messages_of(piece, self._crawl, self._identity, answers=self._settings.answers)
                if messages:
                    self._persist(messages, float("inf"))

    def hurry(self, patience_s: float) -> None:
        """From now on nothing waits longer than that."""
        self._give_up_at = min(self._give_up_at, time.monotonic() + patience_s)
        self._hurried.set()
        self._stream.hurry(patience_s)

    def close(self) -> None:
        """Let go of the stream."""
        with self._lock:
            self._stream.close()

    def _persist(self, messages: Sequence[Message], give_up_at: float) -> None:
        failures = 0
        while True:
            try:
                self._stream.publish(messages)
            except StreamAwayError as error:
                failures += 1
                left_s = min(give_up_at, self._give_up_at) - time.monotonic()
                if left_s <= 0:
                    raise StreamAwayError(
                        str(error), hint="nothing is lost: pages that were not told are told at the next start"
                    ) from error
                self._away(failures, error)
                self._pause(min(self._pause_s(failures), left_s))
            else:
                self._back()
                return

    def _pause_s(self, failures: int) -> float:
        longest: float = min(self._settings.retry_max_s, self._settings.retry_s * 2 ** min(failures - 1, 30))
        return longest * self._draw.uniform(0.5, 1.0)

    def _pause(self, seconds: float) -> None:
        """Wait; a hurry that comes meanwhile cuts it short."""
        if self._hurried.is_set():
            time.sleep(seconds)
        else:
            self._hurried.wait(seconds)

    def _away(self, failures: int, error: StreamAwayError) -> None:
        if failures >= TELL_AFTER and not self._told and self._tell is not None:
            self._told = True
            self._tell("stream_away", f"{error}; pages that are to be told wait meanwhile")

    def _back(self) -> None:
        if self._told and self._tell is not None:
            self._told = False
            self._tell("stream_back", f"messages go to {self._settings.name} again")


class PublishingCatalogue:
    """Implements `interfaces.catalogue.WholeCatalogue`: a catalogue, with a publisher before its `record`."""

    def __init__(self, catalogue: WholeCatalogue, publisher: Publisher) -> None:
        self._catalogue = catalogue
        self._publisher = publisher

    def record(self, captures: Sequence[CaptureRow], errors: Sequence[ErrorRow]) -> None:
        """As the interface; told first, then listed."""
        self._publisher.publish(captures)
        self._catalogue.record(captures, errors)

    def hurry(self, patience_s: float) -> None:
        """As the interface."""
        self._publisher.hurry(patience_s)
        self._catalogue.hurry(patience_s)

    def close(self) -> None:
        """As the interface."""
        try:
            self._publisher.close()
        finally:
            self._catalogue.close()

    # The rest is the catalogue's

    def show_blocked(self, names: Collection[str], suffixes: Collection[str] = ()) -> None:
        """As the interface."""
        self._catalogue.show_blocked(names, suffixes)

    def upto(self, segment: SegmentId) -> int:
        """As the interface."""
        return self._catalogue.upto(segment)

    def pages(
        self, *, host: str = "", status: int | None = None, like: str = "", limit: int = 100
    ) -> Iterator[PageRow]:
        """As the interface."""
        return self._catalogue.pages(host=host, status=status, like=like, limit=limit)

    def captures(self, segment: SegmentId) -> Iterator[CaptureRow]:
        """As the interface."""
        return self._catalogue.captures(segment)

    def captures_of(self, fingerprint: bytes) -> list[CaptureRow]:
        """As the interface."""
        return self._catalogue.captures_of(fingerprint)

    def capture_figures(self) -> Iterator[CaptureFigures]:
        """As the interface."""
        return self._catalogue.capture_figures()

    def error_figures(self) -> Iterator[ErrorFigures]:
        """As the interface."""
        return self._catalogue.error_figures()

    def leading_domains(self, limit: int) -> list[DomainFigures]:
        """As the interface."""
        return self._catalogue.leading_domains(limit)

    def domains_by_pages(self) -> dict[int, int]:
        """As the interface."""
        return self._catalogue.domains_by_pages()

    def capture_count(self) -> int:
        """As the interface."""
        return self._catalogue.capture_count()

    def wire_bytes(self) -> int:
        """As the interface."""
        return self._catalogue.wire_bytes()

    def marks(self) -> dict[int, int]:
        """As the interface."""
        return self._catalogue.marks()

    def exchanges(self, segment: int, after: int, limit: int) -> list[tuple[int, str, int, int, bool]]:
        """As the interface."""
        return self._catalogue.exchanges(segment, after, limit)

    def pages_since(self, at: int, limit: int) -> int:
        """As the interface."""
        return self._catalogue.pages_since(at, limit)

    def errors_since(self, at: int, limit: int) -> dict[str, int]:
        """As the interface."""
        return self._catalogue.errors_since(at, limit)

    def extent(self) -> dict[SegmentId, int]:
        """As the interface."""
        return self._catalogue.extent()

    def histories(self, fingerprints: Sequence[bytes]) -> list[CaptureRow]:
        """As the interface."""
        return self._catalogue.histories(fingerprints)

    @property
    def itself(self) -> WholeCatalogue:
        """The catalogue that is written when all was told."""
        return self._catalogue

    def removal(self) -> CatalogueRemoval:
        """What takes captures out of it (K2); what was told of them is others' by now."""
        return self._catalogue.removal()

    def domain(self, name: str) -> tuple[int, int, int, float, str] | None:
        """As the interface."""
        return self._catalogue.domain(name)
