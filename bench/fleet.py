"""N1, N5, F8: what a page and a URL cost the engines of a fleet: docs/capacity.md is worked out from it.

A page has 60 links, 27 of them new. Hosts are claimed for eight URLs, whose pages are settled in one call, as the
workers of a fleet do (`--alone`: each page in a call of its own, with all its links told, as other workers may). The
same pages go through the frontier on Valkey, with 1, 2, 4 and 8 workers on one server and on three, and through the one
on LMDB, where each page is settled for itself, in turns, so that all have the same machine; the least of the turns
counts. Before, so many pages that what a worker remembers of links is filled. Server CPU is what the servers say of
themselves (INFO), client CPU that of this process without making up the pages. A worker here is a connection of its own
with its own claims.

Memory is the difference of the server's used_memory over URLs that are admitted and stay queued; of what is noted of
every known URL, and of pages that were fetched and keep a record, MEMORY USAGE of their keys. A row of the catalogue is
measured as `bench catalogue` does, on PostgreSQL, and weighed by the size of its tables.

As machines differ, and this one may be shared, beside the figures stands what a plain Python call costs (`call_ns`).

    nephila bench fleet [--json] [--quick] [--large] [--growth] [--alone]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parent))

from postgres import running
from valkey_servers import NODE_TIMEOUT_MS, ValkeyServer, _known, _state, _until

import fleet_growth
from catalogue import measure as measure_catalogue
from frontier import call_ns
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import BudgetSettings, FleetSettings, FrontierSettings
from nephila.model.task import Candidate, Lease, Pace, Task, Token
from nephila.node.clock import SystemClock
from nephila.store.postgres import PostgresCatalogue
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

LINKS, NEW_HERE, NEW_ELSEWHERE = 60, 24, 3
HOSTS, SHARDS, CLAIMED = 400, 32, 25
WARM = 1_600
"""Pages of all workers before anything is measured."""
WORKERS = (1, 2, 4, 8)
ENDLESS = 10_000_000
URLS_PER_HOST = 1_000
"""In the measure of memory: a queue that is worth the name."""
SEGMENT = SegmentId("bench")
POLICY = Policy(
    FrontierSettings(look_ahead_ms=100, linger_ms=0.0),
    base_delay_ms=0,
    robots=False,
    budget=BudgetSettings(first_urls=ENDLESS, queued_per_host=ENDLESS, queued_per_prefix=ENDLESS),
)
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())


class Frontier(Protocol):
    """What is measured."""

    async def admit(self, candidates: list[Candidate]) -> object: ...  # noqa: D102
    async def claim(self, hosts: int, lease_s: float) -> list[Lease]: ...  # noqa: D102
    async def settle(  # noqa: D102
        self, token: Token, settlements: list[Settlement], release: Release | None
    ) -> object: ...
    async def confirm(self, segment: SegmentId, upto: int) -> int: ...  # noqa: D102
    async def close(self) -> None: ...  # noqa: D102


def candidate(host: int, number: int) -> Candidate:
    """A page of a host, its URL of an ordinary length."""
    url = f"https://www.site-{host}.com/section-{number % 7}/an-article-on-something-{number}.html"
    address = IDENTIFIER.identify(url)
    assert isinstance(address, Address)
    return Candidate(address, 1)


def path_bytes(one: Candidate) -> int:
    """Of a URL without scheme and host."""
    return len(one.address.url) - len("https://") - len(one.address.host)


class Site:
    """Hosts whose pages link to new ones and to known ones."""

    def __init__(self, hosts: int) -> None:
        self.known = [1] * hosts
        self.random = random.Random(1)
        self.end = 0
        self.made_s = 0.0

    def pages(self, lease: Lease) -> list[Settlement]:
        """The pages of a lease with their links; what making them up has cost is kept apart."""
        began = time.process_time()
        pages = [self._page(lease, task) for task in lease.tasks]
        self.made_s += time.process_time() - began
        return pages

    def _page(self, lease: Lease, task: Task) -> Settlement:
        host = int(lease.host.removeprefix("www.site-").removesuffix(".com"))
        links = [candidate(host, self._next(host)) for _ in range(NEW_HERE)]
        others = [self.random.randrange(len(self.known)) for _ in range(NEW_ELSEWHERE)]
        links += [candidate(other, self._next(other)) for other in others]
        while len(links) < LINKS:
            other = host if self.random.random() < 0.8 else self.random.randrange(len(self.known))
            links.append(candidate(other, self.random.randint(1, self.known[other])))
        self.end += 100
        ref = RecordRef(SEGMENT, self.end - 100, 90, self.end)
        draw = self.random.randbytes
        done = Done(ref, 200, draw(32), outlinks=LINKS, text=draw(8), shape=draw(8))
        return Settlement(task, done, links)

    def _next(self, host: int) -> int:
        self.known[host] += 1
        return self.known[host]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a page, microseconds of CPU."""

    engine: str
    nodes: int
    workers: int
    pages: int
    server_us: float
    client_us: float
    pages_per_s: float
    commands: float
    """Carried out by the servers for a page, those within functions included: no load of the machine is in it."""


