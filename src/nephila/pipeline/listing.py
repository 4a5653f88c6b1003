"""Captures as lines of the catalogue."""

from __future__ import annotations

from dataclasses import replace

from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.recrawl import Outlook
from nephila.model.exchange import Fetched, Truncation
from nephila.model.noun import noun
from nephila.model.record import StoredCapture
from nephila.model.task import Lease, PageTask, PartTask, RobotsTask

from .judgement import Judgement


def wall_of(moment: int, wall_offset: int) -> int:
    """A moment of the frontier's timeline in UTC milliseconds; 0 where it is not known."""
    return moment + wall_offset if moment else 0


@noun
class Beside:
    """What a line of the catalogue tells of a page that is not in its answer."""

    worker: str
    signals: str = ""
    wall_offset: int = 0
    """What the wall clock is ahead of the timeline."""
    outlook: Outlook | None = None
    """What settling it has planned."""


def capture_row(
    lease: Lease,
    task: PageTask,
    answer: Fetched,
    judged: Judgement,
    stored: StoredCapture,
    beside: Beside,
    sizes: tuple[int, int] | None = None,
) -> CaptureRow:
    """A capture as a line of the catalogue; `sizes` are the answer's, where its content was let go since."""
    page, outlook = judged.page, beside.outlook
    length, wire_bytes = sizes_of(answer) if sizes is None else sizes
    directives = page.directives if page else judged.asked
    return CaptureRow(
        url=task.url,
        fingerprint=task.fingerprint,
        host=lease.host,
        domain=lease.domain,
        depth=task.depth,
        via=task.via,
        level=task.level,
        retries=task.retries,
        at=stored.at,
        status=answer.status,
        content_type=answer.content_type,
        # Of a list there is none: a page is known by having one (and a list that has not changed, by nothing).
        content_hash=b"" if judged.listing else judged.digest or (task.digest if judged.not_modified else b""),
        length=length,
        wire_bytes=wire_bytes,
        elapsed_ms=answer.elapsed_ms,
        kind=stored.kind,
        segment=stored.ref.segment,
        offset=stored.ref.offset,
        record_length=stored.ref.length,
        end=stored.ref.end,
        payload_digest=stored.payload_digest,
        title=page.title if page else "",
        language=page.language if page else "",
        canonical=page.canonical if page else "",
        duplicate_of=judged.original.url if judged.original and not judged.not_modified else "",
        simhash=_signed(page.simhash) if page and page.simhash else None,
        near_duplicate_of=judged.near.url if judged.near else "",
        truncated=answer.truncated or ("" if judged.body_kept or judged.original else Truncation.UNSPECIFIED),
        noindex=directives.noindex,
        noarchive=directives.noarchive,
        changed=not judged.not_modified and judged.digest != task.digest,
        signals=beside.signals,
        worker=beside.worker,
        assigned_at=wall_of(lease.claimed_at, beside.wall_offset),
        timeout_at=wall_of(lease.expires_at, beside.wall_offset),
        next_crawl_at=None if outlook is None else outlook.next_at,
        change_rate=None if outlook is None else outlook.change_rate,
    )


def planned(row: CaptureRow, outlook: Outlook | None) -> CaptureRow:
    """A line with the next visit, which is known when the page is settled."""
    return row if outlook is None else replace(row, next_crawl_at=outlook.next_at, change_rate=outlook.change_rate)


def sizes_of(answer: Fetched) -> tuple[int, int]:
    """How long the body of an answer is, and how long all of it was on the wire."""
    return len(answer.body), len(answer.head) + len(answer.payload)


def _signed(number: int) -> int:
    """64 bits as SQL keeps them."""
    return number - (1 << 64) if number >> 63 else number


def robots_row(
    lease: Lease,
    task: RobotsTask,
    answer: Fetched,
    stored: StoredCapture,
    *,
    worker: str,
    crawl_delay_ms: int = 0,
    text: bytes = b"",
    wall_offset: int = 0,
) -> CaptureRow:
    """A robots.txt as a line of the catalogue; `text` is what came into force of it."""
    return CaptureRow(
        url=task.url,
        fingerprint=b"",
        host=lease.host,
        domain=lease.domain,
        depth=0,
        via="",
        level=0,
        retries=0,
        at=stored.at,
        status=answer.status,
        content_type=answer.content_type,
        content_hash=b"",
        length=len(answer.body),
        wire_bytes=len(answer.head) + len(answer.payload),
        elapsed_ms=answer.elapsed_ms,
        kind="response",
        segment=stored.ref.segment,
        offset=stored.ref.offset,
        record_length=stored.ref.length,
        end=stored.ref.end,
        payload_digest=stored.payload_digest,
        truncated=answer.truncated or "",
        robots=True,
        crawl_delay_ms=crawl_delay_ms,
        worker=worker,
        assigned_at=wall_of(lease.claimed_at, wall_offset),
        timeout_at=wall_of(lease.expires_at, wall_offset),
        robots_txt=text.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}"),
    )


def part_row(
    host: str, domain: str, task: PartTask, answer: Fetched, stored: StoredCapture, *, worker: str
) -> CaptureRow:
    """What a page in a browser asked for, as a line of the catalogue: for the index, and no page (J3)."""
    return CaptureRow(
        url=task.url,
        fingerprint=b"",
        host=host,
        domain=domain,
        depth=0,
        via=task.page,
        level=0,
        retries=0,
        at=stored.at,
        status=answer.status,
        content_type=answer.content_type,
        content_hash=b"",
        length=len(answer.body),
        wire_bytes=len(answer.head) + len(answer.payload),
        elapsed_ms=answer.elapsed_ms,
        kind=stored.kind,
        segment=stored.ref.segment,
        offset=stored.ref.offset,
        record_length=stored.ref.length,
        end=stored.ref.end,
        payload_digest=stored.payload_digest,
        truncated=answer.truncated or "",
        worker=worker,
    )
