"""Who works on a crawl: signs of life, who writes under which number, who is to leave, and what the seeds allow.

A worker is its directory: an id that is drawn when the directory is made. A *writer* is one run of it: a number that is
drawn at its start and stands in the name of every segment it writes. So for any segment it is known whose spool it lies
in, without a word of the worker.

Every decision is one script on keys that lie together, by the server's clock. What a fail-over may lose (the last
second) is said again with the next sign of life.

A writer is given up when its worker has been silent for too long; that is never taken back. Silence counts while
somebody is there to hear it: where nobody has given a sign of life for a while, the whole fleet was down, or the server
was, or its clock was set forward, and those who come back first must not give up those who come back next, whatever it
is that they ask first.

Who is about to upload asks first, which is a sign of life as well: whoever was allowed to upload is not given up for
the next `lost_s`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from nephila.interfaces.shared import Argument, SharedState
from nephila.model.errors import UsageError

NAME = re.compile(r"[a-z][a-z0-9_-]{0,54}")
"""As a schema in PostgreSQL can be called, too."""
WRITERS = 10**12
"""Writers' numbers are drawn below this: two of a fleet that draws one each second for a year meet once in 10^4 years
of such fleets, and the store of objects would refuse the second of two segments of one name."""
_PARTS = ("workers", "beats", "writers", "given", "drains", "figures", "quiet", "call", "heard", "brought")

_NOW = "local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"

_HEAR = (
    _NOW
    + """
local function hear(silent)
  local unheard = now - tonumber(redis.call('GET', KEYS[9]) or now) - silent - 1
  redis.call('SET', KEYS[9], string.format('%.0f', now))
  if unheard > 0 then
    local beats = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
    for i = 1, #beats, 2 do
      if tonumber(beats[i + 1]) > 0 then redis.call('ZINCRBY', KEYS[2], unheard, beats[i]) end
    end
  end
end
"""
)
"""A time in which nobody was heard, but for the first `silent` milliseconds of it, counts for nobody."""

_BEAT = (
    _HEAR
    + """
local id, info, figures = ARGV[1], ARGV[2], ARGV[3]
hear(tonumber(ARGV[4]))
redis.call('HSET', KEYS[1], id, info)
redis.call('ZADD', KEYS[2], now, id)
redis.call('HSET', KEYS[6], id, figures)
redis.call('HSET', KEYS[7], id, ARGV[5])
local given_up = {}
for i = 6, #ARGV do
  redis.call('HSET', KEYS[3], ARGV[i], id)
  if redis.call('HEXISTS', KEYS[4], ARGV[i]) == 1 then given_up[#given_up + 1] = ARGV[i] end
end
return {redis.call('SISMEMBER', KEYS[5], id), redis.call('ZCOUNT', KEYS[2], now - tonumber(ARGV[4]), '+inf'),
        redis.call('ZCOUNT', KEYS[2], '-inf', 0), now, redis.call('GET', KEYS[8]) or '0', given_up}
"""
)

_MAY_UPLOAD = (
    _NOW
    + """
if redis.call('HEXISTS', KEYS[4], ARGV[2]) == 1 then return 0 end
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[1])
redis.call('SADD', KEYS[10], ARGV[2])
return 1
"""
)

_STRIKE = """
local function strike(id)
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[1], id)
  redis.call('HDEL', KEYS[6], id)
  redis.call('HDEL', KEYS[7], id)
  redis.call('SREM', KEYS[5], id)
end
"""

_GIVE_UP = (
    _HEAR
    + _STRIKE
    + """
hear(tonumber(ARGV[2]))
for i = 3, #ARGV do
  local state = redis.call('HGET', KEYS[4], ARGV[i])
  if state == 'done' then
    redis.call('HSET', KEYS[4], ARGV[i], 'lost')
  elseif not state and redis.call('HEXISTS', KEYS[3], ARGV[i]) == 0 then
    redis.call('HSET', KEYS[3], ARGV[i], '?' .. ARGV[i])
    redis.call('ZADD', KEYS[2], now, '?' .. ARGV[i])
  end
