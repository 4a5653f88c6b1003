"""claim over shards: whose hosts are asked for first, and how the draws of F4 and F1 hold over all of them.

A crawl of one shard is asked as it is. Where there are several:

- *Whom.* A worker asks the shards that fall to it by rendezvous hashing among the workers that live, beginning with
  another one each time, several at once; where they give too little, the others. A shard that had nothing is left alone
  until its next moment, a second at most (five, where it falls to another), since others may have brought it work.
- *What.* The draws (30/70, 80/15/5) belong to the claim, not to the shard: for each lease that is wanted a class is
  drawn among those that any shard had ready last, and shards that had some are asked for hosts of that class. What
  nobody has is made up for by whatever there is: no share is lost. Within a shard the whole comparator decides.
"""

from __future__ import annotations

import asyncio
import math
from itertools import takewhile
from typing import Any

import msgspec

from nephila.frontier import order
from nephila.frontier.policy import Policy
from nephila.model.task import Lease

from . import telling
from .asking import Args, grades_of, patterns_of
from .calling import Caller, request_id
from .settling import Settling
from .view import RedisFrontierView

AT_ONCE = 8
"""Shards that one claim asks at the same time."""
LOOK_AGAIN_MS = 1000
LOOK_AT_OTHERS_MS = 5000
"""A shard that falls to another worker, and had nothing, is left alone for longer."""


