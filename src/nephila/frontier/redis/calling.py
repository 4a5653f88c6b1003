"""Calls of the functions of a crawl's shards."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from nephila.engines.valkey import Valkey
from nephila.engines.valkey_wire import EngineError, Reply, Word
from nephila.model.errors import FrontierError

from .asking import Args, patterns_of
from .clocks import EngineTimeline
from .library import library
from .shards import Shards

NO_CRAWL = "NOCRAWL"
"""What a shard says that was never opened (`lua/shard.lua`)."""
MOST_ROUNDS = 1000
"""A function asks for patterns as long as it meets new ones; more rounds than this are a fault."""


def _given(make: Callable[[bool, dict[str, Any]], Args], patterns: dict[str, Any], again: bool) -> Args:
    return make(again, patterns)


def request_id() -> bytes:
    """Names one call of a verb, so that its repeat is known again."""
    return secrets.token_bytes(8)


class Caller:
    """Calls functions in shards."""

    def __init__(self, valkey: Valkey, shards: Shards, timeline: EngineTimeline, replicas: int) -> None:
        self.valkey, self.shards, self.timeline, self.replicas = valkey, shards, timeline, replicas
        self._names: dict[str, str] = {}

    async def call(self, shard: int, function: str, *args: Word, replicas: int = 0) -> Reply:
        """A call that may be repeated as it is."""
        return await self.repeat(shard, function, lambda _: args, replicas=replicas)

    async def repeat(
        self, shard: int, function: str, make: Callable[[bool], Sequence[Any]], *, replicas: int = 0
    ) -> Reply:
        """A call whose arguments say whether it may have been done before."""
        key, name = self.shards.keys[shard], self._name(function)

        def command(again: bool) -> tuple[Any, ...]:
            return ("FCALL", name, 1, key, self.timeline.argument(), *make(again))

        try:
            return await self.valkey.call(key, command, replicas)
        except EngineError as error:
            if NO_CRAWL in str(error):
                raise FrontierError(
                    f"the engine has lost the crawl {self.shards.crawl}, or a part of it",
                    "bring its data back, or build it anew from the archive: `nephila frontier rebuild --config FILE`",
                ) from error
            raise

    async def with_patterns(
        self,
        shard: int,
        function: str,
        make: Callable[[bool, dict[str, Any]], Args],
        urls: Iterable[str] = (),
        *,
        replicas: int = 0,
    ) -> Reply:
        """A call that may ask for the patterns of URLs before it does anything."""
        patterns: dict[str, Any] = patterns_of(urls)
        for _ in range(MOST_ROUNDS):
            reply = await self.repeat(shard, function, partial(_given, make, patterns), replicas=replicas)
            if reply[0] != b"PATTERNS":
                return reply
            patterns |= patterns_of(url.decode() for url in reply[1])
        raise FrontierError("a shard asks for patterns without end")

    def _name(self, function: str) -> str:
        name = self._names.get(function)
        if name is None:
            name = self._names[function] = library().function(function)
        return name
