"""What is parked: over budget (F5), in a trap (T2), put off for coverage (S4); and how it comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xxhash import xxh3_64_digest

from nephila.frontier import budget, order, traps
from nephila.frontier.traps import SkeletonTally, TrapState
from nephila.model.outcome import DeferReason, Done, Settlement
from nephila.model.task import Candidate, Level, PageTask

from .ground import PROBE_MARK, Ground, next_tie
from .nouns import Domain, Host, Standing, Url

NO_GROUP = bytes(8)
RELEASED_AT_ONCE = 500
"""URLs that one act takes off a shelf, as the engine on disk has it."""


OUTGROWN_EARNS = 5
"""A host that has outgrown its like earns a fifth."""


def section_of(url: Url) -> bytes:
    """The first path segment of a URL, hashed (T1)."""
    path = url.tail.partition(b"?")[0]
    return xxh3_64_digest(path[path.find(b"/") + 1 :].partition(b"/")[0])


def group_of(pattern: str) -> bytes:
    """The key of a trap's pattern, as people name it too."""
    return xxh3_64_digest(pattern.encode())


class Shelves(Ground):
    """Parking and un-parking."""

    def shelve(
        self,
        host: Host,
        urls: Sequence[Url],
        reason: DeferReason,
        group: bytes,
        place: order.Place,
    ) -> None:
        """Park URLs that belong together, to come back to the place that they would have had."""
        if not urls:
            return
        lane, step, depth, _ = place
        seed, shelf = self.rules_of_crawl.random_seed, (reason, group)
        tie = order.tie_of(host.name.encode() + urls[0].tail, seed)
        taken = {url.place for url in host.urls.values() if url.shelf == shelf}
        while (exact := order.Place(lane, step, depth, tie)) in taken:
            tie = next_tie(tie, seed)
        for url in urls:
            self.turns += 1
            url.place, url.turn, url.shelf = exact, self.turns, shelf
            if not url.asked:
                url.level, url.depth = order.level_of_lane(lane), depth
        if reason is DeferReason.TRAP and not host.trap_at:
            host.trap_at = max(1, self.now)

    def unshelve(self, host: Host, reason: DeferReason, room: int, group: bytes = b"", tie: bytes | None = None) -> int:
        """Queue up to `room` parked URLs, best first; how many."""
        moved = 0
        while moved < room and (parked := host.shelved(reason, group)):
            first = parked[0]
            chosen = [url for url in parked if (url.shelf, url.place) == (first.shelf, first.place)][: room - moved]
            lane, step, depth, _ = first.spot
            self.enqueue(host, chosen, lane, step, depth, tie)
            moved += len(chosen)
        return moved

    def sort_out(self, host: Host, urls: list[Url], place: order.Place) -> list[Url]:
        """Park what may not be queued now; returns what may."""
        if host.flagged:
            urls = self._without_trapped(host, urls, place)
        rules, domain = self.rules_of_crawl, host.domain
        if rules.target_domains and not self.covered:
            kept = 0 if domain.pages or domain.looked_for else 1
            self.shelve(host, urls[kept:], DeferReason.COVERAGE, NO_GROUP, place)
            urls = urls[:kept]
        urls = self._without_crowded(host, urls, place)
        room = self.room_of(host)
        self.shelve(host, urls[room:], DeferReason.BUDGET, NO_GROUP, place)
        if rules.target_domains and not self.covered:
            domain.looked_for += len(urls[:room])
        return urls[:room]

    def room_of(self, host: Host) -> int:
        """How many more URLs a host may have queued (F5)."""
        if host.over:
            return 0
        settings, quality = self.rules_of_crawl.budget, self.policy_of(host.domain).quality
        fresh = host.fresh // OUTGROWN_EARNS if self.is_outgrown(host) else host.fresh
        earned = budget.url_allowance(settings, fresh, host.referrers, quality)
        return max(0, min(earned - host.admitted, settings.queued_per_host - len(host.queue())))

    def is_outgrown(self, host: Host) -> bool:
        """Whether a host has many times the URLs of its like, and earns less for it (T5)."""
        urls = sum(len(other.urls) for other in self.hosts.values())
        ordinary = max(urls / len(self.hosts), self.rules_of_crawl.budget.first_urls)
        return host.admitted + len(host.shelved()) > self.rules_of_crawl.traps.times_its_like * ordinary

    def _without_crowded(self, host: Host, urls: list[Url], place: order.Place) -> list[Url]:
        """Park the URLs of sections that have as many in the queue as they may (T1)."""
        queued = Counter(section_of(url) for url in host.queue())
        free: list[Url] = []
        crowded: dict[bytes, list[Url]] = {}
        for url in urls:
            section = section_of(url)
            queued[section] += 1
            fits = queued[section] <= self.rules_of_crawl.budget.queued_per_prefix
            (free if fits else crowded.setdefault(section, [])).append(url)
        for section, parked in crowded.items():
            self.shelve(host, parked, DeferReason.BUDGET, section, place)
        return free

    def refill(self, host: Host) -> int:
        """Let parked URLs into the queue, as far as the host (and each of its sections) has room by now; how many."""
        room, moved = min(self.room_of(host), RELEASED_AT_ONCE), 0
        for group in sorted({url.shelf[1] for url in host.shelved(DeferReason.BUDGET) if url.shelf}):
            left = room - moved
            if group != NO_GROUP:
                in_section = sum(section_of(url) == group for url in host.queue())
                left = min(left, self.rules_of_crawl.budget.queued_per_prefix - in_section)
            moved += self.unshelve(host, DeferReason.BUDGET, left, group)
        host.admitted += moved
        return moved

    def take_on_hosts(self, domain: Domain) -> None:
        """Take on the hosts that a domain has earned by now."""
        waiting = sorted((one for one in self.hosts.values() if one.domain is domain and one.over), key=self.age_tie)
        quality = self.policy_of(domain).quality
        settings = self.rules_of_crawl.budget
        for host in waiting:
            if domain.hosts >= budget.host_allowance(settings, domain.useful, domain.referrers, quality):
                return
            domain.hosts += 1
            domain.hosts_over -= 1
            host.over = False
            if not host.token:
                self.leave(host)
            self.refill(host)
            self.wake(host)

    def look_further(self, host: Host) -> None:
        """In coverage mode, after a URL has ended: try another one of a domain that has brought no page yet (S4)."""
        domain = host.domain
        if not self.rules_of_crawl.target_domains or self.covered:
            return
        domain.looked_for = max(0, domain.looked_for - 1)
        if domain.pages or domain.looked_for:
            return
        others = [one for one in self.hosts.values() if one.domain is domain and one.shelved(DeferReason.COVERAGE)]
        for other in sorted(others, key=self.age_tie)[:1]:
            moved = self.unshelve(other, DeferReason.COVERAGE, 1)
            domain.looked_for += moved
            other.admitted += moved
            if other is not host:
                self.wake(other)

    def age_tie(self, host: Host) -> bytes:
        """What decides between two hosts that are alike."""
        return order.tie_of(host.name.encode(), self.rules_of_crawl.random_seed)

    @property
    def covers_no_more(self) -> bool:
        """Whether URLs that were put off for coverage are to come back: enough domains, or nobody asks for it now."""
        over = self.covered or not self.rules_of_crawl.target_domains
        return over and any(host.shelved(DeferReason.COVERAGE) for host in self.hosts.values())

    def end_coverage(self, host: Host) -> None:
        """What was put off for coverage goes into the queue, as far as the budget goes, and is over budget then."""
        room = min(self.room_of(host), RELEASED_AT_ONCE)
        host.admitted += self.unshelve(host, DeferReason.COVERAGE, room)
        while parked := host.shelved(DeferReason.COVERAGE):
            place = parked[0].spot
            self.shelve(host, [url for url in parked if url.place == place], DeferReason.BUDGET, NO_GROUP, place)

    def fetch_from_shelf(self, host: Host, url: Url, candidate: Candidate) -> None:
        """Queue one parked URL because somebody wants it now."""
        lane = order.lane_of(order.Supply.NEW, candidate.level or Level.IMMEDIATE)
        step = order.step_for(self.step, order.TOP_SCORE)
        place = self.enqueue(host, [url], lane, step, candidate.depth)
        if host.over and host.standing is Standing.PARKED and not host.token:
            self.rest(host)
        else:
            self.wake(host, place)

    # Traps

    def tallies_of(self, host: Host, url: str) -> list[SkeletonTally]:
        """The tallies of a URL's patterns, new ones where nothing was counted yet."""
        return [host.tallies.get(pattern) or SkeletonTally(pattern) for pattern in traps.patterns(url)]

    def hold_on(self, host: Host, url: str) -> SkeletonTally | None:
        """What holds a URL back."""
        return traps.holding(self.tallies_of(host, url), self.rules_of_crawl.traps)

    def _without_trapped(self, host: Host, urls: list[Url], place: order.Place) -> list[Url]:
        free: list[Url] = []
        held: dict[str, list[Url]] = {}
        for url in urls:
            tally = self.hold_on(host, url.url)
            if tally is None:
                free.append(url)
                continue
            held.setdefault(tally.pattern, []).append(url)
            moment = self.now + max(1, max(1, tally.not_before_s) - self.wall_s) * 1000
            host.trap_at = min(host.trap_at, moment) if host.trap_at else moment
        for pattern, caught in held.items():
            self.shelve(host, caught, DeferReason.TRAP, group_of(pattern), place)
        return free

    def catch(self, host: Host, url: Url) -> bool:
        """Whether a queued URL is held back: it is parked then."""
        place = url.spot
        if not host.flagged or url.asked or place.lane == 0 or place.tie.startswith(PROBE_MARK):
            return False
        tally = self.hold_on(host, url.url)
        if tally is None:
            return False
        url.place = None
        self.shelve(host, [url], DeferReason.TRAP, group_of(tally.pattern), place)
        self.look_further(host)
        return True

    def take_probe(self, host: Host) -> None:
        """Let come back what may: one URL of each pattern whose time has come, and all that nothing holds."""
        if not host.trap_at or host.trap_at > self.now:
            return
        by_group = {group_of(pattern): tally for pattern, tally in host.tallies.items()}
        holding = {group: tally for group, tally in by_group.items() if tally.state is not TrapState.NORMAL}
        for group in self._trap_groups(host):
            tally = holding.get(group)
            if tally is None:
                self.unshelve(host, DeferReason.TRAP, RELEASED_AT_ONCE, group)
            elif tally.not_before_s <= self.wall_s and not self._held_by_another(host, group):
                self.unshelve(host, DeferReason.TRAP, 1, group, PROBE_MARK + bytes(1))
                traps.take_turn([tally], self.rules_of_crawl.traps, self.wall_s)
        moments = [
            self.now + (max(1, holding[group].not_before_s - self.wall_s) * 1000 if group in holding else 1)
            for group in self._trap_groups(host)
        ]
        host.trap_at = min(moments, default=0)

    def _trap_groups(self, host: Host) -> list[bytes]:
        return sorted({url.shelf[1] for url in host.shelved(DeferReason.TRAP) if url.shelf})

    def _held_by_another(self, host: Host, group: bytes) -> bool:
        """Whether the first URLs on a shelf are held by a stricter pattern by now: they are put onto its shelf then."""
        parked = host.shelved(DeferReason.TRAP, group)
        tally = self.hold_on(host, parked[0].url)
        if tally is None or group_of(tally.pattern) == group:
            return False
        place = parked[0].spot
        together = [url for url in parked if url.place == place]
        self.shelve(host, together, DeferReason.TRAP, group_of(tally.pattern), place)
        return True

    def release_pattern(self, host: Host, group: bytes) -> int:
        """Let a pattern start anew, by a person's word; how many URLs come back at once."""
        tally = next((tally for pattern, tally in host.tallies.items() if group_of(pattern) == group), None)
        if tally is None:
            return 0
        traps.release(tally, self.wall_s)
        waiting = len(host.shelved())
        host.trap_at = max(1, self.now)
        if not host.token:
            self.take_probe(host)
            self.rest(host)
        return waiting - len(host.shelved())

    def observe(self, host: Host, settlement: Settlement, new: list[Candidate], *, first: bool) -> bool:
        """Count what a fetch brought under its patterns; whether it was new content."""
        task, outcome = settlement.task, settlement.outcome
        if not isinstance(outcome, Done) or not isinstance(task, PageTask):
            return False
        missing = 400 <= outcome.status < 500
        if not first or host.fetched < traps.TALLIED_FROM or not (outcome.page or missing):
            return first and outcome.page and not outcome.duplicate
        tallies = self.tallies_of(host, task.url)
        root = task.url[: task.url.find("/", 8) + 1]
        prefix = traps.pour_prefix(task.url)
        seen = traps.Observation(
            url=task.url,
            found_on=traps.patterns(task.via) if task.via.startswith(root) else (),
            error=missing,
            duplicate=outcome.duplicate,
            text=outcome.text,
            shape=outcome.shape,
            near=outcome.near,
            outlinks=outcome.outlinks,
            inside=sum(one.address.url.startswith(prefix) for one in new) if prefix else 0,
        )
        links = [traps.patterns(one.address.url) for one in new if one.address.host == host.name]
        outside = traps.count_outside(traps.patterns(task.url), links, host.tallies.get)
        if traps.needs_links(tallies, seen):
            seen = seen._replace(outside=outside + len(new) - len(links))
        held = [tally for tally in tallies if tally.state is not TrapState.NORMAL]
        result = traps.judge(tallies, seen, self.rules_of_crawl.traps, self.wall_s)
        host.tallies |= {tally.pattern: tally for tally in tallies}
        if any(tally.state is TrapState.NORMAL for tally in held):
            host.trap_at = max(1, self.now)  # what lies on its shelf may come back
        return result is traps.Yield.FRESH

    def look_for_probe(self, host: Host) -> None:
        """A host that has nothing but what a trap holds back wakes for its next probe."""
        if host.standing is Standing.IDLE and not host.token and host.trap_at:
            self.rest(host)
