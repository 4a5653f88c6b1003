"""A resource that pages in browsers wait for: asked for, stored, put on the shelf and settled (J3).

It is work of its own host like any other, under that host's lease, robots.txt and pace; the archive has it. It is no
page: it counts in no limit, and its links lead nowhere. When it has come, its URL is done with; whoever needs it again
after its freshness asks for it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nephila.model.errors import leaves_all_as_it_is
from nephila.model.events import Event, EventKind
from nephila.model.exchange import REDIRECTS, Answer, FailureKind, Fetched, FetchFailed, FetchRequest, Truncation
from nephila.model.outcome import Dead, Dropped, OriginRules, Outcome, Release, RulesKind, Settlement
from nephila.model.record import Capture
from nephila.model.rendering import Supplied
from nephila.model.settings import RenderSettings
from nephila.model.task import Candidate, Lease, PageTask, PartTask
from nephila.urls import resolve

from .listing import part_row
from .narration import bound_by
from .notes import policy_notes
from .parts import Conduct, Stages
from .resources import TYPES, ResourceNotes, bare, candidate_for
from .visit import MAX_HOPS, shown_headers

RESOURCE = "resource"
"""The reason under which the frontier has done with it."""
NOTE_RESOURCE = "resource"
"""How the metadata of a capture says that it is one."""
_CUT = frozenset({Truncation.TIME, Truncation.DISCONNECT})


class ResourceClause:
    """The part of the sentence that is about resources; `notes` is None where nobody shows pages."""

    def __init__(self, stages: Stages, conduct: Conduct, notes: ResourceNotes | None, settings: RenderSettings) -> None:
        self._to = stages
        self._conduct = conduct
        self._notes = notes
        self._settings = settings

    async def objection(self, lease: Lease, task: PageTask, rules: OriginRules | None) -> Outcome | None:
        """How a resource ends that is not asked for; None when it is to be."""
        notes, url = self._notes, bare(task.url)
        if notes is None or not notes.is_awaited(await notes.find(url)):
            return Dropped(RESOURCE, "nobody waits for it")
        if rules is None:
            return None
        if rules.kind is RulesKind.NO_HOST:
            reason = "address" if rules.detail.startswith(FailureKind.ADDRESS) else "failed"
            return await self._refused(notes, lease, task, reason, rules.detail)
        permission = self._to.politeness.permits(rules, url, lease.user_agent)
        if permission.allowed:
            return None
        return await self._refused(notes, lease, task, "robots", f"line {permission.line}: {permission.rule}")

    async def fetch(self, lease: Lease, task: PageTask) -> Answer:
        """Ask for it."""
        limit = self._settings.max_part_bytes
        return await self._to.fetcher.fetch(FetchRequest(bare(task.url), (), TYPES, limit, lease.user_agent))

    async def conclude(
        self,
        lease: Lease,
        task: PageTask,
        attempt: int,
        answer: Answer,
        rules: OriginRules | None,
        release: Release | None,
    ) -> None:
        """Store it, let those know who wait, settle it."""
        if self._notes is None:
            raise TypeError("nobody asks for a resource that nobody waits for")
        if isinstance(answer, FetchFailed):
            outcome = await self._failed(self._notes, lease, task, answer)
            await self._to.frontier.settle(lease.token, [Settlement(task, outcome)], release)
            return
        part = PartTask(bare(task.url), task.via or bare(task.url))
        notes = [(NOTE_RESOURCE, "1"), *policy_notes(lease)]
        notes += [("robotsRules", f"{rules.kind} {rules.stored_at}")] if rules else []
        capture = Capture(part, lease.token, attempt, answer, via=task.via, notes=tuple(notes))
        stored = self._to.archive.append(capture)
        ref = stored.ref
        worker = self._conduct.worker_of(ref.segment)
        row = part_row(lease.host, lease.domain, part, answer, stored, worker=worker)
        self._to.ledger.appended(ref.segment, ref.offset)
        try:
            outcome, links = await self._came(self._notes, task, answer)
            settled = await self._to.frontier.settle(lease.token, [Settlement(task, outcome, links)], release)
        except Exception as error:
            if not leaves_all_as_it_is(error):
                self._to.ledger.settled(ref.segment, ref.offset, None)
            raise
        self._to.ledger.settled(ref.segment, ref.offset, row if settled.accepted else None)
        size = len(answer.head) + len(answer.payload)
        told = {"status": answer.status, "bytes": size, "content_type": answer.content_type[:128]}
        self._tell(lease, task, answer, **told)

    async def _came(self, notes: ResourceNotes, task: PageTask, answer: Fetched) -> tuple[Outcome, Sequence[Candidate]]:
        """What an answer comes to; one that may be better another time is asked for again."""
        url, status = bare(task.url), answer.status
        passing = "http_429" if status == 429 else "http_5xx" if status >= 500 else ""
        passing = FailureKind.RESET if answer.truncated in _CUT else passing
        if passing:
            ending = self._to.politeness.retry(task, passing, f"HTTP {status}")
            if not isinstance(ending, Dead):
                return ending, ()
            await notes.refuse(url, "failed")
            return Dropped(RESOURCE, f"{passing}: {ending.detail}"), ()
        if answer.unwanted or answer.truncated is not None:
            await notes.refuse(url, "type" if answer.unwanted else "size")
            return Dropped(RESOURCE, answer.content_type if answer.unwanted else "too large"), ()
        links = await self._moved(notes, task, answer) if status in REDIRECTS else ()
        await notes.answer(url, Supplied(status, shown_headers(answer.headers), answer.body))
        return Dropped(RESOURCE, f"HTTP {status}"), links

    async def _moved(self, notes: ResourceNotes, task: PageTask, answer: Fetched) -> Sequence[Candidate]:
        """Where a resource is now, if somebody has to ask there."""
        target = (resolve(bare(task.url), answer.header("location")) or "").partition("#")[0]
        address = self._conduct.identify(target) if target.startswith(("http://", "https://")) else None
        if address is None or task.hops >= MAX_HOPS or await notes.find(address.url) is not None:
            return ()
        await notes.ask(address.url)
        return (candidate_for(address, task.depth, task.hops + 1),)

    async def _failed(self, notes: ResourceNotes, lease: Lease, task: PageTask, answer: FetchFailed) -> Outcome:
        outcome = self._to.judge.failed(task, answer)
        traced = {"reason": str(answer.kind), "detail": answer.detail}
        self._tell(lease, task, answer, **traced)
        if not isinstance(outcome, Dropped | Dead):
            return outcome
        await notes.refuse(bare(task.url), "address" if answer.kind is FailureKind.ADDRESS else "failed")
        return Dropped(RESOURCE, f"{answer.kind}: {answer.detail}")

    async def _refused(self, notes: ResourceNotes, lease: Lease, task: PageTask, reason: str, detail: str) -> Outcome:
        await notes.refuse(bare(task.url), reason)
        self._tell(lease, task, None, reason=reason, detail=detail)
        return Dropped(RESOURCE, f"{reason}: {detail}")

    def _tell(self, lease: Lease, task: PageTask, answer: Answer | None, **fields: object) -> None:
        event = Event(
            EventKind.RENDER_RESOURCE,
            self._to.clock.wall_ms(),
            url=bare(task.url),
            fingerprint=task.fingerprint,
            host=lease.host,
            via=task.via,
        )
        if answer is not None and (isinstance(answer, Fetched) or answer.sent):
            event = replace(
                event,
                address=answer.address,
                sent_ms=answer.sent_ms or None,
                elapsed_ms=answer.elapsed_ms,
                counts=bound_by(lease),
            )
        self._to.events.emit(replace(event, **fields))  # type: ignore[arg-type]  # fields of an event
