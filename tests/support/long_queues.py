"""Long queues on a real engine, kept in a real database: a site that never ends, and what is cut in the middle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from postgres import Postgres

from nephila.engines.valkey_wire import Reply
from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.calling import Caller
from nephila.frontier.redis.opening import Opening
from nephila.frontier.redis.spilling import Spilled
from nephila.interfaces.chunks import ChunkStore
from nephila.interfaces.clock import Clock
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import BudgetSettings, FrontierSettings
from nephila.model.task import Candidate, Pace, PageTask
from nephila.store.postgres import PostgresCatalogue, PostgresChunks
from nephila.testing.contracts.frontier import addresses

SEGMENT = SegmentId("segment")
ENDLESS = 1_000_000
ABOVE, KEEP = 60, 20


def settings(above: int = ABOVE, keep: int = KEEP) -> FrontierSettings:
    return FrontierSettings(look_ahead_ms=0, spill_above=above, spill_keep=keep, urls_per_lease=3)


def policy(above: int = ABOVE, keep: int = KEEP, *, first_urls: int = ENDLESS, prefix: int = ENDLESS) -> Policy:
    budget = BudgetSettings(first_urls=first_urls, queued_per_host=ENDLESS, queued_per_prefix=prefix, urls_per_page=10)
    return Policy(settings(above, keep), base_delay_ms=0, robots=False, budget=budget)


def urls_of(host: str, count: int, first: int = 0) -> list[str]:
    return [f"https://{host}/section{number % 7}/page-{number}.html" for number in range(first, first + count)]


def chunks_in(database: Postgres) -> PostgresChunks:
    """A store in a schema of its own, as a worker's catalogue makes it."""
    name = f"spill{uuid4().hex[:12]}"
    environ = {**os.environ, **database.environ}
    PostgresCatalogue(database.settings, name, environ, identity=name).close()
    return PostgresChunks(database.settings, name, environ)


async def opened(
    names: Sequence[str],
    crawl: str,
    rules: Policy,
    clock: Clock,
    chunks: ChunkStore | None,
    *,
    worker: str = "w1",
    shards: int = 1,
    virtual: bool = True,
) -> RedisFrontier:
    return await RedisFrontier.open(
        list(names),
        crawl,
        rules,
        worker=worker,
        clock=clock,
        options=Opening(shards=shards, virtual=virtual, chunks=chunks),
    )


async def admit(frontier: RedisFrontier, urls: Sequence[str], *, at_once: int = 10, depth: int = 1) -> int:
    """As pages of ten links bring them: a bundle each."""
    added = 0
    for first in range(0, len(urls), at_once):
        found = addresses(*urls[first : first + at_once])
        added += (await frontier.admit([Candidate(one, depth) for one in found])).added
    return added


async def spill_all(frontier: RedisFrontier) -> Spilled:
    """Until there is nothing to do."""
    total = Spilled()
    for _ in range(200):
        done = await frontier.spill()
        if done == Spilled():
            return total
        total += done
    raise AssertionError("it goes to and fro without end")


class Drain:
    """Claims and settles, without links."""

    def __init__(self, frontier: RedisFrontier) -> None:
        self.frontier, self.order, self.end = frontier, list[str](), 0

    async def some(self, hosts: int = 4) -> int:
        leases = await self.frontier.claim(hosts, 300)
        for lease in leases:
            pages = [task for task in lease.tasks if isinstance(task, PageTask)]
            done = []
            for task in pages:
                self.end += 100
                done.append(Settlement(task, Done(RecordRef(SEGMENT, self.end - 100, 90, self.end), 200, b"d" * 32)))
            settled = await self.frontier.settle(lease.token, done, Release(0, Pace(0)))
            if settled.accepted:
                self.order += [task.url for task in pages]
        return len(leases)

    async def all(self) -> list[str]:
        """With long queues looked after in between."""
        while True:
            await self.frontier.spill()
            if not await self.some():
                done = await self.frontier.spill()
                if not done.back and not await self.some():
                    return self.order


class CutError(Exception):
    """Here the process died."""


class CuttingCaller(Caller):
    """Dies at the call of a number: before it is sent, or after it was done."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller.valkey, caller.shards, caller.timeline, caller.replicas)
        self.left, self.after = -1, False

    async def call(self, shard: int, function: str, *args: Any, replicas: int = 0) -> Reply:
        if not function.startswith("spill_"):
            return await super().call(shard, function, *args, replicas=replicas)
        self.left -= 1
        if self.left == 0 and not self.after:
            raise CutError
        reply = await super().call(shard, function, *args, replicas=replicas)
        if self.left == 0:
            raise CutError
        return reply


class CuttingChunks:
    """The same between the store and the engine: dies once something was kept."""

    def __init__(self, inner: ChunkStore) -> None:
        self._inner = inner
        self.cut_after_put = False

    def put(self, number: int, shard: int, urls: int, body: bytes) -> None:
        self._inner.put(number, shard, urls, body)
        if self.cut_after_put:
            self.cut_after_put = False
            raise CutError

    def get(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return self._inner.get(numbers)

    def delete(self, numbers: Sequence[int]) -> None:
        self._inner.delete(numbers)

    def older(self, shard: int, seconds: float, after: int, limit: int) -> list[int]:
        return self._inner.older(shard, seconds, after, limit)

    def close(self) -> None:
        self._inner.close()
