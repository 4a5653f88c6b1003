"""What a list names goes into the frontier: in batches, each admitted before the next is read (X3).

The document is read beside the event loop where it is large; what is in hand at any time is one batch. Entries are
believed as far as the protocol allows: a sitemap speaks for what lies under its own directory, and for all of an origin
whose robots.txt names it or the index that it stands in; a feed speaks for its registrable domain. Of those the
words count (in a sitemap, news, priority, lastmod) as long as the host's words have proved true; what else is named are
links like any other.

The list itself is settled after its entries are admitted, and admission is idempotent: wherever this is cut short, the
list is read again, and nothing is missing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace

from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.frontier import Found, Frontier, FrontierView
from nephila.interfaces.sieve import Sifted
from nephila.model.events import Event, EventKind
from nephila.model.exchange import FailureKind, Fetched, FetchFailed
from nephila.model.listing import Listed, ListedNote, ListKind, ListNote, ListTotals, SiteTrust
from nephila.model.outcome import OriginRules
from nephila.model.settings import PrioritySettings
from nephila.model.task import Candidate, Lease, PageTask, Refusal
from nephila.urls import Address, Fingerprint, host_of, mask_secrets, origin_of, registrable_domain

from .frequency import EVERY_S, Priorities, finding_of, is_frequency_believed, weigh_frequency
from .lists import DEPTH, Lists
from .rules_at_hand import until_answered
from .trust import after_reading, after_visit, is_believed, weigh

INLINE_BYTES = 65_536
"""A list up to this size is read on the loop: some two milliseconds."""
TOO_NEW_S = 86_400
"""A lastmod further in the future than clocks and time zones explain is none."""
OLDEST_S = 30 * 86_400
"""A change longer ago is found by the ordinary visits: R2's longest interval."""
WAIT_MS = 1_000
"""How long a host waits for whose list there is no place."""
READ_OUT = 2_000
"""Entries up to which a list is read to its end although the crawl is to stop: they take a moment."""
ORIGINS_ASKED = 100
"""Other origins whose robots.txt is looked into for the name of one list."""


