"""The frontier on Valkey beside the plain one in memory: given the same, they must answer the same.

What the one on Valkey does otherwise, and why that is no fault:

- *Via.* The plain engine follows the page that a URL was found on to its present spelling; Valkey keeps the spelling
  that the page had, because the page may be in another shard.
- *Several robots.txt of one host* wait in an order of their own in each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import asdict, fields, replace
from hashlib import sha1
from itertools import count
from typing import Any, TypeVar

from frontier_pairs import ADDRESSES, Pair
from xxhash import xxh3_64_digest

from nephila.frontier import traps
from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.interfaces.frontier import UrlStory
from nephila.model.task import Lease, PageTask
from nephila.testing.clock import VirtualClock
from nephila.testing.memory import MemoryFrontier, Rules, claiming

T = TypeVar("T")
_CRAWLS = count()


class RedisPair(Pair):
    """Both, under one clock."""

    disk: Any

    def __init__(self, policy: Policy, names: list[str]) -> None:  # in place of a directory: servers
        self.tallied_from, traps.TALLIED_FROM = traps.TALLIED_FROM, 1
        self.names, self.crawl_name = names, f"pair-{next(_CRAWLS)}"
        self.loop = asyncio.new_event_loop()
        self.clock = VirtualClock()
        self.policy = policy
        self.model = MemoryFrontier(self.clock, Rules(**{one.name: getattr(policy, one.name) for one in fields(Rules)}))
        self.held, self.old, self.end = [], [], 0
        claiming.xxh3_64_digest = lambda origin: sha1(origin).hexdigest().encode()  # noqa: S324 - an order
        self.disk = self._opened()

    def _opened(self) -> RedisFrontier:
        return self.loop.run_until_complete(
            RedisFrontier.open(
                self.names,
                self.crawl_name,
                self.policy,
                worker="w1",
                clock=self.clock,
                options=Opening(shards=1, virtual=True),
            )
        )

    def close(self) -> None:
        self.loop.run_until_complete(self.disk.close())
        self.loop.close()
        traps.TALLIED_FROM = self.tallied_from
        claiming.xxh3_64_digest = xxh3_64_digest

    def both(self, verb: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        expected = self.loop.run_until_complete(verb(self.model))
        found = self.loop.run_until_complete(verb(self.disk))
        assert _told(found) == _told(expected), (found, expected)
        return found

    def compare(self) -> None:
        found, expected = asdict(self.disk.snapshot()), asdict(self.model.snapshot())
        assert found == expected, _differences(found, expected)
        for one in ADDRESSES:
            theirs = _told(self.disk.story(one.host, one.fingerprint))
            ours = _told(self.model.story(one.host, one.fingerprint))
            assert theirs == ours, (one.url, theirs, ours)

    def reopen(self, reboot: bool) -> None:
        self.both(lambda frontier: frontier.reap())
        self.loop.run_until_complete(self.disk.close())
        if reboot:
            self.clock.reboot()
        self.disk = self._opened()
        self.loop.run_until_complete(self.model.reopen())


def _told(answer: Any) -> Any:
    """An answer, with the page that a URL was found on without its last slash: it may have been respelled since."""
    match answer:
        case UrlStory():
            return replace(answer, via=answer.via.rstrip("/"))
        case list():
            return [_told(one) for one in answer]
        case Lease():
            return replace(answer, tasks=tuple(_told(task) for task in answer.tasks))
        case PageTask():
            return replace(answer, via=answer.via.rstrip("/"))
    return answer


def _differences(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (found[name], expected[name]) for name in found if found[name] != expected[name]}
