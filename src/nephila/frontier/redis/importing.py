"""Rows of another engine's frontier, written into the shards of a new crawl (see `frontier.moving`).

Rows are gathered by shard and written a few hundred a call, all shards at once. The crawl bears a mark while that goes
on, so that nobody opens it: it is taken away at the very end. A call whose answer was lost may have been done, and
would count twice if it were repeated; so it is not, and the import begins anew.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from xxhash import xxh3_64_hexdigest, xxh32_digest

from nephila.engines.valkey import PROMPT_S, Valkey
from nephila.engines.valkey_servers import ValkeyServers
from nephila.engines.valkey_wire import Word
from nephila.frontier import order
from nephila.frontier.moving import (
    BlockRow,
    CrawlRow,
    DomainRow,
    HostRow,
    MarkRow,
    OriginRow,
    OrphanRow,
    PolicyRow,
    RefusedRow,
    RobotsRow,
    Row,
    Shift,
    TallyRow,
    UrlRow,
    UrlState,
)
from nephila.frontier.policy import Policy
from nephila.frontier.timeline import Anchor
from nephila.interfaces.clock import Clock
from nephila.interfaces.recrawl import History
from nephila.model.errors import FrontierError
from nephila.urls import is_possible

from .asking import tail_of
from .calling import Caller
from .clocks import EngineTimeline, RemoteTimeline, VirtualTimeline
from .fresh import fresh_urls
from .library import library
from .opening import FORMAT, IMPORTING, ORDINARILY, Opening
from .presence import ALIVE_S
from .rules import pack_policy, packed
from .shards import Shards, check_name, crawl_key, domain_of

ROWS_AT_ONCE = 5_000
"""Rows that are gathered before they are written."""
ROWS_A_CALL = 200
SCANNED_AT_ONCE = 1_000


async def import_into(
    servers: ValkeyServers,
    name: str,
    crawl: CrawlRow,
    rows: Iterable[Row],
    policy: Policy,
    clock: Clock,
    options: Opening = ORDINARILY,
) -> int:
    """Write a whole frontier under a name that no crawl has, but for one that has asked for nothing yet.

    `rows` may begin with `crawl`. Answers how many URLs that one had been given: they are dropped.
    """
    check_name(name)
    valkey = Valkey(servers, library().text)
    try:
        await valkey.start(options.patience_s)
        dropped = await _begin(valkey, name, crawl, options)
        shards = Shards(name, options.shards)
        timeline: EngineTimeline = RemoteTimeline(clock)
        if options.virtual:
            wall = clock.wall_ms()
            anchor = Anchor(clock.boot_id(), wall - clock.steady_ms(), wall, wall, 0)
            timeline = VirtualTimeline(clock, [msgspec.json.encode(anchor)])
        for shard, key in enumerate(shards.keys):
            version, text = packed(policy, shard, shards.count, compact=options.compact)
            await valkey.do(key, "FCALL", library().function("open"), 1, key, version, text, crawl.cycle)
        arrival = _Arrival(Caller(valkey, shards, timeline, 0), crawl, policy)
        await arrival.run(rows)
        key = crawl_key(name, "crawl")
        await valkey.do(key, "HSET", key, "format", FORMAT)
        return dropped
    finally:
        await valkey.close()


async def check_free(servers: ValkeyServers, name: str, options: Opening = ORDINARILY) -> None:
    """FrontierError where a crawl of that name could not be imported."""
    valkey = Valkey(servers)
    try:
        await valkey.start(options.patience_s, refused_s=PROMPT_S)
        await _refuse_a_crawl(valkey, name)
    finally:
        await valkey.close()


async def _refuse_a_crawl(valkey: Valkey, name: str) -> int:
    """Nothing is overwritten: a crawl that has asked for anything is refused, and so is one that somebody works on.

    One that has not was made by whoever came by, or brought seeds, after the engine had lost it, or before an import;
    what an import has left unfinished is nobody's. Answers how many URLs it was given.
    """
    key = crawl_key(name, "crawl")
    found, shards = await valkey.do(key, "HMGET", key, "format", "shards")
    if found in (None, IMPORTING):
        return 0
    given = await fresh_urls(valkey.do, Shards(name, int(shards or 0))) if found == FORMAT else None
    if given is None:
        raise FrontierError(
            f"there is a crawl called {name} on the engine already",
            "choose another fleet.crawl: nothing is overwritten",
        )
    workers = crawl_key(name, "workers")
    now = int((await valkey.do(workers, "TIME"))[0])
    if alive := await valkey.do(workers, "ZRANGEBYSCORE", workers, now - ALIVE_S, "+inf"):
        raise FrontierError(
            f"{len(alive)} workers are at work on the crawl {name}", f"stop them, and wait for {ALIVE_S} s"
        )
    return given


async def _begin(valkey: Valkey, name: str, crawl: CrawlRow, options: Opening) -> int:
    """Mark the crawl; what another import has left unfinished is removed, and so is what gives way."""
    key = crawl_key(name, "crawl")
    given = await _refuse_a_crawl(valkey, name)
    made = {
        "format": IMPORTING,
        "shards": options.shards,
        "compact": "1" if options.compact else "0",
        "secret": crawl.secret,
        "clock": "virtual" if options.virtual else "engine",
        "cycle": crawl.cycle,
        "open": "1" if crawl.cycle_open else "0",
    }
    await valkey.do(key, "HSET", key, *(word for pair in made.items() for word in pair))
    await _remove_shards(valkey, name)
    return given


async def _remove_shards(valkey: Valkey, name: str) -> None:
    """Remove the keys of a crawl's shards, found by SCAN, a bounded number a call."""
    prefix = f"nephila:{{{name}:".encode()
    for address in await valkey.primaries():
        cursor = b"0"
        while True:
            cursor, keys = await valkey.ask(address, "SCAN", cursor, "MATCH", prefix + b"*", "COUNT", SCANNED_AT_ONCE)
            await asyncio.gather(*(valkey.do(key.decode(), "UNLINK", key) for key in keys))
            if cursor == b"0":
                break


