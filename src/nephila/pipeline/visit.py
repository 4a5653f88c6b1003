"""A visit: what a page in a browser asks for, got by the crawl's own way and by its own rules (J3).

The page is there already; what its scripts want on top is asked of its own host alone, under the lease that the page
was fetched under: so many requests in all, so many at once, each allowed by the robots.txt in force, through the
fetcher with its guard and its turns at addresses. Other hosts have leases of their own, which a visit does not hold:
what is wanted of them is given out as it lies on the shelf, or waited for (`elsewhere`). Every exchange is a capture of
its own, in the archive before the page sees it.

A page that has waited is shown again from the answer that it came with: then its visit begins with what it asks for.

What must stay true: nothing is sent that is not counted, and nothing is counted that the host does not rest for; no URL
is asked for twice for one page, however often it is shown.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import NephilaError
from nephila.model.events import Event, EventKind
from nephila.model.exchange import REDIRECTS, Answer, FailureKind, Fetched, FetchFailed, FetchRequest
from nephila.model.outcome import OriginRules, Release, RulesKind
from nephila.model.record import Capture
from nephila.model.rendering import PartKind, Supplied, Wanted, Withheld
from nephila.model.settings import RenderSettings
from nephila.model.task import Lease, Pace, PageTask, PartTask
from nephila.urls import origin_of, resolve

from .elsewhere import Elsewhere, readable
from .holding import Held
from .listing import part_row
from .notes import policy_notes
from .part_cache import PartCache, lasts_ms
from .resources import ResourceNotes
from .rules_at_hand import until_answered

if TYPE_CHECKING:
    from .parts import Conduct, Stages

NOTE_VISIT = "visit"
"""How the metadata of a capture says which visit it belongs to."""
NOTE_AGAIN = "visitAgain"
"""The same of a part that a page asked for when it was shown again: its first visit."""
MAX_HOPS = 5
"""Redirects of one part that are followed; each is a request like any other."""
PARTS_FROM = 1_000
"""Attempts of a lease from here on are parts of its visits: tokens and attempts make the names of records."""
LONGEST_URL = 8_192
"""Of what is asked for; a page may make its URLs megabytes long, and each is remembered while it is shown."""
LINGER_S = 2.0
"""How long a request that is on the wire when its page is done with may still be answered."""
TURNS = 3
"""How often a turn at the address is waited for before a part is withheld."""

_KEPT_OUT = frozenset(
    {
        "connection",
        "content-disposition",
        "content-encoding",
        "content-length",
        "keep-alive",
        "set-cookie",
        "transfer-encoding",
        "alt-svc",
    }
    | {"trailer", "upgrade", "nel", "report-to", "reporting-endpoints", "strict-transport-security"}
)
"""Headers that say something of the wire, or want to be remembered."""
_BUSY = frozenset({429, 503})
_GETTABLE = frozenset({PartKind.DOCUMENT, PartKind.SCRIPT, PartKind.DATA})


def shown_headers(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The headers of an answer as a page in a browser gets to see them."""
    return tuple((name, value) for name, value in headers if name not in _KEPT_OUT)


@dataclass(frozen=True, slots=True)
class Grounds:
    """What all visits of a worker stand on."""

    stages: Stages
    conduct: Conduct
    settings: RenderSettings
    cache: PartCache
    stopping: Callable[[], bool]
    notes: ResourceNotes | None = None
    """What lies on the shelf; None where there is none."""


