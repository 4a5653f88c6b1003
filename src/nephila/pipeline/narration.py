"""What the pipeline tells about its work: events for listeners, error rows for the catalogue."""

from __future__ import annotations

import traceback
from hashlib import sha256
from typing import NamedTuple

from nephila.interfaces.catalogue import ErrorRow
from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.frontier import Settled
from nephila.interfaces.ledger import Ledger
from nephila.model.events import NEAR, UNWANTED_TYPE, Event, EventKind
from nephila.model.exchange import Answer, Fetched, FetchFailed
from nephila.model.noun import quick
from nephila.model.outcome import Dead, Deferred, Done, Dropped, Outcome, Retry, RulesLearned, RulesMoved
from nephila.model.plugin import OFFICE_LINKS, PDF_LINKS
from nephila.model.task import Lease, PageTask, RobotsTask, Task

from .judgement import Judgement
from .lists import NO_SITEMAP
from .notfound import PROBE, SOFT_404

_EXTRACTED = {PDF_LINKS: EventKind.PDF_LINKS_EXTRACTED, OFFICE_LINKS: EventKind.OFFICE_LINKS_EXTRACTED}
"""Events of the extractors that ship."""


@quick
class Trace(NamedTuple):
    """When and where a request went (K1): all that must be told of one of which nothing else tells."""

    sent: bool
    address: str
    sent_ms: int
    elapsed_ms: int


def trace_of(answer: Answer) -> Trace:
    """The trace of an exchange, whatever came of it."""
    sent = answer.sent if isinstance(answer, FetchFailed) else True
    return Trace(sent, answer.address, answer.sent_ms, answer.elapsed_ms)


