"""What a person decides about a fleet's crawl from the command line: policies, blocks, traps, aliases (R4, T7, T2, D4).

Workers see it with their next claim, or sign of life. A policy goes to the region that its domain belongs to; a block
holds in all of them, for a link to what is blocked may be met anywhere.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

from nephila.config import Configured
from nephila.dedup import LearnedAliases
from nephila.engines.valkey import PROMPT_S
from nephila.engines.valkey_state import ValkeyState
from nephila.frontier.redis import RedisFrontier
from nephila.interfaces.frontier import Trap
from nephila.model.alias import AliasRule
from nephila.model.policy import Block, DomainPolicy
from nephila.model.settings import Settings
from nephila.node.operated import OperatedFrontier, OperatedView
from nephila.node.operating import Operator

from .access import check_fleet, valkey_servers
from .learned import decide
from .regions import Regions, regional
from .servers import open_frontier

T = TypeVar("T")


class FleetOperator(Operator):
    """Changes what holds in a crawl on its engines."""

    def __init__(self, whole: Settings, group: str | None = None) -> None:
        """`group` names a region; that of the settings where it is None."""
        self._whole = whole
        self._regions = Regions(whole.fleet.regions)
        super().__init__(regional(whole, group))
        check_fleet(self._settings)

    def policies(self) -> dict[str, DomainPolicy]:
        """Of all regions."""
        found: dict[str, DomainPolicy] = {}
        for settings in self._everywhere():
            found |= self._in(settings, _policies)
        return found

    def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """In the region of the domain."""
        own = self._of(domain)
        return super().set_policy(domain, policy, was) if own is self else own.set_policy(domain, policy, was)

    def block(self, pattern: str, reason: str) -> Block:
        """In all regions."""
        entry = super().block(pattern, reason)
        for settings in self._others():
            self._in(settings, lambda frontier: frontier.block(entry))
        return entry

    def unblock(self, pattern: str) -> bool:
        """In all regions."""
        removed = super().unblock(pattern)
        for settings in self._others():
            removed = self._in(settings, lambda frontier: frontier.unblock(pattern)) or removed
        return removed

    def traps(self, limit: int, host: str = "") -> tuple[list[Trap], int]:
        """Of one host, or of the region that is operated."""
        own = self._of(host) if host else self
        return super().traps(limit, host) if own is self else own.traps(limit, host)

    def release_trap(self, host: str, pattern: str) -> tuple[int, int]:
        """In the region of the host."""
        own = self._of(host)
        return super().release_trap(host, pattern) if own is self else own.release_trap(host, pattern)

    def aliases(self, domain: str = "") -> list[AliasRule]:
        """Of one domain, or of all regions."""
        if domain:
            return super().aliases(domain)
        everywhere = (self._decide(settings, _rules, "") for settings in self._everywhere())
        found = [rule for rules in everywhere for rule in rules]
        return sorted(found, key=lambda rule: (rule.since, rule.id))

    def _of(self, host: str) -> FleetOperator:
        """Who operates the region that a host belongs to."""
        group = self._regions.of(host)
        here = regional(self._whole, group).fleet.crawl == self._settings.fleet.crawl
        return self if here else FleetOperator(self._whole, group)

    def _everywhere(self) -> list[Settings]:
        return [regional(self._whole, group) for group in ("", *sorted(self._regions.groups))]

    def _others(self) -> list[Settings]:
        return [settings for settings in self._everywhere() if settings.fleet.crawl != self._settings.fleet.crawl]

    def _read(self, look: Callable[[OperatedView], T]) -> T:
        async def act(frontier: OperatedFrontier) -> T:
            return look(frontier.view)

        return self._change(act)

    def _change(self, act: Callable[[OperatedFrontier], Awaitable[T]]) -> T:
        return self._in(self._settings, act)

    def _in(self, settings: Settings, act: Callable[[RedisFrontier], Awaitable[T]]) -> T:
        async def run() -> T:
            async with AsyncExitStack() as stack:
                _, frontier = await open_frontier(settings, self._clock, "operator", stack, visiting=True)
                return await act(frontier)

        return asyncio.run(run())

    def _show_blocked(self) -> None:
        """The workers do that."""

    def _learned(self, act: Callable[[LearnedAliases], T], domain: str) -> T:
        group = self._regions.of(domain)
        return self._decide(regional(self._whole, group), act, domain)

    def _decide(self, settings: Settings, act: Callable[[LearnedAliases], T], domain: str) -> T:
        async def run() -> T:
            async with AsyncExitStack() as stack:
                state = await ValkeyState.open(valkey_servers(settings, os.environ), refused_s=PROMPT_S)
                stack.push_async_callback(state.close)
                return await decide(state, settings, self._clock, act, domain)

        return asyncio.run(run())


def _rules(aliases: LearnedAliases) -> list[AliasRule]:
    return aliases.rules()


async def _policies(frontier: RedisFrontier) -> dict[str, DomainPolicy]:
    return frontier.view.policies()


def open_fleet_operator(configured: Configured) -> FleetOperator:
    """Somebody who may change a fleet's crawl."""
    return FleetOperator(configured.settings)
