"""A frontier on Valkey for contract suites: under a virtual clock, every crawl with a name of its own."""

from __future__ import annotations

from itertools import count

from nephila.frontier.embedded.book import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.frontier.schedule import SimpleRecrawl
from nephila.model.settings import FrontierSettings
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts import frontier as suite
from nephila.testing.contracts.frontier_policy import Options

_CRAWLS = count()


def policy_for(options: Options, *, robots: bool) -> Policy:
    return Policy(
        FrontierSettings(look_ahead_ms=0),
        base_delay_ms=suite.DELAY_MS,
        robots=robots,
        priority=options.priority,
        budget=options.budget,
        traps=options.traps,
        politeness=options.politeness,
        recrawl=SimpleRecrawl(options.recrawl) if options.recrawl else None,
        target_domains=options.target_domains,
    )


class RedisHarness:
    """How the suites get at it."""

    frontier: RedisFrontier

    def __init__(self, names: list[str], *, robots: bool, shards: int = 1, replicas: int = 0) -> None:
        self.clock = VirtualClock()
        self.robots = robots
        self._names = names
        self._opening = Opening(shards=shards, replicas=replicas, virtual=True)
        self._crawl = ""
        self._options = Options()

    async def configure(self, options: Options) -> None:
        if self._crawl:
            await self.frontier.close()
        self._crawl = f"contract-{next(_CRAWLS)}"
        self._options = options
        await self._open()

    async def _open(self) -> None:
        policy = policy_for(self._options, robots=self.robots)
        self.frontier = await RedisFrontier.open(
            self._names, self._crawl, policy, worker="w1", clock=self.clock, options=self._opening
        )

    @property
    def view(self) -> RedisFrontier:
        return self.frontier

    @property
    def operating(self) -> RedisFrontier:
        return self.frontier

    async def reopen(self) -> None:
        await self.frontier.close()
        await self._open()

    async def begin_cycle(self) -> None:
        await self.frontier.begin_cycle()
