"""Work for workers outside: lease, heartbeat, result, fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nephila.model.task import Token
from nephila.node import loans

from . import asked, given
from .access import Role
from .endpoint import Call, Endpoint
from .problems import ProblemError

LARGEST_TOKEN = (1 << 63) - 1
MOST_DIGITS = len(str(LARGEST_TOKEN))


async def lease(call: Call[asked.LeaseOrder, None]) -> given.LeaseAnswer:
    """Lend URLs to a worker."""
    order = call.body
    lent = await loans.lend(call.desk, order.batch_size, order.lease_duration_sec)
    call.desk.workers.heard(order.worker_id, call.desk.clock.wall_ms())
    tasks = [
        given.TaskGiven(
            task_id=one.task_id,
            url=one.url,
            domain=one.domain,
            timeout_at=one.timeout_at,
            depth=one.depth,
            user_agent=one.user_agent,
            etag=one.etag,
            last_modified=one.last_modified,
        )
        for one in lent.tasks
    ]
    return given.LeaseAnswer(tasks=tasks, waiting_for_robots=lent.waiting_for_rules)


async def heartbeat(call: Call[asked.HeartbeatOrder, None]) -> given.HeartbeatAnswer:
    """Extend a lease."""
    with _unless_blocked(call.path):
        timeout_at = await loans.renew(call.desk, _token(call.path), call.body.lease_duration_sec)
    if timeout_at is None:
        raise _lost(call.path)
    return given.HeartbeatAnswer(timeout_at=timeout_at)


async def result(call: Call[asked.ResultOrder, None]) -> given.ResultAnswer:
    """Take what a worker brings."""
    order = call.body
    brought = loans.Result(
        status=order.http_status,
        content_type=order.content_type,
        content_hash=bytes.fromhex(order.content_hash),
        storage_path=order.storage_path,
        extracted_urls=order.extracted_urls,
        length=order.length,
        elapsed_ms=order.elapsed_ms,
        worker=order.worker_id,
    )
    with _unless_blocked(call.path):
        taken = await loans.take_result(call.desk, _token(call.path), brought)
    if not taken.accepted:
        raise _lost(call.path)
    return given.ResultAnswer(
        status="completed", new_urls_enqueued=taken.added, duplicates_skipped=taken.known, refused=taken.refused
    )


async def fail(call: Call[asked.FailOrder, None]) -> given.FailAnswer:
    """Take that a worker could not."""
    order = call.body
    token = _token(call.path)
    with _unless_blocked(call.path):
        taken = await loans.take_failure(call.desk, token, order.error, order.http_status or 0, order.worker_id)
    if not taken.accepted:
        raise _lost(call.path)
    return given.FailAnswer(will_retry=taken.will_retry, retry_count=taken.retries)


def _token(path: dict[str, str]) -> Token:
    text = path["task_id"]
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS or int(text) > LARGEST_TOKEN:
        raise ProblemError(404, f"there is no task {text!r}", "task_id is what tasks/lease gave")
    return Token(int(text))


@contextmanager
def _unless_blocked(path: dict[str, str]) -> Iterator[None]:
    """A person's word goes before what a worker brings."""
    try:
        yield
    except loans.BlockedLoanError as error:
        hint = "throw away what was fetched of it, and lease another"
        raise ProblemError(409, f"the URL of task {path['task_id']} was blocked meanwhile by {error}", hint) from error


def _lost(path: dict[str, str]) -> ProblemError:
    hint = "its lease ran out, or it was reported before: lease another"
    return ProblemError(409, f"the task {path['task_id']} is not, or no longer, leased", hint)


_TAKEN = (404, 409)
ENDPOINTS = (
    Endpoint(
        "POST",
        "/tasks/lease",
        "leaseTasks",
        "Lease URLs to fetch",
        given.LeaseAnswer,
        lease,
        Role.WRITE,
        asked.LeaseOrder,
        tag="tasks",
    ),
    Endpoint(
        "POST",
        "/tasks/{task_id}/heartbeat",
        "extendTask",
        "Extend a lease",
        given.HeartbeatAnswer,
        heartbeat,
        Role.WRITE,
        asked.HeartbeatOrder,
        problems=_TAKEN,
        tag="tasks",
    ),
    Endpoint(
        "POST",
        "/tasks/{task_id}/result",
        "reportResult",
        "Report a URL that was answered",
        given.ResultAnswer,
        result,
        Role.WRITE,
        asked.ResultOrder,
        problems=_TAKEN,
        tag="tasks",
    ),
    Endpoint(
        "POST",
        "/tasks/{task_id}/fail",
        "reportFailure",
        "Report a URL that was not answered",
        given.FailAnswer,
        fail,
        Role.WRITE,
        asked.FailOrder,
        problems=_TAKEN,
        tag="tasks",
    ),
)
