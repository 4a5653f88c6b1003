"""The table of contents: what was captured, in SQL, derived from what is settled (W3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from nephila.model.noun import noun
from nephila.model.record import SegmentId

from .removal import CatalogueRemoval

_NOT_MODIFIED = 304


EXTERNAL = "external"
"""The kind of a capture that a worker outside has reported: its place is where he says that he keeps it."""


@noun
class CaptureRow:
    """One line of the captures table, and through it of pages, of the domain's figures and of the CDXJ index."""

    url: str
    fingerprint: bytes
    host: str
    domain: str
    depth: int
    via: str
    level: int
    retries: int
    at: int
    """WARC-Date, UTC milliseconds."""
    status: int
    content_type: str
    content_hash: bytes
    length: int
    """Bytes of the decoded body."""
    wire_bytes: int
    elapsed_ms: int
    kind: str
    """response, revisit or resource."""
    segment: SegmentId
    offset: int
    record_length: int
    end: int
    payload_digest: str
    title: str = ""
    language: str = ""
    canonical: str = ""
    duplicate_of: str = ""
    simhash: int | None = None
    """Of the main text, as a signed number; None where there is none (D3)."""
    near_duplicate_of: str = ""
    """The URL of an earlier page that says nearly the same."""
    truncated: str = ""
    robots: bool = False
    """The robots.txt of an origin, not a page."""
    noindex: bool = False
    noarchive: bool = False
    changed: bool = True
    signals: str = ""
    """Content-Signal / AI-preference lines of robots.txt in force (X2, K3)."""
    crawl_delay_ms: int = 0
    worker: str = ""
    """Who fetched it."""
    assigned_at: int = 0
    """When the worker was given the task, UTC milliseconds; 0 when it was settled from the archive after a crash."""
    timeout_at: int = 0
    """When its lease would have ended."""
    robots_txt: str = ""
    """The text of a robots.txt that came into force; kept with the domain, not with the capture."""
    next_crawl_at: int | None = None
    """When the page is visited next, as planned with this capture, UTC milliseconds. Kept with the page."""
    change_rate: float | None = None
    """Changes a day, as they were estimated with this capture."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One line of the errors table."""

    url: str
    fingerprint: bytes
    host: str
    kind: str
    detail: str
    at: int
    retries: int
    dead: bool


@dataclass(frozen=True, slots=True)
class PageRow:
    """One line of `nephila pages`."""

    url: str
    status: int
    content_type: str
    length: int
    title: str
    depth: int
    crawled_at: int
    crawl_count: int
    duplicate_of: str
    storage_key: str
    near_duplicate_of: str = ""
    next_crawl_at: int | None = None
    """When it is visited next, as planned at its last visit, UTC milliseconds; None where nothing is planned."""
    change_rate: float | None = None
    """Changes a day, estimated; None before two visits were compared."""


class CaptureFigures(NamedTuple):
    """What a report needs of a capture. A tuple: there are millions."""

    at: int
    status: int
    robots: bool
    content_type: str
    length: int
    wire_bytes: int
    elapsed_ms: int
    depth: int
    duplicate: bool
    near: bool
    truncated: bool
    changed: bool
    whole: bool
    """Its body was read to the end, and is of a wanted type."""

    @property
    def is_page(self) -> bool:
        """Whether it is a whole page, or one that has not changed."""
        return not self.robots and (self.status == _NOT_MODIFIED or (200 <= self.status < 300 and self.whole))


class ErrorFigures(NamedTuple):
    """What a report needs of an error."""

    at: int
    kind: str
    host: str


@dataclass(frozen=True, slots=True)
class DomainFigures:
    """What a registrable domain brought."""

    domain: str
    pages: int
    requests: int
    mean_ms: float
    last_at: int
    blocked: bool = False
    """A person has blocked all of it (T7)."""


