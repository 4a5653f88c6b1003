"""What a crawl's shards hold, as rows that belong to no engine (see `frontier.moving`).

Each shard is gone through by functions that cannot write, some hundreds of entries a call, so that no call keeps the
server from others for long, and memory is that of one page and of the names of one shard's hosts. Nobody may work on
the crawl meanwhile: workers that are alive are asked for at the beginning, and whether anything changed at the end.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

from nephila.engines.valkey_plain import PlainValkey
from nephila.engines.valkey_servers import ValkeyServers
from nephila.engines.valkey_wire import Reply, Word
from nephila.frontier import order
from nephila.frontier.moving import (
    VERSION,
    AskedFor,
    BlockRow,
    CaptureRow,
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
    UrlRow,
    UrlState,
)
from nephila.frontier.moving.rows import SECTION as CROWDED
from nephila.frontier.moving.rows import tally_row
from nephila.frontier.policy import Policy
from nephila.frontier.traps import SkeletonTally
from nephila.interfaces.chunks import ChunkStore
from nephila.interfaces.clock import Clock
from nephila.model.errors import FrontierError
from nephila.model.outcome import DeferReason

from .clocks import EngineTimeline, RemoteTimeline, VirtualTimeline
from .library import library
from .opening import FORMAT, IMPORTING
from .presence import ALIVE_S
from .shards import Shards, check_name, crawl_key
from .telling import tally_told
from .view import RedisFrontierView

ENTRIES_AT_ONCE = 200
"""Of a hash in one call; a bundle has up to 64 URLs, so fewer of those."""
BUNDLES_AT_ONCE = 20
PATIENCE_S = 30.0

_STATES = (UrlState.QUEUED, UrlState.DELAYED, UrlState.DONE, UrlState.DROPPED, UrlState.DEAD)
_SHELVES = (DeferReason.BUDGET, DeferReason.TRAP, DeferReason.COVERAGE)
_WAITING, _PARKED = 1, 3
_PLACE_MEMBER = 13
"""Bytes of a queue's member: place and number. That of a shelf has the shelf and the group before."""


class _Whole(NamedTuple):
    """What holds for one shard."""

    now: int
    cycle: int
    mean: int
    draws: int
    tokens: int
    covered: int
    sweeping: int
    last: int
    draws_counted: int
    reserved: int
    pages: int
    pages_in_cycle: int
    leases: int


