"""Opening a crawl on an engine: what it was made with is found there, or written at its first opening."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from nephila.engines.valkey import Valkey
from nephila.interfaces.chunks import ChunkStore
from nephila.model.errors import FrontierError, UsageError

from .library import library
from .shards import DEFAULT_SHARDS, MOST_SHARDS, crawl_key

FORMAT = b"3"
IMPORTING = b"1, imported in part"
"""The format of a crawl that an import has not come to the end of: nobody opens it."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a crawl is opened."""

    shards: int = DEFAULT_SHARDS
    """Counts at its first opening only: what it was made with stays."""
    compact: bool = False
    """So does this: a known URL takes half the room, and less is noted of it (`lua/known.lua`)."""
    replicas: int = 0
    """So many must have a claim or a settle before it is answered; 0 for a server without replicas."""
    virtual: bool = False
    """The crawl is a test's, and the clock that is given is its time."""
    joining: bool = False
    """Others look after it as a whole."""
    visiting: bool = False
    """It claims nothing, and is not counted among the workers: somebody who looks, or who brings URLs."""
    looking: bool = False
    """Only to see what is there: nothing is made or changed, and there must be a crawl."""
    linger_ms: float = 0.0
    """How long links to other shards wait to be told in one call with those of other pages. Not under a virtual clock.
    """
    patience_s: float = 30.0
    """How long an engine is waited for at the start, and by a reader; a verb waits as long as it takes."""
    strict: bool = False
    """A crawl that was made with other shards, or more or less compact, is refused: somebody has decided on those."""
    brief: bool = False
    """Links that were told before are told again for one page in so many, which counts for all of them (`told`)."""
    chunks: ChunkStore | None = None
    """Where the far ends of long queues are kept; without it they stay in the engine. Whoever opened it closes it."""


ORDINARILY = Opening()


@dataclass(frozen=True, slots=True)
class Crawl:
    """What a crawl was made with, for good."""

    shards: int
    compact: bool
    secret: int
    virtual: bool
    cycle: int


async def found_or_made(valkey: Valkey, name: str, options: Opening) -> Crawl:
    """The crawl of that name; raises `FrontierError` where it cannot be gone on with."""
    shards, virtual = options.shards, options.virtual
    if not 1 <= shards <= MOST_SHARDS:
        raise FrontierError(f"a crawl cannot have {shards} shards", hint=f"1 to {MOST_SHARDS}")
    key = crawl_key(name, "crawl")
    if options.looking and await valkey.do(key, "HGET", key, "format") is None:
        raise FrontierError(
            f"there is no crawl called {name} on the engine",
            hint="`nephila seed` begins one; one that the engine has lost is built anew by `nephila frontier rebuild`",
        )
    wanted = {
        "format": FORMAT,
        "shards": str(shards).encode(),
        "compact": b"1" if options.compact else b"0",
        "secret": secrets.token_bytes(8).hex().encode(),
        "clock": b"virtual" if virtual else b"engine",
        "cycle": b"1",
        "open": b"0",
    }
    for field, value in () if options.looking else wanted.items():
        await valkey.do(key, "HSETNX", key, field, value)
    known = dict(zip(wanted, await valkey.do(key, "HMGET", key, *wanted), strict=True))
    if known["format"] == IMPORTING:
        raise FrontierError(
            f"the crawl {name} was imported in part only: the import was interrupted",
            hint="begin anew with `nephila frontier import`",
        )
    if known["format"] != FORMAT:
        raise FrontierError(
            f"the crawl {name} was made by another version of Nephila",
            hint="use that version (its `nephila frontier export` takes it out, to be imported here), or another name",
        )
    if known["clock"] != wanted["clock"]:
        raise FrontierError(f"the crawl {name} was made for another clock ({known['clock'].decode()})")
    if options.strict and (told := other_making(name, known["shards"], known["compact"], options)):
        raise told
    if not options.looking:
        await valkey.do(key, "HSET", key, "functions", library().name)  # for workers that are not ours
    return Crawl(int(known["shards"]), known["compact"] == b"1", int(known["secret"], 16), virtual, int(known["cycle"]))


def other_making(name: str, shards: bytes, compact: bytes, options: Opening) -> UsageError | None:
    """What to say where a crawl that is there was made otherwise than is wanted."""
    was, wanted = (int(shards), compact == b"1"), (options.shards, options.compact)
    for setting, has, says in zip(("fleet.shards", "fleet.compact"), was, wanted, strict=True):
        if has != says:
            return UsageError(
                f"the crawl {name} was made with {setting} = {_toml(has)}, and the settings say {_toml(says)}",
                f"write {_toml(has)} there: a crawl keeps it for good; docs/moving.md tells how to make another of it",
            )
    return None


def _toml(value: object) -> str:
    return str(value).lower()