class Visit:
    """One page's visit; `supply` is given to the browser."""

    def __init__(
        self,
        grounds: Grounds,
        lease: Lease,
        task: PageTask,
        attempt: int,
        rules: OriginRules | None,
        answer: Fetched,
        elsewhere: Elsewhere | None = None,
        held: Held | None = None,
    ) -> None:
        """`elsewhere`: what the page may have of other hosts. `held`: it has waited, and is shown again."""
        self.elsewhere = elsewhere
        self.held = held
        self._on = grounds
        self._to = grounds.stages
        self._lease = lease
        self._task = task
        self._rules = rules
        self._task_attempt = attempt
        self._attempt = PARTS_FROM * (attempt + 1)
        self._given: dict[str, asyncio.Task[Supplied | Withheld]] = {}
        self._abroad: set[str] = set()
        """Of those, what other hosts had a part in."""
        self._turn = asyncio.Semaphore(grounds.settings.requests_at_once)
        self._ended = False
        self._busy = False
        self._rows: list[CaptureRow] = []
        self._release = self._rest(lease.pace, answer) if held is None else Release(0, lease.pace)
        self._wait_ms = self._release.wait_ms
        self._before = 0 if held is None else held.requests
        self.requests = 1 if held is None else 0
        """Sent so far to the host, the page itself included where it was asked for now."""
        self.withheld: Counter[str] = Counter()
        self.lacks: Counter[str] = Counter()
        """Of that, what other hosts were to give."""
        self.cached = 0
        self.failure: NephilaError | None = None
        """Our own, such as a full disk: the page must not be settled over it."""

    @property
    def total(self) -> int:
        """Requests for the page over all of its showings."""
        return self._before + self.requests

    @property
    def first(self) -> tuple[int, int]:
        """Token and attempt of the visit that the page was asked for in: this one, or one before it."""
        return (int(self._lease.token), self._task_attempt) if self.held is None else self.held.visit

    @property
    def name(self) -> str:
        """What the capture of its page names it by."""
        return "{}-{}".format(*self.first)

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """The same for an event."""
        return tuple(zip(("visit_token", "visit_attempt"), self.first, strict=True))

    def parts(self) -> dict[str, Supplied]:
        """What its own host gave the page so far, over all of its showings, by what it asked for."""
        given = {} if self.held is None else dict(self.held.parts)
        for url, task in self._given.items():
            if task.done() and not task.cancelled() and url not in self._abroad:
                got = task.result()
                if isinstance(got, Supplied):
                    given[url] = got
        return given

    @property
    def release(self) -> Release:
        """How long the host rests afterwards: as many delays as requests were made."""
        return replace(self._release, wait_ms=self._wait_ms)

    async def supply(self, wanted: Wanted) -> Supplied | Withheld:
        """What a page gets for a request. Each URL is asked for once, whoever asks how often."""
        if len(wanted.url) > LONGEST_URL:
            return self._withhold("address")
        url = resolve(None, wanted.url.partition("#")[0]) or ""
        if wanted.kind not in _GETTABLE:
            return self._withhold("kind")
        if wanted.method != "GET":
            return self._withhold("method")
        if not url.startswith(("http://", "https://")):
            return self._withhold("scheme")
        again = None if self.held is None else self.held.parts.get(url)
        found = again or self._to_hand(url)
        if found is not None:
            return readable(found, url, self._task.url)
        getting = self._given.get(url)
        if getting is None:
            getting = self._given[url] = asyncio.create_task(self._get(url, wanted.kind), name=f"part-{url[:80]}")
        return await asyncio.shield(getting)

    async def end(self) -> None:
        """The page is done with: nothing more is sent; what is on the wire may arrive, and is then broken off."""
        self._ended = True
        under_way = [task for task in self._given.values() if not task.done()]
        if under_way:
            await asyncio.wait(under_way, timeout=LINGER_S)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*self._given.values(), return_exceptions=True)

    def book(self) -> None:
        """The host was given back, with its rest: what was stored need not be looked at again after a crash."""
        rows, self._rows = self._rows, []
        for row in rows:
            self._to.ledger.settled(row.segment, row.offset, row)

    # Deciding

    def _to_hand(self, url: str) -> Supplied | None:
        found = self._on.cache.find(url, self._to.clock.steady_ms()) if url not in self._given else None
        if found is not None:
            self.cached += 1
        return found

    def _withhold(self, reason: str) -> Withheld:
        self.withheld[reason] += 1
        return Withheld(reason)

    def _objection(self, url: str) -> str:
        """Why a request may not be sent; empty where it may."""
        address = self._on.conduct.identify(url)
        if address is None:
            return "address"
        if address.host != self._lease.host:
            return "host"
        if self._on.conduct.is_blocked(address.host, url):
            return "blocked"
        if not self._is_allowed(url):
            return "robots"
        if self.total >= self._on.settings.max_requests:
            return "budget"
        return self._untimely()

    def _untimely(self) -> str:
        """Why nothing may be sent any more, whatever it is."""
        conduct = self._on.conduct
        if self._ended or self._on.stopping() or self.failure is not None:
            return "ended"
        if self._busy:
            return "busy"
        pace = self._lease.pace
        rest_ms = max(pace.delay_ms, pace.crawl_delay_ms, pace.base_ms) * (1 + self.requests)
        needed_ms = conduct.fetch_limit_ms + (rest_ms if conduct.rests_by_lease else 0)
        held = conduct.now() + needed_ms < conduct.expires_at(self._lease)
        return "" if held else "lease"

    def _is_allowed(self, url: str) -> bool:
        """Whether the robots.txt in force lets us ask; where none is in force, nothing does."""
        if not self._lease.rules_at:
            return True
        origin = origin_of(url)
        rules = self._rules if origin == origin_of(self._task.url) else self._in_force(origin)
        return rules is not None and self._to.politeness.permits(rules, url, self._lease.user_agent).allowed

    def _in_force(self, origin: str) -> OriginRules | None:
        rules = self._to.view.rules(origin)
        known = rules is not None and rules.kind in {RulesKind.RULES, RulesKind.ALLOW_ALL}
        return rules if known and rules is not None and rules.fresh_until > self._on.conduct.now() else None

    # Getting

    async def _get(self, url: str, kind: PartKind) -> Supplied | Withheld:
        """Ask, and follow redirects, each under the same rules."""
        asked = url
        for _ in range(MAX_HOPS + 1):
            got = await self._one(url, asked, kind)
            if isinstance(got, Withheld):
                self.lacks[got.reason] += url in self._abroad
                return self._withhold(got.reason)
            headers = dict(got.headers)
            if got.status not in REDIRECTS or not headers.get("location"):
                return got if url in self._abroad else readable(got, asked, self._task.url)
            asked = (resolve(asked, headers["location"]) or "").partition("#")[0]
            if not asked.startswith(("http://", "https://")):
                return self._withhold("scheme")
            found = self._to_hand(asked)
            if found is not None:
                return readable(found, asked, self._task.url)
        return self._withhold("redirects")

    async def _one(self, wanted: str, url: str, kind: PartKind) -> Supplied | Withheld:
        """One answer: of the page's own host, or what there is of another one."""
        address = self._on.conduct.identify(url)
        if address is not None and address.host != self._lease.host and self.elsewhere is not None:
            self._abroad.add(wanted)
            return await self.elsewhere.give(address.url, kind, address)
        shelved = None if self._on.notes is None else await self._on.notes.find(url)
        if shelved is not None and self._on.notes is not None and self._on.notes.answers(shelved, 0):
            self.cached += 1
            return shelved.supplied
        answer = await self._ask(url)
        if isinstance(answer, Withheld):
            return answer
        supplied = Supplied(answer.status, shown_headers(answer.headers), answer.body)
        if answer.truncated is None:
            self._on.cache.keep(url, kind, supplied, self._to.clock.steady_ms())
            if self._on.notes is not None and (lasts := lasts_ms(kind, supplied)):
                await self._on.notes.keep(url, supplied, lasts)
        return supplied

    async def _ask(self, url: str) -> Fetched | Withheld:
        """One request, if it may be sent."""
        async with self._turn:
            for _ in range(TURNS):
                reason = await until_answered(partial(self._objection, url))
                if reason:
                    return Withheld(reason)
                self.requests += 1  # before it leaves: whatever becomes of it, the host rests for it
                answer = await self._fetch(url)
                if not (isinstance(answer, FetchFailed) and answer.kind is FailureKind.ADDRESS_BUSY):
                    break
                self.requests -= 1
                await asyncio.sleep(answer.wait_ms / 1000)
            else:
                return Withheld("turn")
        if isinstance(answer, FetchFailed):
            return Withheld("address" if answer.kind is FailureKind.ADDRESS else "failed")
        return answer

    async def _fetch(self, url: str) -> Answer:
        sent_ms = self._to.clock.steady_ms()
        request = FetchRequest(url, max_body_bytes=self._on.settings.max_part_bytes, user_agent=self._lease.user_agent)
        try:
            answer = await self._to.fetcher.fetch(request)
        except asyncio.CancelledError:
            self._tell(url, sent_ms, self._to.clock.steady_ms() - sent_ms, detail="broken off")
            self._wait_ms += self._release.wait_ms
            raise
        if isinstance(answer, FetchFailed):
            if answer.sent:
                self._count(answer)
                told = {"address": answer.address, "reason": str(answer.kind), "detail": answer.detail}
                self._tell(url, answer.sent_ms, answer.elapsed_ms, **told)
            elif answer.kind is not FailureKind.ADDRESS_BUSY:
                self.requests -= 1
            return answer
        self._count(answer)
        self._busy = self._busy or answer.status in _BUSY
        try:
            self._store(url, answer)
        except NephilaError as error:
            self.failure = error
        return answer

    def _count(self, answer: Answer) -> None:
        self._release = self._rest(self._release.pace, answer)
        self._wait_ms += self._release.wait_ms

    def _rest(self, pace: Pace, answer: Answer) -> Release:
        politeness, wall = self._to.politeness, self._to.clock.wall_ms()
        return politeness.release(pace, answer, self._rules, wall, self._lease.user_agent)

    def _store(self, url: str, answer: Fetched) -> None:
        self._attempt += 1
        lease, task = self._lease, PartTask(url, self._task.url)
        rules = self._rules
        notes = [(NOTE_VISIT, f"{int(lease.token)}-{self._task_attempt}"), *policy_notes(lease)]
        notes += [(NOTE_AGAIN, self.name)] if self.held is not None else []
        notes += [("robotsRules", f"{rules.kind} {rules.stored_at}")] if rules else []
        capture = Capture(task, lease.token, self._attempt, answer, via=self._task.url, notes=tuple(notes))
        stored = self._to.archive.append(capture)
        worker = self._on.conduct.worker_of(stored.ref.segment)
        self._rows.append(part_row(lease.host, lease.domain, task, answer, stored, worker=worker))
        self._to.ledger.appended(stored.ref.segment, stored.ref.offset)
        size = len(answer.head) + len(answer.payload)
        told = {"status": answer.status, "bytes": size, "address": answer.address}
        content_type = answer.content_type[:128]
        self._tell(url, answer.sent_ms, answer.elapsed_ms, content_type=content_type, **told)

    def _tell(self, url: str, sent_ms: int, elapsed_ms: int, **fields: object) -> None:
        lease = self._lease
        bound = (("policy_delay_ms", lease.pace.base_ms),) if lease.pace.base_ms >= 0 else ()
        again = (("visit_again", 1),) if self.held is not None else ()
        named = (("visit_token", int(lease.token)), ("visit_attempt", self._task_attempt), *again)
        counts = (*bound, ("rules_at", lease.rules_at), *named)
        event = Event(
            EventKind.VISIT_PART,
            self._to.clock.wall_ms(),
            url=url,
            host=lease.host,
            via=self._task.url,
            elapsed_ms=elapsed_ms,
            sent_ms=sent_ms or None,
            counts=counts,
        )
        self._to.events.emit(replace(event, **fields))  # type: ignore[arg-type]  # fields of an event
