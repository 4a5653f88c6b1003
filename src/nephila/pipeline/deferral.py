"""Not now, because of the address (P2): the host goes back as a whole, and nothing of it counts against anybody.

The fetcher found that the address behind a host has no turn for it. Nothing was sent: no retry is used, no page of the
allowance, no error is told, and the pace of the host learns nothing. The host rests for what it owed before or until
its turn at the address, whichever is later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from nephila.model.events import Event, EventKind
from nephila.model.exchange import Answer, FailureKind, FetchFailed
from nephila.model.outcome import DeferReason, Release
from nephila.model.task import Lease, PageTask, Task


def is_put_off(answer: Answer) -> TypeGuard[FetchFailed]:
    """Whether this is no answer and no failure, but a turn that comes later."""
    return isinstance(answer, FetchFailed) and answer.kind is FailureKind.ADDRESS_BUSY


def until_its_turn(rest: Release, answer: FetchFailed, reason: DeferReason = DeferReason.ADDRESS) -> Release:
    """The release of a host that was put off; `rest` is what it owes as if it had not been asked."""
    return replace(rest, wait_ms=max(rest.wait_ms, answer.wait_ms), reason=reason)


def deferral(lease: Lease, task: Task, release: Release, at: int) -> Event:
    """What is told of it."""
    page = task if isinstance(task, PageTask) else None
    return Event(
        EventKind.DEFERRED,
        at,
        url=task.url,
        fingerprint=page.fingerprint if page else b"",
        host=lease.host,
        depth=page.depth if page else None,
        reason=release.reason or DeferReason.ADDRESS,
        counts=(("wait_ms", release.wait_ms),),
    )