class _Together(NamedTuple):
    """What URLs that follow each other must share to go into one bundle."""

    lane: int
    step: int
    depth: int
    tie: str
    hops: int
    cycle: int
    admitted: int
    via: str
    shelf: str
    group: str


class _Arrival:
    """Gathers rows by shard, and writes them."""

    def __init__(self, caller: Caller, crawl: CrawlRow, policy: Policy) -> None:
        self._caller = caller
        self._shards = caller.shards
        self._crawl = crawl
        self._shift = Shift(crawl, order.step_ms(policy.priority), ordered=policy.ordered)
        self._tie_seed = policy.random_seed & 0xFFFF_FFFF
        self._gathered: dict[int, list[Any]] = {}
        self._count = 0
        self._host: HostRow | None = None
        self._shard = 0
        self._together: _Together | None = None
        self._items: list[bytes] = []

    async def run(self, rows: Iterable[Row]) -> None:
        """Write everything."""
        self._whole()
        for row in _of_possible_hosts(rows):
            match row:
                case PolicyRow(domain, policy):
                    await self._call(self._shards.of_domain(domain), "set_policy", domain, pack_policy(policy))
                case BlockRow(block):
                    told = msgspec.json.encode(block)
                    for shard in range(self._shards.count):
                        await self._call(shard, "block", block.pattern, told)
                case _:
                    self._gather(row)
            if self._count >= ROWS_AT_ONCE:
                await self._write()
        self._end_host()
        await self._write()

    async def _write(self) -> None:
        gathered, self._gathered, self._count = self._gathered, {}, 0
        await asyncio.gather(*(self._write_shard(shard, words) for shard, words in gathered.items()))

    async def _write_shard(self, shard: int, words: list[Any]) -> None:
        for first in range(0, len(words), 3 * ROWS_A_CALL):
            await self._call(shard, "move_load", *words[first : first + 3 * ROWS_A_CALL])

    async def _call(self, shard: int, function: str, *args: Word) -> None:
        def make(again: bool) -> tuple[Word, ...]:
            if again:
                raise FrontierError("the engine went away while the frontier was imported", "import it anew")
            return args

        await self._caller.repeat(shard, function, make)

    def _add(self, shard: int, what: str, told: dict[str, Any], raw: bytes = b"") -> None:
        self._gathered.setdefault(shard, []).extend((what, msgspec.json.encode(told), raw))
        self._count += 1

    def _whole(self) -> None:
        crawl, count = self._crawl, self._shards.count
        for shard in range(count):
            first = shard == 0
            told = {
                "cycle": crawl.cycle,
                "mean_rank": crawl.mean_rank,
                "draws": crawl.draws // count,
                "tokens": crawl.tokens // count + 1,
                "covered": crawl.covered,
                "sweeping": crawl.sweeping,
                "counted": {
                    "draws": crawl.draws if first else 0,
                    "reserved": crawl.reserved if first else 0,
                    "pages": crawl.pages if first else 0,
                    "pages_in_cycle": crawl.pages_in_cycle if first else 0,
                },
            }
            self._add(shard, "whole", told)

    def _gather(self, row: Row) -> None:
        if isinstance(row, UrlRow):
            self._url(row)
            return
        self._flush()
        match row:
            case HostRow():
                self._end_host()
                self._begin_host(row)
            case DomainRow():
                self._end_host()
                self._add(self._shards.of_domain(row.name), "domain", _domain(row))
            case RobotsRow(origin, url, hops):
                self._add(self._shard, "robots", {"host": self._name, "origin": origin, "url": url, "hops": hops})
            case TallyRow(tally):
                self._tally(tally)
            case _:
                self._gather_apart(row)

    def _gather_apart(self, row: Row) -> None:
        """What belongs to no host."""
        match row:
            case OriginRow():
                self._origin(row)
            case RefusedRow():
                told = {name: getattr(row, name) for name in ("host", "url", "reason", "detail", "at_s", "via")}
                self._add(self._shards.of_host(row.host), "refused", told, bytes.fromhex(row.fp))
            case MarkRow(segment, upto):
                for shard in range(self._shards.count):
                    self._add(shard, "mark", {"segment": segment, "upto": upto})
            case OrphanRow(segment, offset):
                self._add(0, "orphan", {"segment": segment, "offset": offset})
            case _:
                pass  # written already, or not the engine's

    # Hosts

    @property
    def _name(self) -> str:
        if self._host is None:
            raise FrontierError("the exported frontier has a URL without its host", "export it again")
        return self._host.name

    def _begin_host(self, row: HostRow) -> None:
        self._host, self._shard = row, self._shards.of_host(row.name)
        told = {
            name: getattr(row, name)
            for name in (
                "name", "fetched", "cycle", "fetched_in_cycle", "lied_in", "free_at", "released_at", "delay_ms",
                "crawl_delay_ms", "admitted", "fresh", "trap_at",
            )
        }  # fmt: skip
        told |= {
            "domain": domain_of(row.name),
            "elapsed_ms": row.mean_ms,
            "work_since": row.work_since_at,
            "ref_hi": row.referrers >> 32,
            "ref_lo": row.referrers & 0xFFFF_FFFF,
            "over": int(row.over),
        }
        self._add(self._shard, "host", told, xxh32_digest(row.name.encode(), self._tie_seed))

    def _end_host(self) -> None:
        self._flush()
        row, self._host = self._host, None
        if row is not None:
            told = {"name": row.name, "reason": row.reason, "until_at": row.until_at, "parked": row.parked}
            self._add(self._shard, "rest", told)

    def _tally(self, tally: dict[str, Any]) -> None:
        texts, shapes = bytes.fromhex(tally["texts"]), bytes.fromhex(tally["shapes"])
        told = tally | {
            "state": ("normal", "slowed", "quarantined").index(tally["state"]),
            "released": int(tally["released"]),
            "group": xxh3_64_hexdigest(tally["pattern"].encode()),
            "texts": "",
            "shapes": "",
        }
        self._add(self._shard, "tally", {"host": self._name, "tally": told, "texts": len(texts)}, texts + shapes)

    # URLs

    def _url(self, row: UrlRow) -> None:
        step = self._shift.step(row.step) if row.lane >= 0 else -1
        if row.asked:
            self._flush()
            self._record(row, step)
            return
        like = _Together(
            row.lane, step, row.depth, row.tie, row.hops, row.cycle, row.admitted_s, row.via, row.shelf, row.group
        )
        if like != self._together:
            self._flush()
            self._together = like
        tail = tail_of(self._name, row.url)
        self._items.append(bytes.fromhex(row.fp) + bytes((row.rank,)) + len(tail).to_bytes(2, "big") + tail)

    def _flush(self) -> None:
        like, items = self._together, self._items
        self._together, self._items = None, []
        if like is not None:
            told = like._asdict() | {"host": self._name}
            self._add(self._shard, "bundle", told, bytes.fromhex(like.tie) + b"".join(items))

    def _record(self, row: UrlRow, step: int) -> None:
        capture = row.capture
        fields: dict[str, Any] = {
            "retries": row.retries,
            "settled": row.settled_s,
            "reason": row.reason,
            "detail": row.detail,
            "fetched": row.fetched,
            "trail": row.trail,
            "history": tuple(History(*row.history)),
            "gone": int(row.gone),
        }
        digest = b""
        if capture is not None:
            digest = bytes.fromhex(capture.digest)
            fields |= {
                "status": capture.status,
                "segment": capture.segment,
                "offset": capture.offset,
                "finish": capture.end,
                "etag": capture.etag,
                "last_modified": capture.last_modified,
                "page": int(capture.page),
                "changed_at": capture.changed_s,
            }
        told = {
            "host": self._name,
            "tail": tail_of(self._name, row.url).decode(),
            "rank": row.rank,
            "level": row.level,
            "depth": row.depth,
            "hops": row.hops,
            "cycle": row.cycle,
            "admitted": row.admitted_s,
            "via": row.via,
            "state": str(row.state),
            "lane": row.lane,
            "step": step,
            "due_at": row.due_at,
            "due_reason": row.due_reason,
            "pending": row.state is UrlState.DONE and capture is not None and capture.pending,
            "fields": fields,
        }
        tie = bytes.fromhex(row.tie) or bytes(4)
        self._add(self._shard, "record", told, bytes.fromhex(row.fp) + tie + digest)

    def _origin(self, row: OriginRow) -> None:
        values = (
            row.rules,
            row.stored_at,
            row.fresh_until_at,
            row.status,
            row.failing_since_at,
            row.detail,
            row.moved_at,
        )
        told = {"name": row.origin, "values": values}
        self._add(self._shards.of_origin(row.origin), "origin", told, b64decode(row.body))


def _of_possible_hosts(rows: Iterable[Row]) -> Iterator[Row]:
    """Without hosts, and all that is theirs, whose names are too long for any server: records have no room for them.

    Earlier versions queued links to such names; nothing of them was ever found.
    """
    kept = True
    for row in rows:
        if isinstance(row, DomainRow | HostRow):
            kept = is_possible(row.name)
        if kept or not isinstance(row, DomainRow | HostRow | UrlRow | RobotsRow | TallyRow):
            yield row


def _domain(row: DomainRow) -> dict[str, Any]:
    window = int(row.window or "0", 16)
    return {
        "name": row.name,
        "pages": row.pages,
        "hosts": row.hosts,
        "hosts_over": row.hosts_over,
        "useful": row.useful,
        "ref_hi": row.referrers >> 32,
        "ref_lo": row.referrers & 0xFFFF_FFFF,
        "looked_for": row.looked_for,
        "paused_until": row.paused_until_at,
        "window": f"{window:b}" if window else "",
        "errors_in_row": row.server_errors,
        "lowered": row.lowered,
        "successes": row.successes,
    }
