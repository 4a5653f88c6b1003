"""A worker's own directory: who it is, and what it may lose.

It is laid out as a crawl directory without frontier and catalogue. Its id is drawn when it is made, so that what lies
in its spool is known to be its own after a restart, under whatever name. The scope in it is a copy of the one that all
workers share: made anew at every start, and widened from either side.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from nephila.engines.disk import LOCAL_DISK, LookingDisk
from nephila.model.errors import CrawlDirectoryError, remedy
from nephila.model.record import SegmentId
from nephila.node.directory import WORKER_FILE, CrawlDirectory
from nephila.store import index_name, writer_of
from nephila.store.journal import JOURNAL_SUFFIX
from nephila.store.rotation import WARC_SUFFIXES

from .trail_shipping import events_left
from .untold import Untold


class Identity(msgspec.Struct, frozen=True):
    """What the directory says of its worker."""

    id: str
    crawl: str


class WorkerDirectory(CrawlDirectory):
    """Paths of a worker's directory."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.identity_file = root / WORKER_FILE
        self.alive = root / "alive"
        self.given_up = root / "given-up"
        """Segments that came back too late: their pages were fetched again."""
        self._unasked = root / "unasked"
        """There as long as the events that wait here are of runs that have asked for nothing."""
        self.has_asked = True
        """Whether what lies here may say something of a page, as far as is known."""
        self.untold: Untold | None = None
        """Where what is let into the scope here is kept for the others."""

    def identity(self, crawl: str) -> Identity:
        """Who this is, drawn the first time; the directory of a worker of another crawl is refused."""
        try:
            known = msgspec.json.decode(self.identity_file.read_bytes(), type=Identity)
        except FileNotFoundError:
            known = self._drawn(crawl)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CrawlDirectoryError(
                f"{self.identity_file} cannot be read: {error}", "mend it, or begin a new directory"
            ) from error
        if known.crawl != crawl:
            raise CrawlDirectoryError(
                f"{self.root} is the directory of a worker of the crawl {known.crawl}, not of {crawl}",
                "choose another fleet.directory",
            )
        return known

    def _drawn(self, crawl: str) -> Identity:
        """Somebody new; durable when it returns: what is left in its spool is found by it."""
        drawn = Identity(secrets.token_hex(8), crawl)
        draft = self.identity_file.with_suffix(".new")
        try:
            with draft.open("wb") as stream:
                stream.write(msgspec.json.encode(drawn))
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self.identity_file)
            LOCAL_DISK.sync_directory(self.root)
        except OSError as error:
            raise CrawlDirectoryError(
                f"{self.identity_file} cannot be written: {error.strerror or error}", remedy(error)
            ) from error
        return drawn

    def _check_kind(self) -> None:
        """The other way round: where a crawl lives no worker does."""
        if self.frontier.exists():
            raise CrawlDirectoryError(
                f"{self.root} is the directory of a crawl of its own, and no worker's",
                "choose another --dir, or fleet.directory",
            )

    def _taken(self) -> CrawlDirectoryError:
        """As the directory's; each worker has one of its own."""
        return CrawlDirectoryError(
            f"another worker is at work in {self.root}",
            "give each worker a directory of its own: --dir DIR, or fleet.directory; or wait until that one has ended",
        )

    def show_life(self) -> None:
        """Touch a file, for whoever looks after the process from outside: a worker that waits for engines lives."""
        self.alive.touch()

    def spooled_writers(self) -> dict[int, list[SegmentId]]:
        """Segments in the spool by who wrote them."""
        found: dict[int, list[SegmentId]] = {}
        for name in LookingDisk().names(self.spool):
            if name.endswith(WARC_SUFFIXES):
                found.setdefault(writer_of(SegmentId(name)), []).append(SegmentId(name))
        return found

    def digest_in_spool(self, segment: SegmentId) -> str:
        """The SHA-256 of a file of the spool."""
        with (self.spool / segment).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def set_aside(self, segments: Iterable[SegmentId]) -> None:
        """Take segments out of the spool that do not count any more, with all that belongs to them."""
        self.given_up.mkdir(exist_ok=True)
        for segment in segments:
            for name in (segment, index_name(segment), segment + JOURNAL_SUFFIX):
                if (self.spool / name).exists():
                    (self.given_up / name).parent.mkdir(parents=True, exist_ok=True)
                    (self.spool / name).replace(self.given_up / name)
            LookingDisk().remove_folders((self.spool / segment).parent, self.spool)

    def look_back(self) -> None:
        """A run begins: whether what lies here may say something of a page."""
        self.has_asked = bool(self.spooled_writers()) or bool(events_left(self) and not self._unasked.exists())

    def note_unasked(self) -> None:
        """It has ended and has asked for nothing, and neither had those whose events wait here."""
        self._unasked.touch()

    def note_asking(self) -> None:
        """From now on there may be pages."""
        self.has_asked = True
        if self._unasked.exists():
            self._unasked.unlink()
            LOCAL_DISK.sync_directory(self.root)

    # The scope

    def begin_scope(self) -> None:
        """Forget what an earlier run knew: the shared one is read from its beginning."""
        self.scope.unlink(missing_ok=True)

    def add_to_scope(self, unsaved: Callable[[], bytes]) -> None:
        """As ever; the others are told before anything is admitted because of it."""
        lines = unsaved()
        if self.untold is not None:
            self.untold.add_to_scope(lambda: lines)
        super().add_to_scope(lambda: lines)

    def learn_scope(self, lines: bytes) -> None:
        """What others have let in."""
        super().add_to_scope(lambda: lines)