end
local lost = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[1]))) do lost[id] = true end
local writers = redis.call('HGETALL', KEYS[3])
for i = 1, #writers, 2 do
  if lost[writers[i + 1]] then
    redis.call('HSET', KEYS[4], writers[i], 'lost')
    redis.call('HDEL', KEYS[3], writers[i])
    redis.call('SREM', KEYS[10], writers[i])
  end
end
for id, _ in pairs(lost) do strike(id) end
local open = {}
local given = redis.call('HGETALL', KEYS[4])
for i = 1, #given, 2 do
  if given[i + 1] == 'lost' then open[#open + 1] = given[i] end
end
return open
"""
)

_LEAVE = (
    _STRIKE
    + """
for i = 2, #ARGV do
  redis.call('HDEL', KEYS[3], ARGV[i])
  redis.call('SREM', KEYS[10], ARGV[i])
end
strike(ARGV[1])
return 1
"""
)

_FORGET = (
    _STRIKE
    + """
local id, idle, own, waits = ARGV[1], {}, {}, false
local heard = redis.call('ZSCORE', KEYS[2], id)
if not heard then return 'nothing' end
for i = 2, #ARGV do idle[ARGV[i]] = true end
local writers = redis.call('HGETALL', KEYS[3])
for i = 1, #writers, 2 do
  if writers[i + 1] == id then
    own[#own + 1] = writers[i]
    waits = waits or not idle[writers[i]]
  end
end
if waits then
  redis.call('ZADD', KEYS[2], string.format('%.0f', -math.abs(heard)), id)
  return 'spooled'
end
local left = 'nothing'
for _, writer in ipairs(own) do
  local brought = redis.call('SREM', KEYS[10], writer) == 1
  if brought then left = 'uploaded' end
  redis.call('HSET', KEYS[4], writer, brought and 'lost' or 'done')
  redis.call('HDEL', KEYS[3], writer)
end
strike(id)
return left
"""
)
"""Whoever is forgotten keeps the moment when it was heard of, below zero: so it is silent for longer than anybody."""

_LIST = (
    _NOW
    + """
return {redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'),
        redis.call('HGETALL', KEYS[6]), redis.call('SMEMBERS', KEYS[5]),
        redis.call('HGETALL', KEYS[3]), redis.call('HGETALL', KEYS[4]), now, redis.call('HGETALL', KEYS[7])}
"""
)

_CALL = (
    _NOW
    + """
local known = tonumber(redis.call('GET', KEYS[8]) or '0')
local call = tonumber(ARGV[1])
if call == 0 then call = math.max(now, known + 1) end
if call > known then redis.call('SET', KEYS[8], string.format('%.0f', call)) end
return string.format('%.0f', call)
"""
)

_KEEP_TWINS = """
for i = 1, #ARGV, 2 do
  local known, seen, paths = redis.call('HGET', KEYS[1], ARGV[i]) or '', {}, {}
  for path in (known .. ' ' .. ARGV[i + 1]):gmatch('%S+') do
    if not seen[path] then
      seen[path] = true
      paths[#paths + 1] = path
    end
  end
  redis.call('HSET', KEYS[1], ARGV[i], table.concat(paths, ' '))
end
return 1
"""

_DROP_TWINS = """
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1
"""


class Member(msgspec.Struct, frozen=True):
    """What a worker says of itself."""

    id: str
    name: str
    group: str = ""
    pid: int = 0
    version: str = ""
    since_ms: int = 0


class Figures(msgspec.Struct, frozen=True):
    """And of its work."""

    pages: int = 0
    errors: int = 0
    in_flight: int = 0
    pages_per_s: float = 0.0
    spool_segments: int = 0
    spool_bytes: int = 0
    waits_for: str = ""
    """What it cannot go on without, in words."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker learns when it gives a sign of life."""

    leave: bool
    """It is drained: to take nothing more, and to leave."""
    alive: int
    """Workers that are at work, itself included."""
    forgotten: bool = False
    """A person has said that a worker will not come back: its pages are to be put in order now."""
    now_ms: int = 0
    """When this was answered, by the clock of the server that keeps the register."""
    call: int = 0
    """The last call for quiet: see `Registry.call_for_quiet`."""
    given_up: frozenset[int] = frozenset()
    """Which of its writers were given up: its own, where it was silent too long, or those of files it went through."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A worker as the others see it."""

    member: Member
    silent_ms: int
    figures: Figures = field(default_factory=Figures)
    draining: bool = False
    writers: tuple[int, ...] = ()
    quiet: int = 0
    """The last call for quiet that it has answered."""
    is_given_up: bool = False
    """A person has said that it will not come back: what it left waits for a worker to put it in order."""


class Left(StrEnum):
    """What somebody who was forgotten has left, as far as the engine knows."""

    NOTHING = "nothing"
    UPLOADED = "uploaded"
    """Files in the store: whether all of them are listed is still to be looked at."""
    SPOOLED = "spooled"
    """Pages wait for a file that was not uploaded: it is on the register until they are queued again."""


@dataclass(frozen=True, slots=True)
class Roll:
    """All of them, and the writers that were given up and not yet put in order."""

    workers: tuple[Standing, ...]
    lost: tuple[int, ...]


def draw_writer() -> int:
    """A number for a run that nobody else has."""
    return 1 + secrets.randbelow(WRITERS - 1)


def check_crawl_name(name: str) -> str:
    """The name of a crawl on its engines; raises `UsageError` for one that cannot be."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a crawl" if name else "the crawl has no name on its engines",
            "set fleet.crawl: a small letter, then small letters, digits, - and _, 55 at most",
        )
    return name


class Registry:
    """The register of one crawl."""

    def __init__(self, state: SharedState, crawl: str) -> None:
        self._state = state
        tag = f"nephila:{{{check_crawl_name(crawl)}}}:fleet"
        self._keys = [f"{tag}:{part}" for part in _PARTS]
        self._scope = f"{tag}:scope"
        self._twins = f"{tag}:twins"

    async def beat(
        self, member: Member, figures: Figures, writers: Iterable[int], silent_s: float = 30.0, quiet: int = 0
    ) -> Orders:
        """A sign of life, with the writers whose segments lie in this worker's spool; what it learns by it.

        Others count as alive that were heard of within `silent_s`; `quiet` is the last call for quiet that it answers.
        """
        encode = msgspec.json.encode
        told: list[Argument] = [member.id, encode(member), encode(figures), int(silent_s * 1000), quiet]
        answer = await self._state.run(_BEAT, self._keys, [*told, *map(str, writers)])
        leave, alive, forgotten, now, call, given_up = answer
        lost = frozenset(map(int, given_up))
        return Orders(bool(leave), max(1, int(alive)), bool(forgotten), int(now), int(call), lost)

    async def call_for_quiet(self, call: int = 0) -> int:
        """Have all workers bring what they hold to the store, and say so (K2); the number of the call.

        A call that was made before is made once more by its number, where the server has lost it.
        """
        return int(await self._state.run(_CALL, self._keys, [call]))

    async def may_upload(self, member_id: str, writer: int) -> bool:
        """Whether a segment of that writer, in this worker's spool, still counts; a sign of life as well."""
        return bool(await self._state.run(_MAY_UPLOAD, self._keys, [member_id, str(writer)]))

    async def give_up(self, lost_s: float, pending: Iterable[int], silent_s: float = 30.0) -> list[int]:
        """Give up the writers of workers that were silent for so long; all whose pages are to be put in order.

        `pending` are writers on whose segments pages wait: one that nobody knows counts from now on, and one that was
        put in order before is put in order once more. `silent_s` as for `beat`.
        """
        told: list[Argument] = [int(lost_s * 1000), int(silent_s * 1000), *map(str, pending)]
        return sorted(map(int, await self._state.run(_GIVE_UP, self._keys, told)))

    async def in_order(self, writer: int) -> None:
        """Nothing waits for the segments of a writer that was given up, as far as is known. That it was, stays known.

        A worker that was given up and goes on notices it with its next sign of life, and what it settles until then
        waits for a segment that never comes; and whoever puts in order what another left may be lost over it. Either is
        found by `give_up`.
        """
        await self._state.call("HSET", self._keys[3], str(writer), "done")

    async def leave(self, member_id: str, writers: Iterable[int]) -> None:
        """A worker ends, and nothing is left in its spool of these writers.

        Of those that were given up it stays known: some may be of others, whose files it had brought back from the
        store to go through them, and whose spool may turn up yet.
        """
        await self._state.run(_LEAVE, self._keys, [member_id, *map(str, writers)])

    async def drain(self, member_id: str) -> None:
        """Have a worker end its work and leave."""
        await self._state.call("SADD", self._keys[4], member_id)

    async def forget(self, member_id: str, idle: Iterable[int] = ()) -> Left:
        """Its machine will not come back: it is given up, and what it left is to be put in order.

        It is off the register at once where no page waits for a segment of its writers, which are all among `idle`;
        they are given up, should its spool turn up all the same.
        """
        return Left((await self._state.run(_FORGET, self._keys, [member_id, *map(str, idle)])).decode())

    async def roll(self) -> Roll:
        """Everybody."""
        members, beats, figures, drains, writers, given, now, quiet = await self._state.run(_LIST, self._keys)
        said = pairs_in(figures)
        owned: dict[bytes, list[int]] = {}
        for number, owner in pairs_in(writers).items():
            owned.setdefault(owner, []).append(int(number))
        known, calm = pairs_in(members), pairs_in(quiet)
        found = [
            Standing(
                _member(known.get(name), name),
                max(0, int(now) - abs(int(float(at)))),
                msgspec.json.decode(said[name], type=Figures) if name in said else Figures(),
                name in drains,
                tuple(sorted(owned.get(name, ()))),
                int(calm.get(name, b"0")),
                float(at) <= 0,
            )
            for name, at in pairs_in(beats).items()
        ]
        lost = tuple(sorted(int(number) for number, state in pairs_in(given).items() if state == b"lost"))
        return Roll(tuple(sorted(found, key=lambda one: one.member.name)), lost)

    # What holds for all workers

    async def keep_twins(self, twins: Mapping[str, str]) -> None:
        """Seeds that named no scheme: by their https origin the paths to try over http, should it not answer (S1).

        Each with blanks between them; those that were kept before stay.
        """
        await self._state.run(_KEEP_TWINS, [self._twins], [part for pair in twins.items() for part in pair])

    async def twins_of(self, origin: str) -> str:
        """The paths of seeds under an origin that does not answer."""
        return bytes(await self._state.call("HGET", self._twins, origin) or b"").decode()

    async def drop_twins(self, origin: str, paths: str) -> None:
        """These were admitted over http; where more were kept meanwhile, all of them stay."""
        await self._state.run(_DROP_TWINS, [self._twins], [origin, paths])

    async def add_to_scope(self, lines: bytes) -> None:
        """What seeds let in, for all workers; before they are admitted."""
        await self._state.call("RPUSH", self._scope, lines)

    async def clear_scope(self) -> None:
        """Nothing is let in: there is no crawl yet."""
        await self._state.call("DEL", self._scope, self._twins)

    async def scope(self, start: int, count: int) -> list[bytes]:
        """What was let in, from that entry on."""
        return list(await self._state.call("LRANGE", self._scope, start, start + count - 1))


def pairs_in(flat: Sequence[Any] | Mapping[Any, Any]) -> dict[bytes, bytes]:
    """A hash, as one version of the protocol or the other answers it."""
    if isinstance(flat, Mapping):
        return dict(flat)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _member(raw: bytes | None, name: bytes) -> Member:
    if raw is None:
        return Member(name.decode(errors="replace"), "unknown")
    return msgspec.json.decode(raw, type=Member)