class RedisExport:
    """Reads a crawl that nobody works on."""

    def __init__(
        self,
        servers: ValkeyServers,
        crawl: str,
        policy: Policy,
        clock: Clock,
        asked_for: AskedFor,
        chunks: ChunkStore | None = None,
    ) -> None:
        self._valkey = PlainValkey(servers, library().text, PATIENCE_S)
        self._crawl = check_name(crawl)
        self._policy = policy
        self._asked_for = asked_for
        made = self._made()
        self._shards = Shards(crawl, int(made["shards"]))
        self.secret = int(made["secret"], 16)
        self._is_open = made["open"] == b"1"
        self._timeline: EngineTimeline = RemoteTimeline(clock)
        if made["clock"] == b"virtual":
            anchors = [self._valkey.do(key, "HGET", f"{key}:meta", "anchor") or b"" for key in self._shards.keys]
            self._timeline = VirtualTimeline(clock, anchors)
        self._view = RedisFrontierView(self._valkey, self._shards, self._timeline, self.secret, chunks)

    def close(self) -> None:
        """Close the connections."""
        self._valkey.close()

    def _made(self) -> dict[str, bytes]:
        fields = ("format", "shards", "secret", "clock", "open")
        key = crawl_key(self._crawl, "crawl")
        found = dict(zip(fields, self._valkey.do(key, "HMGET", key, *fields), strict=True))
        if found["format"] is None:
            raise FrontierError(f"there is no crawl called {self._crawl} on the engine", "see fleet.crawl")
        if found["format"] != FORMAT:
            which = "was imported in part only" if found["format"] == IMPORTING else "is of another version of Nephila"
            raise FrontierError(f"the crawl {self._crawl} {which}", "import it anew, or use that version")
        return found

    def _ask(self, shard: int, function: str, *args: Word) -> Reply:
        key = self._shards.keys[shard]
        return self._valkey.do(
            key, "FCALL", library().function(f"move_{function}"), 1, key, self._timeline.argument(), *args
        )

    # The whole

    def rows(self) -> Iterator[Row]:
        """Everything."""
        self._refuse_workers()
        before = [_Whole(*self._ask(shard, "whole")) for shard in range(self._shards.count)]
        yield self._row_of_crawl(before)
        yield from (PolicyRow(domain, policy) for domain, policy in self._view.policies().items())
        yield from (BlockRow(block) for block in self._view.blocks())
        yield from (MarkRow(segment, upto) for segment, upto in self._view.marks().items())
        yield from self._orphans()
        for shard in range(self._shards.count):
            yield from self._domains(shard)
            yield from self._hosts(shard)
        for shard in range(self._shards.count):
            yield from self._origins(shard)
            yield from self._refused(shard)
        after = [_Whole(*self._ask(shard, "whole")) for shard in range(self._shards.count)]
        if [one.last for one in before] != [one.last for one in after]:
            raise FrontierError(f"the crawl {self._crawl} was worked on while it was exported", "stop its workers")

    def _refuse_workers(self) -> None:
        key = crawl_key(self._crawl, "workers")
        now = int(self._valkey.do(key, "TIME")[0])
        alive = self._valkey.do(key, "ZRANGEBYSCORE", key, now - ALIVE_S, "+inf")
        if alive:
            raise FrontierError(
                f"{len(alive)} workers are at work on the crawl {self._crawl}", f"stop them, and wait for {ALIVE_S} s"
            )

    def _row_of_crawl(self, shards: list[_Whole]) -> CrawlRow:
        now, step_ms = max(one.now for one in shards), order.step_ms(self._policy.priority)
        return CrawlRow(
            version=VERSION,
            secret=f"{self.secret:016x}",
            urls=self._asked_for.urls,
            config=self._asked_for.config,
            exported_at=self._timeline.wall_of(now),
            step=0 if self._policy.ordered else now // step_ms,
            step_ms=step_ms,
            cycle=max(one.cycle for one in shards),
            cycle_open=self._is_open,
            sweeping=any(one.sweeping for one in shards),
            covered=any(one.covered for one in shards),
            mean_rank=sum(one.mean for one in shards) // len(shards),
            draws=sum(one.draws_counted for one in shards),
            reserved=sum(one.reserved for one in shards),
            tokens=max((one.tokens + 1) * len(shards) for one in shards),
            pages=sum(one.pages for one in shards),
            pages_in_cycle=sum(one.pages_in_cycle for one in shards),
        )

    def _orphans(self) -> Iterator[Row]:
        for segment, offsets in self._view.all_orphans().items():
            yield from (OrphanRow(segment, offset) for offset in sorted(offsets))

    def _at(self, moment: int) -> int:
        return self._timeline.wall_of(moment) if moment else 0

    def _scan(self, shard: int, function: str, *args: Word) -> Iterator[Any]:
        """The entries of a hash, each once: a hash that is being rearranged may tell one twice."""
        cursor, seen = b"0", set[bytes]()
        while True:
            cursor, found = self._ask(shard, function, *args, cursor, ENTRIES_AT_ONCE)
            for one in found:
                if one[0] not in seen:
                    seen.add(one[0])
                    yield one
            if cursor == b"0":
                return

    # Domains and hosts

    def _domains(self, shard: int) -> Iterator[Row]:
        for told in self._scan(shard, "domains"):
            name, pages, hosts, over, useful, high, low, looked_for, paused, window, errors, lowered, successes = told
            bits = int(window or b"0", 2)
            packed = bits.to_bytes((bits.bit_length() + 7) // 8, "big").hex()
            yield DomainRow(
                name.decode(), pages, hosts, over, useful, high << 32 | low, looked_for, self._at(paused), packed,
                errors, lowered, successes,
            )  # fmt: skip

    def _hosts(self, shard: int) -> Iterator[Row]:
        for told in self._scan(shard, "hosts"):
            name, fetched, cycle, in_cycle, lied_in, free, released, delay, crawl_delay, elapsed, since = told[:11]
            admitted, fresh, high, low, trap, over, reason, standing, next_at, _robots = told[11:]
            yield HostRow(
                name=name.decode(),
                fetched=fetched,
                cycle=cycle,
                fetched_in_cycle=in_cycle,
                lied_in=lied_in,
                free_at=self._at(free),
                released_at=self._at(released),
                delay_ms=delay,
                crawl_delay_ms=crawl_delay,
                mean_ms=elapsed,
                work_since_at=self._at(since),
                admitted=admitted,
                fresh=fresh,
                referrers=high << 32 | low,
                trap_at=self._at(trap),
                over=bool(over),
                reason=reason.decode(),
                until_at=self._at(next_at) if standing == _WAITING and reason else 0,
                parked=standing == _PARKED,
            )
            yield from self._of_host(shard, name)

    def _of_host(self, shard: int, name: bytes) -> Iterator[Row]:
        host = name.decode()
        after = b""
        while found := self._ask(shard, "queue", name, after, BUNDLES_AT_ONCE):
            for bundle in found:
                yield from self._bundle(host, bundle)
            after = found[-1][0]
        yield from self._outside(shard, name)
        for fingerprint, values in self._scan(shard, "records", name):
            yield self._record(host, fingerprint, values)
        robots, tallies = self._ask(shard, "rest_of_host", name)
        yield from (RobotsRow(origin.decode(), url.decode(), hops) for origin, url, hops in robots)
        yield from (tally_row(_tally(told)) for told in tallies)

    def _outside(self, shard: int, name: bytes) -> Iterator[Row]:
        """What is kept elsewhere of the host's queues."""
        after = b""
        while found := self._ask(shard, "chunks", name, after, BUNDLES_AT_ONCE):
            for _, number, chunk, count in found:
                told = self._ask(shard, "chunk", name, number, *self._view.kept(int(chunk)))
                if sum(len(bundle[6]) for bundle in told) != count:
                    raise FrontierError(
                        f"a part of the queue of {name.decode()} is not where it is kept",
                        "restore the table `spilled` of the database, or rebuild the frontier",
                    )
                for bundle in told:
                    yield from self._bundle(name.decode(), bundle)
            after = found[-1][0]

    # URLs

    def _bundle(self, host: str, told: list[Any]) -> Iterator[Row]:
        member, asked, hops, admitted, cycle, via, urls = told
        shelf = group = ""
        if len(member) > _PLACE_MEMBER:
            reason, name = _SHELVES[member[0] - 129], member[1:9]
            shelf = str(reason)
            group = name.hex() if reason is DeferReason.TRAP else "" if name == bytes(8) else CROWDED
        place = order.read_place(member[9:18] if shelf else member[:9])
        if asked:
            yield from (self._record(host, fingerprint, values, place) for fingerprint, values in urls)
            return
        for fingerprint, rank, tail in urls:
            yield UrlRow(
                fp=fingerprint.hex(),
                url=_spelled(host, tail.decode()),
                state=UrlState.PARKED if shelf else UrlState.QUEUED,
                rank=rank,
                level=order.level_of_lane(place.lane),
                depth=place.depth,
                hops=hops,
                cycle=cycle,
                admitted_s=admitted,
                via=via.decode(),
                lane=place.lane,
                step=place.step,
                tie=place.tie.hex(),
                shelf=shelf,
                group=group,
            )

    def _record(self, host: str, fingerprint: bytes, values: list[Any], place: order.Place | None = None) -> UrlRow:
        state, tail, rank, level, depth, hops, retries, cycle, admitted, via, settled, reason, detail = values[:13]
        due_at, due_reason, fetched, _bundle, status, segment, offset, finish, digest, etag, modified = values[13:24]
        page, changed_at, pending, trail, history, gone = values[24:30]
        capture = None
        if segment:
            capture = CaptureRow(
                status, segment.decode(), offset, finish, digest.hex(), etag.decode(), modified.decode(), changed_at,
                max(1, fetched), bool(page), bool(pending),
            )  # fmt: skip
        return UrlRow(
            fp=fingerprint.hex(),
            url=_spelled(host, tail.decode()),
            state=_STATES[state],
            rank=rank,
            level=level,
            depth=depth,
            hops=hops,
            retries=retries,
            cycle=cycle,
            admitted_s=admitted,
            via=via.decode(),
            lane=-1 if place is None else place.lane,
            step=-1 if place is None else place.step,
            tie="" if place is None else place.tie.hex(),
            asked=True,
            settled_s=settled,
            reason=reason.decode(),
            detail=detail.decode(),
            trail=tuple(one.decode() for one in trail),
            history=tuple(history),
            fetched=fetched,
            gone=bool(gone),
            due_at=self._at(due_at),
            due_reason=due_reason.decode(),
            capture=capture,
        )

    # What lies apart

    def _origins(self, shard: int) -> Iterator[Row]:
        for name, told, body in self._scan(shard, "origins"):
            kind, stored_at, fresh_until, status, failing_since, detail, moved_at = told
            yield OriginRow(
                name.decode(), kind.decode(), stored_at, self._at(fresh_until), status, self._at(failing_since),
                detail.decode(), self._at(moved_at), b64encode(body).decode(),
            )  # fmt: skip

    def _refused(self, shard: int) -> Iterator[Row]:
        for name, told in self._scan(shard, "refused"):
            url, reason, detail, at_s, via = told
            yield RefusedRow(
                name[:-17].decode(), name[-16:].hex(), url.decode(), reason.decode(), detail.decode(), at_s,
                via.decode(),
            )  # fmt: skip


def _spelled(host: str, tail: str) -> str:
    match tail[0]:
        case "s":
            return f"https://{host}{tail[1:]}"
        case "h":
            return f"http://{host}{tail[1:]}"
        case _:
            return tail[1:]


def _tally(told: list[Any]) -> SkeletonTally:
    """A tally with its rings."""
    poured, poured_hour, flagged_s, example, texts, shapes, hopes = told[11:18]
    tally = tally_told([*told[:11], flagged_s, example])
    tally.poured, tally.poured_hour = poured, poured_hour
    tally.texts, tally.shapes, tally.hopes = texts, shapes, hopes
    return tally