def commands_of(servers: list[ValkeyServer]) -> int:
    """Commands that servers have carried out."""
    told = [value for server in servers for value in server.info("commandstats").values()]
    return sum(int(value.partition("calls=")[2].partition(",")[0]) for value in told)


def cpu_s(servers: list[ValkeyServer]) -> float:
    """CPU that servers say they have used."""
    used = [server.info("cpu") for server in servers]
    return sum(float(one["used_cpu_user"]) + float(one["used_cpu_sys"]) for one in used)


async def work(frontier: Frontier, site: Site, pages: int, *, together: bool) -> int:
    """One worker: claim and settle."""
    done = 0
    while done < pages:
        leases = await frontier.claim(CLAIMED, 300)
        await asyncio.gather(*(end(frontier, lease, site.pages(lease), together=together) for lease in leases))
        done += sum(len(lease.tasks) for lease in leases)
    return done


async def end(frontier: Frontier, lease: Lease, pages: list[Settlement], *, together: bool) -> None:
    """Settle the pages of a lease, in one call or one by one."""
    calls = [pages] if together else [[page] for page in pages]
    for call in calls:
        await frontier.settle(lease.token, call, Release(0, Pace(0)) if call is calls[-1] else None)


async def measure(
    engine: str, opened: Sequence[Frontier], servers: list[ValkeyServer], nodes: int, pages: int, *, together: bool
) -> Cost:
    """What a page costs with these workers."""
    site = Site(HOSTS)
    await opened[0].admit([candidate(host, 1) for host in range(HOSTS)])
    for one in opened:  # caches and functions are warm, then
        await work(one, site, max(CLAIMED, WARM // len(opened)), together=together)
    site.made_s = 0.0
    commands, server = commands_of(servers), cpu_s(servers)
    client, began = time.process_time(), time.perf_counter()
    done = sum(await asyncio.gather(*(work(one, site, pages // len(opened), together=together) for one in opened)))
    await opened[0].confirm(SEGMENT, site.end)
    wall, client, server = time.perf_counter() - began, time.process_time() - client, cpu_s(servers) - server
    commands = commands_of(servers) - commands
    for one in opened:
        await one.close()
    figures = (round(value / done * 1e6, 1) for value in (server, client - site.made_s))
    return Cost(engine, nodes, len(opened), done, *figures, round(done / wall, 1), round(commands / done, 1))


async def on_valkey(servers: list[ValkeyServer], workers: int, pages: int, *, together: bool) -> Cost:
    names, crawl = [server.name for server in servers], f"bench-{time.time_ns()}"
    opened: list[RedisFrontier] = []
    for number in range(workers):
        linger_ms = FleetSettings().join_ms if together else 0.0
        options = Opening(shards=SHARDS, joining=number > 0, brief=together, linger_ms=linger_ms)
        opened.append(
            await RedisFrontier.open(
                names, crawl, POLICY, worker=f"worker-{number}", clock=SystemClock(), options=options
            )
        )
    for one in opened:
        await one.meet()  # as they do every ten seconds: the first of them knows of no other yet
    return await measure("valkey", opened, servers, len(servers), pages, together=together)


async def on_lmdb(pages: int) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        frontier = LmdbFrontier(Path(folder) / "frontier", SystemClock(), POLICY, threaded=False)
        opened: list[Frontier] = [frontier]  # type: ignore[list-item]  # as above
        return await measure("lmdb", opened, [], 0, pages, together=False)


# Servers


@contextmanager
def started(count: int) -> Iterator[list[ValkeyServer]]:
    """One server, or a cluster of so many primaries; they append to a file, as an operator would have it."""
    folder = Path(tempfile.mkdtemp(prefix="nephila-bench-valkey-"))
    options = ("--appendonly", "yes", "--appendfsync", "everysec")
    if count > 1:
        options += ("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS))
    servers = [ValkeyServer(folder / str(number), *options) for number in range(count)]
    try:
        for server in servers:
            server.start()
        if count > 1:
            _join(servers)
        yield servers
    finally:
        for server in servers:
            server.stop(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _join(servers: list[ValkeyServer]) -> None:
    for number, server in enumerate(servers):
        server.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        first, last = 16384 * number // len(servers), 16384 * (number + 1) // len(servers) - 1
        server.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
        if number:
            servers[0].ask("CLUSTER", "MEET", "127.0.0.1", server.port)
    _until(lambda: all(_known(server) == len(servers) for server in servers), "the servers did not meet")
    _until(lambda: all(_state(server) == "ok" for server in servers), "the cluster did not come up")


# Memory


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of a URL in the engine."""

    urls: int
    hosts: int
    path: float
    """The mean length of path and query."""
    queued: float
    """Of a URL that waits, all told."""
    noted: float
    """Of that, what every known URL has."""
    fetched: float
    """Of a URL that was fetched, all told."""


def used_memory(server: ValkeyServer) -> int:
    return int(server.info("memory")["used_memory"])


async def measure_room(server: ValkeyServer, urls: int) -> Room:
    """Admit so many, settle some of other hosts, and look at the memory."""
    crawl, hosts = f"room-{time.time_ns()}", max(1, urls // URLS_PER_HOST)
    frontier = await RedisFrontier.open(
        [server.name], crawl, POLICY, worker="w", clock=SystemClock(), options=Opening(shards=1)
    )
    before, paths, added = used_memory(server), 0, 0
    for first in range(0, URLS_PER_HOST, 25):  # found 25 at a time, as pages bring them
        for host in range(hosts):
            found = [candidate(host, number) for number in range(first, first + 25)]
            paths += sum(map(path_bytes, found))
            added += (await frontier.admit(found)).added
    queued = (used_memory(server) - before) / added
    noted = _size(server, f"nephila:{{{crawl}:0}}:known") / added
    await frontier.close()
    fetched = await _fetched_bytes(server)
    return Room(added, hosts, *(round(value, 1) for value in (paths / added, queued, noted, fetched)))


def _size(server: ValkeyServer, pattern: str) -> int:
    cursor, size = b"0", 0
    while True:
        cursor, keys = server.ask("SCAN", cursor, "MATCH", pattern, "COUNT", 10_000)
        size += sum(int(server.ask("MEMORY", "USAGE", key, "SAMPLES", 0)) for key in keys)
        if cursor == b"0":
            return size


async def _fetched_bytes(server: ValkeyServer) -> float:
    """Of pages that were fetched once: their records, and what is noted of them."""
    crawl = f"fetched-{time.time_ns()}"
    frontier = await RedisFrontier.open(
        [server.name], crawl, POLICY, worker="w", clock=SystemClock(), options=Opening(shards=1)
    )
    hosts, each, done, end = 5, 200, 0, 0
    await frontier.admit([candidate(host, number) for host in range(hosts) for number in range(each)])
    while done < hosts * each:
        for lease in await frontier.claim(hosts, 300):
            settlements = []
            for task in lease.tasks:
                end += 100
                ref = RecordRef(SEGMENT, end - 100, 90, end)
                settlements.append(Settlement(task, Done(ref, 200, random.randbytes(32), outlinks=0), []))
            await frontier.settle(lease.token, settlements, Release(0, Pace(0)))
            done += len(settlements)
    await frontier.confirm(SEGMENT, end)
    await frontier.close()
    keys = (f"nephila:{{{crawl}:0}}:{kind}" for kind in ("r:www.site-*", "known"))
    return sum(_size(server, key) for key in keys) / done


async def measure_hosts(server: ValkeyServer, hosts: int) -> float:
    """Bytes of a host with one URL in its queue, each in a domain of its own."""
    frontier = await RedisFrontier.open(
        [server.name], f"hosts-{time.time_ns()}", POLICY, worker="w", clock=SystemClock(), options=Opening(shards=1)
    )
    before = used_memory(server)
    for first in range(0, hosts, 500):
        await frontier.admit([candidate(10_000_000 + host, 1) for host in range(first, first + 500)])
    used = used_memory(server) - before
    await frontier.close()
    return round(used / hosts, 1)


# The catalogue


def measure_rows(rows: int) -> dict[str, float]:
    """A row of the catalogue in PostgreSQL: microseconds, and bytes of its tables."""
    with running(18, "-cfsync=on", "-cshared_buffers=256MB") as server:
        size = int(server.query("SELECT pg_database_size(current_database())")[0][0])
        cost = measure_catalogue(
            "postgresql", lambda: PostgresCatalogue(server.settings, "bench", server.environ), server, rows, 5_000, 1
        )
        grown = int(server.query("SELECT pg_database_size(current_database())")[0][0]) - size
    return {"rows": rows, "server_us": cost.server_us, "client_us": cost.client_us, "bytes": round(grown / rows, 1)}


# All of it


def run(
    pages: int, turns: int, sizes: list[int], hosts: int, rows: int, say: Callable[[str], None], *, together: bool
) -> dict[str, Any]:
    """Measure everything."""
    costs: dict[tuple[str, int, int], list[Cost]] = {}
    with started(1) as one, started(3) as three:
        for turn in range(turns):
            found = [asyncio.run(on_lmdb(pages))]
            # To and fro: what the machine does meanwhile must not look like what workers do.
            for number in WORKERS if turn % 2 == 0 else WORKERS[::-1]:
                found += [asyncio.run(on_valkey(servers, number, pages, together=together)) for servers in (one, three)]
            for cost in found:
                say(f"{cost.engine} {cost.nodes} nodes, {cost.workers} workers: {cost.server_us} us server")
                costs.setdefault((cost.engine, cost.nodes, cost.workers), []).append(cost)
    with started(1) as one:
        host_bytes = asyncio.run(measure_hosts(one[0], hosts))
    rooms = []
    for size in sizes:
        with started(1) as one:
            say(f"admitting {size:,} URLs ...")
            rooms.append(asyncio.run(measure_room(one[0], size)))
    say("writing rows of the catalogue ...")
    return {
        "bench": "fleet",
        "together": together,
        "links_per_page": LINKS,
        "new_per_page": NEW_HERE + NEW_ELSEWHERE,
        "pages": [asdict(_least(costs[case])) for case in sorted(costs)],
        "host_bytes": host_bytes,
        "memory": [asdict(room) for room in rooms],
        "catalogue": measure_rows(rows),
        "call_ns": round(call_ns(), 1),
    }


def _least(turns: list[Cost]) -> Cost:
    return min(turns, key=lambda cost: cost.server_us + cost.client_us)


def show(report: dict[str, Any]) -> None:
    """The report for people."""
    print("engine   nodes  workers  server us/page  client us/page  commands/page")
    for row in report["pages"]:
        print(
            f"{row['engine']:8} {row['nodes']:5} {row['workers']:8} {row['server_us']:15} {row['client_us']:15}"
            f" {row['commands']:14}"
        )
    print("\n      URLs  path  queued  of that noted  fetched   (bytes of a URL in the engine)")
    for row in report["memory"]:
        print(f"{row['urls']:10,} {row['path']:5} {row['queued']:7} {row['noted']:14} {row['fetched']:8}")
    print(f"\nA host with one URL: {report['host_bytes']} bytes.")
    row = report["catalogue"]
    print(
        f"\nA row of the catalogue in PostgreSQL: {row['server_us']} us server, {row['client_us']} us client, "
        f"{row['bytes']} bytes.\nA Python call: {report['call_ns']} ns."
    )


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="nephila bench fleet", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="fewer pages, 100,000 URLs; ends within 45 s")
    parser.add_argument("--large", action="store_true", help="5,000,000 URLs in the engine, too")
    parser.add_argument("--growth", action="store_true", help="only: pages/s of 1, 2 and 4 workers, answers of 200 ms")
    parser.add_argument("--alone", action="store_true", help="each page in a call of its own, all its links told")
    given = parser.parse_args()
    if given.growth:
        print(json.dumps(fleet_growth.measure(5.0 if given.quick else 10.0), indent=None if given.json else 2))
        return
    quick = given.quick
    report = run(
        pages=100 if quick else 2_000,
        turns=1 if quick else 3,
        sizes=[100_000] if quick else [100_000, 1_000_000, *([5_000_000] if given.large else [])],
        hosts=5_000 if quick else 50_000,
        rows=2_000 if quick else 50_000,
        say=lambda sentence: None if given.json else print(sentence, file=sys.stderr, flush=True),
        together=not given.alone,
    )
    if given.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
