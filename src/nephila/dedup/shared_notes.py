"""What a fleet has learned of its sites, on the servers that its workers share (N3).

| key | what |
|---|---|
| `nephila:{CRAWL:XX}:learned` | hash: `a` and a domain to its tallies, another letter and a host to a note |
| `nephila:{CRAWL:XX}:ruled` | set: the domains of these that have rules to be shown |
| `nephila:{CRAWL}:learned` | stream: domains whose rules have changed |

XX is drawn from the registrable domain, so that all that is known of a site lies together, and is asked for at once.

Notes on hosts are written as they are, and the last writer's holds. Tallies of a domain are exchanged: a value begins
with eight bytes that were drawn for it, and whoever writes names those of the value it began with. So evidence of
several workers adds up, and none of them can take back what a person has decided.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from xxhash import xxh3_64_intdigest

from nephila.interfaces.shared import Argument, SharedState
from nephila.model.alias import AliasState

from .alias_storage import Tallies
from .alias_tally import AliasTally

ALIASES = "a"
"""The letter of tallies."""
BUCKETS = 256
LOGGED = 100_000
"""Changes that are remembered, about; whoever was away for longer sees what it missed when it next claims a host."""
READ_AT_ONCE = 1_000
VERSION = 8
"""Bytes."""
SHOWN = frozenset({AliasState.TRIED, AliasState.IN_FORCE, AliasState.SUSPENDED, AliasState.UNDONE})

_EXCHANGE = """
local done = {}
for i = 1, #ARGV, 5 do
  local field, name = ARGV[i], ARGV[i + 1]
  local held = redis.call('HGET', KEYS[1], field)
  local version = held and string.sub(held, 1, 8) or ''
  if version == ARGV[i + 2] or version == string.sub(ARGV[i + 3], 1, 8) then
    redis.call('HSET', KEYS[1], field, ARGV[i + 3])
    redis.call(ARGV[i + 4] == '1' and 'SADD' or 'SREM', KEYS[2], name)
    done[#done + 1] = 1
  else
    done[#done + 1] = 0
  end
end
return done
"""

_pack = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(list[AliasTally]).decode


class Held(NamedTuple):
    """The tallies of a domain as they were read."""

    version: bytes
    """Empty where there are none."""
    tallies: Tallies


class Exchange(NamedTuple):
    """New tallies for those that were read."""

    domain: str
    before: bytes
    """The version they began with."""
    tallies: Tallies


def held(packed: bytes | None) -> Held:
    """Read what was written by `exchange`."""
    if packed is None:
        return Held(b"", {})
    return Held(packed[:VERSION], {tally.subject: tally for tally in _read(packed[VERSION:])})


class SharedNotes:
    """Reads and writes them. Raises `EngineAwayError` where the servers do not answer."""

    def __init__(self, state: SharedState, crawl: str) -> None:
        self._state = state
        self._crawl = crawl
        self._log = f"nephila:{{{crawl}}}:learned"

    async def read(self, wanted: Mapping[str, Sequence[str]]) -> dict[str, bytes | None]:
        """Fields, named by the domain they belong to: all at once."""
        fields: dict[int, list[str]] = {}
        for domain, names in wanted.items():
            fields.setdefault(_bucket(domain), []).extend(names)
        answers = await asyncio.gather(
            *(self._state.call("HMGET", self._key(bucket, "learned"), *names) for bucket, names in fields.items())
        )
        return {
            name: value
            for names, values in zip(fields.values(), answers, strict=True)
            for name, value in zip(names, values, strict=True)
        }

    async def write(self, notes: Mapping[str, Mapping[str, bytes]]) -> None:
        """Fields and values, by the domain they belong to."""
        words: dict[int, list[Argument]] = {}
        for domain, fields in notes.items():
            for field, value in fields.items():
                words.setdefault(_bucket(domain), []).extend((field, value))
        await asyncio.gather(
            *(self._state.call("HSET", self._key(bucket, "learned"), *more) for bucket, more in words.items())
        )

    async def tallies(self, domains: Iterable[str]) -> dict[str, Held]:
        """What is known of aliases of some domains."""
        found = await self.read({domain: [ALIASES + domain] for domain in domains})
        return {field[1:]: held(packed) for field, packed in found.items()}

    async def exchange(self, changes: Sequence[Exchange]) -> dict[str, bytes]:
        """Put tallies in the place of others; the new version of those for which nobody was faster."""
        words: dict[int, list[Argument]] = {}
        named: dict[int, list[tuple[str, bytes]]] = {}
        for domain, before, tallies in changes:
            fresh, bucket = secrets.token_bytes(VERSION), _bucket(domain)
            ruled = any(tally.state in SHOWN for tally in tallies.values())
            value = fresh + _pack(list(tallies.values()))
            words.setdefault(bucket, []).extend((ALIASES + domain, domain, before, value, "1" if ruled else "0"))
            named.setdefault(bucket, []).append((domain, fresh))
        answers = await asyncio.gather(
            *(
                self._state.run(_EXCHANGE, [self._key(bucket, "learned"), self._key(bucket, "ruled")], more)
                for bucket, more in words.items()
            )
        )
        return {
            domain: fresh
            for pairs, flags in zip(named.values(), answers, strict=True)
            for (domain, fresh), flag in zip(pairs, flags, strict=True)
            if flag
        }

    async def ruled(self) -> AsyncIterator[list[str]]:
        """The domains that have rules to be shown, some at a time."""
        for bucket in range(BUCKETS):
            key, cursor = self._key(bucket, "ruled"), b"0"
            while True:
                cursor, found = await self._state.call("SSCAN", key, cursor, "COUNT", READ_AT_ONCE)
                if found:
                    yield [name.decode() for name in found]
                if cursor == b"0":
                    break

    async def tell_changed(self, domains: Iterable[str]) -> None:
        """Say that the rules of these domains are others now."""
        for domain in domains:
            await self._state.call("XADD", self._log, "MAXLEN", "~", LOGGED, "*", "d", domain)

    async def last_change(self) -> str:
        """Where those begin that come from now on."""
        found = await self._state.call("XREVRANGE", self._log, "+", "-", "COUNT", 1)
        return found[0][0].decode() if found else "0-0"

    async def changed(self, since: str) -> tuple[str, set[str], bool]:
        """Domains whose rules have changed since; up to where; and whether there are more."""
        found = await self._state.call("XRANGE", self._log, f"({since}", "+", "COUNT", READ_AT_ONCE)
        domains = {fields[1].decode() for _, fields in found}
        return found[-1][0].decode() if found else since, domains, len(found) == READ_AT_ONCE

    def _key(self, bucket: int, what: str) -> str:
        return f"nephila:{{{self._crawl}:{bucket:02x}}}:{what}"


def _bucket(domain: str) -> int:
    return xxh3_64_intdigest(domain.encode()) % BUCKETS
