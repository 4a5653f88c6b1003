"""What the answer to a request for robots.txt means (P1; RFC 9309, 2.3.1 and 2.4).

| answer                                   | means                                                                   |
|------------------------------------------|-------------------------------------------------------------------------|
| 2xx                                      | these rules, for a day                                                  |
| 3xx                                      | ask there; after too many hops, or without a target, as 4xx             |
| 4xx but 429                              | no restrictions, for a day                                              |
| 429, 5xx, cut off, odd, no answer at all | the last good rules; without them nothing may be fetched; tried again   |
|                                          | soon, then ever more rarely; after 30 days of it, no restrictions       |

How long it has been failing is known from `OriginRules.failing_since` alone: waiting as long again as it has been
failing is what doubling the wait each time comes to, and needs no counter. It is on the frontier's timeline: whoever
sets the wall clock forward by a month must not open what nobody could read, nor make us ask for ever by setting it
back. And a crawl that rested for a month has not seen anything fail meanwhile.

What must stay true: a failure never replaces good rules, and never makes a site look more open than it said, until it
has failed for `give_up_s`. Where the host itself cannot or may not be reached (no such name, an address that is not
public), no setting makes it look open: its pages could not be fetched either, and end without a request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nephila.interfaces.politeness import RobotsRedirect
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, Truncation
from nephila.model.outcome import OriginRules, RulesKind, RulesLearned
from nephila.model.settings import RobotsSettings
from nephila.model.task import RobotsTask
from nephila.urls import origin_of, resolve_location

_TOO_MANY_REQUESTS = 429
_OUT_OF_REACH = frozenset({FailureKind.ADDRESS, FailureKind.NO_SUCH_NAME})


@dataclass(frozen=True, slots=True)
class _Moment:
    """Now, on both clocks that rules are kept by."""

    timeline_ms: int
    """The frontier's timeline, for what is compared."""
    wall_ms: int
    """UTC, for what is kept and shown."""


def judge_robots(
    task: RobotsTask, answer: Answer, last: OriginRules | None, settings: RobotsSettings, now_ms: int, wall_ms: int
) -> RulesLearned | RobotsRedirect:
    """What is in force for `task.origin` after this answer, or where to ask next.

    `last` is what was in force before; `now_ms` is on the frontier's timeline, `wall_ms` is UTC.
    """
    now = _Moment(now_ms, wall_ms)
    if isinstance(answer, FetchFailed):
        return _failing(task, f"{answer.kind}: {answer.detail}", last, settings, now, failure=answer.kind)
    status = answer.status
    moved = _redirect(task, answer, settings) if 300 <= status < 400 else None
    # A redirect that lost its target on the way is no redirect to nowhere: that would open the site.
    if 200 <= status < 400 and moved is None and answer.truncated in {Truncation.TIME, Truncation.DISCONNECT}:
        return _failing(task, f"cut off ({answer.truncated})", last, settings, now, status=status)
    if 200 <= status < 300:
        return _learned(task, RulesKind.RULES, _whole_lines(answer, settings.max_bytes), answer, settings, now)
    if 300 <= status < 400:
        return moved or _learned(task, RulesKind.ALLOW_ALL, b"", answer, settings, now)
    if 400 <= status < 500 and status != _TOO_MANY_REQUESTS:
        return _learned(task, RulesKind.ALLOW_ALL, b"", answer, settings, now)
    return _failing(task, f"HTTP {status}", last, settings, now, status=status)


def _learned(
    task: RobotsTask, kind: RulesKind, body: bytes, answer: Fetched, settings: RobotsSettings, now: _Moment
) -> RulesLearned:
    return RulesLearned(
        OriginRules(
            origin=task.origin,
            kind=kind,
            body=body,
            stored_at=now.wall_ms,
            fresh_until=now.timeline_ms + round(settings.fresh_s * 1000),
            status=answer.status,
            detail=f"HTTP {answer.status}",
        )
    )


def _redirect(task: RobotsTask, answer: Fetched, settings: RobotsSettings) -> RobotsRedirect | None:
    """The next hop, or None where there is none to take."""
    if task.hops >= settings.max_hops:
        return None
    location = answer.header("location")
    target = resolve_location(task.url, location) if location else None
    if target is None or not target.startswith(("http://", "https://")):
        return None
    return RobotsRedirect(target.partition("#")[0], task.hops + 1)


def _failing(
    task: RobotsTask,
    detail: str,
    last: OriginRules | None,
    settings: RobotsSettings,
    now: _Moment,
    *,
    status: int = 0,
    failure: FailureKind | None = None,
) -> RulesLearned:
    since = _failing_since(last, now.timeline_ms)
    failing_ms = now.timeline_ms - since
    wait_ms = min(failing_ms + settings.retry_s * 1000, settings.retry_max_s * 1000)
    due = now.timeline_ms + round(wait_ms)
    given_up = failing_ms >= settings.give_up_s * 1000
    if last is not None and last.kind is RulesKind.RULES and not given_up:
        return RulesLearned(replace(last, fresh_until=due, failing_since=since, detail=detail))
    open_anyway = (given_up or settings.permissive) and failure not in _OUT_OF_REACH
    kind = RulesKind.ALLOW_ALL if open_anyway else RulesKind.UNAVAILABLE
    if failure in _OUT_OF_REACH and origin_of(task.url) == task.origin:
        kind = RulesKind.NO_HOST  # of the origin itself, not of a host that its robots.txt redirects to
    return RulesLearned(OriginRules(task.origin, kind, b"", now.wall_ms, due, status, since, detail))


def _failing_since(last: OriginRules | None, now_ms: int) -> int:
    """The first failure in a row, moved by the time in which nobody asked: that proves nothing against a server."""
    if last is None or not last.failing_since:
        return now_ms
    unasked_ms = max(0, now_ms - last.fresh_until) if last.fresh_until else 0
    return min(last.failing_since + unasked_ms, now_ms)


def _whole_lines(answer: Fetched, max_bytes: int) -> bytes:
    """The body, cut to its last whole line where it was not read to its end: half a rule may say the opposite."""
    body = answer.body[:max_bytes]
    if answer.truncated is None and len(body) == len(answer.body):
        return body
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
