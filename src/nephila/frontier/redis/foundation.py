"""What all verbs stand on: the crawl as it was opened, calls to its shards, and the counters that were heard last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from nephila.engines.valkey import Valkey
from nephila.engines.valkey_wire import Reply, Word
from nephila.frontier.policy import Policy
from nephila.interfaces.frontier import FrontierSnapshot, UrlStory
from nephila.interfaces.repute import Repute
from nephila.model.outcome import OriginRules
from nephila.model.record import SegmentId
from nephila.model.task import Token
from nephila.urls import Fingerprint

from . import telling
from .asking import Facts, grade_in
from .calling import Caller
from .clocks import EngineTimeline
from .shards import Shards, crawl_key
from .told import Told
from .view import RedisFrontierView

REFRESH_S = 1.0
"""Counters are as old as this at most where a worker is alone; with many workers each asks less often."""


MOST_NOTED = 2_000
"""Segments of which it is remembered what was written down: those of a day without a store."""


class Foundation:
    """One worker's handle on a crawl."""

    def __init__(self, caller: Caller, policy: Policy, view: RedisFrontierView, worker: str, *, virtual: bool) -> None:
        self._caller = caller
        self._policy = policy
        self._worker = worker
        self._virtual = virtual
        self.view = view
        self._counters: dict[int, telling.ShardCounters] = {}
        self._facts: dict[Token, tuple[str, dict[Fingerprint, Facts]]] = {}
        """Of each lease that this process holds: the host, and what its pages' links follow from."""
        self._told_before: Told | None = None
        """What this process has told of links, where it need not tell everything."""
        self._workers = {worker}
        self._noted: dict[SegmentId, set[int]] = {}
        """Shards in which pages wait for a segment, as far as this process has written them down."""
        self._gone_through: set[SegmentId] = set()
        """Segments of the dead: which shards these had written down may be lost, with the engine's last moments."""

    @property
    def secret(self) -> int:
        """The crawl's secret: fingerprints are seeded with it."""
        return self.view.secret

    @property
    def timeline(self) -> EngineTimeline:
        """The engine's time."""
        return self._caller.timeline

    def heed(self, repute: Repute) -> None:
        """Score by what this says of domains from now on; not with one exchange at a time, as ranks depend on time."""
        if not self._policy.ordered:
            self._policy = replace(self._policy, repute=repute)

    def _repute(self) -> Repute | None:
        """What is known of domains by the whole link graph (R3); None where there is nothing yet."""
        repute = self._policy.repute
        return repute if repute is not None and repute.look() else None

    @property
    def _shards(self) -> Shards:
        return self._caller.shards

    @property
    def _valkey(self) -> Valkey:
        return self._caller.valkey

    async def _every(self, function: str, *args: Word, shards: Iterable[int] | None = None) -> list[Reply]:
        """The same call to many shards at once."""
        chosen = range(self._shards.count) if shards is None else list(shards)
        return list(await asyncio.gather(*(self._caller.call(shard, function, *args) for shard in chosen)))

    # Segments

    def _segment_key(self, segment: SegmentId) -> str:
        """Names the shards in which pages wait for a segment: written down before the first is settled there."""
        return crawl_key(self._shards.crawl, f"segment:{segment}")

    async def _note_segment(self, segment: SegmentId, shard: int) -> None:
        if shard not in self._noted.get(segment, ()):
            key = self._segment_key(segment)
            await self._valkey.do(key, "SADD", key, shard)
            if len(self._noted) >= MOST_NOTED:
                self._noted.clear()
            self._noted.setdefault(segment, set()).add(shard)

    async def _shards_of(self, segment: SegmentId) -> set[int]:
        """The shards that have to do with a segment: where nothing was written down, all.

        What was written down a fail-over may have taken back; then this process knows it, or has gone through the
        segment, and asks everywhere.
        """
        everywhere = set(range(self._shards.count))
        if segment in self._gone_through:
            return everywhere
        key = self._segment_key(segment)
        found = {int(shard) for shard in await self._valkey.do(key, "SMEMBERS", key)}
        return found | self._noted.get(segment, set()) or everywhere

    # Counters

    def snapshot(self) -> FrontierSnapshot:
        """Counters as they were heard last; under a virtual clock, as of the last verb."""
        return telling.snapshot_of(self._counters.values(), self.timeline.now())

    async def look(self, shards: Iterable[int] | None = None) -> FrontierSnapshot:
        """Ask shards (all of them) for their counters."""
        chosen = list(range(self._shards.count) if shards is None else shards)
        for shard, told in zip(chosen, await self._every("snapshot", shards=chosen), strict=True):
            self._counters[shard] = telling.counters_told(told)
            self.timeline.heard(self._counters[shard].now, shard)
        for shard in chosen:
            if (known := self._counters[shard]).next_at >= 0:
                known.next_at += self.timeline.behind(shard)
        await self._look_at_coverage()
        return self.snapshot()

    def refresh(self) -> FrontierSnapshot:
        """The same without waiting for the event loop: for whoever looks from outside."""
        self._counters = dict(enumerate(self.view.counters()))
        return self.snapshot()

    async def _touched(self, shards: Iterable[int]) -> None:
        """Under a virtual clock the counters are as of the last verb: tests look at them."""
        if self._virtual:
            await self.look(shards)

    async def _look_at_coverage(self) -> None:
        """Enough domains were fetched in all shards together: each is told (S4)."""
        wanted = self._policy.target_domains
        if not wanted or self._shards.count == 1 or all(one.covered for one in self._counters.values()):
            return
        if sum(one.counts.get("domains", 0) for one in self._counters.values()) >= wanted:
            await self._every("cover")
            for one in self._counters.values():
                one.covered = True

    # Reading: what was answered, through the view

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin; an engine that is away is not waited for."""
        return self.view.rules_now(origin)

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""
        return self.view.story(host, fingerprint)

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in key order."""
        return self.view.dead(limit, after)

    def key_of(self, story: UrlStory) -> bytes:
        """Where a page of `dead` ended, for the next one."""
        return self.view.key_of(story)

    def _by_shard(self, stories: Sequence[UrlStory]) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        repute = self._repute()
        for story in stories:
            grade = grade_in(repute, story.host)
            found.setdefault(self._shards.of_host(story.host), []).extend((story.host, story.fingerprint, grade))
        return found