class Claiming(Settling):
    """Claims."""

    def __init__(self, caller: Caller, policy: Policy, view: RedisFrontierView, worker: str, *, virtual: bool) -> None:
        super().__init__(caller, policy, view, worker, virtual=virtual)
        self._mine: list[int] = list(range(self._shards.count))
        self._others: list[int] = []
        self._ours = set(self._mine)
        self._turn = 0
        self._drawn = 0
        self._quiet: dict[int, int] = {}
        """Until when a shard has nothing to give, as far as was heard."""
        self._present: dict[int, list[int]] = {}
        """Ready hosts of each lane, by shard, as was heard last."""
        self._verifying = telling.Verifying(self._policy.verify_every, self._policy.random_seed)

    def _woken(self, shard: int) -> None:
        self._quiet.pop(shard, None)
        if not any(self._present.get(shard, ())):
            self._present.pop(shard, None)

    def _divide(self) -> None:
        self._mine, self._others = self._shards.preferred(self._worker, self._workers)
        self._ours = set(self._mine)

    async def claim(self, hosts: int, lease_s: float) -> list[Lease]:
        """Lease up to `hosts` hosts that may be asked now, best first."""
        return await self._claim(hosts, lease_s, self._worker, None)

    async def _claim(self, hosts: int, lease_s: float, holder: str, quota: int | None) -> list[Lease]:
        if self._shards.count == 1:
            only, _ = await self._claim_in(0, hosts, lease_s, holder, quota, None)
            await self._touched((0,))
            return only
        shards = self._order()
        wanted = self._draw(hosts)
        leases: list[Lease] = []
        if wanted:
            having = [shard for shard in shards if self._may_have(shard, wanted)]
            leases, _ = await self._go_round(having, hosts, lease_s, holder, quota, wanted)
        if len(leases) < hosts or not hosts:  # what was drawn is nowhere, or nothing is known: whatever there is
            more, _ = await self._go_round(shards, hosts - len(leases), lease_s, holder, quota, None)
            leases += more
        await self._touched(shards)
        return leases

    def _may_have(self, shard: int, lanes: list[int]) -> bool:
        """Whether a shard had hosts of one of these lanes, or of immediate work, when it was last heard of."""
        present = self._present.get(shard)
        return present is None or self._is_urgent(shard) or any(present[lane] for lane in set(lanes))

    def _is_urgent(self, shard: int) -> bool:
        """Whether a shard had immediate work: by the last claim there, or by its counters, which know of others."""
        counters = self._counters.get(shard)
        return bool((self._present.get(shard) or [0])[0]) or bool(counters and counters.counts.get("q0", 0))

    async def _go_round(
        self, shards: list[int], hosts: int, lease_s: float, holder: str, quota: int | None, wanted: list[int] | None
    ) -> tuple[list[Lease], list[int]]:
        """Ask one shard after the other, several at once, until there is enough; the draws that nobody could serve.

        Ours and others' are never asked at once: what ours can give, others are not asked for. So a shard that gave all
        it was asked for, and has more, is asked again.
        """
        leases: list[Lease] = []
        while shards and (len(leases) < hosts or not hosts):
            missing = hosts - len(leases)
            some = self._alike(shards)[: min(AT_ONCE, missing)] if hosts else shards
            shards = shards[len(some) :]
            answers = await self._ask(some, missing, lease_s, holder, quota, wanted)
            leases += [lease for found, _ in answers for lease in found]
            wanted = None if wanted is None else [lane for _, left in answers for lane in left]
            asked = zip(some, _parts(missing, len(some)), answers, strict=True)
            served = [shard for shard, part, (found, _) in asked if len(found) == part > 0]
            shards = [shard for shard in served if self._has_more(shard, wanted)] + shards
        return leases, wanted or []

    def _has_more(self, shard: int, lanes: list[int] | None) -> bool:
        """Whether a shard that was asked just now has more hosts, of these lanes or of any."""
        present = self._present.get(shard)
        if not present:  # its last answer was a repeated one, which does not tell
            return False
        return any(present) if lanes is None else any(present[lane] for lane in set(lanes))

    def _alike(self, shards: list[int]) -> list[int]:
        """The first shards, as far as all of them fall to us, or none of them does."""
        are_ours = shards[0] in self._ours
        return list(takewhile(lambda shard: (shard in self._ours) == are_ours, shards))

    def _order(self) -> list[int]:
        """The shards in the order in which they are asked; those that have immediate work first."""
        now, count = self.timeline.now(), len(self._mine)
        self._turn += 1
        start = self._turn * AT_ONCE % count if count else 0
        for shard in [one for one, until in self._quiet.items() if until <= now]:
            self._woken(shard)
        every = [*self._mine[start:], *self._mine[:start], *self._others]
        if not self._virtual:
            every = [shard for shard in every if self._quiet.get(shard, 0) <= now]
        return sorted(every, key=lambda shard: not self._is_urgent(shard))

    def _draw(self, hosts: int) -> list[int]:
        """The lanes that so many leases are to come from, among those that any shard had; empty when none is known."""
        present = [lane for lane in range(order.LANES) if any(one[lane] for one in self._present.values())]
        if not present:
            return []
        drawn: list[int] = []
        for _ in range(hosts):
            self._drawn += 1
            drawn.append(order.draw_lane(present, self._drawn, self._policy.random_seed, self._policy.priority))
        return drawn

    async def _ask(
        self, shards: list[int], hosts: int, lease_s: float, holder: str, quota: int | None, wanted: list[int] | None
    ) -> list[tuple[list[Lease], list[int]]]:
        """Ask some shards at once, each for its part; what each gave, and the draws that are left."""
        lanes = [None if wanted is None else wanted[at :: len(shards)] for at in range(len(shards))]
        return await asyncio.gather(
            *(
                self._claim_in(shard, part, lease_s, holder, quota, some)
                for shard, part, some in zip(shards, _parts(hosts, len(shards)), lanes, strict=True)
            )
        )

    async def _claim_in(
        self, shard: int, hosts: int, lease_s: float, holder: str, quota: int | None, wanted: list[int] | None
    ) -> tuple[list[Lease], list[int]]:
        leases: list[Lease] = []
        head: dict[str, Any] = {}
        if quota is not None:
            head["quota"] = quota
        if wanted is not None:
            head["wanted"] = wanted
        patterns: dict[str, Any] = {}
        repute = self._repute()
        if repute is not None:
            head["grades"] = {}  # it asks for those that it needs
        while True:
            request = request_id()
            sent_at = asyncio.get_running_loop().time()

            def make(again: bool, request: bytes = request, patterns: dict[str, Any] = patterns) -> Args:
                nonlocal sent_at
                sent_at = asyncio.get_running_loop().time()
                told = msgspec.msgpack.encode(head | {"patterns": patterns})
                return [hosts - len(leases), int(lease_s * 1000), self._worker, request, int(again), holder, told]

            reply = await self._caller.repeat(shard, "claim", make, replicas=self._caller.replicas)
            late_ms = 0 if self._virtual else math.ceil((asyncio.get_running_loop().time() - sent_at) * 1000)
            _, now, _, found, lacking, ready, left, moment, stage, ungraded = reply
            self.timeline.heard(now, shard)
            behind_ms = self.timeline.behind(shard)
            for told in found:
                lease, facts = telling.lease_told(told, self._verifying, late_ms, behind_ms)
                self._facts[lease.token] = lease.host, facts
                leases.append(lease)
            self._heard(shard, now, ready, moment, behind_ms)
            if not lacking and not ungraded:
                return leases, list(left)
            patterns |= patterns_of(url.decode() for url in lacking)
            if ungraded:
                head["grades"] |= grades_of(repute, ungraded)
            head["stage"] = stage
            if wanted is not None:
                head["wanted"] = left

    def _heard(self, shard: int, now: int, ready: list[int], moment: int, behind_ms: int) -> None:
        """What a claim was told of a shard beside leases; nothing where it was a repeated one."""
        if not ready:
            return
        self._present[shard] = ready
        longest = LOOK_AGAIN_MS if shard in self._ours else LOOK_AT_OTHERS_MS
        if not any(ready):
            self._quiet[shard] = now + behind_ms + (longest if moment < 0 else max(0, min(moment - now, longest)))
        if (known := self._counters.get(shard)) is not None:
            known.next_at = moment if moment < 0 else moment + behind_ms


def _parts(hosts: int, shards: int) -> list[int]:
    """For how many hosts each of so many shards is asked."""
    return [(hosts + shards - 1 - at) // shards for at in range(shards)]
