"""A frontier on Valkey for contract suites: under a virtual clock, every crawl with a name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from nephila.frontier.estimated import recrawl_of
from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.frontier.redis.spilling import Spilled
from nephila.interfaces.chunks import ChunkStore
from nephila.interfaces.frontier import NOWHERE, Admission, Found, Settled
from nephila.model.outcome import Release, Settlement
from nephila.model.settings import FrontierSettings
from nephila.model.task import Candidate, Lease, Refusal, Token
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts import frontier as suite
from nephila.testing.contracts.frontier_policy import Options

_CRAWLS = count()


SPILLED_EARLY = FrontierSettings(look_ahead_ms=0, spill_above=3, spill_keep=1)
"""Marks so low that hardly more than the head of a queue stays in the engine."""


class SpillingFrontier(RedisFrontier):
    """Before and after every verb all is spilled that may be, and all is brought back that must be."""

    async def admit(
        self, candidates: Sequence[Candidate], refused: Sequence[Refusal] = (), found: Found = NOWHERE
    ) -> Admission:
        await self._turns()
        admission = await super().admit(candidates, refused, found)
        await self._turns()
        return admission

    async def claim(self, hosts: int, lease_s: float) -> list[Lease]:
        await self._turns()
        leases = await super().claim(hosts, lease_s)
        await self._turns()
        return leases

    async def settle(self, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        await self._turns()
        settled = await super().settle(token, settlements, release)
        await self._turns()
        return settled

    async def _turns(self) -> None:
        for _ in range(100):
            done = await self.spill()
            assert not done.missing
            if done == Spilled():
                return
        raise AssertionError("it goes to and fro without end")


def policy_for(options: Options, *, robots: bool, settings: FrontierSettings | None = None) -> Policy:
    return Policy(
        settings or FrontierSettings(look_ahead_ms=0),
        base_delay_ms=suite.DELAY_MS,
        robots=robots,
        priority=options.priority,
        budget=options.budget,
        traps=options.traps,
        politeness=options.politeness,
        recrawl=recrawl_of(options.recrawl) if options.recrawl else None,
        target_domains=options.target_domains,
        repute=options.repute,
        lease_span_ms=int(options.lease_span_s * 1000),
    )


class RedisHarness:
    """How the suites get at it."""

    frontier: RedisFrontier

    def __init__(
        self,
        names: list[str],
        *,
        robots: bool,
        shards: int = 1,
        replicas: int = 0,
        chunks: ChunkStore | None = None,
        compact: bool = False,
    ) -> None:
        self.clock = VirtualClock()
        self.robots = robots
        self._names = names
        self._opening = Opening(shards=shards, replicas=replicas, virtual=True, chunks=chunks, compact=compact)
        self._crawl = ""
        self._options = Options()

    async def configure(self, options: Options) -> None:
        if self._crawl:
            await self.frontier.close()
        self._crawl = f"contract-{next(_CRAWLS)}"
        self._options = options
        await self._open()

    async def _open(self) -> None:
        spills = self._opening.chunks is not None
        policy = policy_for(self._options, robots=self.robots, settings=SPILLED_EARLY if spills else None)
        kind = SpillingFrontier if spills else RedisFrontier
        self.frontier = await kind.open(
            self._names, self._crawl, policy, worker="w1", clock=self.clock, options=self._opening
        )

    @property
    def view(self) -> RedisFrontier:
        return self.frontier

    @property
    def operating(self) -> RedisFrontier:
        return self.frontier

    async def go_on(self, options: Options) -> None:
        self._options = options
        await self.reopen()

    async def reopen(self) -> None:
        await self.frontier.close()
        await self._open()

    async def begin_cycle(self) -> None:
        await self.frontier.begin_cycle()
