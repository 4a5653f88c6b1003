"""What the workers of a crawl have agreed on, as it stands on the engine: settings, and where things are kept.

The first who comes writes it down. Until the crawl has asked for anything, somebody else may still put his own in its
place, so that a slip in the first file is not for good; but not while a worker that has agreed is alive. Whether one
is, and the change, are one script: of two workers that start at once with different files one is refused.

A worker tells the engine that it lives before it agrees (`frontier.redis.presence`): others see it from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from nephila.frontier.redis.fresh import fresh_urls
from nephila.frontier.redis.presence import ALIVE_S
from nephila.frontier.redis.shards import Shards, crawl_key
from nephila.interfaces.shared import SharedState

from .registry import check_crawl_name, pairs_in

_TAKE = """
local digest, who, may_change, settings = ARGV[1], ARGV[2], ARGV[3] == '1', tonumber(ARGV[5])
if may_change then
  local since = redis.call('TIME')[1] - tonumber(ARGV[4])
  for _, other in ipairs(redis.call('SMEMBERS', KEYS[4])) do
    local heard = redis.call('ZSCORE', KEYS[5], other)
    if other ~= who and heard and tonumber(heard) >= since then may_change = false end
  end
end
if may_change then redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4]) end
redis.call('SETNX', KEYS[1], digest)
local known = redis.call('GET', KEYS[1])
local same = known == digest
if same then
  for i = 6, #ARGV, 2 do
    local key = i < 6 + 2 * settings and KEYS[2] or KEYS[3]
    redis.call('HSETNX', key, ARGV[i], ARGV[i + 1])
    same = same and redis.call('HGET', key, ARGV[i]) == ARGV[i + 1]
  end
end
if same and who ~= '' then redis.call('SADD', KEYS[4], who) end
return {known, redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[3])}
"""


@dataclass(frozen=True, slots=True)
class Agreed:
    """What some settings say, or what was agreed on."""

    digest: str = ""
    """Of the settings; empty before anybody has come."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """By their names, as people write them; empty in a crawl of an earlier version, which kept the digest alone."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where things are kept, by what they are."""

    def other_settings(self, own: Agreed) -> list[str]:
        """The names of those that others want otherwise."""
        if self.digest in ("", own.digest):
            return []
        return [name for name, value in own.settings.items() if self.settings.get(name, "") != value]

    def other_places(self, own: Agreed) -> list[str]:
        """What is kept elsewhere than others want it."""
        return [what for what, place in own.places.items() if self.places.get(what, place) != place]

    def differs(self, own: Agreed) -> bool:
        """Whether somebody with those settings does not belong here."""
        return bool(self.other_settings(own) or self.other_places(own))


def digest_of(text: str) -> str:
    """By what settings are compared."""
    return sha256(text.encode()).hexdigest()


class Agreement:
    """That of one crawl."""

    def __init__(self, state: SharedState, crawl: str) -> None:
        self._state, self._crawl = state, check_crawl_name(crawl)
        tag = crawl_key(crawl, "fleet")
        self._places = f"{tag}:places"
        self._keys = [f"{tag}:terms", f"{tag}:agreed", self._places, f"{tag}:agreeing", crawl_key(crawl, "workers")]

    async def read(self) -> Agreed:
        """What was agreed on; changes nothing."""
        digest = await self._state.call("GET", self._keys[0]) or b""
        found = [await self._state.call("HGETALL", key) for key in self._keys[1:3]]
        return Agreed(digest.decode(), *map(_texts, found))

    async def take(self, own: Agreed, who: str = "", *, changing: bool = False) -> Agreed:
        """Agree to what was agreed on, or be the first; what holds now.

        `who` has agreed from then on, if it is all the same to him. `changing`: where no other worker that has agreed
        is alive, all is as he says.
        """
        told = [part for named in (own.settings, own.places) for pair in named.items() for part in pair]
        given = [own.digest, who, "1" if changing else "0", ALIVE_S, len(own.settings), *told]
        digest, settings, places = await self._state.run(_TAKE, self._keys, given)
        return Agreed(digest.decode(), _texts(settings), _texts(places))

    async def may_change(self, own: Agreed, known: Agreed) -> bool:
        """Whether what was agreed on binds nobody yet, but for workers that are alive.

        URLs that were admitted have the form that was agreed on: that does not change under them.
        """
        shards = await self._state.call("HGET", crawl_key(self._crawl, "crawl"), "shards")

        async def do(_key: str, command: str, key: str, *more: str) -> Any:  # noqa: ANN401 - what the command says
            return await self._state.call(command, key, *more)

        urls = await fresh_urls(do, Shards(self._crawl, int(shards or 0)))
        return urls == 0 or (urls is not None and known.other_settings(own) in ([], ["archive.url"]))

    async def move(self, places: Mapping[str, str]) -> None:
        """From now on things are kept there."""
        await self._state.call("HSET", self._places, *(part for pair in places.items() for part in pair))


def _texts(flat: Any) -> dict[str, str]:  # noqa: ANN401 - as the server answers
    return {name.decode(): value.decode() for name, value in pairs_in(flat).items()}