class ListClause:
    """The part of the sentence that is about lists."""

    def __init__(
        self,
        lists: Lists,
        frontier: Frontier,
        view: FrontierView,
        events: EventSink,
        clock: Clock,
        priority: PrioritySettings,
        *,
        threaded: bool = True,
        remember_bare: Callable[[Address], None] = lambda _: None,
    ) -> None:
        """`remember_bare` is told of seeds that were listed without a scheme."""
        self._remember_bare = remember_bare
        self.lists = lists
        self._frontier = frontier
        self._view = view
        self._events = events
        self._clock = clock
        self._priority = priority
        self._threaded = threaded
        self._places = lists.settings.at_once

    def enter(self) -> bool:
        """Take a place among the lists that are fetched and read; False when there is none."""
        if not self._places:
            return False
        self._places -= 1
        return True

    def leave(self) -> None:
        """Give the place back."""
        self._places += 1

    def no_place(self, task: PageTask) -> FetchFailed:
        """Not now: the host is given back for a moment, as if its address had no turn for it."""
        return FetchFailed(task.url, FailureKind.ADDRESS_BUSY, "other lists are being read", False, wait_ms=WAIT_MS)

    async def take(
        self, lease: Lease, task: PageTask, answer: Fetched, kind: ListKind, stopped: Callable[[], bool]
    ) -> bool:
        """Admit what a list names, or note that it was found unchanged; False when it was `stopped` on the way."""
        listings, now_s = self.lists.listings, self._clock.wall_ms() // 1000
        before = listings.list_of(task.fingerprint) or ListNote("")
        address = self.lists.identify(task.url)
        if answer.status == 304 or address is None or not answer.body:
            listings.keep(task.fingerprint, replace(before, read_s=now_s))
            return True
        listings.keep(task.fingerprint, replace(before, kind=kind))
        self.lists.has_become_list(task.url)
        if kind is ListKind.INDEX or before.seeds:
            # What it names may be a list under any name: whoever asks for it, after a crash as well, has to know.
            await asyncio.get_running_loop().run_in_executor(None, listings.flush)
        beliefs = _Beliefs(self.lists, self._view, task, address.host, kind)
        reading = _Reading(kind, Counter(), before.seeds)
        async for entries in self._batches(answer, reading):
            if stopped() and reading.counts["entries"] >= READ_OUT:
                return False
            await self._admit(task, address, entries, beliefs, reading, now_s)
        beliefs.keep_priorities()
        if reading.broken:
            self._tell_broken(task, reading)
        counts = reading.counts
        note = ListNote(kind, now_s, counts["entries"], before.added + counts["added"], before.seeds)
        listings.keep(task.fingerprint, note)
        is_feed = kind is ListKind.FEED
        totals = ListTotals(not is_feed, is_feed, counts["entries"], counts["added"], counts["renewed"])
        listings.keep("", totals)
        told = tuple((name, count) for name, count in [*counts.items(), *reading.other.items()] if count)
        event = Event(EventKind.LISTED, self._clock.wall_ms(), task.url, task.fingerprint, lease.host, task.depth)
        self._events.emit(replace(event, reason=kind, via=task.via, counts=told))
        return True

    def _tell_broken(self, task: PageTask, reading: _Reading) -> None:
        """Lines of a list of seeds that are none: whoever gave it looks for them."""
        lines = "line" if reading.other["malformed"] == 1 else "lines"
        detail = (
            f"{reading.other['malformed']:,} {lines} of the list of seeds {mask_secrets(task.url)} cannot be crawled: "
            + "; ".join(reading.broken)
        )
        self._events.emit(Event(EventKind.WARNING, self._clock.wall_ms(), reason="seeds", detail=detail))

    async def _batches(self, answer: Fetched, reading: _Reading) -> AsyncIterator[Sequence[Listed]]:
        """The entries in batches; a large document is read in a thread, a batch at a time."""
        size, formats = self.lists.settings.batch, self.lists.formats
        if reading.seeds and reading.kind is ListKind.TEXT and formats.has_seeds(answer):
            entries = _in_batches(formats.read_seeds(answer, reading.other, reading.broken), size)
        else:
            entries = _in_batches(formats.read(answer, reading.other), size)
        if not self._threaded or len(answer.body) <= INLINE_BYTES:
            for batch in entries:
                yield batch
            return
        loop = asyncio.get_running_loop()
        while batch := await loop.run_in_executor(None, next, entries, ()):
            yield batch

    async def _admit(
        self,
        task: PageTask,
        address: Address,
        entries: Sequence[Listed],
        beliefs: _Beliefs,
        reading: _Reading,
        now_s: int,
    ) -> None:
        counts = reading.counts
        counts["entries"] += len(entries)
        lists = [entry for entry in entries if entry.is_list]
        pages = [entry for entry in entries if not entry.is_list]
        refused: list[Refusal] = []
        candidates = self._leads(task, lists, reading, refused)
        changed: dict[Fingerprint, int] = {}
        noted: list[tuple[Address, Listed]] = []
        own: Sequence[Listed] = ()
        if not reading.seeds:  # whom a list may speak for is asked of an engine that may be away
            own = await until_answered(lambda: [entry for entry in pages if beliefs.speaks_for(entry.url)])
        for sifted, chosen, believed in self._sift(task, pages, own, beliefs, reading):
            refused += sifted.refused
            counts["malformed"] += sum(sifted.malformed.values())
            for candidate, place in zip(sifted.candidates, sifted.places, strict=True):
                entry = chosen[place] if place < len(chosen) else Listed(candidate.address.url)
                if not believed:
                    candidates.append(candidate)
                    continue
                trust = beliefs.trust(candidate.address.host)
                bonus = candidate.bonus + self._points(entry, reading.kind, now_s)
                if trust and entry.priority >= 0:
                    said = beliefs.priorities(candidate.address.host)
                    bonus += round(2 * said.above(entry.priority) * self.lists.settings.priority)
                    said.heard(entry.priority)
                candidates.append(candidate._replace(bonus=bonus))
                lastmod_s = entry.lastmod_s
                if lastmod_s > now_s + TOO_NEW_S:
                    counts["in_the_future"] += 1
                    lastmod_s, entry = 0, entry._replace(lastmod_s=0)
                if not lastmod_s and not entry.changefreq:
                    continue
                noted.append((candidate.address, entry))
                if trust and lastmod_s > now_s - OLDEST_S:
                    changed[candidate.address.fingerprint] = lastmod_s
        counts["refused"] += len(refused)
        if reading.seeds and lists:
            await asyncio.get_running_loop().run_in_executor(None, self.lists.listings.flush)
        admission = await self._frontier.admit(candidates, refused, Found(address, changed))
        counts["added"] += admission.added
        counts["known"] += admission.known
        counts["renewed"] += len(admission.renewed)
        self._note(noted, frozenset(admission.renewed), task.fingerprint, beliefs)

    def _leads(
        self, task: PageTask, lists: Sequence[Listed], reading: _Reading, refused: list[Refusal]
    ) -> list[Candidate]:
        """Lists that a list names: each one deeper, so that a chain of them has an end."""
        found: list[Candidate] = []
        for entry in lists:
            if reading.seeds:
                sifted = self.lists.sieve.sift_listed([entry.url], 0, seeds=True)
                refused += sifted.refused
                found += sifted.candidates
                if reading.kind is ListKind.INDEX:
                    for one in sifted.candidates:
                        self.lists.listings.keep(one.address.fingerprint, ListNote("", seeds=True))
                continue
            match self.lists.sieve.lead(entry.url, max(DEPTH, task.depth + 1)):
                case Candidate() as candidate:
                    found.append(candidate._replace(bonus=self._priority.sitemap))
                case Refusal() as refusal:
                    refused.append(refusal)
                case None:
                    reading.counts["malformed"] += 1
        return found

    def _sift(
        self, task: PageTask, pages: Sequence[Listed], own: Sequence[Listed], beliefs: _Beliefs, reading: _Reading
    ) -> Iterator[tuple[Sifted, Sequence[Listed], bool]]:
        """The pages through the sieve: its own, those that the list may speak for, and the others as links."""
        if reading.seeds:
            sown = self.lists.sieve.sift_listed([entry.url for entry in pages], 0, seeds=True)
            for candidate, place in zip(sown.candidates, sown.places, strict=True):
                if pages[place].bare:
                    self._remember_bare(candidate.address)
            yield sown, pages, False
            return
        if own:
            yield self.lists.sieve.sift_listed([entry.url for entry in own], DEPTH), own, True
        if len(own) < len(pages):
            others = [entry for entry in pages if not beliefs.speaks_for(entry.url)]
            reading.counts["elsewhere"] += len(others)
            yield self.lists.sieve.sift_listed([entry.url for entry in others], task.depth + 1), others, False

    def _points(self, entry: Listed, kind: ListKind, now_s: int) -> int:
        """What being listed so is worth (R1)."""
        points = 0 if kind is ListKind.FEED else self._priority.sitemap
        if entry.published_s and 0 <= now_s - entry.published_s + TOO_NEW_S <= self.lists.settings.news_s + TOO_NEW_S:
            points += self._priority.news
        return points

    def _note(
        self,
        noted: Sequence[tuple[Address, Listed]],
        renewed: frozenset[Fingerprint],
        source: Fingerprint,
        beliefs: _Beliefs,
    ) -> None:
        """Remember what was said of the pages that are compared; what is due because of it is compared as well."""
        listings, limit = self.lists.listings, self.lists.settings.sampled
        for address, entry in noted:
            every_s = EVERY_S.get(entry.changefreq, 0)
            site = listings.site(address.host)
            note = listings.listed(address.fingerprint)
            if note is None:
                is_due = address.fingerprint in renewed
                if site.sampled >= limit * (1 + is_due):
                    continue
                seen_s = entry.lastmod_s - 1 if is_due else 0
                fresh = ListedNote(entry.lastmod_s, seen_s, b"", source, every_s=every_s)
                listings.keep(address.fingerprint, fresh)
                listings.keep(address.host, replace(site, sampled=site.sampled + 1))
                continue
            after, finding = after_reading(replace(note, every_s=every_s), entry.lastmod_s, source)
            if after != note:
                listings.keep(address.fingerprint, after)
            if finding:
                self._weigh(address.host, site, finding, address.url)
                beliefs.forget(address.host)

    def visited(self, lease: Lease, task: PageTask, text: bytes, *, same: bool) -> None:
        """A page was visited that may be listed; `text` stands for its content, `same` says that it is the same."""
        listings = self.lists.listings
        note = listings.listed(task.fingerprint)
        if note is None:
            return
        if not note.text and task.digest and note.seen_s:  # not compared before, but whether it is the same is known
            note = replace(note, text=text if same else b"?")
        source = listings.list_of(Fingerprint(note.source)) if note.source else None
        read_s = source.read_s if source is not None else 0
        now_s = self._clock.wall_ms() // 1000
        after, finding = after_visit(note, text, now_s, read_s, same=same)
        listings.keep(task.fingerprint, replace(after, every_s=note.every_s, visited_s=now_s))
        if finding:
            self._weigh(lease.host, listings.site(lease.host), finding, task.url)
        if often := finding_of(note, now_s, changed=not same and text != note.text):
            self._weigh_frequency(lease.host, often, task.url)

    def expected_s(self, host: str, fingerprint: Fingerprint) -> int:
        """How often a page changes, as a list says whose site is believed in that; 0 where nothing is known."""
        note = self.lists.listings.listed(fingerprint)
        if note is None or not note.every_s:
            return 0
        return note.every_s if is_frequency_believed(self.lists.listings.site(host), self.lists.settings) else 0

    def _weigh_frequency(self, host: str, finding: str, url: str) -> None:
        settings, site = self.lists.settings, self.lists.listings.site(host)
        before = is_frequency_believed(site, settings)
        site = weigh_frequency(site, finding)
        self.lists.listings.keep(host, site)
        if before != is_frequency_believed(site, settings):
            reason = "changefreq_lies" if before else "changefreq_believed"
            word = f"the changefreq of {host} is {'no longer believed' if before else 'believed again'}"
            counts = (("right", site.often_right), ("wrong", site.often_wrong))
            event = Event(EventKind.WARNING, self._clock.wall_ms(), url, host=host, reason=reason)
            self._events.emit(replace(event, detail=word, counts=counts))

    def _weigh(self, host: str, site: SiteTrust, finding: str, url: str) -> None:
        settings = self.lists.settings
        before = is_believed(site, settings)
        site = weigh(site, finding, url)
        self.lists.listings.keep(host, site)
        if before == is_believed(site, settings):
            return
        counts = (("right", site.right), ("false", site.false), ("missed", site.missed))
        word = f"the lastmod of {host} is no longer believed" if before else f"the lastmod of {host} is believed again"
        reason = "lastmod_lies" if before else "lastmod_believed"
        event = Event(EventKind.WARNING, self._clock.wall_ms(), url, host=host, reason=reason)
        self._events.emit(replace(event, detail=word, counts=counts))


