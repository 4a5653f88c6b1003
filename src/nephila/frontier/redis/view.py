"""The reading side: rules for workers, stories for people. Each question is one call of a function that cannot write.

It has connections of its own, and waits for the answers (it is asked from outside the event loop, and by people), so it
works beside any number of workers.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from threading import Lock

import msgspec

from nephila.engines.valkey_plain import PlainValkey
from nephila.engines.valkey_wire import Reply, Word
from nephila.frontier import rank as ranks
from nephila.frontier.health import Health
from nephila.frontier.traps import TrapState, trap_of
from nephila.interfaces.chunks import ChunkStore
from nephila.interfaces.frontier import FrontierSnapshot, Trap, UrlStory
from nephila.model.errors import FrontierError
from nephila.model.outcome import OriginRules
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import SegmentId
from nephila.model.task import PageTask, Token
from nephila.urls import Address, Fingerprint

from . import telling
from .clocks import EngineTimeline
from .library import library
from .rules import read_policy
from .shards import Shards
from .spilling import unpack

MOST_ROUNDS = 3
"""A queue may come back, and leave again, while it is looked for."""


@dataclass(frozen=True, slots=True)
class HostSeen:
    """Where a host stands."""

    domain: str
    standing: str
    next_at: int
    reason: str
    free_at: int
    released_at: int
    delay_ms: int
    crawl_delay_ms: int
    fetched: int
    fetched_in_cycle: int
    urls: int
    queued: int
    parked: int
    over: bool
    fresh: int
    token: int
    admitted: int
    elapsed_ms: int
    cycle: int
    ref_hi: int
    ref_lo: int

    @property
    def queue_length(self) -> int:
        """URLs in its queue."""
        return self.queued

    @property
    def referrers(self) -> int:
        """Registrable domains that link to it, as `budget.mark_referrer` counts them."""
        return self.ref_hi << 32 | self.ref_lo


@dataclass(frozen=True, slots=True)
class DomainSeen:
    """What is known of a registrable domain."""

    name: str
    pages: int
    hosts: int
    hosts_over: int
    useful: int
    paused_until: int
    health: Health
    referrers: int


_STANDINGS = ("idle", "waiting", "ready", "parked")


class RedisFrontierView:
    """Reads what was answered."""

    def __init__(
        self,
        valkey: PlainValkey,
        shards: Shards,
        timeline: EngineTimeline,
        secret: int,
        chunks: ChunkStore | None = None,
    ) -> None:
        self._valkey = valkey
        self._chunks = chunks
        self.shards = shards
        self.timeline = timeline
        self.secret = secret
        self.counted_for_s = 0.0
        """For so long counters are told as they were heard, so that it does not matter how many look at them."""
        self._counted: tuple[float, list[telling.ShardCounters]] = (0.0, [])
        self._counting = Lock()

    def hurry(self, seconds: float) -> None:
        """Somebody wants an end: nobody is waited for longer than that."""
        self._valkey.hurry(seconds)

    def close(self) -> None:
        """Close the connections."""
        self._valkey.close()

    def ask(self, shard: int, function: str, *args: Word) -> Reply:
        """One shard, by a function and its arguments."""
        key = self.shards.keys[shard]
        name = library().function(function)
        return self._valkey.do(key, "FCALL", name, 1, key, self.timeline.argument(), *args)

    def ask_every(self, function: str, *args: Word) -> list[Reply]:
        """The same question to all shards, without waiting for one before the next is asked."""
        return self.ask_all([(shard, (function, *args)) for shard in range(self.shards.count)])

    def ask_all(self, questions: Sequence[tuple[int, tuple[Word, ...]]]) -> list[Reply]:
        """Shards with a function and its arguments each: all are asked before the first answer is waited for."""
        clock = self.timeline.argument()
        return self._valkey.do_all(
            [
                (key := self.shards.keys[shard], ("FCALL", library().function(str(name)), 1, key, clock, *args))
                for shard, (name, *args) in questions
            ]
        )

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin."""
        return telling.rules_told(origin, self.ask(self.shards.of_origin(origin), "rules", origin))

    def rules_now(self, origin: str) -> OriginRules | None:
        """The same, without waiting for an engine that is away: for a worker's event loop, which asks again."""
        key = self.shards.keys[self.shards.of_origin(origin)]
        asked = "FCALL", library().function("rules"), 1, key, self.timeline.argument(), origin
        return telling.rules_told(origin, self._valkey.do_now(key, *asked))

    def counters(self) -> list[telling.ShardCounters]:
        """What each shard counts."""
        with self._counting:
            at, known = self._counted
            if not known or time.monotonic() - at >= self.counted_for_s:
                known = [telling.counters_told(told) for told in self.ask_every("snapshot")]
                self._counted = time.monotonic(), known
            return known

    def forget_counters(self) -> None:
        """Something was changed from here: whoever looks next is to see it."""
        self._counted = 0.0, []

    def snapshot(self) -> FrontierSnapshot:
        """Counters of all shards."""
        return telling.snapshot_of(self.counters(), self.timeline.now())

    def mean_rank(self) -> int:
        """What ranks are compared with; each shard has its own, and this is between them."""
        asked: list[tuple[str, tuple[Word, ...]]] = [(key, ("HGET", f"{key}:meta", "mean")) for key in self.shards.keys]
        means = [int(one) for one in self._valkey.do_all(asked) if one]
        return sum(means) // len(means) if means else ranks.FIRST_MEAN

    def ages(self) -> dict[int, list[int]]:
        """Queued URLs by the time they were admitted, and class."""
        return telling.ages_of(self.counters())

    # URLs

    def _known(self, host: str, fingerprint: Fingerprint) -> Reply:
        """What a shard tells of a URL; with what is kept elsewhere of the queue, where it is in that."""
        shard = self.shards.of_host(host)
        for _ in range(MOST_ROUNDS):
            told = self.ask(shard, "story", host, fingerprint)
            if told[0] != b"spilled":
                return told
            told = self.ask(shard, "story", host, fingerprint, *self.kept(int(told[1])))
            if told[0] != b"spilled":
                return told
        raise FrontierError(f"a part of the queue of {host} is not where it is kept", "restore the table `spilled`")

    def kept(self, chunk: int) -> list[bytes]:
        """The bundles of a chunk; empty where it is not kept (any more: it may be back by now)."""
        if self._chunks is None:
            raise FrontierError("a part of the queue is kept elsewhere, and nobody said where", "see catalogue.url")
        body = self._chunks.get([chunk]).get(chunk)
        return [] if body is None else unpack(body)

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""
        return self._story(self._known(host, fingerprint), host, fingerprint)

    def stories(self, addresses: Sequence[Address]) -> list[UrlStory | None]:
        """The same of each of many, without waiting for one before the next is asked."""
        asked: list[tuple[int, tuple[Word, ...]]] = [
            (self.shards.of_host(one.host), ("story", one.host, one.fingerprint)) for one in addresses
        ]
        return [
            self._story(told, one.host, one.fingerprint)
            if told[0] != b"spilled"
            else self.story(one.host, one.fingerprint)
            for one, told in zip(addresses, self.ask_all(asked), strict=True)
        ]

    def _story(self, told: Reply, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        match told[0]:
            case b"url":
                return telling.story_told(told[1], self.timeline.wall_of(self.timeline.now()))
            case b"refused":
                return telling.refusal_told(told[1], host, fingerprint)
        return None

    def task(self, host: str, fingerprint: Fingerprint) -> PageTask | None:
        """A known URL as a task: what recovery settles from the archive."""
        told = self._known(host, fingerprint)
        return telling.task_told(told[1]) if told[0] == b"url" else None

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters shard by shard, in key order within each: those that have none are not asked."""
        wall_ms = self.timeline.wall_of(self.timeline.now())
        first = self.shards.of_host(after[:-17].decode()) if after else 0
        keys = self.shards.keys[first:]
        counted = self._valkey.do_all([(key, ("ZCARD", f"{key}:dead")) for key in keys])
        found: list[UrlStory] = []
        for shard, count in enumerate(counted, first):
            if len(found) == limit:
                break
            if count:
                told = self.ask(shard, "dead", limit - len(found), after if shard == first else b"")
                found += [telling.story_told(one, wall_ms) for one in told]
        return found

    def key_of(self, story: UrlStory) -> bytes:
        """Where a page of `dead` ended, for the next one."""
        return story.host.encode() + b"\0" + story.fingerprint

    def holds(self, token: Token, fingerprint: Fingerprint | None, origin: str = "") -> bool:
        """Whether a lease still exists and its task is not yet settled."""
        return bool(self.ask(self.shards.of_token(token), "holds", token, fingerprint or b"", origin))

    # Hosts, domains, what people decided

    def host(self, name: str) -> HostSeen | None:
        """Where a host stands."""
        told = self.ask(self.shards.of_host(name), "host", name)
        if not told:
            return None
        named = dict(zip((field.name for field in fields(HostSeen)), told, strict=True))
        named |= {"domain": told[0].decode(), "standing": _STANDINGS[told[1]], "reason": told[3].decode()}
        return HostSeen(**named | {"over": bool(told[13])})

    def domain(self, name: str) -> DomainSeen | None:
        """What is known of a domain."""
        told = self.ask(self.shards.of_domain(name), "domain", name)
        if not told:
            return None
        window = int(told[5] or b"0", 2)
        packed = window.to_bytes((window.bit_length() + 7) // 8, "big")
        pages, hosts, over, useful, paused_until = told[:5]
        health, referrers = Health(packed, *told[6:9]), told[9] << 32 | told[10]
        return DomainSeen(name, pages, hosts, over, useful, paused_until, health, referrers)

    def policy(self, domain: str) -> DomainPolicy | None:
        """What a person decided for a domain."""
        raw = self.packed_policy(domain)
        return read_policy(raw) if raw else None

    def packed_policy(self, domain: str) -> bytes:
        """The same as it is kept; empty where nobody has decided anything."""
        key = self.shards.keys[self.shards.of_domain(domain)]
        return self._valkey.do(key, "HGET", f"{key}:policies", domain) or b""

    def policies(self) -> dict[str, DomainPolicy]:
        """All policies."""
        found: dict[str, DomainPolicy] = {}
        asked: list[tuple[str, tuple[Word, ...]]] = [(key, ("HGETALL", f"{key}:policies")) for key in self.shards.keys]
        for raw in self._valkey.do_all(asked):
            found |= {name.decode(): read_policy(value) for name, value in zip(raw[::2], raw[1::2], strict=True)}
        return found

    def blocks(self) -> list[Block]:
        """All blocks; every shard knows them."""
        key = self.shards.keys[0]
        raw = self._valkey.do(key, "HVALS", f"{key}:blocks")
        return sorted((msgspec.json.decode(one, type=Block) for one in raw), key=lambda block: block.pattern)

    def traps(self, limit: int, host: str = "") -> list[Trap]:
        """Patterns that are slowed or quarantined, with their evidence."""
        names = [host] if host else [one.decode() for told in self.ask_every("flagged", limit) for one in told]
        asked: list[tuple[int, tuple[Word, ...]]] = [
            (self.shards.of_host(name), ("tallies", name)) for name in names[:limit]
        ]
        found: list[Trap] = []
        for name, tallies in zip(names, self.ask_all(asked), strict=False):
            for told, parked, more in tallies:
                tally = telling.tally_told(told)
                if tally.state is not TrapState.NORMAL:
                    found.append(trap_of(name, tally, parked, more=bool(more)))
        return found[:limit]

    # Segments and leases

    def marks(self, segments: Collection[SegmentId] | None = None) -> dict[SegmentId, int]:
        """Up to where these segments (all) are confirmed: what lies before was settled, in whichever shard.

        A fleet makes thousands of segments a day, and no mark is ever forgotten: whoever can names those he asks for.
        """
        found: dict[SegmentId, int] = {}
        if segments is not None and not segments:
            return found
        for marks in self.ask_every("marks", *(segments or ())):
            for name, upto in zip(marks[::2], marks[1::2], strict=True):
                segment = SegmentId(name.decode())
                found[segment] = max(int(upto), found.get(segment, 0))
        return found

    def pending_segments(self) -> set[SegmentId]:
        """Segments that pages wait for."""
        return {SegmentId(one.decode()) for pending in self.ask_every("pending") for one in pending}

    def orphans(self, segment: SegmentId) -> set[int]:
        """Offsets of captures in a segment whose settle was refused."""
        found: set[int] = set()
        for key in self.shards.keys:
            found |= {int(one) for one in self._valkey.do(key, "SMEMBERS", f"{key}:orphans:{segment}")}
        return found

    def all_orphans(self) -> dict[SegmentId, set[int]]:
        """The same of all segments, those too in which nothing else was ever settled."""
        segments = set(self.marks()) | self.pending_segments()
        for key in self.shards.keys:
            segments |= {SegmentId(one.decode()) for one in self._valkey.do(key, "SMEMBERS", f"{key}:orphaned")}
        return {segment: found for segment in sorted(segments) if (found := self.orphans(segment))}

    def overdue(self) -> set[str]:
        """Holders of leases that have expired."""
        return {one.decode() for told in self.ask_every("overdue") for one in told}