class Catalogue(Protocol):
    """Written in batches after the archive is durable; rebuilt from archive and frontier when lost.

    Synchronous: what it stands on may block, so that it is called in a thread wherever a loop must not wait.
    """

    def record(self, captures: Sequence[CaptureRow], errors: Sequence[ErrorRow]) -> None:
        """Upsert by (segment, offset): recording twice changes nothing.

        One transaction, or several in the order of offsets. Waits for an engine that is away. May be run in a thread.
        """

    def upto(self, segment: SegmentId) -> int:
        """Everything of this segment before that offset is recorded."""

    def pages(
        self, *, host: str = "", status: int | None = None, like: str = "", limit: int = 100
    ) -> Iterator[PageRow]:
        """Pages, newest capture first."""

    def captures(self, segment: SegmentId) -> Iterator[CaptureRow]:
        """Every capture of a segment in the order of its records."""

    def captures_of(self, fingerprint: bytes) -> list[CaptureRow]:
        """The history of one URL, newest first."""

    def hurry(self, patience_s: float) -> None:
        """The end has come: from now on no engine that is away is waited for longer than that. From any thread.

        What is given up so raises `StorageError`; it is found in the archive at the next start.
        """

    def close(self) -> None:
        """Flush and close."""


class CatalogueReports(Protocol):
    """What a report is made of. Read a batch at a time, so that a running crawl is not held up."""

    def capture_figures(self) -> Iterator[CaptureFigures]:
        """Every capture."""

    def error_figures(self) -> Iterator[ErrorFigures]:
        """Every error, oldest first."""

    def leading_domains(self, limit: int) -> list[DomainFigures]:
        """The domains with most pages."""

    def domains_by_pages(self) -> dict[int, int]:
        """How many domains have pages of so many digits; 0 is none."""


class CatalogueSights(Protocol):
    """For those who watch a crawl: each costs what it returns, whatever the size of the catalogue."""

    def capture_count(self) -> int:
        """How many captures there are: kept with every change, never counted."""

    def wire_bytes(self) -> int:
        """Bytes on the wire of all captures: kept likewise."""

    def marks(self) -> dict[int, int]:
        """Where the recorded part of each segment ends, by the number of the segment."""

    def exchanges(self, segment: int, after: int, limit: int) -> list[tuple[int, str, int, int, bool]]:
        """Offset, host, when it was sent, how long it took, whether it was part of a visit, from an offset on."""

    def pages_since(self, at: int, limit: int) -> int:
        """Pages that were last visited since an instant, counted up to a limit."""

    def errors_since(self, at: int, limit: int) -> dict[str, int]:
        """Errors since an instant by kind, the first so many counted."""

    def domain(self, name: str) -> tuple[int, int, int, float, str] | None:
        """Last visit, pages, requests, mean milliseconds and robots.txt of a registrable domain."""


class BlockedDomains(Protocol):
    """A catalogue that shows which domains a person has blocked (T7, W3)."""

    def show_blocked(self, names: Collection[str], suffixes: Collection[str] = ()) -> None:
        """Let these registrable domains be blocked, and those below the suffixes; no others. Waits as `record`."""


class BookedCatalogue(Catalogue, BlockedDomains, Protocol):
    """A catalogue as those need it who keep the books of a crawl."""


class CatalogueHistories(Protocol):
    """What an export is chosen by: all that is recorded at a moment, and what is known of many URLs at once."""

    def extent(self) -> dict[SegmentId, int]:
        """Every segment, the oldest first, and where its recorded part ends."""

    def histories(self, fingerprints: Sequence[bytes]) -> list[CaptureRow]:
        """Every capture of these URLs, some hundreds at most, in no order."""


@runtime_checkable
class RemovableCatalogue(Catalogue, Protocol):
    """A catalogue that something can be taken out of (K2)."""

    def removal(self) -> CatalogueRemoval:
        """What takes captures out."""


class WholeCatalogue(
    RemovableCatalogue, CatalogueReports, CatalogueSights, CatalogueHistories, BlockedDomains, Protocol
):
    """A catalogue with all that is read of one."""
