"""A fleet of any size under virtual time: who asks which shards, and what comes of it for hosts and workers (N1, N5).

The engine is a model: hosts in shards, each ready again a delay after its answer, leased to one worker at a time.
Which shards a worker prefers is decided by the crawler's own code (`frontier.redis.shards`); how it goes round them is
modelled after `frontier.redis.claiming`: its own shards in turn, then the others, and one that had nothing is left
alone for a while. So hundreds of workers can be looked at on one machine.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

from nephila.frontier.redis.claiming import AT_ONCE, LOOK_AGAIN_MS, LOOK_AT_OTHERS_MS
from nephila.frontier.redis.shards import Shards


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is lived through."""

    workers: int
    hosts: int
    shards: int = 256
    slots: int = 16
    """Pages that a worker has under way at once."""
    delay_ms: int = 1000
    answer_ms: int = 200
    idle_ms: int = 100
    """How often a worker with free slots claims."""
    duration_ms: int = 60_000


@dataclass(slots=True)
class Lived:
    """What came of it."""

    pages: int = 0
    by_worker: list[int] = field(default_factory=list)
    by_host: list[int] = field(default_factory=list)
    own_shards: list[int] = field(default_factory=list)
    """How many shards fell to each worker."""
    twice_at_once: int = 0
    """Leases of a host that another worker held: must be none."""
    hurried: int = 0
    """Hosts that were asked before their delay was over: must be none."""
    longest_wait_ms: int = 0
    """That a host was ready and nobody asked it."""
    from_others: int = 0
    """Pages that a worker took from shards that fall to another."""

    def pages_a_second(self, fleet: Fleet) -> float:
        """Over the whole time."""
        return self.pages * 1000 / fleet.duration_ms


class _Worker:
    def __init__(self, name: str, owners: list[str], slots: int) -> None:
        self.mine = [shard for shard, owner in enumerate(owners) if owner == name]
        self.others = [shard for shard, owner in enumerate(owners) if owner != name]
        self.ours = set(self.mine)
        self.free = slots
        self.turn = 0
        self.quiet: dict[int, int] = {}

    def order(self) -> list[int]:
        """The shards in the order in which they are asked."""
        self.turn += 1
        start = self.turn * AT_ONCE % len(self.mine) if self.mine else 0
        away = self.turn * AT_ONCE % len(self.others) if self.others else 0
        return [*self.mine[start:], *self.mine[:start], *self.others[away:], *self.others[:away]]


class _Engine:
    """Hosts in shards."""

    def __init__(self, fleet: Fleet, shards: Shards, lived: Lived) -> None:
        self.fleet, self.lived = fleet, lived
        self.shard_of = [shards.of_domain(f"host{number}.test") for number in range(fleet.hosts)]
        self.ready: list[deque[tuple[int, int]]] = [deque() for _ in range(fleet.shards)]
        self.held, self.free_at = [-1] * fleet.hosts, [0] * fleet.hosts
        for host, shard in enumerate(self.shard_of):
            self.ready[shard].append((0, host))

    def lease(self, shard: int, number: int, now: int) -> int:
        """The host that was ready first."""
        since, host = self.ready[shard].popleft()
        self.lived.twice_at_once += self.held[host] >= 0
        self.lived.hurried += now < self.free_at[host]
        self.lived.longest_wait_ms = max(self.lived.longest_wait_ms, now - since)
        self.held[host] = number
        return host

    def settle(self, host: int, now: int) -> int:
        """Its answer has come; when it may be asked again."""
        self.held[host], self.free_at[host] = -1, now + self.fleet.delay_ms
        self.lived.pages += 1
        self.lived.by_host[host] += 1
        return self.free_at[host]


_LOOKS, _ANSWERS, _IS_READY = range(3)


def live_through(fleet: Fleet) -> Lived:
    """Let a fleet work for some time."""
    shards = Shards("model", fleet.shards)
    names = [f"worker-{number:04}" for number in range(fleet.workers)]
    owners = shards.owners(names)
    workers = [_Worker(name, owners, fleet.slots) for name in names]
    lived = Lived(by_worker=[0] * fleet.workers, by_host=[0] * fleet.hosts)
    lived.own_shards = [len(one.mine) for one in workers]
    engine = _Engine(fleet, shards, lived)
    events = [(number * fleet.idle_ms // fleet.workers, _LOOKS, number, 0) for number in range(fleet.workers)]
    heapq.heapify(events)
    while events and events[0][0] <= fleet.duration_ms:
        now, kind, number, host = heapq.heappop(events)
        if kind == _LOOKS:
            for leased in _claim(engine, workers[number], number, now):
                heapq.heappush(events, (now + fleet.answer_ms, _ANSWERS, number, leased))
            heapq.heappush(events, (now + fleet.idle_ms, _LOOKS, number, 0))
        elif kind == _ANSWERS:
            workers[number].free += 1
            lived.by_worker[number] += 1
            heapq.heappush(events, (engine.settle(host, now), _IS_READY, number, host))
        else:
            engine.ready[engine.shard_of[host]].append((now, host))
    return lived


def _claim(engine: _Engine, worker: _Worker, number: int, now: int) -> list[int]:
    """As many hosts as a worker has slots for, each shard asked for a part."""
    found: list[int] = []
    for shard in worker.order() if worker.free else ():
        if worker.free == 0:
            break
        if worker.quiet.get(shard, 0) > now:
            continue
        waiting = len(engine.ready[shard])
        if not waiting:
            worker.quiet[shard] = now + (LOOK_AGAIN_MS if shard in worker.ours else LOOK_AT_OTHERS_MS)
            continue
        for _ in range(min(max(1, worker.free // AT_ONCE), waiting)):
            found.append(engine.lease(shard, number, now))
            worker.free -= 1
            engine.lived.from_others += shard not in worker.ours
    return found
