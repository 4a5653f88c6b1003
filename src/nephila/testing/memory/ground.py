"""Where hosts stand and where URLs are queued: the moves that all verbs are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nephila.frontier import order
from nephila.frontier import rank as ranks
from nephila.frontier.blocklist import Blocklist
from nephila.frontier.lifecycle import State
from nephila.frontier.referral import doublings, heard
from nephila.frontier.score import freshness_of, level_of, score
from nephila.frontier.timeline import Anchor, Timeline
from nephila.interfaces.clock import Clock
from nephila.model.outcome import DeferReason
from nephila.model.policy import Block, DomainPolicy
from nephila.model.task import Level
from nephila.urls import Fingerprint

from .nouns import Domain, Host, LeaseNote, Origin, Refused, Rules, Standing, Url

NOMINAL = {Level.IMMEDIATE: 100, Level.HIGH: 75, Level.MEDIUM: 35, Level.LOW: 10}
"""The score of a URL whose class was given by hand."""
DEEPEST = 255
PROBE_MARK = bytes(3)
"""How the tie-break of a URL begins that a trap lets go: it is not caught again on its way."""


def next_tie(tie: bytes, seed: int) -> bytes:
    """Another tie-break, where others stand at the place already."""
    if tie.startswith(PROBE_MARK):
        return PROBE_MARK + bytes((tie[3] + 1 & 0xFF,))
    return order.tie_of(tie, seed)


class Ground:
    """All that is remembered, and how hosts and URLs move."""

    def __init__(self, clock: Clock, rules: Rules) -> None:
        self.clock = clock
        self.rules_of_crawl = rules
        self.timeline = Timeline(clock, None)
        self.anchor: Anchor = self.timeline.anchor()
        self.hosts: dict[str, Host] = {}
        self.domains: dict[str, Domain] = {}
        self.origins: dict[str, Origin] = {}
        self.policies: dict[str, DomainPolicy] = {}
        self.blocks: dict[str, Block] = {}
        self.refused: dict[tuple[str, Fingerprint], Refused] = {}
        self.leases: dict[int, LeaseNote] = {}
        self.cycle = 1
        self.cycle_open = False
        self.sweeping = False
        self.replanning: set[str] = set()
        """Domains whose planned visits are looked at again."""
        self.covered = False
        self.next_token = 1
        self.turns = 0
        self.draws = 0
        self.reserved = 0
        self.pages = 0
        self.pages_in_cycle = 0
        self.mean_rank = ranks.FIRST_MEAN
        self._scores: dict[tuple[int, int, int, int], int] = {}

    @contextmanager
    def act(self) -> Iterator[None]:
        """One verb. Within it, URLs that are alike have the same score."""
        self._scores.clear()
        yield
        self.anchor = self.timeline.anchor()

    @property
    def now(self) -> int:
        """The timeline."""
        return self.timeline.now()

    @property
    def wall_s(self) -> int:
        """UTC seconds."""
        return self.clock.wall_ms() // 1000

    @property
    def step(self) -> int:
        """The present step of ageing; time must not count with one exchange at a time."""
        return 0 if self.rules_of_crawl.ordered else self.now // order.step_ms(self.rules_of_crawl.priority)

    # What a person said

    def policy_of(self, domain: Domain) -> DomainPolicy:
        """What holds for a domain."""
        return self.policies.get(domain.name) or DomainPolicy()

    def blocklist(self) -> Blocklist:
        """What may not be asked for."""
        return Blocklist(self.blocks[pattern] for pattern in sorted(self.blocks, key=str.encode))

    def base_delay_ms(self, host: Host) -> int:
        """The delay of a host that was never asked."""
        wanted = self.policy_of(host.domain).delay_s
        return self.rules_of_crawl.base_delay_ms if wanted is None else int(wanted * 1000)

    def delay_of(self, host: Host) -> int:
        """The delay that a host is owed now."""
        return max(self.base_delay_ms(host) if host.delay_ms < 0 else host.delay_ms, host.crawl_delay_ms)

    # Scores

    def score_of(self, host: Host, rank: int, depth: int, bonus: int = 0, of: Url | None = None) -> int:
        """The points of a URL; `of` is given where it has been asked for."""
        settings = self.rules_of_crawl.priority
        known = heard(self.rules_of_crawl.repute, host.name, host.referrers)
        authority = ranks.authority(rank, self.mean_rank, doublings(known))
        if of is not None or self.policies:
            freshness = freshness_of(of.history, self.wall_s) if of is not None else 0.0
            return score(settings, authority, depth, bonus, freshness, self.policy_of(host.domain).tier)
        like = (rank, depth, bonus, known)
        return self._scores.setdefault(like, score(settings, authority, depth, bonus))

    # Hosts

    def leave(self, host: Host) -> None:
        """A free host stands nowhere."""
        host.standing, host.ready, host.reason = Standing.IDLE, [], ""

    def wait(self, host: Host, until: int, reason: str = "") -> None:
        """A host waits for a time."""
        self.leave(host)
        host.standing, host.next_at, host.reason = Standing.WAITING, max(until, 0), reason

    def park(self, host: Host, reason: str) -> None:
        """A host waits until something else changes."""
        self.leave(host)
        host.standing, host.reason = Standing.PARKED, reason

    def rest(self, host: Host) -> None:
        """Put a free host where it belongs."""
        if host.queue() or host.robots:
            self.wait(host, host.free_at)
        else:
            self.rest_without_work(host)

    def rest_without_work(self, host: Host) -> None:
        """A host whose queue is empty waits for what lies on its shelves, if anything does."""
        host.work_since = 0
        if host.trap_at:
            self.wait(host, max(host.free_at, host.trap_at), DeferReason.TRAP)
        elif host.over:
            self.park(host, DeferReason.BUDGET)
        else:
            self.leave(host)

    def make_ready(self, host: Host) -> None:
        """Put a host among the ready ones, in the classes that its first URLs are in by now."""
        heads = self.heads(host)
        if not heads:
            self.rest_without_work(host)
            return
        self.leave(host)
        host.work_since = host.work_since or max(1, self.now)
        since = 0 if self.rules_of_crawl.ordered else host.work_since
        host.standing = Standing.READY
        host.ready = [
            order.ready_key(lane, host.domain.pages, order.pack_place(*place), since) for lane, place in heads.items()
        ]

    def wake(self, host: Host, *places: order.Place) -> None:
        """Put a host where it belongs after work was added to its queue."""
        if host.token:
            return
        match host.standing:
            case Standing.IDLE:
                if host.free_at > self.now or host.robots or not places:
                    self.rest(host)
                else:
                    self.make_ready(host)
            case Standing.READY:
                if not places or any(self.is_better(host, place) for place in places):
                    self.make_ready(host)
            case Standing.PARKED:
                if host.reason == DeferReason.HOST_LIMIT and host.cycle < self.cycle:
                    self.wait(host, host.free_at)
            case Standing.WAITING:
                if host.reason == DeferReason.TRAP:
                    self.rest(host)

    def is_better(self, host: Host, place: order.Place) -> bool:
        """Whether a new place in a ready host's queue changes its place among the ready ones."""
        lane = self.lane_now(host, place)
        rest = (place.step << 8 | place.depth).to_bytes(4, "big")
        current = [key[5:9] for key in host.ready if key[0] == lane]
        return not current or rest < min(current)

    def lane_now(self, host: Host, place: order.Place) -> int:
        """The lane that a queued URL is in by now."""
        lowered = host.domain.health.lowered
        return order.effective_lane(place.lane, place.step, self.step, self.rules_of_crawl.priority, lowered)

    def firsts(self, host: Host) -> list[order.Place]:
        """The first place of each class that URLs were queued in."""
        found: dict[int, order.Place] = {}
        for url in host.queue():
            found.setdefault(url.spot.lane, url.spot)
        return list(found.values())

    def heads(self, host: Host) -> dict[int, order.Place]:
        """The best place of each lane that a host has work in by now; robots.txt counts as immediate work."""
        if host.robots:
            tie = order.tie_of(host.name.encode(), self.rules_of_crawl.random_seed)
            return {0: order.Place(0, 0, 0, tie)}
        heads: dict[int, order.Place] = {}
        for place in self.firsts(host):
            lane = self.lane_now(host, place)
            if lane not in heads or place[1:] < heads[lane][1:]:
                heads[lane] = place
        return heads

    # Queues

    def enqueue(
        self, host: Host, urls: Sequence[Url], lane: int, step: int, depth: int, tie: bytes | None = None
    ) -> order.Place:
        """Queue URLs that belong together: they have one place, and keep their order."""
        name, seed = host.name.encode(), self.rules_of_crawl.random_seed
        tie = tie or order.tie_of(name + urls[0].tail, seed)
        depth = min(depth, DEEPEST)
        while self.is_taken(host, place := order.Place(lane, step, depth, tie)):
            tie = next_tie(tie, seed)
        for url in urls:
            self.turns += 1
            url.place, url.turn, url.shelf, url.state = place, self.turns, None, State.QUEUED
            if not url.asked:
                url.level, url.depth = order.level_of_lane(lane), depth
        host.work_since = host.work_since or max(1, self.now)
        return place

    def is_taken(self, host: Host, place: order.Place) -> bool:
        """Whether others stand at a place of a host's queue."""
        return any(url.queued and url.place == place for url in host.urls.values())

    def enqueue_alone(self, host: Host, url: Url, points: int) -> order.Place:
        """Queue a URL that was asked for before."""
        supply = order.Supply.DUE if url.fetched else order.Supply.NEW
        lane = order.lane_of(supply, url.level)
        return self.enqueue(host, [url], lane, order.step_for(self.step, points), url.depth)

    def put_back(self, host: Host, url: Url, level: Level | None = None) -> order.Place:
        """Queue a URL by its present score (or class)."""
        points = self.score_of(host, url.rank, url.depth, 0, url)
        if level is None and url.level is not Level.IMMEDIATE:
            level = level_of(self.rules_of_crawl.priority, points)
        url.level = url.level if level is None else level
        if url.level is Level.IMMEDIATE:
            points = NOMINAL[Level.IMMEDIATE]
        return self.enqueue_alone(host, url, points)

    def requeue(self, host: Host, url: Url, level: Level | None = None) -> order.Place:
        """Queue a URL that had ended, with a clean sheet."""
        self.end_state(url)
        url.cycle, url.retries, url.hops = self.cycle, 0, 0
        url.level = Level.LOW  # its class is found anew
        url.trail, url.reason, url.detail = (), "", ""
        return self.put_back(host, url, level)

    def end_state(self, url: Url) -> None:
        """A URL leaves the state it is in. A capture that may never become durable is forgotten."""
        url.due_at, url.due_reason = 0, ""
        if url.state is State.DONE and url.capture and url.capture.pending:
            url.capture = None

    def take_out(self, url: Url) -> None:
        """A URL leaves its queue, and has a record of its own from now on."""
        url.place, url.asked = None, True

    def cooling_s(self, url: Url) -> float:
        """Seconds until a URL may be queued again."""
        if not url.settled_s:
            return 0.0
        cooldown_s = self.rules_of_crawl.settings.cooldown_s
        return min(cooldown_s, url.settled_s + cooldown_s - self.wall_s)