class _Reading:
    """What comes of reading one list."""

    def __init__(self, kind: ListKind, other: Counter[str], seeds: bool) -> None:
        self.kind = kind
        self.other = other
        self.seeds = seeds
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        """The first few lines that are no seeds, and why."""


class _Beliefs:
    """For which URLs one list may speak, and whose words have been true."""

    def __init__(self, lists: Lists, view: FrontierView, task: PageTask, host: str, kind: ListKind) -> None:
        self._lists = lists
        self._view = view
        self._names = {task.fingerprint}
        if task.via and (index := lists.identify(task.via)) is not None:
            self._names.add(index.fingerprint)
        self._is_feed = kind is ListKind.FEED
        self._domain = registrable_domain(host)
        place = task.url.partition("://")[2].partition("?")[0]
        self._directory = place[: place.rfind("/") + 1]
        self._origins: dict[str, bool] = {}
        self._trusted: dict[str, bool] = {}
        self._said: dict[str, Priorities] = {}

    def speaks_for(self, url: str) -> bool:
        """Whether the protocol lets the list speak for a URL."""
        if not self._is_feed and url.partition("://")[2].startswith(self._directory):
            return True
        origin = origin_of(url)
        known = self._origins.get(origin)
        if known is None:
            if len(self._origins) >= ORIGINS_ASKED:
                return False
            known = self._origins[origin] = self._is_named(origin)
        return known

    def _is_named(self, origin: str) -> bool:
        if self._is_feed:
            return registrable_domain(host_of(origin)) == self._domain
        rules: OriginRules | None = self._view.rules(origin)
        return rules is not None and not self._names.isdisjoint(self._lists.named_by(rules))

    def trust(self, host: str) -> bool:
        """Whether what is said of a host's pages is acted on."""
        known = self._trusted.get(host)
        if known is None:
            known = is_believed(self._lists.listings.site(host), self._lists.settings)
            self._trusted[host] = known
        return known

    def forget(self, host: str) -> None:
        """There is new evidence."""
        self._trusted.pop(host, None)

    def priorities(self, host: str) -> Priorities:
        """What a host has said of how much its pages matter."""
        if host not in self._said:
            self._said[host] = Priorities(self._lists.listings.site(host))
        return self._said[host]

    def keep_priorities(self) -> None:
        """The list is read: remember what was said."""
        for host, said in self._said.items():
            self._lists.listings.keep(host, said.kept(self._lists.listings.site(host)))


def _in_batches(pieces: Iterator[list[Listed]], size: int) -> Iterator[Sequence[Listed]]:
    held: list[Listed] = []
    for piece in pieces:
        held += piece
        while len(held) >= size:
            yield held[:size]
            del held[:size]
    if held:
        yield held