class Narrator:
    """Tells. Decides nothing."""

    def __init__(self, events: EventSink, ledger: Ledger, clock: Clock) -> None:
        self._events = events
        self._ledger = ledger
        self._clock = clock

    def _tell(self, kind: EventKind, lease: Lease, task: Task, **fields: object) -> None:
        known = {"fingerprint": task.fingerprint, "depth": task.depth} if isinstance(task, PageTask) else {}
        at = self._clock.wall_ms()
        self._events.emit(Event(kind=kind, at=at, url=task.url, host=lease.host, **known, **fields))  # type: ignore[arg-type]

    def late(self, lease: Lease, task: Task, answer: Answer | None = None) -> None:
        """A result came after its lease was lost, and was dropped (F3)."""
        self._tell(EventKind.LATE_RESULT, lease, task, **_trace(lease, task, answer))

    def broken_off(
        self,
        lease: Lease,
        task: Task,
        sent_ms: int,
        answer: Trace | None,
        visit: tuple[tuple[str, int], ...] = (),
    ) -> None:
        """An exchange ended by our hand, or under our feet: the host may have been asked (K1).

        `visit` names the visit that it began, if it did.
        """
        if answer is not None and not answer.sent:
            return
        traced = _traced(lease, task, answer) or {
            "sent_ms": sent_ms,
            "elapsed_ms": self._clock.steady_ms() - sent_ms,
            "counts": bound_by(lease),
        }
        traced["counts"] = (*bound_by(lease), *visit)
        self._tell(EventKind.BROKEN_OFF, lease, task, **traced)

    def waiting(
        self,
        lease: Lease,
        task: PageTask,
        outcome: Deferred,
        answer: Trace | None,
        visit: tuple[tuple[str, int], ...],
        *,
        accepted: bool,
    ) -> None:
        """A page waits for what it needs of other hosts (J3); `answer` is what was got for it now, which is kept apart.

        That is in the archive when the page is done with; until then this is all that tells of its request (K1).
        """
        traced = _traced(lease, task, answer)
        counts = (("wait_ms", outcome.wait_ms), *(bound_by(lease) if traced else ()), *visit)
        kind = EventKind.DEFERRED if accepted else EventKind.LATE_RESULT
        self._tell(kind, lease, task, reason=outcome.reason, **(traced | {"counts": counts}))

    def answer(
        self,
        lease: Lease,
        task: PageTask,
        answer: Fetched,
        size: int,
        judged: Judgement,
        settled: Settled,
        outcome: Outcome,
        visit: tuple[tuple[str, int], ...] = (),
    ) -> None:
        """An answer of `size` bytes on the wire was stored and settled; its content is not looked at any more.

        `visit` names the visit that it began, if it did.
        """
        if not settled.accepted:
            self.late(lease, task, answer)
            return
        counts = (("added", settled.admission.added), ("known", settled.admission.known), *_policy(lease), *visit)
        self._tell_fetched(lease, task, answer, size, judged, counts)
        if judged.location:
            self._tell(EventKind.REDIRECT, lease, task, status=answer.status, detail=judged.location)
        self._tell_duplicates(lease, task, judged)
        for name, extract in judged.extracts:
            if (kind := _EXTRACTED.get(name)) is not None:
                told = {"detail": extract.detail, "counts": extract.counts}
                self._tell(kind, lease, task, status=answer.status, **told)
        if isinstance(outcome, Done) and outcome.lied:
            detail = (
                "the content has changed under the same ETag or Last-Modified: its host is asked in full for a while"
            )
            self._tell(EventKind.WARNING, lease, task, reason="validators_lie", detail=detail)
        if settled.admission.cooling:
            self._tell(EventKind.COOLDOWN_SKIP, lease, task, counts=(("cooling", settled.admission.cooling),))
        if judged.sifted.malformed:
            counts = tuple(judged.sifted.malformed.items())
            self._tell(EventKind.EXCLUDED_BY_RULE, lease, task, counts=counts, detail="links that are no addresses")
        self._tell_refusals(task, judged)
        if judged.error == SOFT_404:
            self._error(lease, task, SOFT_404, judged.detail, dead=False)
        elif judged.error not in {PROBE, NO_SITEMAP} and not (isinstance(outcome, Done) and answer.status < 400):
            self.ending(lease, task, outcome, answer)

    def _tell_fetched(
        self,
        lease: Lease,
        task: PageTask,
        answer: Fetched,
        size: int,
        judged: Judgement,
        counts: tuple[tuple[str, int], ...],
    ) -> None:
        """By the places of the fields: every page is told of, and their names take several times as long."""
        event = Event(
            EventKind.FETCH_OK,
            self._clock.wall_ms(),
            task.url,
            task.fingerprint,
            lease.host,
            task.depth,
            answer.status,
            size,
            answer.content_type[:128],
            UNWANTED_TYPE if answer.unwanted else judged.error or judged.listing or "",
            _circumstances(answer) if answer.bad_certificate or answer.stale_address else "",
            task.via,
            answer.elapsed_ms,
            counts,
            answer.address,
            answer.sent_ms or None,
        )
        self._events.emit(event)

    def _tell_duplicates(self, lease: Lease, task: PageTask, judged: Judgement) -> None:
        original = judged.original
        if original is not None and not judged.not_modified and original.url != task.url:  # else it has not changed
            self._tell(EventKind.DUPLICATE, lease, task, detail=original.url)
        if judged.near is not None:
            counts = (("distance", judged.near.distance),)
            self._tell(EventKind.DUPLICATE, lease, task, reason=NEAR, detail=judged.near.url, counts=counts)

    def _tell_refusals(self, task: PageTask, judged: Judgement) -> None:
        if not judged.sifted.refused:
            return
        at, counted = self._clock.wall_ms(), judged.sifted.malformed
        for refusal in judged.sifted.refused:
            if refusal.reason in counted:
                continue  # the page's own event has told how many: not one for each
            self._events.emit(
                Event(
                    kind=EventKind.EXCLUDED_BY_RULE,
                    at=at,
                    url=refusal.address.url,
                    fingerprint=refusal.address.fingerprint,
                    host=refusal.address.host,
                    reason=refusal.reason,
                    detail=refusal.detail,
                    via=task.url,
                )
            )

    def ending(self, lease: Lease, task: PageTask, outcome: Outcome, answer: Answer | None) -> None:
        """Failures, refusals and retries; an ordinary end has been told already."""
        match outcome:
            case Retry(wait_ms, kind, detail):
                self._error(lease, task, kind, detail, dead=False, answer=answer)
                self._tell(EventKind.RETRY, lease, task, reason=kind, counts=(("wait_ms", wait_ms),))
            case Dead(kind, detail):
                self._error(lease, task, kind, detail, dead=True, answer=answer)
                self._tell(EventKind.DEAD_LETTER, lease, task, reason=kind, detail=detail)
            case Dropped("robots", detail):
                self._tell(EventKind.ROBOTS_DISALLOW, lease, task, reason="robots", detail=detail, via=task.via)
            case Dropped("alias" | "plugin" | "excluded" as reason, detail):
                self._tell(EventKind.EXCLUDED_BY_RULE, lease, task, reason=reason, detail=detail, via=task.via)
            case Dropped(reason, detail) if reason in {"redirect_loop", "too_many_redirects"}:
                self._error(lease, task, "redirect", detail, dead=False)
                self._tell(EventKind.TRAP, lease, task, reason=reason, detail=detail)
            case Dropped(reason, detail):
                self._error(lease, task, reason, detail, dead=False, answer=answer)
                self._tell(EventKind.EXCLUDED_BY_RULE, lease, task, reason=reason, detail=detail, via=task.via)
            case Deferred(wait_ms, reason):
                if isinstance(answer, FetchFailed):
                    self._error(lease, task, answer.kind, answer.detail, dead=False, answer=answer)
                self._tell(EventKind.DEFERRED, lease, task, reason=reason, counts=(("wait_ms", wait_ms),))
            case _:
                if isinstance(answer, Fetched) and 400 <= answer.status < 500:
                    self._error(lease, task, "http_4xx", f"HTTP {answer.status}", dead=False)

    def _error(
        self, lease: Lease, task: PageTask, kind: str, detail: str, *, dead: bool, answer: Answer | None = None
    ) -> None:
        """Tell a failure; where a request was sent and brought nothing for the archive, also when and where."""
        at = self._clock.wall_ms()
        self._ledger.failed(ErrorRow(task.url, task.fingerprint, lease.host, kind, detail, at, task.retries, dead))
        traced = _trace(lease, task, answer) if isinstance(answer, FetchFailed) else {}
        self._tell(EventKind.ERROR, lease, task, reason=kind, detail=detail, **traced)

    def robots(self, lease: Lease, task: RobotsTask, answer: Answer, outcome: Outcome, settled: Settled) -> None:
        """A robots.txt came to something."""
        if not settled.accepted:
            self.late(lease, task, answer)
            return
        status = answer.status if isinstance(answer, Fetched) else None
        size = len(answer.head) + len(answer.payload) if isinstance(answer, Fetched) else None
        match outcome:
            case RulesLearned(rules):
                reason, detail = str(rules.kind), rules.detail
            case RulesMoved(_, address, _):
                reason, detail = "redirect", address.url
            case _:
                reason, detail = "", ""
        traced = _trace(lease, task, answer)
        self._tell(
            EventKind.ROBOTS_FETCHED, lease, task, status=status, bytes=size, reason=reason, detail=detail, **traced
        )
        if isinstance(answer, FetchFailed):
            # It is no page and has no fingerprint: what tells it from others that failed in the same moment is its URL.
            name, at = sha256(task.url.encode()).digest()[:16], self._clock.wall_ms()
            row = ErrorRow(task.url, name, lease.host, answer.kind, answer.detail, at, task.hops, dead=False)
            self._ledger.failed(row)
            self._tell(EventKind.ERROR, lease, task, reason=answer.kind, detail=answer.detail)

    def bug(self, lease: Lease, error: Exception) -> None:
        """Something of ours broke; the crawl goes on."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        self._tell(EventKind.WARNING, lease, lease.tasks[0], reason="bug", detail=detail)


def _policy(lease: Lease) -> tuple[tuple[str, int], ...]:
    """The delay that a policy of the domain sets (R4), for whoever checks it afterwards."""
    return (("policy_delay_ms", lease.pace.base_ms),) if lease.pace.base_ms >= 0 else ()


def bound_by(lease: Lease) -> tuple[tuple[str, int], ...]:
    """Delay and rules of a request that leaves no record in the archive to name them."""
    return (*_policy(lease), ("rules_at", lease.rules_at)) if lease.rules_at else _policy(lease)


def _trace(lease: Lease, task: Task, answer: Answer | None) -> dict[str, object]:
    """When and where a request went (K1); nothing of one that was not sent."""
    return _traced(lease, task, None if answer is None else trace_of(answer))


def _traced(lease: Lease, task: Task, trace: Trace | None) -> dict[str, object]:
    """The same, for an event. A robots.txt speaks for its origin."""
    if trace is None:
        return {}
    asker: dict[str, object] = {"via": task.origin} if isinstance(task, RobotsTask) else {}
    if not trace.sent:
        return asker
    return {
        **asker,
        "address": trace.address,
        "sent_ms": trace.sent_ms or None,
        "elapsed_ms": trace.elapsed_ms,
        "counts": bound_by(lease),
    }


def _circumstances(answer: Fetched) -> str:
    """Under which the answer was had, where they are not the ordinary ones."""
    told = [f"bad certificate: {answer.bad_certificate}"] if answer.bad_certificate else []
    if answer.stale_address:
        told.append("no name server answered: the last known address was used")
    return "; ".join(told)
